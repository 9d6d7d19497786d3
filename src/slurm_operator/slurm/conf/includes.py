"""Include lines followed: the file that Slurm reads in the end."""

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import PurePosixPath

from slurm_operator.slurm.conf.lines import Comment, Conf, Entry, Include, Setting, parse
from slurm_operator.slurm.conf.problems import Fault, LineProblem

# Slurm itself would follow a circle until its stack ends.
MAX_DEPTH = 16


def load(files: Mapping[str, str], name: str, directory: str = "/etc/slurm") -> Conf:
    """The file `name` with everything it includes in its place, from `files` by name.

    All files stand in one directory, as in a mounted ConfigMap. A file that is not there is a problem:
    slurmctld waits a minute for it and then gives up.
    """
    return _loaded(tuple(files.items()), name, directory)


@lru_cache(maxsize=128)
def _loaded(texts: tuple[tuple[str, str], ...], name: str, directory: str) -> Conf:
    files = dict(texts)
    entries: list[Entry] = []
    problems: list[LineProblem] = []
    for item in _read(files, name, directory, trail=(name,), cluster=None):
        if isinstance(item, LineProblem):
            problems.append(item)
        else:
            entries.append(item)
    return Conf(tuple(entries), tuple(problems))


def included(files: Mapping[str, str], names: Iterable[str], directory: str = "/etc/slurm") -> frozenset[str]:
    """The files that stand in the place of an Include line somewhere in `names`, or in one of these."""
    found: set[str] = set()
    waiting = [name for name in names if name in files]
    while waiting:
        conf = parse(files[waiting.pop()], "")
        cluster = conf.last("ClusterName")
        inside = {
            _name(entry.path, directory, cluster) for entry in conf.entries if isinstance(entry, Include)
        }
        fresh = [name for name in inside if name is not None and name in files and name not in found]
        found.update(fresh)
        waiting.extend(fresh)
    return frozenset(found)


def _read(
    files: Mapping[str, str], name: str, directory: str, trail: tuple[str, ...], cluster: str | None
) -> Iterator[Entry | LineProblem]:
    conf = parse(files[name], name)
    yield from conf.problems
    for entry in conf.entries:
        if isinstance(entry, Setting) and entry.key.lower() == "clustername":
            cluster = entry.value
        if isinstance(entry, Include):
            yield from _follow(files, entry, directory, trail, cluster)
        elif not isinstance(entry, Comment):
            yield entry


def _follow(
    files: Mapping[str, str], include: Include, directory: str, trail: tuple[str, ...], cluster: str | None
) -> Iterator[Entry | LineProblem]:
    name = _name(include.path, directory, cluster)
    if name is None or name not in files:
        yield _problem(include, f"the included file {include.path} is not there")
    elif name in trail or len(trail) >= MAX_DEPTH:
        yield _problem(include, f"{' includes '.join((*trail, name))}: a circle, or too deep")
    else:
        yield from _read(files, name, directory, (*trail, name), cluster)


def _name(path: str, directory: str, cluster: str | None) -> str | None:
    """The included file's name in our directory; None when it lies elsewhere. `%c` is the cluster's name."""
    if "%c" in path:
        path = path.replace("%c", (cluster or "").lower())
    whole = PurePosixPath(directory) / path
    return whole.name if whole.parent == PurePosixPath(directory) else None


def _problem(include: Include, reason: str) -> LineProblem:
    return LineProblem(include.file, include.line, reason, Fault.BAD_INCLUDE)
