"""Whether Slurm could read a configuration: our own check, in microseconds, before any daemon is asked.

It refuses what the parser of Slurm 26.05 refuses. What only slurmctld can tell (plugins that are missing,
nodes of a partition that do not exist, options that exclude each other) is left to the rehearsal.
"""

from collections.abc import Iterator, Mapping
from functools import lru_cache

from slurm_operator.slurm.conf import plugstack, topology_yaml
from slurm_operator.slurm.conf.files.node_files import CGROUP_CONF, GRES_CONF, MPI_CONF
from slurm_operator.slurm.conf.files.slurm_conf import SLURM_CONF
from slurm_operator.slurm.conf.files.slurmdbd_conf import SLURMDBD_CONF
from slurm_operator.slurm.conf.files.topology_conf import TOPOLOGY_CONF
from slurm_operator.slurm.conf.includes import load
from slurm_operator.slurm.conf.keys import Key, Table, did_you_mean
from slurm_operator.slurm.conf.lines import Pair, Setting
from slurm_operator.slurm.conf.problems import Fault, LineProblem

TABLES: Mapping[str, Table] = {
    "slurm.conf": SLURM_CONF,
    "slurmdbd.conf": SLURMDBD_CONF,
    "cgroup.conf": CGROUP_CONF,
    "gres.conf": GRES_CONF,
    "mpi.conf": MPI_CONF,
    "topology.conf": TOPOLOGY_CONF,
}


def problems(files: Mapping[str, str]) -> list[LineProblem]:
    """What is wrong with these files, sorted by place. What is no file of Slurm's own is passed over.

    A file that another one includes is checked there, as part of it.
    """
    return list(_problems(tuple(files.items())))


@lru_cache(maxsize=128)
def _problems(texts: tuple[tuple[str, str], ...]) -> tuple[LineProblem, ...]:
    files = dict(texts)
    found: list[LineProblem] = []
    for name, text in texts:
        if name in TABLES:
            found.extend(_of_file(files, name))
        elif name == "topology.yaml":
            found.extend(topology_yaml.problems(text, name))
        elif name == "plugstack.conf":
            found.extend(plugstack.problems(text, name))
    return tuple(sorted(set(found)))


def _of_file(files: Mapping[str, str], name: str) -> Iterator[LineProblem]:
    conf = load(files, name)
    yield from conf.problems
    for setting in conf.settings:
        yield from _of_line(setting, TABLES[name])


def _of_line(setting: Setting, table: Table) -> Iterator[LineProblem]:
    key = table.get(setting.key.lower())
    if key is None:
        yield _unknown(setting, setting.key, table, "")
        return
    yield from _of_pair(setting, setting.pairs[0], key)
    for pair in setting.pairs[1:]:
        option = key.options.get(pair.key.lower())
        if option is not None:
            yield from _of_pair(setting, pair, option)
        elif key.options:
            yield _unknown(setting, pair.key, key.options, f" behind {key.name}=")
        else:
            reason = f"{pair.key}= must begin a line of its own; nothing may follow {key.name}="
            yield LineProblem(setting.file, setting.line, reason, Fault.SYNTAX)


def _of_pair(setting: Setting, pair: Pair, key: Key) -> Iterator[LineProblem]:
    if key.refused:
        yield _problem(setting, f"{key.name} was removed: {key.refused}", Fault.BAD_VALUE)
    elif key.ignored:
        yield _problem(setting, f"Slurm passes over {key.name}: {key.ignored}", Fault.IGNORED)
    elif complaint := key.check(pair.value):
        yield _problem(setting, f"{key.name}: {complaint}", Fault.BAD_VALUE)


def _unknown(setting: Setting, name: str, table: Table, where: str) -> LineProblem:
    reason = f"there is no key {name}{where}{did_you_mean(name, table.values())}"
    return _problem(setting, reason, Fault.UNKNOWN_KEY)


def _problem(setting: Setting, reason: str, fault: Fault) -> LineProblem:
    return LineProblem(setting.file, setting.line, reason, fault)
