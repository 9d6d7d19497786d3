"""What a NodeSet says about its protection: a policy, none, or that nobody can tell."""

from slurm_operator.api.shared.conditions import PROTECTED
from slurm_operator.conditions import Reason
from slurm_operator.manifests.builders.protection import INSTALL, LET_LOOK
from slurm_operator.plan.conditions import Condition, false, true, unknown
from slurm_operator.plan.world import Protection
from slurm_operator.reconcilers.nodeset.observe import Seen

UNPROTECTED = (
    "unprotected: no policy keeps workers from being deleted by hand; kubectl delete pod ends their jobs. "
    f"This installs one, where NAMESPACE is the operator's: {INSTALL}"
)
UNKNOWN = (
    "unknown: the operator has no right to see whether a policy keeps workers from being deleted by hand. "
    f"This gives it the right, where NAMESPACE is the operator's: {LET_LOOK}"
)


def condition(seen: Seen) -> Condition | None:
    """Whether deleting the pod of a worker by hand is refused. As last told until somebody has looked."""
    if not seen.nodeset.spec.workload_disruption_protection:
        message = (
            "spec.workloadDisruptionProtection is false: workers may be deleted and evicted with their jobs."
        )
        return false(PROTECTED, Reason.TURNED_OFF, message)
    match seen.protection:
        case Protection.PROTECTED:
            return true(PROTECTED, Reason.POLICY, "A policy refuses to delete workers by hand.")
        case Protection.UNPROTECTED:
            return false(PROTECTED, Reason.UNPROTECTED, UNPROTECTED)
        case Protection.UNKNOWN:
            return unknown(PROTECTED, Reason.NOT_ALLOWED_TO_LOOK, UNKNOWN)
        case Protection.NOT_LOOKED:
            return next((one for one in seen.nodeset.status.conditions if one.type == PROTECTED), None)
