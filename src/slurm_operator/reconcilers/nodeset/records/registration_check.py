"""Workers that are not in Slurm what their pod promises: declared against registered, in words."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from typing import Self

from slurm_operator.api.shared import names
from slurm_operator.api.shared.worker_parts import Records
from slurm_operator.api.slinky.nodeset import NodeSet
from slurm_operator.manifests.meta import Manifest
from slurm_operator.plan.step import Step, look
from slurm_operator.reconcilers.nodeset import identity
from slurm_operator.reconcilers.nodeset.observe import Seen
from slurm_operator.reconcilers.nodeset.records.attributes import place_problem
from slurm_operator.reconcilers.nodeset.worker.rejoin import comes_back
from slurm_operator.reconcilers.nodeset.workers import Worker
from slurm_operator.reconcilers.shared.node_lines import amount, limits, own_conf
from slurm_operator.safety.steps import FOR_PEOPLE
from slurm_operator.slurm.conf.merge import worker_pairs
from slurm_operator.slurm.node import SlurmNode
from slurm_operator.slurm.snapshot import Snapshot
from slurm_operator.slurm.tres import TresError, gres, gres_counts

# A ready worker that Slurm does not know by then has something in its way.
REGISTERS_WITHIN = timedelta(seconds=30)

# A thousand pods start one after the other. While one has just come up, the next one may follow, for so long.
FOLLOWS_WITHIN = timedelta(seconds=3)
STARTS_IN_A_CROWD = timedelta(minutes=5)

# Items of extraConf by which somebody keeps CPUs from jobs.
SET_ASIDE = {"corespeccount", "cpuspeclist"}

_NO_TIME = timedelta(0)


def mismatches(seen: Seen) -> list[Manifest]:
    """One entry for each worker that differs. Nothing is said while Slurm is silent."""
    if not isinstance(seen.slurm, Snapshot):
        return []
    declared = Declared.by(seen.nodeset)
    found = ((worker, "; ".join(_mismatches_of(worker, declared, seen))) for worker in seen.workers)
    return [{"slurmNode": worker.slurm_node, "message": message} for worker, message in found if message]


@dataclass(frozen=True)
class Declared:
    """What a worker should be: by its NodeSet, by extraConf (keys in small letters), and by its limits."""

    slurm_name: str
    conf: Mapping[str, str]
    cpus: int
    memory_mb: int
    gpus: int

    @classmethod
    def by(cls, nodeset: NodeSet) -> Self:
        pairs = {pair.key.lower(): pair.value for pair in worker_pairs(nodeset.spec.extra_conf)}
        cpus, memory_mb = limits(nodeset)
        return cls(nodeset.slurm_name, pairs, int(cpus), int(memory_mb), _gpus(nodeset))


def _gpus(nodeset: NodeSet) -> int:
    """Devices such as nvidia.com/gpu that the container gets."""
    own = (nodeset.spec.slurmd.get("resources") or {}).get("limits") or {}
    return sum(int(amount(value)) for key, value in own.items() if key.endswith("/gpu"))


def _mismatches_of(worker: Worker, declared: Declared, seen: Seen) -> Iterator[str]:
    problem = place_problem(worker)
    if problem is not None:
        yield problem
    if seen.is_daemon and worker.kube_node is not None:
        problem = identity.override_problem(worker.kube_node)
        if problem is not None:
            yield f"{problem}. It keeps the name that it has"
    record = worker.record
    if record is None:
        if unregistered_for(worker, seen.now) >= REGISTERS_WITHIN:
            yield _unregistered(worker, seen)
        return
    if record.state.is_invalid:
        yield f"Slurm refuses what it registered with: {record.reason or 'it gives no reason'}"
    if _is_kept_down(worker, record):
        yield _down(record)
    if declared.slurm_name not in record.features and worker.revision == seen.revision.hash:
        yield _unnamed(record, declared.slurm_name)
    yield from _version(record, seen)
    yield from _cpus(record, declared)
    yield from _memory(record, declared)
    yield from _gres(record, declared)


def _is_kept_down(worker: Worker, record: SlurmNode) -> bool:
    """slurmd runs and answers, but somebody, or slurm.conf, wants that a human looks at it first."""
    is_up = worker.is_ready and not worker.is_terminating and not record.state.is_unresponsive
    return is_up and record.state.is_down and not record.is_drained_by_us and not comes_back(worker)


def _down(record: SlurmNode) -> str:
    by, given = record.reason_by
    who, why = by or "somebody", f"with the reason {given!r}" if given else "without a reason"
    back = f"scontrol update nodename={record.name} state=resume"
    return f"it takes no jobs: {who} called it DOWN {why}, and it stays so until somebody says `{back}`"


def _unnamed(record: SlurmNode, name: str) -> str:
    wanted = ",".join(sorted({*record.features, name}))
    return (
        f"its record has not the feature {name}, by which partitions find the workers of this NodeSet. "
        f"`scontrol update nodename={record.name} features={wanted} activefeatures={wanted}` gives it one"
    )


def unregistered_for(worker: Worker, now: datetime) -> timedelta:
    """How long it has been ready without Slurm knowing it; no time at all for others.

    One that slurmctld has forgotten the start of is waited for from then on.
    """
    if worker.record is not None or not worker.is_ready or worker.is_terminating:
        return _NO_TIME
    since = worker.ready_changed_at
    if worker.known_record is not None and isinstance(worker.slurm, Snapshot):
        since = worker.slurm.unstarted_since.get(worker.slurm_node)
    return now - since if since is not None else _NO_TIME


def look_again(workers: Sequence[Worker], now: datetime) -> Step:
    """When one is late. Everybody is up, so the last of them registers in a moment, and Slurm is read often.

    While pods still start, nobody hurries. Who has been at it for long, starting or registering, is not
    waited for: the others need us.
    """
    unregistered = [wait for worker in workers if (wait := unregistered_for(worker, now))]
    awaited = [wait for wait in unregistered if timedelta(0) < wait < REGISTERS_WITHIN]
    within = STARTS_IN_A_CROWD if awaited and min(awaited) < FOLLOWS_WITHIN else REGISTERS_WITHIN
    is_awaited = bool(awaited) and not any(_is_starting(worker, now, within) for worker in workers)
    return look((REGISTERS_WITHIN - wait for wait in unregistered), asks_slurm=is_awaited)


def _is_starting(worker: Worker, now: datetime, within: timedelta) -> bool:
    """It is new and not yet up; one that was registered before is not, whatever became of its machine."""
    created = worker.pod.metadata.creation_timestamp
    is_new = created is not None and now - created < within
    return is_new and not (worker.is_ready or worker.is_registered or worker.is_terminating)


def _unregistered(worker: Worker, seen: Seen) -> str:
    assert isinstance(seen.slurm, Snapshot)
    if worker.known_record is not None:
        since = seen.slurm.unstarted_since[worker.slurm_node]
        return (
            f"its slurmd has not registered again since slurmctld was reconfigured or restarted at "
            f"{since:%H:%M:%S} UTC. Its jobs run on; look into the log of its slurmd"
        )
    other = seen.slurm.nodes.get(worker.slurm_node)
    if other is not None:
        return f"its pod is ready, but Slurm's record of that name is about another one, at {other.address}"
    return (
        "its pod is ready, but Slurm does not know it. It is not deleted, because a job may still run there; "
        "it should register again within a minute; if it does not, see the log of its slurmd. Images of "
        "others do not register again. With the right to pods/exec the operator looks whether a step runs "
        "there, and replaces it if none does. Without that right: "
        f"`kubectl exec {worker.name} -c slurmd -- sh -c '{FOR_PEOPLE}'` prints nothing where no step runs; "
        f"then annotate the pod with {names.ALLOW_DELETION}=true and delete it"
    )


def _version(record: SlurmNode, seen: Seen) -> Iterator[str]:
    """slurmctld understands older slurmds, not newer ones: the head is always updated first."""
    assert isinstance(seen.slurm, Snapshot)
    ours, heads = _series(record.version), _series(seen.slurm.release)
    if ours and heads and ours > heads:
        head = f"slurmctld {seen.slurm.release}"
        yield f"slurmd {record.version} is newer than {head}; update the Controller first"


@cache
def _series(version: str) -> tuple[int, ...]:
    """26.05 of 26.05.5; nothing of what is no version."""
    words = version.split(".")[:2]
    return tuple(map(int, words)) if len(words) == 2 and all(word.isdecimal() for word in words) else ()


def declares_otherwise(record: SlurmNode, nodeset: NodeSet) -> bool:
    """A worker that comes now would not be what this record says: of another NodeSet, or of other size."""
    if is_of_another(record, nodeset):
        return True
    said = {pair.key.lower(): pair.value for pair in worker_pairs(_promised(nodeset))}
    pairs = ((said.get("cpus", ""), record.cpus), (said.get("realmemory", ""), record.real_memory_mb))
    is_other = any(wanted.isdecimal() and int(wanted) != there for wanted, there in pairs)
    return is_other or _has_other_gres(record, said.get("gres", ""))


def _promised(nodeset: NodeSet) -> str:
    """What slurmd says of itself; with a record that is made before it, the limits too."""
    is_ours = nodeset.spec.records is Records.CREATED
    return own_conf(nodeset) if is_ours else nodeset.spec.extra_conf


def is_of_another(record: SlurmNode, nodeset: NodeSet) -> bool:
    """It was made when the NodeSet was called otherwise: no partition finds a worker by that record."""
    return nodeset.slurm_name not in record.features


def _has_other_gres(record: SlurmNode, said: str) -> bool:
    try:
        wanted, there = gres_counts(gres(said)), gres_counts(gres(record.gres))
    except TresError:
        return False
    return any(count != there.get(name, 0) for name, count in wanted.items())


def _cpus(record: SlurmNode, declared: Declared) -> Iterator[str]:
    """Those of the record by extraConf; and those that jobs get by the limits, unless extraConf has fewer.

    Of what extraConf itself sets aside the limits know nothing. And a part of a core is no difference: jobs
    get whole ones, and no limit of one CPU could ever be met where a core has two.
    """
    said = int(declared.conf["cpus"]) if declared.conf.get("cpus", "").isdecimal() else 0
    if said and said != record.cpus:
        yield from _differs("CPUs", "extraConf", said, record.cpus)
    elif declared.cpus and record.effective_cpus and SET_ASIDE.isdisjoint(declared.conf):
        is_less = 0 < said < declared.cpus
        wanted, where = (said, "extraConf") if is_less else (declared.cpus, "the pod's limits")
        if abs(wanted - record.effective_cpus) >= record.cpus_per_core:
            yield from _differs("CPUs for jobs" if said else "CPUs", where, wanted, record.effective_cpus)


def _memory(record: SlurmNode, declared: Declared) -> Iterator[str]:
    what, there = "MiB of memory", record.real_memory_mb
    if declared.conf.get("realmemory", "").isdecimal():
        yield from _differs(what, "extraConf", int(declared.conf["realmemory"]), there)
    elif there and declared.memory_mb > there:  # Of less than the machine has, slurmd takes the rest away.
        yield from _differs(what, "the pod's limits", declared.memory_mb, there)


def _gres(record: SlurmNode, declared: Declared) -> Iterator[str]:
    if not declared.gpus and "gres" not in declared.conf:
        return
    try:
        wanted, there = gres_counts(gres(declared.conf.get("gres", ""))), gres_counts(gres(record.gres))
    except TresError as error:
        yield f"GRES cannot be compared: {error}"
        return
    for name, count in wanted.items():
        yield from _differs(f"GRES {name}", "extraConf", count, there.get(name, 0))
    if not declared.gpus:
        return
    if "gpu" not in wanted:
        yield from _differs("GRES gpu", "the pod's limits", declared.gpus, there.get("gpu", 0))
    elif wanted["gpu"] != declared.gpus:
        yield f"GRES gpu: {wanted['gpu']} by extraConf, {declared.gpus} by the pod's limits"


def _differs(what: str, where: str, declared: int, registered: int) -> Iterator[str]:
    if declared != registered:
        yield f"{what}: {declared} by {where}, {registered} in Slurm"
