"""What a NodeSet says about itself, in Soperator's words, and ours beside them."""

from collections.abc import Iterator
from typing import Final

from slurm_operator.api.nebius.slurmcluster import Maintenance
from slurm_operator.api.shared.conditions import Truth
from slurm_operator.plan import failing
from slurm_operator.plan.conditions import DEGRADED, PROGRESSING, READY, Condition, false, true, unknown
from slurm_operator.plan.plan import Outcome, Plan
from slurm_operator.plan.reconciler import StatusReport
from slurm_operator.reconcilers.nebius.nodeset import desired
from slurm_operator.reconcilers.nebius.nodeset.decide import (
    CLUSTER_CHANGED,
    CLUSTER_NOT_FOUND,
    SPEC_REFUSED,
    running,
)
from slurm_operator.reconcilers.nebius.nodeset.observe import Seen
from slurm_operator.reconcilers.nebius.nodeset.unsupported import unsupported
from slurm_operator.reconcilers.nebius.shared import soperator_pods, takeover
from slurm_operator.reconcilers.shared.composed import State, state, under_way
from slurm_operator.reconcilers.shared.parts import NAME_TAKEN

CONFIG_UPDATED: Final = "ConfigUpdated"
CONFIG_DYNAMIC_UPDATED: Final = "ConfigDynamicUpdated"
STATEFUL_SET_UPDATED: Final = "StatefulSetUpdated"
PODS_READY: Final = "PodsReady"
TERMINATED: Final = "StatefulSetTerminated"
FIELDS_SUPPORTED: Final = "FieldsSupported"

SET_UP: Final = "SetUpCondition"
NODESET_READY, NODESET_NOT_READY = "NodeSetReady", "NodeSetNotReady"
MAINTENANCE, ENABLED = "Maintenance", "WorkersEnabled"

PENDING, PROVISIONING, READY_PHASE, TERMINATING = "Pending", "Provisioning", "Ready", "Terminating"

_STUCK: Final = (
    SPEC_REFUSED,
    CLUSTER_NOT_FOUND,
    CLUSTER_CHANGED,
    NAME_TAKEN,
    soperator_pods.RUNNING,
    takeover.REFUSED,
    "ConfigMapNotFound",
)


def status(seen: Seen, plan: Plan, outcome: Outcome) -> StatusReport:
    theirs = list(their_conditions(seen))
    ours = list(_conditions(seen, plan, outcome))
    part = seen.own
    return StatusReport(
        conditions=[*theirs, *ours],
        fields={
            "observedGeneration": seen.meta.generation,
            "phase": phase(seen, theirs),
            "replicas": part.status.ready_replicas if part is not None else 0,
            **({"labelSelector": desired.selector(seen)} if seen.nodeset.cluster else {}),
        },
    )


def phase(seen: Seen, theirs: list[Condition]) -> str:
    told = {condition.type: condition.status for condition in theirs}
    if seen.meta.is_terminating or told[TERMINATED] is Truth.TRUE:
        return TERMINATING
    if told[PODS_READY] is Truth.TRUE:
        return READY_PHASE
    return PROVISIONING if told[PODS_READY] is Truth.FALSE else PENDING


def their_conditions(seen: Seen) -> Iterator[Condition]:
    part = seen.own
    if part is None or seen.nodeset.spec is None:
        for type_ in (CONFIG_UPDATED, CONFIG_DYNAMIC_UPDATED, STATEFUL_SET_UPDATED, PODS_READY):
            yield unknown(type_, SET_UP, "There are no workers yet.")
        yield unknown(TERMINATED, SET_UP, "There are no workers yet.")
        return
    is_read = part.status.observed_generation >= part.metadata.generation
    for type_ in (CONFIG_UPDATED, CONFIG_DYNAMIC_UPDATED):
        yield true(type_, "Updated") if is_read else false(type_, "Updating", "The workers follow the spec.")
    wanted, told = len(part.spec.numbers), part.status
    is_updated = is_read and told.updated_replicas >= wanted
    yield (
        true(STATEFUL_SET_UPDATED, "Updated")
        if is_updated
        else false(
            STATEFUL_SET_UPDATED, "Updating", f"{told.updated_replicas} of {wanted} workers are updated."
        )
    )
    yield _pods_ready(seen, told.ready_replicas)
    yield _terminated(seen)


def _pods_ready(seen: Seen, ready: int) -> Condition:
    wanted = _wanted(seen)
    more = f", and {ready - wanted} more that will be removed" if ready > wanted else ""
    message = f"{min(ready, wanted)} of {wanted} workers are ready{more}."
    is_ready = ready >= wanted
    return (
        true(PODS_READY, NODESET_READY, message)
        if is_ready
        else false(PODS_READY, NODESET_NOT_READY, message)
    )


def _wanted(seen: Seen) -> int:
    """How many workers should be ready; of ephemeral ones those that run, and all of them in maintenance."""
    has_cluster = seen.cluster is not None and seen.cluster.spec is not None
    if not seen.is_ephemeral or (has_cluster and seen.is_down):
        return seen.spec.replicas
    if has_cluster:
        return len(running(seen))
    return len(seen.own.spec.numbers) if seen.own is not None else 0


def _terminated(seen: Seen) -> Condition:
    is_down = (
        seen.cluster is not None
        and seen.cluster.spec is not None
        and seen.cluster.spec.maintenance not in (Maintenance.NONE, Maintenance.SKIP_POPULATE_JAIL)
    )
    if not is_down:
        return false(TERMINATED, ENABLED, "Workers run.")
    left = seen.own.status.replicas if seen.own is not None else 0
    message = f"{left} workers are still there." if left else "All workers are gone."
    return true(TERMINATED, MAINTENANCE, f"The SlurmCluster is in maintenance. {message}")


def _conditions(seen: Seen, plan: Plan, outcome: Outcome) -> Iterator[Condition]:
    if seen.nodeset.spec is not None:
        found = list(unsupported(seen))
        yield (
            false(FIELDS_SUPPORTED, "SomeIgnored", "; ".join(found))
            if found
            else true(FIELDS_SUPPORTED, "AllSupported")
        )
    told = state(seen.own) if seen.own is not None else None
    yield _ready(seen, plan, told)
    yield _progressing(plan, outcome, told)
    yield failing.degraded(outcome, _degraded(plan, told))


def _ready(seen: Seen, plan: Plan, told: State | None) -> Condition:
    if seen.meta.is_terminating:
        return false(READY, "Deleting", "The NodeSet is being deleted.")
    for wait in plan.waits:
        return false(READY, wait.reason, wait.message)
    if told is None:
        return false(READY, "Starting", "Its workers are being made.")
    if seen.cluster is not None and seen.cluster.spec is not None and seen.is_down:
        return false(READY, MAINTENANCE, f"The SlurmCluster is in maintenance: {seen.of.maintenance}.")
    if told.is_ready and seen.own is not None and _wanted(seen) and not seen.own.status.ready_replicas:
        # A part without workers was ready when it last looked at its spec.
        return false(READY, NODESET_NOT_READY, _pods_ready(seen, 0).message)
    if not told.is_ready:
        return false(READY, told.reason, told.message)
    # Its trouble, which does not keep it from being ready, is what Degraded is for.
    return true(READY, told.ready, told.ready_message)


def _progressing(plan: Plan, outcome: Outcome, told: State | None) -> Condition:
    if outcome.failed:
        return true(PROGRESSING, "Retrying", failing.retried(outcome))
    for wait in plan.waits:
        if wait.reason in _STUCK:
            return false(PROGRESSING, wait.reason, "No changes will be made until this is fixed.")
        return true(PROGRESSING, wait.reason, wait.message)
    if told is None:
        return true(PROGRESSING, "Starting", "Its workers are being made.")
    if told.is_progressing:
        return true(PROGRESSING, *under_way(told))
    return false(PROGRESSING, "UpToDate")


def _degraded(plan: Plan, told: State | None) -> Condition:
    for wait in plan.waits:
        if wait.reason in _STUCK:
            return true(DEGRADED, wait.reason, wait.message)
    if told is not None and told.is_degraded:
        return true(DEGRADED, told.reason, told.message)
    return false(DEGRADED, "AsExpected")
