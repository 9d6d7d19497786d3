"""Workers that Soperator made, taken over with the jobs in them.

A person asks for it by an annotation on the SlurmCluster. Then each NodeSet marks the pods of its StatefulSet
(of Kruise) as workers of its part, deletes that StatefulSet without them, and makes the part, which adopts
them. Each step is one write that can be repeated; Kruise makes no pod whose StatefulSet is gone. Until Slurm
answers, the gate is shut for every worker.

slurmctld, login pods and Deployments are deleted by the person: no job runs in them.
"""

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from slurm_operator.api.nebius import names
from slurm_operator.api.nebius.nodeset import NodeSet
from slurm_operator.api.nebius.slurmcluster import SlurmCluster
from slurm_operator.api.schema.explicit_fields import explicit_fields
from slurm_operator.api.shared import names as shared_names
from slurm_operator.api.shared.meta import Meta, key_of
from slurm_operator.conditions import Reason
from slurm_operator.listing import first_few
from slurm_operator.manifests import kinds
from slurm_operator.manifests.digests import digest
from slurm_operator.manifests.meta import Child
from slurm_operator.manifests.objects import Pod
from slurm_operator.plan.actions import Action, DeleteObject, PatchObject, Wait
from slurm_operator.plan.world import NOBODY, OWNER, OWNER_NAME, World
from slurm_operator.reconcilers.nebius.shared.families import Family
from slurm_operator.reconcilers.nebius.shared.objects import APP
from slurm_operator.reconcilers.nebius.shared.root import WORKER
from slurm_operator.reconcilers.nebius.shared.soperator_pods import KRUISE, RUNNING, Remains

TAKING_OVER: Final = Reason.TAKING_OVER
TAKEN_OVER: Final = Reason.TAKEN_OVER
REFUSED: Final = Reason.TAKEOVER_REFUSED
LOGIN_RUNNING: Final = Reason.SOPERATOR_LOGIN_RUNNING

# What is marked or deleted wakes nobody.
SOON: Final = timedelta(seconds=1)

_SLURMD: Final = "slurmd"
# As what Soperator labels workers; older releases had the other word.
COMPONENTS: Final = (WORKER, "worker")
# Fields of a NodeSet that no pod is made from.
_OF_NO_POD: Final = (
    "replicas",
    "max_unavailable",
    "update_strategy",
    "cluster_name",
    "ephemeral_nodes",
    "initial_number_ephemeral_nodes",
)


@dataclass(frozen=True)
class Handover:
    """What there is of one NodeSet's workers while they change hands."""

    is_wanted: bool = False  # The SlurmCluster's annotation asks for it.
    stateful_set: Child | None = None  # Of Kruise.
    unmarked: tuple[Pod, ...] = ()
    owned: tuple[Pod, ...] = ()  # By Kruise's StatefulSet, as far as is known.
    has_taken_over: bool = False  # Workers that Soperator made are the part's, or about to be.


def is_wanted(cluster: SlurmCluster) -> bool:
    return cluster.metadata.annotations.get(names.TAKE_OVER) == "true"


def observe(nodeset: NodeSet, cluster: SlurmCluster, part: Meta | None, world: World) -> Handover:
    wanted = is_wanted(cluster)
    if not wanted and part is not None and shared_names.KEEPS_TAKEN_OVER not in part.annotations:
        return Handover()
    meta = nodeset.metadata
    owned = tuple(_owned(meta, cluster.metadata.name, world))
    orphans = [
        pod for pod in world.find(Pod, OWNER, NOBODY) if _is_worker_of(pod, meta, cluster.metadata.name)
    ]
    ours = world.find(Pod, OWNER, part.uid) if part is not None else ()
    found = world.child(kinds.KRUISE_STATEFUL_SET, meta.namespace, meta.name)
    is_theirs = found is not None and _instance(found.metadata) == cluster.metadata.name
    return Handover(
        is_wanted=wanted,
        stateful_set=found if is_theirs else None,
        unmarked=tuple(pod for pod in (*owned, *orphans) if not _is_marked(pod) and not _ends(pod)),
        owned=owned,
        has_taken_over=any(_is_marked(pod) for pod in (*orphans, *ours)),
    )


def _owned(meta: Meta, cluster: str, world: World) -> Iterator[Pod]:
    for pod in world.find(Pod, OWNER_NAME, f"{meta.namespace}/{meta.name}"):
        owner = pod.metadata.owner
        if owner is not None and owner.group == KRUISE and _is_worker_of(pod, meta, cluster):
            yield pod


def _is_worker_of(pod: Pod, nodeset: Meta, cluster: str) -> bool:
    labels = pod.metadata.labels
    return (
        pod.metadata.namespace == nodeset.namespace
        and labels.get(shared_names.APP_NAME) == APP
        and _instance(pod.metadata) == cluster
        and labels.get(shared_names.APP_COMPONENT) in COMPONENTS
        and re.fullmatch(rf"{re.escape(nodeset.name)}-\d+", pod.metadata.name) is not None
    )


def _instance(meta: Meta) -> str:
    return meta.labels.get(shared_names.APP_INSTANCE, "")


def _is_marked(pod: Pod) -> bool:
    return shared_names.POD_TAKEN_OVER in pod.metadata.annotations


def _ends(pod: Pod) -> bool:
    return pod.metadata.is_terminating or pod.has_ended


def made_from(nodeset: NodeSet) -> str:
    """A digest of what pods of a NodeSet are made from. While it is the same, a taken over worker stays."""
    return digest(explicit_fields(nodeset.spec, without=_OF_NO_POD))


def next_steps(nodeset: NodeSet, found: Handover, family: Family) -> list[Action]:
    """What brings the workers of a NodeSet closer to its part; nothing when they are its own."""
    if not found.is_wanted or not (found.stateful_set or found.unmarked or found.owned):
        return []
    if why := _why_not(nodeset, found, family):
        message = (
            f"The workers of NodeSet {nodeset.metadata.name!r} cannot be taken over: {why}. They stay as "
            f"they are. Remove annotation {names.TAKE_OVER} from SlurmCluster {nodeset.cluster!r} and see "
            "`kubectl slurm doctor --from soperator`."
        )
        return [Wait(subject=f"NodeSet {nodeset.metadata.name}", reason=REFUSED, message=message)]
    if found.unmarked:
        return [_mark(pod, nodeset) for pod in found.unmarked]
    if found.stateful_set is not None and not found.stateful_set.metadata.is_terminating:
        return [_released(found.stateful_set)]
    return [taking_over([nodeset.metadata.name], nodeset.cluster)]


def _why_not(nodeset: NodeSet, found: Handover, family: Family) -> str:
    if nodeset.spec is not None and nodeset.spec.ephemeral_nodes:
        return "ephemeralNodes is true, and which of them run is up to Soperator"
    if family is not Family.SOPERATOR:
        return "they are to have images of this operator, whose records in Slurm are made another way"
    without = [
        pod.metadata.name
        for pod in (*found.unmarked, *found.owned)
        if all(container.name != _SLURMD for container in pod.spec.containers)
    ]
    # The gate takes a pod without this container for one in which slurmd has never run.
    return f"{first_few(without, 3)} has no container {_SLURMD!r}" if without else ""


def _mark(pod: Pod, nodeset: NodeSet) -> PatchObject:
    labels = {
        shared_names.LABEL_PART: _SLURMD,
        shared_names.LABEL_PART_NAME: nodeset.metadata.name,
        shared_names.LABEL_CLUSTER: nodeset.cluster,
    }
    notes = {**pod.metadata.annotations, shared_names.POD_TAKEN_OVER: made_from(nodeset)}
    return PatchObject(
        kind=kinds.POD,
        key=key_of(pod),
        uid=pod.metadata.uid,
        operations=(
            {"op": "test", "path": "/metadata/resourceVersion", "value": pod.metadata.resource_version},
            {"op": "add", "path": "/metadata/labels", "value": {**pod.metadata.labels, **labels}},
            {"op": "add", "path": "/metadata/annotations", "value": notes},
        ),
        reason=TAKEN_OVER,
        message=f"{pod.metadata.name}, which Soperator made, is a worker of NodeSet {nodeset.metadata.name} "
        "with the jobs in it",
    )


def _released(stateful_set: Child) -> DeleteObject:
    return DeleteObject(
        kind=kinds.KRUISE_STATEFUL_SET,
        key=key_of(stateful_set),
        uid=stateful_set.metadata.uid,
        reason=TAKEN_OVER,
        message=f"deleted StatefulSet {stateful_set.metadata.name} of Kruise and kept its pods",
        keeps_dependents=True,
    )


def taking_over(nodesets: Iterable[str], cluster: str) -> Wait:
    message = (
        f"Workers of NodeSet {', '.join(sorted(nodesets))} are being taken over from Soperator, with the "
        "jobs in them. Nothing else of the cluster is changed until that is done."
    )
    return Wait(subject=f"SlurmCluster {cluster}", reason=TAKING_OVER, message=message)


def waits_for(
    cluster: str, found: Remains, pending: Iterable[str], gone: Collection[str] = ()
) -> Wait | None:
    """What the rest of a cluster waits for once its workers are taken over; None when it may go on.

    `pending` are NodeSets whose workers are not, `gone` partitions of Soperator's slurm.conf that ours lacks.
    """
    if waiting := sorted({*pending}):
        return taking_over(waiting, cluster)
    if gone:
        message = (
            f"slurm.conf of Soperator has partitions that SlurmCluster {cluster!r} does not ask for: "
            f"{', '.join(sorted(gone))}. Without them slurmctld would end their jobs, so nothing else is "
            "changed. Add them to spec.partitionConfiguration or spec.customSlurmConfig, and leave "
            "Soperator's slurmctld running until this message is gone."
        )
        return Wait(subject=f"SlurmCluster {cluster}", reason=REFUSED, message=message)
    left = found.without_login(cluster)
    if not left.are_there:
        return None
    message = (
        f"The workers of SlurmCluster {cluster!r} are taken over, with the jobs in them. {left.told} of "
        "Soperator's is left. Delete it: slurmctld then restarts once, on its volume, and running jobs go on "
        "meanwhile. `kubectl slurm doctor --from soperator` has the commands."
    )
    return Wait(subject=f"SlurmCluster {cluster}", reason=RUNNING, message=message)


def login_waits(cluster: str, found: Remains) -> Wait | None:
    """Login pods of Soperator's stay until a person deletes what makes them: somebody works in them."""
    left = found.of_login(cluster)
    if not left.are_there:
        return None
    message = (
        f"{left.told} of Soperator's goes on. Delete it when nobody works there; new login pods start then."
    )
    return Wait(subject=f"LoginSet {names.login(cluster)}", reason=LOGIN_RUNNING, message=message)
