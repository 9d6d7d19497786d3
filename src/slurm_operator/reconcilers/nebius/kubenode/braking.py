"""Which Kubernetes nodes the brake holds: too many workers of a NodeSet would be taken out of service.

Counted are workers that are about to be drained, marked for a reboot or for other hardware, or deleted with
their Kubernetes node, and those for which that began within the window.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from slurm_operator.api.nebius import names, node_conditions
from slurm_operator.api.shared.meta import ObjectKey
from slurm_operator.listing import first_few
from slurm_operator.reconcilers.nebius.kubenode.observe import Seen, Tells, Worker
from slurm_operator.reconcilers.nebius.kubenode.rules import Do, steps
from slurm_operator.reconcilers.nebius.kubenode.troubles import Trouble
from slurm_operator.reconcilers.nebius.shared.brake import Excess, excesses
from slurm_operator.slurm.snapshot import CLOCK_SLACK, Snapshot

_TAKING_OUT: Final = (
    Do.DRAIN_FOR_REPLACEMENT,
    Do.DRAIN_FOR_REBOOT,
    Do.DRAIN_FOR_STORAGE,
    Do.SUSPECT_HARDWARE,
)


@dataclass(frozen=True)
class Brake:
    """Nothing is begun about this Kubernetes node while `text` says whom it would be too many of."""

    text: str = ""

    @property
    def is_on(self) -> bool:
        return bool(self.text)


def entering(seen: Seen, now: datetime) -> list[Worker]:
    """Workers that would be taken out of service now."""
    if seen.options.deletes_not_ready and is_overdue(seen, now):
        return list(seen.workers)
    return [one.worker for one in steps(seen) if one.do in _TAKING_OUT]


def entered(seen: Seen, now: datetime) -> list[Worker]:
    """Workers for which that began within the window. What has no date may be recent."""
    start = now - seen.options.brake.window
    marks = [seen.mark(node_conditions.DEGRADED)]
    suspected = seen.mark(node_conditions.HARDWARE_SUSPECTED)
    if suspected.is_on and suspected.reason == node_conditions.HEALTH_CHECK_FAILED:
        marks.append(suspected)
    if any(mark.is_there and (mark.since is None or mark.since >= start) for mark in marks):
        return list(seen.workers)
    return [one for one in seen.workers if _was_drained_since(one, start)]


def _was_drained_since(worker: Worker, start: datetime) -> bool:
    if worker.trouble not in (Trouble.REPLACEMENT, Trouble.REBOOT, Trouble.STORAGE):
        return False
    return worker.drained_at is None or worker.drained_at >= start


def overdue_in(seen: Seen, now: datetime) -> timedelta | None:
    """When a Kubernetes node that is not ready counts as lost; None while it is ready, or nobody can tell."""
    ready = seen.mark("Ready")
    if ready.is_on or ready.since is None or not ready.is_there:
        return None
    return ready.since + seen.options.not_ready_timeout - now


def is_overdue(seen: Seen, now: datetime) -> bool:
    left = overdue_in(seen, now)
    return left is not None and left <= timedelta(0)


def is_released(seen: Seen, now: datetime) -> bool:
    """Whether a person said within the window that the brake is not to hold this Kubernetes node."""
    try:
        at = datetime.fromisoformat(seen.meta.annotations.get(names.BRAKE_RELEASE, ""))
    except ValueError:
        return False
    return at.tzinfo is not None and -CLOCK_SLACK <= now - at <= seen.options.brake.window


def brake(seen: Seen, now: datetime) -> Brake:
    own = entering(seen, now)
    if not own or is_released(seen, now):
        return Brake()
    released = [peer for peer in seen.peers if is_released(peer, now)]
    everybody = [seen, *(peer for peer in seen.peers if peer not in released)]
    wanted = [worker for one in everybody for worker in entering(one, now)]
    recent = [worker for one in (seen, *seen.peers) for worker in entered(one, now)]
    recent += [worker for one in released for worker in entering(one, now)]  # They are begun now.
    held = {(one.controller, one.slurm_node) for one in own}
    found = [
        excess
        for cluster in sorted(seen.nodesets)
        for excess in _excesses(seen, cluster, wanted, recent)
        if any((cluster, name) in held for name in excess.wanted)
    ]
    if not found:
        return Brake()
    would = "; ".join(one.text(seen.options.brake.window) for one in found)
    asking = sorted({one.name for one in everybody if entering(one, now)})
    some = " ".join(asking[:_NAMED])
    command = f"kubectl annotate --overwrite node {some} {names.BRAKE_RELEASE}=$(date -u +%FT%TZ)"
    return Brake(
        f"The brake is on: node controllers would take out of service {would}. Nothing is begun about the "
        f"Kubernetes nodes {first_few(asking)}. Look at their conditions, and at the reasons in Slurm. To go "
        f"on with them all the same: {command}"
    )


_NAMED: Final = 5


def _excesses(
    seen: Seen, cluster: ObjectKey, wanted: Iterable[Worker], recent: Iterable[Worker]
) -> Iterator[Excess]:
    slurm = next((one.slurm for one in seen.workers if one.controller == cluster), None)
    if isinstance(slurm, Snapshot):
        yield from excesses(
            {one.slurm_node for one in wanted if one.controller == cluster},
            {one.slurm_node for one in recent if one.controller == cluster},
            slurm.nodes,
            seen.nodesets[cluster],
            seen.options.brake,
        )


def may_tell(seen: Seen) -> bool:
    """Whether it is known what would be taken out of service. Until then the brake stays as it is."""
    return seen.call is not Tells.UNKNOWN and all(worker.is_known for worker in seen.workers)
