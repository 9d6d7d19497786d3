"""What an Accounting says about itself, and about the database behind it."""

from slurm_operator.api.shared import names
from slurm_operator.api.slinky import key_secrets
from slurm_operator.conditions import Reason
from slurm_operator.manifests.meta import Manifest
from slurm_operator.plan.conditions import DEGRADED, PROGRESSING, READY, Condition, false, true
from slurm_operator.plan.plan import Outcome, Plan
from slurm_operator.plan.reconciler import StatusReport
from slurm_operator.reconcilers.accounting.observe import APP, Seen
from slurm_operator.reconcilers.shared.daemon_conditions import Standing
from slurm_operator.reconcilers.shared.dependencies import Need


def status(seen: Seen, plan: Plan, outcome: Outcome) -> StatusReport:
    found = external(seen, plan) if seen.is_external else standing(seen).conditions(plan, outcome)
    return StatusReport(conditions=found, fields=status_fields(seen))


def standing(seen: Seen) -> Standing:
    return Standing(
        daemon=APP,
        serving=f"slurmdbd answers at {endpoint(seen)}.",
        rollout=seen.rollout,
        needs=[*seen.needs, *database_need(seen)],
        troubles=[*seen.troubles, *seen.mariadb_troubles],
        complaints=[*key_complaints(seen), *database_complaint(seen)],
    )


def external(seen: Seen, plan: Plan) -> list[Condition]:
    """slurmdbd elsewhere: there is nothing to start, only to point at."""
    message = f"slurmdbd runs elsewhere, at {endpoint(seen)}."
    complaints = [*key_complaints(seen), *missing_keys(seen)]
    waits = plan.waits
    return [
        true(READY, Reason.EXTERNAL, message),
        true(PROGRESSING, waits[0].reason, waits[0].message)
        if waits
        else false(PROGRESSING, Reason.UP_TO_DATE),
        true(DEGRADED, complaints[0].reason, complaints[0].message)
        if complaints
        else false(DEGRADED, Reason.AS_EXPECTED),
    ]


def database_need(seen: Seen) -> list[Need]:
    """What keeps slurmdbd from using its database, as the check before its start found."""
    if seen.verdict is None or seen.verdict.reason is None:
        return []
    return [Need(subject="database", reason=seen.verdict.reason, message=seen.verdict.message)]


def database_complaint(seen: Seen) -> list[Need]:
    if seen.verdict is None or not seen.verdict.advice:
        return []
    message = f"The database at {seen.address} works, but {seen.verdict.advice}"
    return [Need(subject="database", reason=Reason.DATABASE_SETTINGS, message=message)]


def key_complaints(seen: Seen) -> list[Need]:
    """Controllers that would not be understood, because they have another key."""
    ours = key_secrets.slurm_key(seen.accounting)
    found = []
    for controller in seen.controllers:
        theirs = key_secrets.slurm_key(controller)
        if (theirs.name, theirs.key) != (ours.name, ours.key):
            message = (
                f"Controller {controller.metadata.name!r} uses the Slurm key in Secret {theirs.name!r}, this "
                f"Accounting the one in Secret {ours.name!r}. They only trust each other with the same key: "
                "set slurmKeyRef of both to the same Secret."
            )
            found.append(Need(subject="keys", reason=Reason.KEYS_DIFFER, message=message))
    return found


def missing_keys(seen: Seen) -> list[Need]:
    """Keys of a slurmdbd elsewhere, which nobody here can generate but Controllers look for."""
    relying = [one.metadata.name for one in seen.controllers if one.spec.slurm_key_ref is None]
    if not relying or not isinstance(seen.slurm_key, Need):
        return []
    ref = key_secrets.slurm_key(seen.accounting)
    message = (
        f"Controller {relying[0]!r} needs the key of the slurmdbd at {endpoint(seen)} to talk to it. Put it "
        f"into Secret {ref.name!r} as {ref.key!r}, or name it in slurmKeyRef of both."
    )
    return [Need(subject="keys", reason=Reason.KEYS_MISSING, message=message)]


def status_fields(seen: Seen) -> Manifest:
    rollout = seen.rollout
    fields: Manifest = {
        "observedGeneration": seen.accounting.metadata.generation,
        "slurmVersion": version(seen),
        "endpoint": endpoint(seen),
        "replicas": rollout.replicas if rollout is not None else 0,
        "readyReplicas": rollout.ready if rollout is not None else 0,
        "slurmKeySecret": key_secrets.slurm_key(seen.accounting).name,
        "jwtKeySecret": key_secrets.signing_key(seen.accounting).name,
        "controllers": [controller.metadata.name for controller in seen.controllers],
    }
    if seen.address is not None and not seen.is_external:
        fields["database"] = database_facts(seen)
    return fields


def version(seen: Seen) -> str:
    """As slurmdbd told before it started; what was told last, while another one is about to."""
    told = seen.verdict.slurm_version if seen.verdict is not None else ""
    return told or ("" if seen.is_external else seen.accounting.status.slurm_version)


def database_facts(seen: Seen) -> Manifest:
    verdict = seen.verdict
    return {
        "address": str(seen.address),
        "managed": seen.address is not None and seen.address.is_managed,
        "reachable": verdict is not None and verdict.reason is None,
        "version": verdict.version if verdict is not None else "",
        "message": (verdict.message or verdict.advice) if verdict is not None else "",
    }


def endpoint(seen: Seen) -> str:
    """host:port for slurmctld."""
    spec, meta = seen.accounting.spec, seen.accounting.metadata
    if spec.external and spec.external_config is not None:
        return f"{spec.external_config.host}:{spec.external_config.port}"
    port = spec.service.port or names.SLURMDBD_PORT
    return f"{seen.accounting.child_names.service}.{meta.namespace}:{port}"
