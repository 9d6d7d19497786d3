"""What to do next about the node, with the reason: one list of rules, read from top to bottom.

A plain function: facts in, steps out. What a rule relies on later is noted on the Node before anything is
done about it, so it does not matter between which two steps an agent is ended.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from slurm_operator import wire
from slurm_operator.agents.rebooter.budget import Slots
from slurm_operator.agents.rebooter.node import MAY_MOVE_SLURMCTLD, REBOOTS, Memo, Node
from slurm_operator.agents.rebooter.pods import Pod, dependents, due, remaining
from slurm_operator.api.nebius import node_conditions as names
from slurm_operator.listing import first_few

TRUE, FALSE = "True", "False"

# Clocks of two machines may differ by so much. A boot counts as later than a request if it clearly was.
SKEW: Final = timedelta(minutes=2)

_NAMED_PODS: Final = 3
_SOON: Final = timedelta(seconds=5)


@dataclass(frozen=True)
class Limits:
    """How patient the rebooter is, and how often it may do what it does."""

    look_again: timedelta = timedelta(minutes=1)
    evict_again: timedelta = timedelta(seconds=15)
    reboot_timeout: timedelta = timedelta(minutes=10)
    max_reboots: int = 3
    window: timedelta = timedelta(hours=24)


@dataclass(frozen=True)
class Attempt:
    """The last eviction of a pod that was asked for; `refusal` is empty when it was accepted."""

    at: datetime
    refusal: str = ""


@dataclass(frozen=True)
class Seen:
    """Everything a decision is about. `pods` and `slots` are None where nobody asked for them."""

    node: Node
    boot_id: str
    booted_at: datetime
    pods: tuple[Pod, ...] | None = None
    neighbours: tuple[Pod, ...] = ()  # Pods in the namespaces of slurmctlds that run here.
    slots: Slots | None = None
    attempts: Mapping[str, Attempt] = field(default_factory=dict)  # By uid of the pod.
    reboot_trouble: str = ""  # Why the last reboot command did not end well.
    limits: Limits = Limits()

    @property
    def memo(self) -> Memo:
        return self.node.memo

    @property
    def remaining(self) -> list[Pod]:
        return remaining(self.pods or ())

    @property
    def is_asked(self) -> bool:
        return self.node.is_drain_asked or self.node.is_reboot_asked

    @property
    def has_slot(self) -> bool:
        return self.slots is not None and self.slots.is_held_by(self.node.name, self.node.metadata.uid)


# ---- Steps


@dataclass(frozen=True)
class ChangeNode:
    """One patch of the Node: the note and what it is about. None leaves a field as it is."""

    memo: Memo
    message: str
    cordon: bool | None = None
    taint: bool | None = None
    counts_reboot: bool = False


@dataclass(frozen=True)
class SetCondition:
    type: str
    status: str
    reason: str
    message: str


@dataclass(frozen=True)
class ClaimSlot:
    message: str


@dataclass(frozen=True)
class ReleaseSlot:
    message: str


@dataclass(frozen=True)
class Evict:
    pods: tuple[Pod, ...]


@dataclass(frozen=True)
class Reboot:
    message: str


Step = ChangeNode | SetCondition | ClaimSlot | ReleaseSlot | Evict | Reboot


@dataclass(frozen=True)
class Decision:
    """The steps in their order; one that fails ends them. `why` is for the log when there are none."""

    steps: tuple[Step, ...] = ()
    why: str = ""
    look_again: timedelta | None = None


Rule = Callable[[Seen, datetime], Decision | None]


def decide(seen: Seen, now: datetime) -> Decision:
    for rule in RULES:
        found = rule(seen, now)
        if found is not None:
            return found
    return Decision(why="nothing is asked for")


# ---- Before anything else


def node_is_deleted(seen: Seen, now: datetime) -> Decision | None:
    return Decision(why="the Node is being deleted") if seen.node.metadata.is_terminating else None


def wish_is_unclear(seen: Seen, now: datetime) -> Decision | None:
    """Neither asked nor taken back: everything stays as it is."""
    return Decision(why="a condition says neither True nor False") if seen.node.is_unclear else None


def reboot_is_under_way(seen: Seen, now: datetime) -> Decision | None:
    """The command was given a moment ago. Also when nobody wants it any more: it cannot be called back."""
    memo = seen.memo
    if memo.attempted_at is None or memo.boot_id != seen.boot_id:
        return None
    passed = abs(now - memo.attempted_at)  # Clocks are set back, too.
    if passed >= seen.limits.reboot_timeout:
        return None
    left = seen.limits.reboot_timeout - passed
    if not seen.reboot_trouble or not seen.node.is_reboot_asked:
        return Decision(why="waiting for the reboot", look_again=left)
    text = f"The reboot command failed, and runs again after a while. {seen.reboot_trouble}"
    return Decision(_say(seen, names.REBOOT, TRUE, names.REBOOTING, text), "waiting for the reboot", left)


def reboot_is_done(seen: Seen, now: datetime) -> Decision | None:
    """Another boot than the noted one; of a request that was not noted, one that clearly came after it."""
    if not seen.node.is_reboot_asked:
        return None
    memo, condition = seen.memo, seen.node.condition(names.REBOOT)
    if memo.request == seen.node.request and not memo.answered:
        is_done = memo.boot_id != seen.boot_id
    else:
        since = condition.since if condition is not None else None
        is_done = memo.request != seen.node.request and since is not None and seen.booted_at > since + SKEW
    if not is_done:
        return None
    text = "The Kubernetes node was rebooted."
    return Decision((SetCondition(names.REBOOT, TRUE, names.REBOOTED, text),))


def reboot_is_answered(seen: Seen, now: datetime) -> Decision | None:
    """Noted, so that the next request with the same time is another one."""
    condition, memo = seen.node.condition(names.REBOOT), seen.memo
    if condition is None or not condition.is_true or condition.reason != names.REBOOTED:
        return None
    if memo.answered and memo.request == seen.node.request:
        return None
    answered = wire.replace(memo, request=seen.node.request, answered=True, attempted_at=None)
    return Decision((ChangeNode(answered, "the reboot is answered"),))


# ---- Nothing is asked for: what we did is undone


def cause_is_gone(seen: Seen, now: datetime) -> Decision | None:
    if seen.is_asked:
        return None
    memo, condition = seen.memo, seen.node.condition(names.DRAIN)
    if memo.cordoned or memo.tainted:
        is_rebooted = bool(memo.boot_id) and memo.boot_id != seen.boot_id
        if is_rebooted and not seen.node.is_ready_in(seen.boot_id):
            return Decision(why="waiting for the kubelet to be ready after the reboot", look_again=_SOON)
        lifted = wire.replace(memo, cordoned=False, tainted=False, told=False, explained=False)
        cordon, taint = (False if memo.cordoned else None), (False if memo.tainted else None)
        text = "nothing asks for the drain any more"
        return Decision((ChangeNode(lifted, text, cordon=cordon, taint=taint),))
    is_owed = memo.began and condition is not None and condition.reason != names.UNDRAINED
    if is_owed and condition is not None and (not condition.is_true or memo.own_drain):
        text = f"Nothing asks for the drain any more.{_left_cordon(seen)}"
        return Decision((SetCondition(names.DRAIN, FALSE, names.UNDRAINED, text),))
    if seen.has_slot:
        return Decision((ReleaseSlot("the Kubernetes node is in service again"),))
    kept = Memo(request=memo.request, answered=True) if _is_told_rebooted(seen) else Memo()
    if memo != kept:
        return Decision((ChangeNode(kept, "nothing is left to be undone"),))
    return Decision(why="nothing is asked for")


def _left_cordon(seen: Seen) -> str:
    return " It stays cordoned: somebody else cordoned it." if seen.node.spec.unschedulable else ""


def _is_told_rebooted(seen: Seen) -> bool:
    """While the answer stands there, the request that it is about must be known."""
    condition = seen.node.condition(names.REBOOT)
    return condition is not None and condition.is_true and bool(seen.memo.request)


# ---- Something is asked for


def drain_is_asked_too(seen: Seen, now: datetime) -> Decision | None:
    """Somebody asks for the drain that a reboot alone had asked for."""
    condition = seen.node.condition(names.DRAIN)
    is_new = condition is not None and condition.is_true and condition.reason == names.NEED_DRAIN
    if not (is_new and seen.memo.own_drain):
        return None
    return Decision((ChangeNode(wire.replace(seen.memo, own_drain=False), "a drain is asked for as well"),))


def request_is_new(seen: Seen, now: datetime) -> Decision | None:
    """Noted with the boot that is to end, before anything is done about it."""
    memo = seen.memo
    if not seen.node.is_reboot_asked or (memo.request == seen.node.request and not memo.answered):
        return None
    noted = wire.replace(
        memo, request=seen.node.request, boot_id=seen.boot_id, attempted_at=None, answered=False
    )
    return Decision((ChangeNode(noted, "a reboot is asked for"),))


def too_many_reboots(seen: Seen, now: datetime) -> Decision | None:
    """A node that would not even be drained for anything else."""
    if seen.memo.began or seen.node.is_drain_asked:
        return None
    return _too_often(seen, now)


def pods_are_unknown(seen: Seen, now: datetime) -> Decision | None:
    return Decision(why="pods are not read yet", look_again=_SOON) if seen.pods is None else None


def slurmctld_is_needed(seen: Seen, now: datetime) -> Decision | None:
    """Without it no job starts or ends anywhere in its cluster."""
    if seen.node.may_move_slurmctld:
        return None
    for pod in seen.remaining:
        workers = dependents(pod, seen.neighbours) if pod.is_slurmctld else []
        if workers:
            text = (
                f"Not drained: slurmctld of cluster {pod.cluster} runs here as pod {pod.name}, and "
                f"its {_count(len(workers), 'worker')} may have jobs. Move that pod to another Kubernetes "
                f"node, or annotate this one with {MAY_MOVE_SLURMCTLD}=true: then no job starts or ends "
                "until slurmctld runs again."
            )
            return _held(seen, text)
    return None


def slot_is_missing(seen: Seen, now: datetime) -> Decision | None:
    slots = seen.slots
    if slots is None:
        return Decision(why="the list of nodes that are out of service is not read yet", look_again=_SOON)
    if seen.has_slot:
        return None
    if slots.is_free_for(seen.node.name):
        return Decision((ClaimSlot("it is drained, or rebooted"),))
    others = first_few(slots.others(seen.node.name), _NAMED_PODS)
    limit = _count(slots.limit, "Kubernetes node")
    text = f"Waiting: at most {limit} may be out of service at once (--max-nodes). Out of service: {others}."
    return _held(seen, text)


def work_has_not_begun(seen: Seen, now: datetime) -> Decision | None:
    """Cordon: no new pod is placed here, and operators of Slurm clusters send no more jobs."""
    memo = seen.memo
    if memo.began and seen.node.spec.unschedulable:
        return None
    is_cordoned = seen.node.spec.unschedulable
    own = memo.own_drain if memo.began else not seen.node.is_drain_asked
    begun = wire.replace(memo, began=True, cordoned=memo.cordoned or not is_cordoned, own_drain=own)
    text = "cordoned by somebody else already" if is_cordoned else "a drain is asked for"
    return Decision((ChangeNode(begun, text, cordon=None if is_cordoned else True),))


def own_drain_is_told(seen: Seen, now: datetime) -> Decision | None:
    condition, memo = seen.node.condition(names.DRAIN), seen.memo
    if not memo.own_drain or memo.told or condition is None or not condition.is_true:
        return None
    return Decision((ChangeNode(wire.replace(memo, told=True), "the drain is told"),))


def worker_is_under_taint(seen: Seen, now: datetime) -> Decision | None:
    """The taint ends pods without asking anybody, so it is lifted before it ends this one."""
    if not (seen.memo.tainted and seen.node.has_taint and any(pod.is_worker for pod in seen.remaining)):
        return None
    untainted = wire.replace(seen.memo, tainted=False)
    return Decision((ChangeNode(untainted, "a worker is on the Kubernetes node again", taint=False),))


def pods_are_left(seen: Seen, now: datetime) -> Decision | None:
    """Evicted, so that PodDisruptionBudgets count. The cordon has the jobs of workers end first."""
    left = seen.remaining
    if not left:
        return None
    wait = seen.limits.evict_again
    evictable = [
        pod for pod in due(left) if pod.uid not in seen.attempts or now - seen.attempts[pod.uid].at >= wait
    ]
    steps: tuple[Step, ...] = _say_drain(seen, names.DRAINING, _waiting_for(left, seen.attempts))
    return Decision((*steps, *([Evict(tuple(evictable))] if evictable else [])), look_again=_SOON)


def taint_is_missing(seen: Seen, now: datetime) -> Decision | None:
    """Set when nothing is left that it could end. Then not even pods that are bound to the node start."""
    if seen.node.has_taint:
        return None
    tainted = wire.replace(seen.memo, tainted=True)
    return Decision((ChangeNode(tainted, "the Kubernetes node is empty", taint=True),))


def drain_is_not_told(seen: Seen, now: datetime) -> Decision | None:
    steps = _say_drain(
        seen, names.DRAINED, "No pods are left, except those that stay on every Kubernetes node."
    )
    return Decision(steps) if steps else None


def reboot_is_due(seen: Seen, now: datetime) -> Decision | None:
    if not seen.node.is_reboot_asked:
        return None
    held = _too_often(seen, now)
    if held is not None:
        return held
    text = "The Kubernetes node is empty and reboots."
    noted = wire.replace(seen.memo, attempted_at=now.replace(microsecond=0))
    return Decision(
        (
            ChangeNode(noted, text, counts_reboot=True),
            SetCondition(names.REBOOT, TRUE, names.REBOOTING, text),
            Reboot(text),
        )
    )


def node_stays_drained(seen: Seen, now: datetime) -> Decision | None:
    return Decision(why="drained, as somebody asks for", look_again=seen.limits.look_again)


RULES: Final[tuple[Rule, ...]] = (
    node_is_deleted,
    wish_is_unclear,
    reboot_is_under_way,
    reboot_is_done,
    reboot_is_answered,
    cause_is_gone,
    drain_is_asked_too,
    request_is_new,
    too_many_reboots,
    pods_are_unknown,
    slurmctld_is_needed,
    slot_is_missing,
    work_has_not_begun,
    own_drain_is_told,
    worker_is_under_taint,
    pods_are_left,
    taint_is_missing,
    drain_is_not_told,
    reboot_is_due,
    node_stays_drained,
)


# ---- What is told


def _too_often(seen: Seen, now: datetime) -> Decision | None:
    """No endless reboots: neither of a node that they do not cure, nor by a command that does not work."""
    if not seen.node.is_reboot_asked:
        return None
    limits = seen.limits
    before = seen.node.reboots_since(now - limits.window)
    if len(before) < limits.max_reboots:
        return None
    hours = limits.window.total_seconds() / 3600
    done = f"the reboot command ran {_count(len(before), 'time')} in the last {hours:g} hours"
    memo = seen.memo
    if memo.boot_id == seen.boot_id and memo.attempted_at is not None:
        done += ", and this is still the same boot"
    trouble = f" {seen.reboot_trouble}" if seen.reboot_trouble else ""
    text = (
        f"Not rebooted: {done}.{trouble} Look at the Kubernetes node; remove its annotation {REBOOTS} to "
        "have it rebooted again."
    )
    condition = seen.node.condition(names.REBOOT)
    reason = condition.reason if condition is not None else names.NEED_REBOOT
    return Decision(_say(seen, names.REBOOT, TRUE, reason, text), text, limits.look_again)


def _held(seen: Seen, text: str) -> Decision:
    """Nothing is done, and whoever asks reads why in the condition by which they asked."""
    steps: tuple[Step, ...] = ()
    for type_, is_asked in (
        (names.DRAIN, seen.node.is_drain_asked),
        (names.REBOOT, seen.node.is_reboot_asked),
    ):
        condition = seen.node.condition(type_)
        if is_asked and condition is not None:
            steps = (*steps, *_say(seen, type_, TRUE, condition.reason, text))
    return Decision(steps, text, seen.limits.look_again)


def _say(seen: Seen, type_: str, status: str, reason: str, message: str) -> tuple[Step, ...]:
    """Nothing where the condition says that already."""
    there = seen.node.condition(type_)
    if there is not None and (there.status, there.reason, there.message) == (status, reason, message):
        return ()
    return (SetCondition(type_, status, reason, message),)


def _say_drain(seen: Seen, reason: str, message: str) -> tuple[Step, ...]:
    """For a reboot alone the drain is told once: somebody who clears it has taken note of it."""
    condition, memo = seen.node.condition(names.DRAIN), seen.memo
    is_true = condition is not None and condition.is_true
    is_ours = memo.own_drain and (is_true or not memo.told)
    return _say(seen, names.DRAIN, TRUE, reason, message) if seen.node.is_drain_asked or is_ours else ()


def _waiting_for(left: Sequence[Pod], attempts: Mapping[str, Attempt]) -> str:
    return f"Waiting for {_count(len(left), 'pod')} to leave: {_each(left, attempts)}."


def _each(left: Sequence[Pod], attempts: Mapping[str, Attempt]) -> str:
    return first_few([_one(pod, attempts.get(pod.uid)) for pod in left], _NAMED_PODS, separator="; ")


def _one(pod: Pod, attempt: Attempt | None) -> str:
    if pod.metadata.is_terminating:
        return f"{pod.name} is terminating"
    if pod.is_protected:
        return f"{pod.name} is a worker that may have jobs"
    if attempt is not None and attempt.refusal:
        return f"{pod.name} ({attempt.refusal.rstrip('. ')})"
    return pod.name


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'s' * (number != 1)}"
