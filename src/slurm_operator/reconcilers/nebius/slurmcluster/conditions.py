"""The conditions of a SlurmCluster: Soperator's, in its words, and ours beside them."""

from collections.abc import Iterator
from typing import Final

from slurm_operator.api.nebius import names
from slurm_operator.api.nebius.nodeset import NodeSet
from slurm_operator.api.nebius.slurmcluster import Maintenance
from slurm_operator.api.shared.conditions import MOST_CHARACTERS, Truth
from slurm_operator.manifests import kinds
from slurm_operator.manifests.builders.workloads import Rollout, rollout
from slurm_operator.manifests.objects import Secret
from slurm_operator.plan import failing
from slurm_operator.plan.actions import Apply, Create, GenerateSecret
from slurm_operator.plan.conditions import DEGRADED, PROGRESSING, READY, Condition, false, true, unknown
from slurm_operator.plan.plan import Outcome, Plan
from slurm_operator.reconcilers.nebius.shared import soperator_pods, takeover
from slurm_operator.reconcilers.nebius.slurmcluster import mariadb, partitions, populate, topology
from slurm_operator.reconcilers.nebius.slurmcluster.decide import (
    MAINTENANCE,
    REFS_RESOLVED,
    SPEC_REFUSED,
    STATE_UNKNOWN,
)
from slurm_operator.reconcilers.nebius.slurmcluster.mariadb import MadeBy
from slurm_operator.reconcilers.nebius.slurmcluster.observe import Seen
from slurm_operator.reconcilers.nebius.slurmcluster.parts import host_keys_secret
from slurm_operator.reconcilers.nebius.slurmcluster.unsupported import unsupported
from slurm_operator.reconcilers.shared.composed import PART_TYPES, Part, State, state, under_way
from slurm_operator.reconcilers.shared.parts import NAME_TAKEN
from slurm_operator.slurm.snapshot import Unreachable

COMMON: Final = "CommonAvailable"
CONTROLLERS: Final = "ControllersAvailable"
WORKERS: Final = "WorkersAvailable"
LOGIN: Final = "LoginAvailable"
ACCOUNTING: Final = "AccountingAvailable"
SCONFIG: Final = "SConfigControllerAvailable"
POPULATE_MODE: Final = "PopulateJailMode"
ROOT_POPULATED: Final = "RootPopulated"
ROOT_SHARED: Final = "RootShared"
FIELDS_SUPPORTED: Final = "FieldsSupported"

AVAILABLE: Final = "Available"
NOT_AVAILABLE: Final = "NotAvailable"
SET_UP: Final = "SetUpCondition"

# What the user has to fix before anything goes on; other waits end without the user.
STUCK: Final = (
    SPEC_REFUSED,
    NAME_TAKEN,
    soperator_pods.RUNNING,
    takeover.REFUSED,
    STATE_UNKNOWN,
    "SecretNotFound",
    "ConfigMapNotFound",
    "NoImage",
    populate.FAILED,
    populate.TAKEN,
)

_MODES: Final = {
    Maintenance.NONE: "Populate Jail maintenanceMode is none",
    Maintenance.SKIP_POPULATE_JAIL: "Populate Jail is skipped",
    Maintenance.DELETE_POPULATE_JAIL: "Populate Jail is deleted",
    Maintenance.OVERWRITE_POPULATE_JAIL: "Populate Jail is overwritten",
}


def conditions(seen: Seen, plan: Plan, outcome: Outcome) -> Iterator[Condition]:
    if seen.cluster.spec is not None:
        theirs = list(available(seen))
        yield from theirs
        yield populate_mode(seen)
        yield root_populated(seen, plan)
        yield from root_shared(seen)
        yield refs_resolved(seen)
        yield fields_supported(seen)
        yield from topology.topology_known(seen)
    yield _ready(seen, plan)
    yield _progressing(seen, plan, outcome)
    yield failing.degraded(outcome, _degraded(seen, plan))


def available(seen: Seen) -> Iterator[Condition]:
    """Soperator's conditions, and the one for workers of its older releases."""
    yield _common(seen)
    yield _controllers(seen)
    yield _workers(seen)
    yield _login(seen)
    yield _accounting(seen)
    yield _sconfig(seen)


def _common(seen: Seen) -> Condition:
    if seen.is_down:
        return false(COMMON, MAINTENANCE, "Slurm common components are in maintenance")
    secrets = (names.munge_secret(seen.name), names.rest_jwt_secret(seen.name), host_keys_secret(seen))
    has_keys = all(isinstance(seen.secrets.get(name), Secret) for name in secrets)
    if has_keys and (kinds.CONFIG_MAP, names.more_configs(seen.name)) in seen.children:
        return true(COMMON, AVAILABLE, "Slurm common components are available")
    return unknown(COMMON, SET_UP, "Reconciling Slurm common resources")


def _controllers(seen: Seen) -> Condition:
    if seen.is_down:
        return false(CONTROLLERS, MAINTENANCE, "Slurm controllers are in maintenance")
    if seen.controller is None:
        return unknown(CONTROLLERS, SET_UP, "Reconciling Slurm Controllers")
    found = state(seen.controller)
    if found.is_ready:
        return true(CONTROLLERS, AVAILABLE, "Slurm controllers are available")
    return false(CONTROLLERS, NOT_AVAILABLE, _because("Slurm controllers are not available yet", found))


def _workers(seen: Seen) -> Condition:
    if seen.is_down:
        return false(WORKERS, MAINTENANCE, "Slurm workers are in maintenance")
    if not any(one.spec.replicas for one in seen.nodesets if one.spec is not None):
        return false(WORKERS, NOT_AVAILABLE, "Slurm workers are disabled")
    ready, wanted = ready_workers(seen), sum(wanted_workers(one, seen) for one in seen.nodesets)
    if ready >= wanted:
        return true(WORKERS, AVAILABLE, "Slurm workers are available")
    message = f"Slurm workers are not available yet: {ready} of {wanted} are ready"
    return false(WORKERS, NOT_AVAILABLE, message)


def wanted_workers(nodeset: NodeSet, seen: Seen) -> int:
    """How many workers of a NodeSet should run: where Slurm decides that, those that it wants now."""
    part = seen.workers.get(nodeset.metadata.name)
    if nodeset.spec is None:
        return 0
    if nodeset.spec.ephemeral_nodes and part is not None:
        return len(part.spec.numbers)
    return nodeset.spec.replicas


def ready_workers(seen: Seen) -> int:
    return sum(part.status.ready_replicas for part in seen.workers.values())


def _login(seen: Seen) -> Condition:
    size, part = seen.spec.slurm_nodes.login.size, seen.login
    if seen.is_down:
        return false(LOGIN, MAINTENANCE, "Slurm login is in maintenance")
    if not size:
        return false(LOGIN, NOT_AVAILABLE, "Slurm Login is disabled")
    if part is None:
        return unknown(LOGIN, SET_UP, "Reconciling Slurm Login")
    if part.spec.replicas == size and part.status.ready_replicas >= size:
        return true(LOGIN, AVAILABLE, "Slurm login is available")
    return false(LOGIN, NOT_AVAILABLE, _because("Slurm login is not available yet", state(part)))


def _accounting(seen: Seen) -> Condition:
    if not seen.spec.slurm_nodes.accounting.enabled:
        return false(ACCOUNTING, NOT_AVAILABLE, "Slurm accounting is disabled")
    if seen.is_down:
        return false(ACCOUNTING, MAINTENANCE, "Slurm accounting is in maintenance")
    parts = seen.own("Accounting")
    if not parts:
        return unknown(ACCOUNTING, SET_UP, "Reconciling Slurm Accounting")
    if mariadb.made_by(seen) is MadeBy.MARIADB_OPERATOR and (trouble := mariadb.trouble(seen)):
        return false(ACCOUNTING, NOT_AVAILABLE, trouble)
    found = state(parts[0])
    if found.is_ready:
        return true(ACCOUNTING, AVAILABLE, "Slurm accounting is available")
    return false(ACCOUNTING, NOT_AVAILABLE, _because("Slurm accounting is not available yet", found))


def writer_rollout(seen: Seen) -> Rollout | None:
    return rollout(seen.children.get((kinds.DEPLOYMENT, names.sconfigcontroller(seen.name))))


def _sconfig(seen: Seen) -> Condition:
    if seen.is_down:
        return false(SCONFIG, MAINTENANCE, "Slurm SConfigController is in maintenance")
    if seen.spec.s_config_controller is None:
        return false(SCONFIG, NOT_AVAILABLE, "Slurm SConfigController is disabled")
    found = writer_rollout(seen)
    if found is None:
        return unknown(SCONFIG, SET_UP, "Reconciling Slurm SConfigController")
    if found.works and found.wanted:
        return true(SCONFIG, AVAILABLE, "Slurm SConfigController is available")
    why = f": {found.stuck}" if found.stuck else ""
    return false(SCONFIG, NOT_AVAILABLE, f"Slurm SConfigController is not available yet{why}")


def _because(message: str, found: State) -> str:
    return f"{message}: {found.message}" if found.message else message


def populate_mode(seen: Seen) -> Condition:
    mode = seen.spec.maintenance
    if mode not in _MODES:
        return unknown(POPULATE_MODE, "Unknown", "Unknown Populate Jail maintenanceMode")
    return true(POPULATE_MODE, str(mode), _MODES[mode])


def root_populated(seen: Seen, plan: Plan) -> Condition:
    """Whether pods may start on the shared root, and what is done about it if not."""
    root = seen.root
    for wait in plan.waits:
        if wait.subject == populate.SUBJECT:
            return false(ROOT_POPULATED, wait.reason, wait.message)
    if root.mode is Maintenance.SKIP_POPULATE_JAIL and root.is_usable:
        return true(ROOT_POPULATED, "Skipped", "spec.maintenance says that the shared root is populated.")
    if root.is_populated_by_job:
        return true(ROOT_POPULATED, root.result, "The shared root is populated.")
    if root.is_usable:
        message = "Pods run on the shared root, or have run there, so it was populated before."
        return true(ROOT_POPULATED, "InUse", message)
    what = "is being made" if root.job is None else "is not done"
    return false(ROOT_POPULATED, populate.POPULATING, f"The Job that populates the shared root {what}.")


def root_shared(seen: Seen) -> Iterator[Condition]:
    """Whether pods on all Kubernetes nodes can mount the root; said only where its claim tells."""
    if seen.claim is None:
        return
    name, modes = seen.claim.metadata.name, ", ".join(seen.claim.spec.access_modes) or "none"
    if "ReadWriteMany" in seen.claim.spec.access_modes:
        yield true(ROOT_SHARED, "ReadWriteMany")
        return
    message = (
        f"PersistentVolumeClaim {name!r} has the access modes {modes}: pods on other Kubernetes nodes cannot "
        "mount the shared root. It needs ReadWriteMany."
    )
    yield false(ROOT_SHARED, "NotReadWriteMany", message)


def refs_resolved(seen: Seen) -> Condition:
    text = partitions.unresolved_text(seen, MOST_CHARACTERS)
    if text:
        return false(REFS_RESOLVED, "IgnoredNodeSetRefs", text)
    return true(REFS_RESOLVED, "AllNodeSetRefsResolved", "Every NodeSet that a partition names has nodes.")


def fields_supported(seen: Seen) -> Condition:
    found = [*_kept_family(seen), *unsupported(seen.spec, seen.family, mariadb.made_by(seen))]
    if found:
        return false(FIELDS_SUPPORTED, "SomeIgnored", "; ".join(found))
    return true(FIELDS_SUPPORTED, "AllSupported")


def _kept_family(seen: Seen) -> Iterator[str]:
    if seen.family is not seen.family_of_images:
        yield (
            f"slurmNodes.controller.slurmctld.image: the shared root is used with images of {seen.family}, "
            f"and everything on it is made for those; for images of {seen.family_of_images} overwrite it "
            f"(maintenance: {Maintenance.OVERWRITE_POPULATE_JAIL})"
        )


def parts(seen: Seen) -> list[Part]:
    """Every part, the one that can be the cause of another's trouble first."""
    own = [part for type_ in PART_TYPES for part in seen.own(type_.KIND.kind)]
    return [part for part in (*own, *seen.workers.values()) if not part.metadata.is_terminating]


def _is_being_made(plan: Plan) -> bool:
    """A part was not there when we looked."""
    made = (Apply, Create, GenerateSecret)
    return any(
        isinstance(step, made) and step.reason in ("Created", "KeyGenerated") for step in plan.actions()
    )


def _ready(seen: Seen, plan: Plan) -> Condition:
    if seen.meta.is_terminating:
        return false(READY, "Deleting", "The SlurmCluster is being deleted.")
    for wait in plan.waits:
        if wait.reason in (*STUCK, takeover.TAKING_OVER):
            return false(READY, wait.reason, wait.message)
    if seen.is_down:
        return false(READY, MAINTENANCE, f"The cluster is down for maintenance: {seen.spec.maintenance}.")
    for wait in plan.waits:
        if wait.subject == populate.SUBJECT:
            return false(READY, wait.reason, wait.message)
    waiting = [one for one in map(state, parts(seen)) if not one.is_ready]
    for one in sorted(waiting, key=lambda one: not one.is_degraded):
        return false(READY, one.reason, str(one))
    if _is_being_made(plan):
        return false(READY, "Starting", "Its parts are being made.")
    for condition in available(seen):
        is_off = condition.message.endswith("disabled")
        if condition.status is not Truth.TRUE and not is_off:
            return false(READY, condition.reason, condition.message)
    if isinstance(seen.slurm, Unreachable):
        return false(READY, "SlurmUnreachable", f"Slurm cannot be asked: {seen.slurm.why}.")
    return true(READY, "Working", "All parts are ready, and Slurm answers.")


def _progressing(seen: Seen, plan: Plan, outcome: Outcome) -> Condition:
    if outcome.failed:
        return true(PROGRESSING, "Retrying", failing.retried(outcome))
    for wait in plan.waits:
        if wait.reason in STUCK and wait.reason != populate.FAILED:
            return false(PROGRESSING, wait.reason, "No changes will be made until this is fixed.")
    for wait in plan.waits:
        return true(PROGRESSING, wait.reason, wait.message)
    for one in map(state, parts(seen)):
        if one.is_progressing:
            return true(PROGRESSING, *under_way(one))
    if _is_being_made(plan):
        return true(PROGRESSING, "Starting", "Its parts are being made.")
    return false(PROGRESSING, "UpToDate")


def _degraded(seen: Seen, plan: Plan) -> Condition:
    for wait in plan.waits:
        if wait.reason in STUCK:
            return true(DEGRADED, wait.reason, wait.message)
    for one in map(state, parts(seen)):
        if one.is_degraded:
            return true(DEGRADED, one.reason, str(one))
    return false(DEGRADED, "AsExpected")
