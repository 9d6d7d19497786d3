"""When a NodeSet may leave Slurm's configuration.

One rule, asked by the Controller, which takes its lines out, and by the NodeSet, which stays until they are.
slurmctld ends the jobs of a partition that is no longer configured, running and pending ones, at once and
without a word (seen with 26.05). So a NodeSet that is being deleted keeps its partition, which takes no new
jobs, for as long as anything names it.
"""

from collections.abc import Sequence

from slurm_operator import wire
from slurm_operator.api.nebius.slurmcluster import SlurmCluster
from slurm_operator.api.slinky.cluster import Cluster
from slurm_operator.api.slinky.controller import Controller, good_config
from slurm_operator.api.slinky.nodeset import NodeSet
from slurm_operator.conditions import Reason
from slurm_operator.manifests import kinds
from slurm_operator.manifests.objects import Pod
from slurm_operator.plan.world import OWNER, World
from slurm_operator.safety.gate import jobs_text
from slurm_operator.slurm.conf.lines import parse
from slurm_operator.slurm.jobs.job import SlurmJob
from slurm_operator.slurm.snapshot import Snapshot

SLURM_CONF = "slurm.conf"

UNREACHABLE = Reason.SLURM_UNREACHABLE


class Stays(wire.Record):
    """Why a NodeSet is still part of the configuration, and which jobs hold it up."""

    reason: Reason
    message: str
    jobs: tuple[int, ...] = ()


def may_leave_config(nodeset: NodeSet, world: World) -> Stays | None:
    """None when nothing needs its lines in slurm.conf any more; else what does."""
    controller = world.get(Controller, nodeset.metadata.namespace, nodeset.spec.controller)
    if not nodeset.metadata.is_terminating:
        return Stays(reason=Reason.IN_USE, message="the NodeSet is there")
    if world.find(Pod, OWNER, nodeset.metadata.uid):
        return Stays(reason=Reason.WORKERS_LEFT, message="its workers are drained, then removed")
    if controller is None or controller.spec.external or goes_as_a_whole(controller, world):
        return None
    if lines := _naming(controller.spec.extra_conf, nodeset.slurm_name):
        return Stays(
            reason=Reason.NAMED_IN_EXTRA_CONF,
            message=f"extraConf of Controller {controller.metadata.name} names {nodeset.slurm_name} in "
            f"line {lines[0]}; without it slurmctld would refuse its configuration. Take it out there",
        )
    return _jobs_of(nodeset, world)


def unread_nodesets(namespace: str, world: World) -> tuple[str, ...]:
    """NodeSets that are there but do not decode, and never did: any Controller may be theirs."""
    known = {nodeset.metadata.name for nodeset in world.all(NodeSet, namespace)}
    return tuple(name for name in world.unreadable(NodeSet, namespace) if name not in known)


def goes_as_a_whole(controller: Controller, world: World) -> bool:
    """It is being deleted, or the cluster is that it belongs to: then there is no configuration to leave."""
    whole = _owner_of(controller, world)
    return controller.metadata.is_terminating or (whole is not None and whole.metadata.is_terminating)


def _owner_of(controller: Controller, world: World) -> Cluster | SlurmCluster | None:
    """What the Controller is a part of, of either API."""
    meta = controller.metadata
    if meta.owner is not None and meta.owner.is_a(Cluster.KIND):
        return world.get(Cluster, meta.namespace, meta.owner.name)
    if meta.owner is not None and meta.owner.is_a(SlurmCluster.KIND) and world.serves(SlurmCluster.KIND):
        return world.get(SlurmCluster, meta.namespace, meta.owner.name)
    return None


def is_configured(nodeset: NodeSet, world: World) -> bool:
    """Whether its lines have to go, and slurmctld is known to run with files that have them."""
    if not nodeset.metadata.is_terminating or may_leave_config(nodeset, world) is not None:
        return False
    found = world.get(Controller, nodeset.metadata.namespace, nodeset.spec.controller)
    if found is None or found.spec.external or goes_as_a_whole(found, world):
        return False
    child = world.child(kinds.CONFIG_MAP, nodeset.metadata.namespace, good_config(found))
    text = (child.body.get("data") or {}).get(SLURM_CONF, "") if child is not None else ""
    return f"NodeSet={nodeset.slurm_name} Feature=" in text


def _jobs_of(nodeset: NodeSet, world: World) -> Stays | None:
    slurm = world.slurm(nodeset.metadata.namespace, nodeset.spec.controller)
    if not isinstance(slurm, Snapshot):
        return Stays(
            reason=UNREACHABLE, message=f"whether jobs name its partition cannot be seen: {slurm.why}"
        )
    if not nodeset.spec.partition.enabled:
        return None
    jobs: Sequence[SlurmJob] = slurm.jobs_in(nodeset.slurm_name)
    if not jobs:
        return _open(nodeset, slurm)
    return Stays(
        reason=Reason.JOBS_IN_PARTITION,
        message=f"without partition {nodeset.slurm_name} its jobs would end at once; "
        f"unfinished: {jobs_text(jobs)}. It takes no new ones; move those that wait to another partition, "
        "or cancel them",
        jobs=tuple(job.job_id for job in jobs),
    )


def _open(nodeset: NodeSet, slurm: Snapshot) -> Stays | None:
    """Idle workers are gone before slurmctld has read that it takes no new jobs: one may come until then."""
    partition = slurm.partitions.get(nodeset.slurm_name)
    if partition is None or not partition.takes_jobs:
        return None
    return Stays(
        reason=Reason.PARTITION_OPEN,
        message=f"slurmctld still takes jobs for partition {nodeset.slurm_name}, and is told not to first",
    )


def _naming(extra_conf: str, name: str) -> list[int]:
    """Lines of somebody else's that would break without the NodeSet."""
    return [
        setting.line
        for setting in parse(extra_conf, "extraConf").settings
        for pair in setting.pairs
        if pair.key.lower() == "nodes" and name in pair.value.split(",")
    ]
