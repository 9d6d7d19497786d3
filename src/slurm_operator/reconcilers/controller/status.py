"""What a Controller says about itself."""

from slurm_operator.api.slinky.controller import controller_pod
from slurm_operator.manifests.meta import Manifest
from slurm_operator.manifests.pod_troubles import troubles
from slurm_operator.plan import failing
from slurm_operator.plan.actions import Tell, Wait
from slurm_operator.plan.conditions import DEGRADED, PROGRESSING, READY, Condition, false, true, unknown
from slurm_operator.plan.plan import Outcome, Plan
from slurm_operator.plan.reconciler import StatusReport
from slurm_operator.reconcilers.controller import state_loss
from slurm_operator.reconcilers.controller.annotations import CONFIG_KEPT
from slurm_operator.reconcilers.controller.configuration import config_state, first_start
from slurm_operator.reconcilers.controller.configuration.files import Refusal, missing, remarks, wanted_files
from slurm_operator.reconcilers.controller.configuration.pipeline import refused
from slurm_operator.reconcilers.controller.configuration.slurm_conf import endpoint
from slurm_operator.reconcilers.controller.daemon.pods import active
from slurm_operator.reconcilers.controller.daemon.services import service_monitor
from slurm_operator.reconcilers.controller.keys import rotation, stale_key
from slurm_operator.reconcilers.controller.observe import Seen
from slurm_operator.slurm.snapshot import Snapshot

# Waits that end without anybody's help: something is on its way. All others are for somebody to fix.
_ON_ITS_WAY = {
    "AccountingNotReady",
    "CannotReconfigure",
    "ConfigOnItsWay",
    "InUse",
    "JobsAtStake",
    "NodeSetsMayFollow",
    "OneAtATime",
    "PartitionInUse",
    "PlacesUnseen",
    "Rehearsing",
    "RehearsalCutOff",
    "RestartPostponed",
    "RotatingKey",
    "Verifying",
}


def status(seen: Seen, plan: Plan, outcome: Outcome) -> StatusReport:
    refusal = refused(seen)
    conditions = [
        ready(seen, plan, refusal),
        progressing(seen, plan, outcome),
        failing.degraded(outcome, degraded(seen, plan, refusal)),
    ]
    return StatusReport(conditions=conditions, fields=status_fields(seen, refusal))


def status_fields(seen: Seen, refusal: Refusal | None) -> Manifest:
    controller = seen.controller
    host, port = endpoint(controller)
    head = active(seen)
    return {
        "observedGeneration": controller.metadata.generation,
        "clusterName": controller.status.cluster_name or controller.cluster_name,
        "slurmVersion": _version(seen),
        "endpoint": f"{host}:{port}",
        "active": head.metadata.name if head is not None else _external_head(seen),
        "replicas": len(seen.pods),
        "readyReplicas": len(seen.ready_pods),
        "controllers": daemons(seen),
        "config": config(seen, refusal),
        "slurmKeySecret": seen.slurm_key.ref.name if seen.slurm_key.digest else "",
        "slurmKey": slurm_key(seen),
        "jwtKeySecret": seen.signing_key.ref.name if seen.signing_key.digest else "",
        "nodeSets": len(seen.nodesets),
        "stateLostSince": state_loss.lost_since(seen),
        "workersKnownSince": state_loss.known_since(seen),
    }


def slurm_key(seen: Seen) -> Manifest | None:
    """How far a change of the Slurm key has come."""
    ring = rotation.ring(seen)
    if ring is None:
        return None
    return {
        "signing": ring.signs,
        "accepted": sorted(ring.keys),
        "step": rotation.phase(ring),
        "since": ring.since.replace(microsecond=0) if ring.since is not None else None,
    }


def daemons(seen: Seen) -> list[Manifest]:
    """Every slurmctld: as Slurm sees it where that is known, else as Kubernetes does."""
    head = active(seen)
    if isinstance(seen.slurm, Snapshot) and seen.slurm.pings:
        return [
            {
                "pod": ping.hostname,
                "role": "primary" if ping.is_primary else "backup",
                "responding": ping.is_responding,
                "active": ping.hostname == (head.metadata.name if head else _external_head(seen)),
            }
            for ping in seen.slurm.pings
        ]
    first = controller_pod(seen.controller, 0)
    return [
        {
            "pod": pod.metadata.name,
            "role": "primary" if pod.metadata.name == first else "backup",
            "responding": pod in seen.ready_pods,
            "active": pod is head,
        }
        for pod in seen.pods
    ]


def config(seen: Seen, refusal: Refusal | None) -> Manifest | None:
    if seen.controller.spec.external or missing(seen):
        return None
    digest = wanted_files(seen).digest
    mounted, proven = config_state.held(seen), config_state.good(seen)
    # Slurm out of sight changes nothing about what it was last known to run with.
    applied = config_state.applied(seen) or (proven.digest if proven is not None else "")
    is_in_force = config_state.is_proven(seen) or (mounted is not None and applied == mounted.digest)
    return {
        "wanted": digest,
        "applied": applied,
        "appliedAt": config_state.held_since(seen) if is_in_force else None,
        "owed": _owed(seen, digest, applied),
        "refused": _refused(refusal),
    }


def _owed(seen: Seen, digest: str, applied: str) -> str:
    if digest == applied:
        return "nothing"
    before, files = config_state.good(seen), wanted_files(seen)
    return (
        "restart" if before is not None and config_state.needs_restart(seen, before, files) else "reconfigure"
    )


def _refused(refusal: Refusal | None) -> Manifest | None:
    if refusal is None:
        return None
    return {
        "file": refusal.file,
        "line": refusal.line,
        "message": refusal.message,
        "digest": refusal.digest,
    }


def ready(seen: Seen, plan: Plan, refusal: Refusal | None) -> Condition:
    host, port = endpoint(seen.controller)
    if seen.controller.spec.external:
        return _external_ready(seen, f"{host}:{port}")
    if refused_tokens := stale_key.stale_key_text(seen):
        return false(READY, "TokensRefused", refused_tokens)
    head = active(seen)
    if head is not None:
        version = f"slurmctld {_version(seen)}".rstrip()
        return true(
            READY, "Serving", f"{version} answers at {host}:{port}; {head.metadata.name} is in charge."
        )
    if refusal is not None and first_start.has_been_refused(seen):
        return false(READY, refusal.reason, refusal.message)
    if told := [*seen.refused_pods, *troubles(seen.pods)]:
        return false(READY, "PodsNotReady", f"slurmctld does not run: {'; '.join(told)}.")
    if seen.pods:
        return false(READY, "Starting", f"{seen.pods[0].metadata.name} has started and is not ready yet.")
    for wait in _in_the_way(plan):
        return false(READY, wait.reason, wait.message)
    return false(READY, "Starting", "slurmctld is being started.")


def _external_ready(seen: Seen, where: str) -> Condition:
    if isinstance(seen.slurm, Snapshot):
        return true(READY, "Reachable", f"The external slurmctld at {where} answers.")
    if seen.has_restapi:
        return false(READY, "SlurmUnreachable", f"The external slurmctld at {where}: {seen.slurm.why}.")
    message = f"Nobody looks at the external slurmctld at {where}; make a RestApi for this Controller."
    return unknown(READY, "NotObserved", message)


def progressing(seen: Seen, plan: Plan, outcome: Outcome) -> Condition:
    for wait in plan.waits:
        if wait.reason == "InUse":
            return true(PROGRESSING, wait.reason, wait.message)
    if outcome.failed:
        return true(PROGRESSING, "Retrying", failing.retried(outcome))
    for wait in plan.waits:
        if wait.reason in _ON_ITS_WAY:
            return true(PROGRESSING, wait.reason, wait.message)
    for action in plan.actions():
        if not isinstance(action, Wait | Tell) and action.reason != CONFIG_KEPT:
            return true(PROGRESSING, action.reason, action.message)
    for wait in plan.waits:
        return false(PROGRESSING, wait.reason, "No changes will be made until this is fixed.")
    if active(seen) is None and not seen.controller.spec.external:
        return true(PROGRESSING, "Starting", "slurmctld is being started.")
    return false(PROGRESSING, "UpToDate")


def degraded(seen: Seen, plan: Plan, refusal: Refusal | None) -> Condition:
    if lost := state_loss.state_loss_text(seen):
        return true(DEGRADED, "StateLost", lost)
    if refusal is not None:
        goes_on = config_state.held(seen) is not None and not first_start.refusals(seen)
        kept = " slurmctld goes on with the former configuration." if goes_on else ""
        return true(DEGRADED, refusal.reason, f"{refusal.message}{kept}")
    if refused_tokens := stale_key.stale_key_text(seen):
        return true(DEGRADED, "TokensRefused", refused_tokens)
    for wait in _in_the_way(plan):
        if wait.reason not in _ON_ITS_WAY:
            return true(DEGRADED, wait.reason, wait.message)
    if told := [*seen.refused_pods, *troubles(seen.pods)]:
        return true(DEGRADED, "PodsNotReady", "; ".join(told))
    return false(DEGRADED, "AsExpected", _passed_over(seen))


def _in_the_way(plan: Plan) -> list[Wait]:
    """What keeps slurmctld from starting; its own deletion is another matter."""
    return [wait for wait in plan.waits if wait.reason != "InUse"]


def _passed_over(seen: Seen) -> str:
    """What was asked for and has no effect, though nothing is wrong with it."""
    lines = [] if missing(seen) else remarks(wanted_files(seen))
    if lines:
        return f"Slurm takes these lines, but not as they read: {'; '.join(lines)}"
    if not seen.has_service_monitors and service_monitor(seen.controller) is not None:
        return (
            "There is no ServiceMonitor yet: this Kubernetes lacks that kind, or the operator may not "
            "look at it. One is made as soon as that has changed."
        )
    return ""


def _version(seen: Seen) -> str:
    return seen.slurm.release if isinstance(seen.slurm, Snapshot) else seen.controller.status.slurm_version


def _external_head(seen: Seen) -> str:
    if not seen.controller.spec.external or not isinstance(seen.slurm, Snapshot):
        return ""
    return next((ping.hostname for ping in seen.slurm.pings if ping.is_responding), "")
