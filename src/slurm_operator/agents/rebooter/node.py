"""A Kubernetes node as the rebooter reads it, and what it notes there about its own work."""

from datetime import UTC, datetime, timedelta
from typing import Any, Final

from slurm_operator import wire
from slurm_operator.api.nebius import node_conditions as names
from slurm_operator.manifests.meta import Meta

# What this rebooter did to the node, so that it lifts that and nothing else.
MEMO: Final = "slurm.nebius.ai/rebooter"
# When the reboot command ran, newest last. Whoever removes it allows more reboots at once.
REBOOTS: Final = "slurm.nebius.ai/rebooter-reboots"
# Set to "true" by a person who accepts that slurmctld moves while jobs depend on it.
MAY_MOVE_SLURMCTLD: Final = "slurm.nebius.ai/rebooter-may-move-slurmctld"

TAINT: Final = {"key": names.DRAIN_TAINT, "value": "true", "effect": "NoExecute"}

_READY: Final = "Ready"
_TRUE, _FALSE = "True", "False"


class NodeCondition(wire.CamelRecord):
    type: str
    status: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: str | None = None  # The API server writes null for one that was given none.

    @property
    def is_true(self) -> bool:
        return self.status == _TRUE

    @property
    def is_known(self) -> bool:
        return self.status in (_TRUE, _FALSE)

    @property
    def since(self) -> datetime | None:
        return _time(self.last_transition_time or "")


class _Spec(wire.CamelRecord):
    unschedulable: bool = False
    taints: tuple[dict[str, Any], ...] | None = None


class _Info(wire.CamelRecord):
    boot_id: str = wire.field(name="bootID", default="")


class _Status(wire.CamelRecord):
    conditions: tuple[dict[str, Any], ...] | None = None
    node_info: _Info = _Info()


class Memo(wire.CamelRecord, omit_defaults=True):
    """What the rebooter remembers on the node: written with what it is about, in the same request."""

    began: bool = False  # The node is being taken out of service, or is out.
    cordoned: bool = False
    tainted: bool = False
    own_drain: bool = False  # Nobody but a reboot asked for the drain.
    told: bool = False  # Such a drain was told in the condition. Who clears it there does not end the reboot.
    explained: bool = False  # Why it is cordoned stands in an annotation of ours.
    request: str = ""  # Since when the reboot is asked for that the rest is about.
    boot_id: str = ""  # The boot that is to end.
    attempted_at: datetime | None = None
    answered: bool = False

    @property
    def is_empty(self) -> bool:
        return self == Memo()


class Node(wire.CamelRecord):
    """One Kubernetes node. Taints and conditions are kept whole, to be written back as they were."""

    metadata: Meta
    spec: _Spec = _Spec()
    status: _Status = _Status()

    @property
    def name(self) -> str:
        return self.metadata.name

    @property
    def taints(self) -> tuple[dict[str, Any], ...]:
        return self.spec.taints or ()

    @property
    def has_taint(self) -> bool:
        return any(_is_ours(taint) for taint in self.taints)

    @property
    def memo(self) -> Memo:
        """What cannot be read was not written by a rebooter, and counts for nothing."""
        try:
            return wire.decode(self.metadata.annotations.get(MEMO, "{}"), Memo)
        except wire.DecodeError:
            return Memo()

    @property
    def may_move_slurmctld(self) -> bool:
        return self.metadata.annotations.get(MAY_MOVE_SLURMCTLD) == "true"

    def condition(self, type_: str) -> NodeCondition | None:
        found = next((one for one in self.status.conditions or () if one.get("type") == type_), None)
        return wire.convert(found, NodeCondition) if found is not None else None

    def is_ready_in(self, boot_id: str) -> bool:
        """Whether the kubelet of this very boot calls the node ready."""
        ready = self.condition(_READY)
        return ready is not None and ready.is_true and self.status.node_info.boot_id == boot_id

    def reboots_since(self, since: datetime) -> list[datetime]:
        """Those that are noted. A time that lies ahead counts: clocks may be set back by a reboot."""
        found = (_time(word) for word in self.metadata.annotations.get(REBOOTS, "").split(","))
        return [at for at in found if at is not None and at >= since]

    # ---- What is asked for

    @property
    def is_drain_asked(self) -> bool:
        """By somebody other than us."""
        condition = self.condition(names.DRAIN)
        if condition is None or not condition.is_true:
            return False
        return condition.reason == names.NEED_DRAIN or not self.memo.own_drain

    @property
    def is_reboot_asked(self) -> bool:
        condition = self.condition(names.REBOOT)
        return condition is not None and condition.is_true and condition.reason != names.REBOOTED

    @property
    def is_unclear(self) -> bool:
        """Whether a condition says neither yes nor no."""
        found = (self.condition(type_) for type_ in (names.DRAIN, names.REBOOT))
        return any(one is not None and not one.is_known for one in found)

    @property
    def request(self) -> str:
        """What tells this request for a reboot from others: since when it is there."""
        condition = self.condition(names.REBOOT)
        return (condition.last_transition_time or "unknown") if condition is not None else ""


decode = wire.decoder(Node)


def _is_ours(taint: dict[str, Any]) -> bool:
    return (taint.get("key"), taint.get("effect")) == (TAINT["key"], TAINT["effect"])


def _time(word: str) -> datetime | None:
    try:
        found = datetime.fromisoformat(word.strip())
    except ValueError:
        return None
    return found if found.tzinfo is not None else None


# ---- What is written


def with_condition(
    node: Node, type_: str, status: str, reason: str, message: str, now: datetime
) -> list[dict[str, Any]]:
    """All conditions with this one in place. The time of its last transition changes with its status only."""
    before = node.condition(type_)
    at = _text(now)
    is_same = before is not None and before.status == status and before.last_transition_time
    found = {
        "type": type_,
        "status": status,
        "reason": reason,
        "message": message,
        "lastHeartbeatTime": at,
        "lastTransitionTime": before.last_transition_time if before is not None and is_same else at,
    }
    there = list(node.status.conditions or ())
    if before is None:
        return [*there, found]
    return [found if one.get("type") == type_ else one for one in there]


def memo_annotation(memo: Memo) -> str | None:
    """None removes it."""
    return None if memo.is_empty else wire.encode(memo).decode()


def reboots_annotation(node: Node, now: datetime, window: timedelta) -> str:
    """Those within the window, and one now."""
    return ",".join(_text(at) for at in [*node.reboots_since(now - window), now])


def taints_with(node: Node) -> list[dict[str, Any]]:
    return [*node.taints, dict(TAINT)]


def taints_without(node: Node) -> list[dict[str, Any]]:
    return [taint for taint in node.taints if not _is_ours(taint)]


def _text(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
