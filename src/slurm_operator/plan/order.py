"""A person's order to end workers together with the jobs in them. It is no proof, and never taken for one.

The gate asks whether a job can be in a worker. Here a person has said that this does not matter any more: the
NodeSet is being deleted, and carries the annotation that forces it. Only this file makes orders, and what an
order rests on is looked at again in the moment in which a pod is deleted by it.
"""

from slurm_operator import wire
from slurm_operator.api.shared.meta import Meta
from slurm_operator.api.shared.names import FORCE_DELETION


def is_forced(meta: Meta) -> bool:
    """Whether a person orders the deletion of an object, whatever depends on it."""
    return meta.annotations.get(FORCE_DELETION) == "true"


class Order(wire.Record):
    """A person forces the deletion of the owner of this pod."""

    owner_uid: str
    pod_uid: str


def order(owner: Meta, pod: Meta) -> Order | None:
    """The order to end this worker; None unless its owner is being deleted, by force."""
    if not _is_ordered(owner) or _owner_of(pod) != owner.uid:
        return None
    return Order(owner_uid=owner.uid, pod_uid=pod.uid)


def why_not_ordered(given: Order, owner: Meta | None, pod: Meta) -> str | None:
    """Asked in the moment of sending: what has happened since that takes it back; None if it stands."""
    if owner is None or owner.uid != given.owner_uid:
        return "its NodeSet is gone"
    if not _is_ordered(owner):
        return "nobody forces the deletion of its NodeSet any more"
    if pod.uid != given.pod_uid or _owner_of(pod) != given.owner_uid:
        return "it is another pod by now"
    return None


def _is_ordered(owner: Meta) -> bool:
    return owner.is_terminating and is_forced(owner)


def _owner_of(pod: Meta) -> str:
    return pod.owner.uid if pod.owner is not None else ""
