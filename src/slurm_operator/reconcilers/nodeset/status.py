"""What a NodeSet says about its workers."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeGuard

from slurm_operator.api.shared import names
from slurm_operator.api.shared.conditions import Truth
from slurm_operator.api.slinky.nodeset_status import NodeSetStatus
from slurm_operator.conditions import Reason
from slurm_operator.manifests import kinds
from slurm_operator.manifests.meta import Manifest
from slurm_operator.manifests.pod_troubles import troubles
from slurm_operator.plan import failing
from slurm_operator.plan.actions import Action, Create
from slurm_operator.plan.conditions import DEGRADED, READY, Condition, false, true
from slurm_operator.plan.plan import Outcome, Plan
from slurm_operator.plan.reconciler import StatusReport
from slurm_operator.reconcilers.nodeset import identity
from slurm_operator.reconcilers.nodeset.creation import ssh
from slurm_operator.reconcilers.nodeset.departures import maintenance
from slurm_operator.reconcilers.nodeset.departures.pinning import pins
from slurm_operator.reconcilers.nodeset.departures.replica_plan import desired
from slurm_operator.reconcilers.nodeset.observe import Seen
from slurm_operator.reconcilers.nodeset.records.registration_check import mismatches
from slurm_operator.reconcilers.nodeset.report import crash_backoff, killing_probes, protection_status
from slurm_operator.reconcilers.nodeset.report.drain_forecast import TOLD, forecasts
from slurm_operator.reconcilers.nodeset.report.progressing import progressing
from slurm_operator.reconcilers.nodeset.worker import cordons
from slurm_operator.reconcilers.nodeset.worker.drain_policy import overdue
from slurm_operator.reconcilers.nodeset.worker.unresponsive import (
    CAUSE,
    has_been_ready,
    is_unresponsive,
    late_to_start,
    silent_since,
)
from slurm_operator.reconcilers.nodeset.workers import Worker
from slurm_operator.reconcilers.shared.dependencies import Need
from slurm_operator.safety.gate import jobs_text
from slurm_operator.slurm.snapshot import Snapshot, Unreachable


def status(seen: Seen, plan: Plan, outcome: Outcome) -> StatusReport:
    facts = numbers(seen, outcome)
    wrong = mismatches(seen)
    return StatusReport(
        conditions=list(conditions(seen, plan, outcome, {**facts, "mismatches": wrong})),
        fields={
            **facts,
            **forecasts(seen, plan),
            "ordinalToNode": pins(seen),
            "cordoned": cordons.remembered(seen),
            "failures": crash_backoff.remembered(seen, plan, outcome),
            "mismatches": wrong[:TOLD],
            "reservation": maintenance.remembered(seen, outcome),
        },
    )


def numbers(seen: Seen, outcome: Outcome) -> Manifest:
    """How many there are of each sort. Those that were made in this pass are there, though not seen yet."""
    nodeset, workers, revision = seen.nodeset, seen.workers, seen.revision
    present = [worker for worker in workers if worker.pod.status.phase]
    ready = [worker for worker in workers if worker.is_ready]
    available = [m for m in workers if m.is_available(seen.now, nodeset.spec.min_ready_seconds)]
    wanted = desired(seen)
    made = [_revision_of(action.manifest) for action in outcome.done if _makes_worker(action)]
    there = len(present) + len(made)
    return {
        "observedGeneration": nodeset.metadata.generation,
        "desired": wanted,
        "replicas": there,
        "updatedReplicas": made.count(revision.hash)
        + sum(1 for m in workers if m.revision == revision.hash and not m.is_terminating),
        "readyReplicas": len(ready),
        "availableReplicas": len(available),
        "unavailableReplicas": max(0, wanted - len(available)),
        "nodeSetHash": revision.hash,
        "collisionCount": revision.collisions or nodeset.status.collision_count,
        "selector": identity.owner(nodeset).selector_text,
        "slurmName": nodeset.slurm_name,
        **(_by_slurm(workers) if isinstance(seen.slurm, Snapshot) else _last_known(nodeset.status, there)),
    }


def _by_slurm(workers: Sequence[Worker]) -> Manifest:
    records = [record for worker in workers if (record := worker.known_record) is not None]
    states = [record.state for record in records]
    return {
        "registeredReplicas": len(states),
        "slurmIdle": sum(1 for state in states if state.is_idle),
        "slurmAllocated": sum(1 for state in states if state.base in ("ALLOCATED", "MIXED")),
        "slurmDown": sum(1 for state in states if state.is_down),
        "slurmDrain": sum(1 for state in states if state.is_drain),
        "slurmVersion": records[0].version if records else "",
    }


def _last_known(told: NodeSetStatus, there: int) -> Manifest:
    """While Slurm is silent its nodes and jobs go on as they were, except those whose pods have gone."""
    return {
        "registeredReplicas": min(told.registered_replicas, there),
        "slurmIdle": min(told.slurm_idle, there),
        "slurmAllocated": min(told.slurm_allocated, there),
        "slurmDown": min(told.slurm_down, there),
        "slurmDrain": min(told.slurm_drain, there),
        "slurmVersion": told.slurm_version if there else "",
    }


def _makes_worker(action: Action) -> TypeGuard[Create]:
    return isinstance(action, Create) and kinds.kind_of(action.manifest) == kinds.POD


def _revision_of(manifest: Manifest) -> str:
    labels: Mapping[str, str] = manifest["metadata"]["labels"]
    return labels.get(names.LABEL_REVISION, "")


def conditions(seen: Seen, plan: Plan, outcome: Outcome, facts: Manifest) -> Iterator[Condition]:
    wanted, available = facts["desired"], facts["availableReplicas"]
    for wait in plan.waits:
        if wait.reason in (
            Reason.ACCOUNTING_NOT_FOUND,
            Reason.CONTROLLER_NOT_FOUND,
            Reason.MACHINES_NOT_SEEN,
        ):
            yield false(READY, wait.reason, wait.message)
            break
    else:
        counted = f"{min(available, wanted)} of {wanted} workers are available"
        if available > wanted:
            counted += f", and {available - wanted} more that will be removed"
        yield (
            true(READY, Reason.AVAILABLE, counted)
            if available >= wanted
            else false(READY, Reason.UNAVAILABLE, counted)
        )
    yield progressing(seen, plan, facts)
    for one in (
        maintenance.condition(seen),
        killing_probes.condition(seen),
        protection_status.condition(seen),
    ):
        if one is not None:
            yield one
    otherwise = _degraded(seen, facts["mismatches"])
    yield failing.degraded(outcome, otherwise, Reason.ACTION_FAILED, " It is tried again.")


def _degraded(seen: Seen, wrong: list[Manifest]) -> Condition:
    if isinstance(seen.slurm, Unreachable) and seen.workers and not _is_slurm_starting(seen):
        return true(
            DEGRADED,
            Reason.SLURM_UNREACHABLE,
            # Since when says the condition itself; a restarted operator would only know its own start.
            f"Slurm cannot be asked: {seen.slurm.why}. Running workers go on; none is removed meanwhile.",
        )
    late = overdue(seen, seen.now)
    if late:
        return true(DEGRADED, Reason.DRAIN_OVERDUE, _overdue(late))
    if missing := ssh.missing_sssd_conf(seen):
        return true(DEGRADED, missing.reason, _without_sssd_conf(missing, seen))
    if told_by_kubernetes := troubles(m.pod for m in seen.workers if not m.is_ready and not m.is_terminating):
        more = f" (and {len(told_by_kubernetes) - 1} more)" if len(told_by_kubernetes) > 1 else ""
        return true(DEGRADED, Reason.PODS_NOT_READY, f"{told_by_kubernetes[0]}{more}")
    if silent := [m for m in seen.workers if not m.is_ready and is_silent(m, seen)]:
        return true(DEGRADED, CAUSE, _silent(silent, seen))
    if wrong:
        more = f" (and {len(wrong) - 1} more in status.mismatches)" if len(wrong) > 1 else ""
        return true(DEGRADED, Reason.MISMATCH, f"{wrong[0]['slurmNode']}: {wrong[0]['message']}{more}.")
    if behind := ssh.with_old_sssd_conf(seen):
        return true(DEGRADED, Reason.OLD_SSSD_CONF, _old_sssd_conf(behind, seen))
    return false(DEGRADED, Reason.AS_EXPECTED)


def is_silent(worker: Worker, seen: Seen) -> bool:
    """Its slurmd does not answer, or has never done so though Slurm is there to answer to."""
    is_late = seen.slurmctld_since is not None and late_to_start(worker, seen.now)
    return is_late or is_unresponsive(worker, seen.slurmctld_since, seen.now)


def _silent(silent: list[Worker], seen: Seen) -> str:
    """One that was ready before tells more than one that is late to start."""
    first = min(silent, key=lambda worker: (not has_been_ready(worker), worker.name))
    since = silent_since(first)
    when = f" since {since:%Y-%m-%d %H:%M:%S} UTC" if since is not None else ""
    more = f" (and {len(silent) - 1} more)" if len(silent) > 1 else ""
    never = not has_been_ready(first) and not is_unresponsive(first, seen.slurmctld_since, seen.now)
    then = (
        "It has never been ready since it started, so it is not drained for this."
        if never
        else "It gets no new jobs until slurmd is ready; those that it has go on."
    )
    return (
        f"slurmd of {first.name}{more} runs and has not been ready{when}. {then} "
        f"kubectl slurm explain pod/{first.name} says what to look at."
    )


def _without_sssd_conf(missing: Need, seen: Seen) -> str:
    ref = seen.nodeset.spec.ssh.sssd_conf_ref
    assert ref is not None
    return (
        f"{missing.message} When {ref.key!r} is there, new workers start automatically, in a minute or two."
    )


def _old_sssd_conf(behind: list[str], seen: Seen) -> str:
    ref = seen.nodeset.spec.ssh.sssd_conf_ref
    assert ref is not None
    more = f" (and {len(behind) - 1} more)" if len(behind) > 1 else ""
    return (
        f"{behind[0]}{more} has the sssd.conf that was in Secret {ref.name!r} when its pod was made, not the "
        "present one. New pods have that. To have all replaced, each when its jobs are over, change an "
        "annotation in spec.template.metadata."
    )


def _is_slurm_starting(seen: Seen) -> bool:
    """No slurmctld ever had workers, and none is ready: what keeps it from starting, its Controller says."""
    head = seen.controller
    if head is None or head.spec.external or head.status.workers_known_since is not None:
        return False
    if any(worker.is_ready for worker in seen.workers):
        return False
    return not any(one.type == READY and one.status is Truth.TRUE for one in head.status.conditions)


def _overdue(late: list[Worker]) -> str:
    more = f" (and {len(late) - 1} more)" if len(late) > 1 else ""
    return (
        f"{late[0].slurm_node}{more} should leave and is held up for longer than drainPolicy.deadline by "
        f"{jobs_text(late[0].jobs)}. What drainPolicy.type does not end is waited for."
    )
