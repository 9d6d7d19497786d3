"""Every file that slurmctld is to find in /etc/slurm, keys aside, and what keeps them from being made.

The files that the spec refers to are copied into the one ConfigMap that slurmctld mounts. Mounted directly,
an edit of theirs would reach slurmctld unchecked, and half of a change could arrive before the other half.
"""

import base64
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from slurm_operator.api.schema.problems import Problem, References, Severity, spec_problems
from slurm_operator.api.shared import names
from slurm_operator.api.shared.refs import Reference
from slurm_operator.api.slinky.cluster import Cluster
from slurm_operator.api.slinky.controller import cluster_name_problems, good_config
from slurm_operator.conditions import Reason
from slurm_operator.manifests import kinds
from slurm_operator.manifests.digests import digest
from slurm_operator.manifests.meta import Child, Manifest
from slurm_operator.manifests.objects import ConfigMap, Unread
from slurm_operator.reconcilers.controller.annotations import DIGEST_WORD, ETC_VOLUME
from slurm_operator.reconcilers.controller.configuration import kept_partitions
from slurm_operator.reconcilers.controller.configuration.slurm_conf import (
    CGROUP_CONF,
    Scripts,
    parts,
    slurm_conf,
)
from slurm_operator.reconcilers.controller.observe import Seen, once
from slurm_operator.reconcilers.shared.dependencies import Need
from slurm_operator.reconcilers.shared.partition_lines import CLUSTER_BEGIN, CLUSTER_END
from slurm_operator.slurm.conf import grammar
from slurm_operator.slurm.conf.inventory import SLURM_CONF as SLURM_CONF

# Read on every pass, so by a pattern: to parse whole files takes milliseconds.
_STAMP = re.compile(rf"^\s*SlurmctldParameters\s*=.*\b{DIGEST_WORD}([0-9a-f]+)", re.MULTILINE | re.IGNORECASE)
_PORT = re.compile(r"^\s*SlurmctldPort\s*=\s*\"?(\d+)", re.MULTILINE | re.IGNORECASE)

# What etcd takes in one object, less what the rest of the object needs.
MAX_BYTES = 1_000_000


@dataclass(frozen=True)
class Files:
    """Files by name, and the digest over all of them that stands in slurm.conf."""

    texts: Mapping[str, str] = field(default_factory=dict)
    binaries: Mapping[str, str] = field(default_factory=dict)

    @property
    def digest(self) -> str:
        """The digest that slurmctld reports when it has read these files; empty if none was stamped."""
        return _last(_STAMP, self.texts.get(SLURM_CONF, ""))

    @property
    def port(self) -> int:
        """Where slurmctld listens; of a range, the first."""
        return int(_last(_PORT, self.texts.get(SLURM_CONF, "")) or names.SLURMCTLD_PORT)

    @property
    def bytes(self) -> int:
        return sum(len(text.encode()) for text in self.texts.values()) + sum(map(len, self.binaries.values()))


@dataclass(frozen=True)
class Refusal:
    """Why a configuration is not used. `line` is 0 when the whole file, or no file, is meant."""

    reason: Reason
    message: str
    file: str = ""
    line: int = 0
    digest: str = ""


def digest_in(words: Iterable[str]) -> str:
    """The digest among the words of SlurmctldParameters, as slurmctld reports them."""
    return _last(_STAMP, "SlurmctldParameters=" + ",".join(words))


def _last(pattern: re.Pattern[str], text: str) -> str:
    """What the last line says that the pattern finds: of a key that is repeated, Slurm uses the last."""
    found = pattern.findall(text)
    return found[-1] if found else ""


def files_of(child: Child | None) -> Files | None:
    """The files in a ConfigMap of ours."""
    if child is None or SLURM_CONF not in child.body.get("data", {}):
        return None
    return Files(child.body["data"], child.body.get("binaryData") or {})


def with_mounted(files: Files, seen: Seen) -> Files:
    """The same with the files of users that the pods find beside them.

    The Slinky operator mounts each ConfigMap that the spec names. Here they are copied into ours.
    """
    texts: dict[str, str] = {}
    binaries: dict[str, str] = {}
    for found, paths in _mounted(seen):
        texts |= _at(found.data, paths)
        binaries |= _at(found.binary_data, paths)
    return Files({**texts, **files.texts}, {**binaries, **files.binaries})


def _at(entries: Mapping[str, str], paths: Mapping[str, str]) -> dict[str, str]:
    """Entries by the names of their files: all of them, or those with a path."""
    return {paths.get(key, key): entry for key, entry in entries.items() if key in paths or not paths}


def _mounted(seen: Seen) -> Iterator[tuple[ConfigMap, Mapping[str, str]]]:
    """ConfigMaps of users in /etc/slurm of the pods, and under which names, if not all entries are there."""
    template = seen.workload.body["spec"]["template"] if seen.workload is not None else {}
    for volume in (template.get("spec") or {}).get("volumes") or ():
        for source in (volume.get("projected") or {}).get("sources") or ():
            mounted = source.get("configMap") or {}
            found = seen.references.get(mounted.get("name", ""))
            if volume["name"] == ETC_VOLUME and isinstance(found, ConfigMap):
                yield found, {one["key"]: one["path"] for one in mounted.get("items") or ()}


@once
def missing(seen: Seen) -> list[Need]:
    """What must be there before the files can be made."""
    spec = seen.controller.spec
    found = []
    if spec.accounting and seen.accounting is None:
        found.append(
            Need(
                subject=f"Accounting {spec.accounting}",
                reason=Reason.ACCOUNTING_NOT_FOUND,
                message=f"There is no Accounting {spec.accounting!r} in namespace {seen.namespace!r}. "
                "The configuration is made as soon as there is one; if the name is a typo, correct "
                "spec.accountingRef.",
            )
        )
    for name, config_map in seen.references.items():
        if config_map is None:
            message = f"There is no ConfigMap {name!r} in namespace {seen.namespace!r}, which the spec names."
            found.append(
                Need(subject=f"ConfigMap {name}", reason=Reason.CONFIG_MAP_NOT_FOUND, message=message)
            )
        elif isinstance(config_map, Unread):
            message = f"ConfigMap {name!r} could not be read: {config_map.why}."
            found.append(Need(subject=f"ConfigMap {name}", reason=Reason.CONFIG_MAP_UNREAD, message=message))
    return found


@once
def wanted_files(seen: Seen) -> Files:
    """The files that the spec asks for. Only when nothing is missing."""
    texts, binaries = _referenced(seen)
    if not seen.controller.spec.external and "cgroup.conf" not in {*texts, *binaries}:
        texts["cgroup.conf"] = CGROUP_CONF
    listed = scripts(seen)
    asked = {**texts, SLURM_CONF: _slurm_conf_as_asked(seen)}
    kept = _kept_lines(seen, asked)
    plain = {**asked, SLURM_CONF: slurm_conf(seen, listed, kept=kept)} if kept else asked
    stamp = digest([plain, binaries])
    conf = slurm_conf(seen, listed, stamp, kept)
    return Files(dict(sorted({**texts, SLURM_CONF: conf}.items())), dict(sorted(binaries.items())))


@once
def partitions_kept(seen: Seen) -> list[str]:
    """Partitions that the spec no longer has, and that stay while jobs name them. Nothing may be missing."""
    texts, _ = _referenced(seen)
    return _kept(seen, {**texts, SLURM_CONF: _slurm_conf_as_asked(seen)})


@once
def _slurm_conf_as_asked(seen: Seen) -> str:
    """Without what is kept for the jobs that name it, and not yet stamped."""
    return slurm_conf(seen, scripts(seen))


def _kept(seen: Seen, asked: Mapping[str, str]) -> list[str]:
    mounted = _mounted_files(seen)
    return kept_partitions.kept(mounted.texts, asked, seen.slurm) if mounted is not None else []


def _kept_lines(seen: Seen, asked: Mapping[str, str]) -> list[str]:
    mounted, names_ = _mounted_files(seen), _kept(seen, asked)
    if mounted is None or not names_:
        return []
    return kept_partitions.lines(with_mounted(mounted, seen).texts, asked, names_)


def _mounted_files(seen: Seen) -> Files | None:
    """Of a slurmctld that has worked at some time: before that no job names anything."""
    is_proven = (kinds.CONFIG_MAP, good_config(seen.controller)) in seen.children
    if seen.controller.spec.external or not (is_proven or seen.ready_pods):
        return None
    return files_of(seen.children.get((kinds.CONFIG_MAP, seen.controller.child_names.config)))


def refusal(seen: Seen, files: Files) -> Refusal | None:
    """The first thing that is wrong with the spec or its files, as far as it shows without a daemon."""
    for problem in _spec_problems(seen):
        return Refusal(Reason.SPEC_REFUSED, str(problem), digest=files.digest)
    for name, sources in _collisions(seen):
        message = f"{' and '.join(sources)} have different files of the name {name}; rename one of them."
        return Refusal(Reason.FILES_COLLIDE, message, file=name, digest=files.digest)
    if files.bytes > MAX_BYTES:
        message = f"The files have {files.bytes} bytes together, and {MAX_BYTES} fit into a ConfigMap."
        return Refusal(Reason.FILES_TOO_LARGE, message, digest=files.digest)
    for fault in grammar.problems(files.texts):
        if fault.is_fatal:
            message = f"{fault}{_in_extra_conf(seen, fault.file, fault.line)}"
            return Refusal(Reason.CONFIG_REFUSED, message, fault.file, fault.line, files.digest)
    return None


def remarks(files: Files) -> list[str]:
    """Lines that Slurm takes, but not the way they read."""
    return [str(fault) for fault in grammar.problems(files.texts) if not fault.is_fatal]


def data(files: Files) -> Manifest:
    """The contents of a ConfigMap."""
    return {"data": dict(files.texts), **({"binaryData": dict(files.binaries)} if files.binaries else {})}


@once
def scripts(seen: Seen) -> Scripts:
    """File names by the key of slurm.conf that runs them, sorted."""
    spec = seen.controller.spec
    lists: Mapping[str, list[Reference]] = {
        "Prolog": spec.prolog_script_refs,
        "Epilog": spec.epilog_script_refs,
        "PrologSlurmctld": spec.prolog_slurmctld_script_refs,
        "EpilogSlurmctld": spec.epilog_slurmctld_script_refs,
    }
    return {
        key: tuple(sorted({name for ref in refs for name, _ in _entries(seen.references.get(ref.name))}))
        for key, refs in lists.items()
    }


def _entries(config_map: ConfigMap | Unread | None) -> Iterator[tuple[str, str | bytes]]:
    if isinstance(config_map, ConfigMap):
        yield from config_map.data.items()
        yield from ((name, base64.b64decode(value)) for name, value in config_map.binary_data.items())


def _sources(seen: Seen) -> Iterator[tuple[str, str, str | bytes]]:
    """Each file with the ConfigMap that it comes from. Of the one with the JWKS, only that entry is used."""
    jwks = seen.controller.spec.jwks_key_ref
    for name, config_map in seen.references.items():
        for file, content in _entries(config_map):
            if jwks is not None and (name, file) == (jwks.name, jwks.key):
                yield name, names.JWKS_FILE, content
            elif jwks is None or name != jwks.name or _is_listed(seen, name):
                yield name, file, content


def _is_listed(seen: Seen, name: str) -> bool:
    """Whether a ConfigMap is named for its files or scripts, too."""
    spec = seen.controller.spec
    return any(
        ref.name == name
        for refs in (
            spec.config_file_refs,
            spec.prolog_script_refs,
            spec.epilog_script_refs,
            spec.prolog_slurmctld_script_refs,
            spec.epilog_slurmctld_script_refs,
        )
        for ref in refs
    )


def _referenced(seen: Seen) -> tuple[dict[str, str], dict[str, str]]:
    texts, binaries = {}, {}
    for _, file, content in _sources(seen):
        if isinstance(content, str):
            texts[file] = content
        else:
            binaries[file] = base64.b64encode(content).decode()
    return texts, binaries


def _collisions(seen: Seen) -> Iterator[tuple[str, list[str]]]:
    found: dict[str, dict[str, str | bytes]] = {}
    for source, file, content in _sources(seen):
        found.setdefault(file, {})[f"ConfigMap {source}"] = content
    for file, contents in sorted(found.items()):
        if len({value if isinstance(value, bytes) else value.encode() for value in contents.values()}) > 1:
            yield file, sorted(contents)


def _spec_problems(seen: Seen) -> Iterator[Problem]:
    controller = seen.controller
    refs = References(
        config_maps={
            name: frozenset({*found.data, *found.binary_data})
            for name, found in seen.references.items()
            if isinstance(found, ConfigMap)
        },
        claims={seen.claim.metadata.name: seen.claim.spec.access_modes} if seen.claim is not None else {},
        cluster_names=seen.taken_names,
    )
    problems = [
        *spec_problems(controller.spec, None, refs),
        *cluster_name_problems(controller.cluster_name, controller.status.cluster_name or None, refs),
    ]
    yield from (problem for problem in problems if problem.severity is Severity.ERROR)


def _in_extra_conf(seen: Seen, file: str, line: int) -> str:
    """Where the user finds a line of slurm.conf, if it is one of the user's."""
    before, extra, _ = parts(seen, scripts(seen), "x")
    first = before.count("\n") + 1
    if file != SLURM_CONF or not first <= line < first + extra.count("\n"):
        return ""
    return f" ({_edited_at(seen, line - first + 1)})"


def _edited_at(seen: Seen, line: int) -> str:
    """Where a person edits a line of the Controller's extraConf: in its Cluster, where that wrote it."""
    owner = seen.controller.metadata.owner
    if owner is None or not owner.is_a(Cluster.KIND):
        return f"line {line} of spec.extraConf"
    lines = seen.controller.spec.extra_conf.splitlines()
    begin, end = (lines.index(mark) + 1 if mark in lines else 0 for mark in (CLUSTER_BEGIN, CLUSTER_END))
    if line > end:
        return f"line {line - end} of spec.extraConf of Cluster {owner.name}"
    return f"spec.{'partitions' if line > begin else 'isolation'} of Cluster {owner.name}"
