"""What slurmctld would say about nodes, jobs, partitions and reservations after something happened."""

from collections.abc import Iterable
from datetime import datetime, timedelta

from slurm_operator import wire
from slurm_operator.api.slinky.nodeset import NodeSet
from slurm_operator.manifests.objects import Pod
from slurm_operator.reconcilers.nodeset.records.registration_check import Declared
from slurm_operator.slurm.conf.lines import Conf
from slurm_operator.slurm.conf.merge import worker_pairs
from slurm_operator.slurm.features import features
from slurm_operator.slurm.jobs.job import SlurmJob
from slurm_operator.slurm.node import SlurmNode
from slurm_operator.slurm.partition import Partition
from slurm_operator.slurm.reservation import Reservation
from slurm_operator.slurm.snapshot import Snapshot, jobs_by_node
from slurm_operator.slurm.states import BUSY, NodeBase, NodeFlag, NodeState
from slurm_operator.slurm.writes import Reserve, Unreserve, UpdateNodes


def is_over(job: SlurmJob, now: datetime) -> bool:
    """Its time limit has passed; one that is completing is taken to be done soon."""
    return job.state.is_completing or (job.deadline is not None and job.deadline <= now)


def without_jobs(snapshot: Snapshot, job_ids: Iterable[int]) -> Snapshot:
    """The same cluster after these jobs are done."""
    gone = set(job_ids)
    jobs = {job_id: job for job_id, job in snapshot.jobs.items() if job_id not in gone}
    by_node = jobs_by_node(jobs.values())
    held = {name for job in jobs.values() if job.state.holds_node for name in job.named_nodes}
    touched = {
        name for job_id in gone if job_id in snapshot.jobs for name in snapshot.jobs[job_id].named_nodes
    }
    nodes = {
        name: wire.replace(node, state=_idle(node.state)) if name in touched - held else node
        for name, node in snapshot.nodes.items()
    }
    return wire.replace(snapshot, jobs=jobs, jobs_by_node=by_node, nodes=nodes)


def _idle(state: NodeState) -> NodeState:
    words = state.words - BUSY
    return NodeState(words | {NodeBase.IDLE} if state.words & BUSY else words)


def nodes_of(snapshot: Snapshot, nodes: Iterable[str]) -> list[SlurmNode]:
    return [snapshot.nodes[name] for name in nodes if name in snapshot.nodes]


def drained(node: SlurmNode, reason: str, now: datetime) -> SlurmNode:
    if node.state.is_drain:
        return node
    state = NodeState(node.state.words | {NodeFlag.DRAIN})
    return wire.replace(node, state=state, reason=reason, reason_changed_at=now, reason_set_by="slurm")


def resumed(node: SlurmNode, *, from_down: bool = False) -> SlurmNode:
    words = node.state.words - {NodeFlag.DRAIN}
    if from_down and node.state.is_down:
        words = words - {NodeBase.DOWN} | {NodeBase.IDLE}
    return wire.replace(node, state=NodeState(words), reason="")


def updated(node: SlurmNode, write: UpdateNodes) -> SlurmNode:
    fields = ("comment", "extra", "features", "active_features", "topology", "weight", "gres")
    given = {name: getattr(write, name) for name in fields if getattr(write, name) is not None}
    return wire.replace(node, **given)


def added(name: str, conf: str) -> SlurmNode:
    """A record before any slurmd: switched off, as large as it was said to be."""
    said = {pair.key.lower(): pair.value for pair in worker_pairs(conf)}
    found, cpus = features(said.get("features", "")), _number(said.get("cpus", "")) or 1
    return SlurmNode(
        name=name,
        state=NodeState.of(NodeBase.IDLE, NodeFlag.CLOUD, NodeFlag.POWERED_DOWN, NodeFlag.DYNAMIC_NORM),
        features=found,
        active_features=found,
        gres=said.get("gres", ""),
        cpus=cpus,
        effective_cpus=cpus,
        real_memory_mb=_number(said.get("realmemory", "")) or 1,
    )


def registered(
    name: str, pod: Pod, record: SlurmNode | None, nodeset: NodeSet, declared: Declared
) -> SlurmNode:
    """A slurmd tells where it is; what else its record says is kept from before, a drain included."""
    running = next(
        one for one in pod.status.container_statuses if one.state.running is not None
    ).state.running
    assert running is not None
    if record is not None:
        return wire.replace(
            record,
            state=NodeState(record.state.words - {NodeFlag.POWERED_DOWN}),
            address=pod.status.pod_ip,
            slurmd_start_time=running.started_at,
        )
    cpus = _number(declared.conf.get("cpus", "")) or declared.cpus or 1
    return SlurmNode(
        name=name,
        state=NodeState.of("IDLE", "DYNAMIC_NORM"),
        address=pod.status.pod_ip,
        slurmd_start_time=running.started_at,
        features=(nodeset.slurm_name,),
        active_features=(nodeset.slurm_name,),
        cpus=cpus,
        effective_cpus=min(declared.cpus or cpus, cpus),
        real_memory_mb=_number(declared.conf.get("realmemory", "")) or declared.memory_mb or 1,
        gres=declared.conf.get("gres", "") or (f"gpu:{declared.gpus}" if declared.gpus else ""),
    )


def _number(text: str) -> int:
    return int(text) if text.isdecimal() else 0


def partitions(conf: Conf, snapshot: Snapshot) -> dict[str, Partition]:
    """Those in the file; of one that was there before, what slurmctld said about it is kept."""
    found: dict[str, Partition] = {}
    for line in conf.all("PartitionName"):
        for name in line.value.split(","):
            if name != "DEFAULT":
                before = snapshot.partitions.get(name, Partition(name=name))
                state = (line.option("State") or "UP").upper()
                found[name] = wire.replace(before, state=frozenset({state}))
    return found


def reserved(snapshot: Snapshot, write: Reserve | Unreserve) -> Snapshot:
    others = {name: one for name, one in snapshot.reservations.items() if name != write.name}
    if isinstance(write, Unreserve):
        return wire.replace(snapshot, reservations=others)
    before = snapshot.reservations.get(write.name, Reservation(name=write.name))
    start = write.start_time or before.start_time
    end = start + (write.duration or timedelta(days=365)) if start is not None else before.end_time
    made = wire.replace(
        before,
        nodes=write.nodes,
        start_time=start,
        end_time=end,
        users=write.users,
        accounts=write.accounts,
        flags=frozenset(write.flags),
    )
    return wire.replace(snapshot, reservations={**others, write.name: made})
