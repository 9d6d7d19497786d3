"""A slurmctld that was started with the signing key of an earlier release.

A kubelet keeps the content of an immutable Secret for as long as any pod on its node has it. Who deletes a
release and installs it again within seconds can get a slurmctld with the old key, though its pod is newer
than the Secret with the new one. It works, and refuses every token of ours.

It cannot be asked for its jobs. With a volume it knows them again after a restart, so its pod is replaced.
"""

from datetime import datetime, timedelta

from slurm_operator.api.shared import names
from slurm_operator.manifests.objects import Pod
from slurm_operator.reconcilers.controller.configuration import config_state
from slurm_operator.reconcilers.controller.observe import Seen
from slurm_operator.slurm.snapshot import Unreachable

# A refusal of the slurmctld before it may be told for so long; and this one may still be starting.
REFUSES_FOR = timedelta(seconds=30)


def holder(seen: Seen) -> Pod | None:
    """The slurmctld that refuses the key which it should have; None when none is known to."""
    if not isinstance(seen.slurm, Unreachable) or not seen.slurm.is_refused or not seen.signing_key.digest:
        return None
    head = next((pod for pod in seen.ready_pods if not pod.metadata.is_terminating), None)
    is_for_key = head is not None and _key_of(head) == seen.signing_key.digest
    return head if is_for_key and _is_newer(head, seen) else None


def is_due(seen: Seen, now: datetime) -> bool:
    """Whether its pod is to be replaced now: soon at first, then after twice the time, and twice that."""
    left = due_in(seen, now)
    return left is not None and left <= timedelta(0)


def due_in(seen: Seen, now: datetime) -> timedelta | None:
    """For how long it is left alone. Another cause, such as a clock that is off, stays when the pod goes.

    So each pod gets as long as has passed since the Secret was made, and only a new Secret resets that.
    """
    pod = holder(seen)
    if pod is None:
        return None
    made_at, started, secret = (
        pod.metadata.creation_timestamp,
        config_state.started_at(pod),
        seen.signing_key.made_at,
    )
    if made_at is None or started is None or secret is None:
        return None
    return max(started + REFUSES_FOR, made_at + (made_at - secret)) - now


def stale_key_text(seen: Seen) -> str:
    """For people: what is wrong, what happens next, what they can do. Empty when nothing is known to be."""
    pod = holder(seen)
    if pod is None:
        return ""
    name, secret = pod.metadata.name, seen.signing_key.ref.name
    next_ = "The operator replaces the pod, which costs no job"
    if not seen.controller.spec.persistence.enabled:
        next_ = (
            f"Without persistence it may have jobs that nobody can ask for, so it is not replaced. To begin "
            f"without them, delete pod {name}"
        )
    return (
        f"slurmctld in pod {name} refuses tokens that are signed with the key in Secret {secret}, though the "
        f"pod is newer than the Secret: its kubelet may have given it the key of an earlier Secret of that "
        f"name. Until it is replaced, jobs cannot be seen and no worker is removed. {next_}. If a new pod "
        "refuses them too, compare the clocks of its node and of the operator's."
    )


def _key_of(pod: Pod | None) -> str:
    return pod.metadata.annotations.get(names.JWT_KEY_HASH, "") if pod is not None else ""


def _is_newer(pod: Pod | None, seen: Seen) -> bool:
    secret = seen.signing_key.made_at
    made_at = pod.metadata.creation_timestamp if pod is not None else None
    return made_at is not None and secret is not None and made_at >= secret
