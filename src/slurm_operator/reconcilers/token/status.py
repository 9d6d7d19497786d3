"""What a Token says about itself."""

from slurm_operator.conditions import Reason
from slurm_operator.manifests.meta import Manifest
from slurm_operator.plan import failing
from slurm_operator.plan.conditions import DEGRADED, PROGRESSING, READY, Condition, false, true
from slurm_operator.plan.plan import Outcome, Plan
from slurm_operator.plan.reconciler import StatusReport
from slurm_operator.reconcilers.token.decide import due
from slurm_operator.reconcilers.token.observe import Issued, Seen


def status(seen: Seen, plan: Plan, outcome: Outcome) -> StatusReport:
    return StatusReport(conditions=conditions(seen, plan, outcome), fields=status_fields(seen))


def status_fields(seen: Seen) -> Manifest:
    token, issued = seen.token, seen.issued
    fields: Manifest = {"observedGeneration": token.metadata.generation, "secret": token.secret_name}
    if issued is not None:
        fields |= {"issuedAt": issued.at, "expiresAt": issued.until}
        if token.spec.refresh:
            fields["renewsAt"] = due(issued)
    return fields


def conditions(seen: Seen, plan: Plan, outcome: Outcome) -> list[Condition]:
    if outcome.failed:
        error = failing.errors(outcome)
        message = f"{error} It is tried again; while the old token lasts it stays in the Secret."
        return [
            _ready(seen.issued) if seen.issued is not None else false(READY, Reason.NOT_SIGNED, message),
            true(PROGRESSING, Reason.RETRYING, error),
            true(DEGRADED, Reason.SIGNING_FAILED, message),
        ]
    for wait in plan.waits:
        return [
            false(READY, wait.reason, wait.message),
            false(PROGRESSING, wait.reason, "No changes will be made until this is fixed."),
            true(DEGRADED, wait.reason, wait.message),
        ]
    if seen.issued is None:
        message = f"The token is being put into Secret {seen.token.secret_name!r}."
        return [
            false(READY, Reason.SIGNING, message),
            true(PROGRESSING, Reason.SIGNING, message),
            false(DEGRADED, Reason.AS_EXPECTED),
        ]
    return [_ready(seen.issued), false(PROGRESSING, Reason.UP_TO_DATE), false(DEGRADED, Reason.AS_EXPECTED)]


def _ready(issued: Issued) -> Condition:
    return true(READY, Reason.SIGNED, f"Valid until {issued.until:%Y-%m-%d %H:%M:%S} UTC.")
