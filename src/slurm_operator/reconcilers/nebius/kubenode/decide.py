"""What is done about one Kubernetes node: drains and lifts in Slurm, conditions, and maybe its removal."""

from collections import defaultdict
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Final

from slurm_operator.api.nebius import node_conditions
from slurm_operator.api.shared.meta import ObjectKey
from slurm_operator.conditions import Reason
from slurm_operator.listing import first_few
from slurm_operator.manifests import kinds
from slurm_operator.plan.actions import Action, PatchObject, Wait, WriteSlurm
from slurm_operator.plan.plan import Lane, Plan, lane, plan
from slurm_operator.reconcilers.nebius.kubenode.braking import brake
from slurm_operator.reconcilers.nebius.kubenode.marks import Case, Wish, operations, wishes
from slurm_operator.reconcilers.nebius.kubenode.observe import Seen, Tells
from slurm_operator.reconcilers.nebius.kubenode.removal import removal, removal_in
from slurm_operator.reconcilers.nebius.kubenode.rules import Do, Step, steps
from slurm_operator.reconcilers.nebius.kubenode.troubles import (
    REBOOT_REASON,
    REPLACEMENT_REASON,
    STORAGE_REASON,
)
from slurm_operator.safety.gate import Candidate, Shut, gate
from slurm_operator.slurm.writes import DrainNodes, ResumeNodes, SlurmWrite

SLURM_UNREACHABLE: Final = Reason.SLURM_UNREACHABLE
CANNOT_TELL: Final = Reason.CANNOT_TELL
DRAINING: Final = Reason.DRAINING

# The window of the brake ends without an event.
_BRAKED_FOR: Final = timedelta(minutes=1)

_DRAINS: Final = {
    Do.DRAIN_FOR_REPLACEMENT: (
        REPLACEMENT_REASON,
        Reason.DRAINED_FOR_MAINTENANCE,
        "maintenance of Kubernetes node {}",
    ),
    Do.DRAIN_FOR_REBOOT: (REBOOT_REASON, Reason.DRAINED_FOR_REBOOT, "Kubernetes node {} needs a reboot"),
    Do.DRAIN_FOR_STORAGE: (
        f"{STORAGE_REASON} nearly full",
        Reason.HIGH_EPHEMERAL_STORAGE_USAGE,
        "the local storage of workers on Kubernetes node {} is nearly full",
    ),
}


def decide(seen: Seen, now: datetime) -> Plan:
    if seen.meta.is_terminating:
        return plan()
    case = Case(seen, tuple(steps(seen)), brake(seen, now), seen.empties(now))
    wanted = wishes(case)
    waits = [*_waits(case, now), *removal(case, now)]
    return plan(
        *_slurm(case),
        lane("conditions", _patch(case, wanted, now)),
        lane("waits", waits),
        look_again=_look_again(case, now),
        waits_on=_awaited(case),
    )


# ---- Slurm


def _slurm(case: Case) -> Iterator[Lane]:
    """A lane for each cluster and verb. What the brake holds is not begun; lifts go on."""
    wanted: defaultdict[tuple[ObjectKey, Do], list[Step]] = defaultdict(list)
    for step in case.steps:
        if step.do is Do.LIFT or (step.do in _DRAINS and not case.brake.is_on and _may_drain(step)):
            wanted[step.worker.controller, step.do].append(step)
    for (controller, do), found in wanted.items():
        nodes = tuple(step.worker.slurm_node for step in found)
        over = frozenset(step.worker.record.reason for step in found if step.worker.record is not None) - {""}
        if do is Do.LIFT:
            write: SlurmWrite = ResumeNodes(nodes=nodes, over=over)
            reason, why = Reason.RESUMED, f"drained for Kubernetes nodes; {found[0].rule.name}"
            message = f"lifted the drain of {first_few(nodes)}: {why}"
        else:
            text, reason, why = _DRAINS[do]
            write = DrainNodes(nodes=nodes, reason=text, over=over)
            message = f"drained {first_few(nodes)}: {why.format(case.seen.name)}"
        action = WriteSlurm(controller=controller, write=write, reason=reason, message=message)
        yield lane(f"{do} in {controller}", [action])


def _may_drain(step: Step) -> bool:
    """Not where a person said something about a node without draining it, such as why it is down."""
    record = step.worker.record
    return record is not None and (not record.reason or record.is_marked_by_slurm)


# ---- Conditions


def _patch(case: Case, wanted: list[Wish], now: datetime) -> list[Action]:
    if not wanted:
        return []
    told = ", ".join(f"{wish.type}={wish.tells} ({wish.reason})" for wish in wanted)
    return [
        PatchObject(
            kind=kinds.KUBE_NODE,
            key=ObjectKey("", case.seen.name),
            uid=case.seen.meta.uid,
            operations=operations(wanted, case.seen, now),
            reason=Reason.NODE_CONDITIONS,
            message=f"set conditions of Kubernetes node {case.seen.name}: {told}",
            subresource="status",
        )
    ]


# ---- What is waited for


def _waits(case: Case, now: datetime) -> Iterator[Wait]:
    seen = case.seen
    if case.brake.is_on:
        yield Wait(subject=seen.name, reason=Reason.BRAKE_ON, message=case.brake.text)
    if not _is_concerned(case):
        return
    if why := seen.has_unreachable:
        message = (
            f"Slurm does not answer ({why}), so nobody can tell what runs on Kubernetes node {seen.name}. "
            "Nothing is drained, lifted or deleted there until it does."
        )
        yield Wait(subject=seen.name, reason=SLURM_UNREACHABLE, message=message)
    if seen.call is Tells.UNKNOWN:
        message = (
            f"Whether Kubernetes node {seen.name} is to be emptied cannot be told: "
            f"{seen.options.maintenance_condition} or {node_conditions.HARDWARE_SUSPECTED} is Unknown. "
            "Nothing is begun, and nothing is lifted."
        )
        yield Wait(subject=seen.name, reason=CANNOT_TELL, message=message)
    yield from _complaints(case)
    yield from _draining(case, now)


def _complaints(case: Case) -> Iterator[Wait]:
    for step in case.steps:
        if step.do is Do.COMPLAIN and step.worker.record is not None:
            name = step.worker.slurm_node
            message = (
                f"{name} is drained with the reason {step.worker.record.reason!r}: {step.rule.name}. It "
                f"stays drained. When it is fit for jobs: scontrol update nodename={name} state=resume"
            )
            yield Wait(subject=name, reason=CANNOT_TELL, message=message)


def _draining(case: Case, now: datetime) -> Iterator[Wait]:
    """Which jobs hold it up."""
    if case.empties is not Tells.NO:
        return
    for name in case.seen.strangers:
        message = f"{name} is no worker of a SlurmCluster, and nobody here can tell whether it has jobs"
        yield Wait(subject=name, reason=DRAINING, message=message)
    for worker in case.seen.workers:
        candidate = Candidate(worker.pod, worker.slurm_node, worker.slurm, worker.state_lost_since)
        verdict = gate(candidate, now)
        if isinstance(verdict, Shut):
            message = f"{worker.slurm_node}: {verdict.message}"
            yield Wait(subject=worker.slurm_node, reason=DRAINING, message=message, jobs=verdict.jobs)


def _is_concerned(case: Case) -> bool:
    """Whether there is anything to wait for: a healthy Kubernetes node says nothing."""
    seen = case.seen
    marks = (
        node_conditions.MAINTENANCE,
        node_conditions.DEGRADED,
        node_conditions.DRAIN,
        node_conditions.REBOOT,
    )
    is_marked = any(not seen.mark(type_).is_off for type_ in marks)
    is_at_work = any(step.do not in (Do.LEAVE, Do.WAIT) for step in case.steps)
    return bool(seen.workers) and (seen.call is not Tells.NO or is_marked or is_at_work)


def _awaited(case: Case) -> tuple[ObjectKey, ...]:
    """Whose answers are waited for: of workers that are not idle yet, or are about to be lifted."""
    if not _is_concerned(case) or case.brake.is_on:
        return ()
    return tuple(sorted({worker.controller for worker in case.seen.workers}))


def _look_again(case: Case, now: datetime) -> timedelta | None:
    waits = [_BRAKED_FOR] if case.brake.is_on else []
    waits += [left] if (left := removal_in(case.seen, now)) is not None else []
    return min(waits, default=None)
