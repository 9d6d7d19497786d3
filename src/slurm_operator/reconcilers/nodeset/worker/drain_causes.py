"""Why a worker should take no new jobs. Every drain of ours has one of these causes, and no other."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from slurm_operator.api.shared import names
from slurm_operator.api.slinky.nodeset import NodeSet
from slurm_operator.manifests.objects import KubeNode, Taint
from slurm_operator.reconcilers.nodeset.creation import placement
from slurm_operator.reconcilers.nodeset.worker import unresponsive
from slurm_operator.reconcilers.nodeset.workers import Worker
from slurm_operator.slurm.reasons import OurReason, sanitised

# Set by autoscalers and spot handlers on a node that is about to go: then jobs must not start there any more.
DEPARTING_TAINTS = {
    "ToBeDeletedByClusterAutoscaler",
    "DeletionCandidateOfClusterAutoscaler",
    "karpenter.sh/disrupted",
    "karpenter.sh/disruption",
    "cloud.google.com/impending-node-termination",
    "aws-node-termination-handler/spot-itn",
    "aws-node-termination-handler/scheduled-maintenance",
    "node.cloudprovider.kubernetes.io/shutdown",
}


class Leaving(StrEnum):
    """The worker's pod is going to be removed."""

    SCALE_IN = "ScaleIn"
    UPDATE = "Update"
    MODE_SWITCH = "ModeSwitch"
    DELETION = "Deletion"
    NODE_UNFIT = "NodeUnfit"
    DUPLICATE = "Duplicate"
    HOSTNAME = "HostnameMismatch"
    UNPINNED = "Unpinned"
    ENDED = "Ended"
    RETIRED = "Retired"
    RESOURCES = "Resources"
    TERMINATING = "PodTerminating"
    FORGOTTEN = "Forgotten"


LEAVING: frozenset[str] = frozenset(Leaving)


class Staying(StrEnum):
    """The worker stays, drained, until the cause is gone."""

    NODE_CORDON = "NodeCordon"
    NODE_TAINT = "NodeTaint"
    POD_CORDON = "PodCordon"
    UNRESPONSIVE = unresponsive.CAUSE


@dataclass(frozen=True)
class Cause:
    """With `costs_nothing` it was chosen while it took no jobs, and is spared if it does so again by then."""

    kind: Leaving | Staying
    text: str
    costs_nothing: bool = False

    def reason(self, worker: Worker) -> str:
        """The drain's reason in Slurm: who, why, and about which pods.

        It reads the same for all workers that drain for the same cause, so that Slurm is asked once. Only a
        drain about resources names its pod: whether the record fits the worker that comes next hangs on it.
        """
        until = worker.newest_made_at
        if self.kind is Leaving.RESOURCES or until is None:
            return str(OurReason(cause=self.kind, text=self.text, pod_uid=worker.uid))
        return str(OurReason(cause=self.kind, text=self.text, made_until=until))


def staying_cause(
    worker: Worker,
    nodeset: NodeSet,
    propagated: tuple[str, ...],
    slurmctld_since: datetime | None,
    now: datetime,
) -> Cause | None:
    """Why a worker that stays should drain: its machine is cordoned, about to go or no place for it any more,
    a user said so, or its slurmd does not answer. What people did comes first: it tells them more.
    """
    kube_node = worker.kube_node
    if kube_node is not None and kube_node.spec.unschedulable:
        return Cause(Staying.NODE_CORDON, cordon_text(kube_node, propagated))
    if kube_node is not None:
        for taint in kube_node.spec.taints:
            if taint.key in DEPARTING_TAINTS or _sends_away(taint, nodeset):
                return Cause(Staying.NODE_TAINT, f"{kube_node.metadata.name} has taint {taint.key}")
    if worker.is_user_cordoned:
        return Cause(Staying.POD_CORDON, f"Pod {worker.name} was cordoned")
    if unresponsive.is_unresponsive(worker, slurmctld_since, now):
        return Cause(Staying.UNRESPONSIVE, "slurmd is not ready although its container runs")
    return None


def _sends_away(taint: Taint, nodeset: NodeSet) -> bool:
    """Whoever set it wants nobody there who does not tolerate it; a silent machine is tolerated by all."""
    return taint.effect == "NoExecute" and not placement.tolerates([taint], nodeset)


def cordon_text(kube_node: KubeNode, propagated: tuple[str, ...]) -> str:
    """What the one who cordoned had to say: the annotation, else conditions that people asked to see."""
    given = sanitised(kube_node.metadata.annotations.get(names.NODE_CORDON_REASON, ""))
    if given:
        return given
    told = [
        f"({condition.reason}: {condition.message})"
        for condition in kube_node.status.conditions
        if condition.type in propagated and condition.status == "True"
    ]
    return "; ".join(told) or f"Node {kube_node.metadata.name} was cordoned"
