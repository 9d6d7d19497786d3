"""Changing the Slurm key under running jobs: both keys for a while, one step after the other.

The new key comes into the ring, then it signs, then the old one goes. The kubelets bring each version of the
ring to the pods; a reconfigure has every daemon read it. A slurmd restarts itself for that and tells Slurm
when, which is the proof that it has. slurmdbd and login pods read it only when they start: they are replaced.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta

from slurm_operator.api.shared import names
from slurm_operator.conditions import Reason
from slurm_operator.listing import first_few
from slurm_operator.manifests.builders import key_ring
from slurm_operator.manifests.builders.key_ring import Ring
from slurm_operator.manifests.compare.differences import stamped
from slurm_operator.manifests.objects import Pod, Secret, Unread
from slurm_operator.manifests.secrets import SecretHandle
from slurm_operator.plan.actions import Action, Apply, Wait, WriteSlurm
from slurm_operator.plan.step import NOTHING, Step, step, wait
from slurm_operator.reconcilers.controller.annotations import RING_READ
from slurm_operator.reconcilers.controller.configuration import config_state
from slurm_operator.reconcilers.controller.keys.key_users import Head
from slurm_operator.reconcilers.controller.observe import Seen
from slurm_operator.reconcilers.shared.children import missing_secret
from slurm_operator.slurm.snapshot import Snapshot
from slurm_operator.slurm.writes import Reconfigure

# A kubelet looks at each of its pods at least every ninety seconds, and then brings changed files.
ARRIVAL = timedelta(seconds=100)
LOOK_SECONDS = 5.0
# What holds a step up for long is looked at less often; that delays it by a twentieth of the time it took.
LONGEST_LOOK_SECONDS = 60.0
LOOKS_PER_DELAY = 20
WORKERS_TOLD = 5

_SUBJECT = "Slurm key"


def ring(seen: Seen) -> Ring | None:
    return key_ring.ring_of(seen.ring)


def next_step(seen: Seen, now: datetime) -> Step:
    """What is due for the ring. Only one of the Controllers that share a key looks after it."""
    if seen.sharing is None or not seen.slurm_key.digest or isinstance(seen.ring, Unread):
        return NOTHING
    there, wanted = ring(seen), seen.slurm_key.digest
    if there is None:
        return _ring_write(seen, Ring(signs=wanted), "keys that daemons accept", is_housekeeping=True)
    if wanted not in there.keys and not there.former:
        return _ring_write(
            seen, Ring(signs=there.signs, next=wanted, since=now), "a new key, which all learn first"
        )
    if there.next and wanted == there.signs:
        return _ring_write(seen, Ring(signs=wanted, since=now), "the previous key is wanted again")
    if there.since is None:
        return step(_repairs(seen, there))
    waiting = _unread(seen, there, now)
    if waiting is not None:
        return waiting
    if there.next:
        changed = Ring(signs=there.next, former=there.signs, since=now)
        return _ring_write(seen, changed, "all know the new key, so it signs now")
    if there.former:
        return _ring_write(
            seen, Ring(signs=there.signs, since=now), "all sign with the new key, so the old one is removed"
        )
    return _ring_write(seen, Ring(signs=there.signs), "the old key is gone everywhere")


def phase(ring: Ring | None) -> str:
    """For people."""
    if ring is None or ring.since is None:
        return ""
    if ring.next:
        return "every daemon learns the new Slurm key; the old one signs"
    return (
        "every daemon signs with the new Slurm key"
        if ring.former
        else "every daemon forgets the old Slurm key"
    )


def _source(seen: Seen) -> SecretHandle:
    key = seen.slurm_key
    return SecretHandle(namespace=seen.namespace, name=key.ref.name, key=key.ref.key, digest=key.digest)


def _ring_write(seen: Seen, ring: Ring, why: str, *, is_housekeeping: bool = False) -> Step:
    manifest = stamped(key_ring.manifest(_source(seen), ring))
    message = f"wrote the key ring {manifest['metadata']['name']}: {why}"
    write = Apply(manifest=manifest, reason=Reason.KEY_RING, message=message, is_housekeeping=is_housekeeping)
    return step([write], seconds=LOOK_SECONDS)


def _repairs(seen: Seen, there: Ring) -> list[Action]:
    """What somebody else did to the ring is put right."""
    write = missing_secret(key_ring.manifest(_source(seen), there), seen.ring)
    return [write] if write is not None else []


def _unread(seen: Seen, there: Ring, now: datetime) -> Step | None:
    """What has to happen before everybody has read the ring; None when everybody has."""
    assert there.since is not None and seen.sharing is not None  # noqa: PT018
    arrived = there.since + ARRIVAL
    if seen.unread_nodesets:
        return _wait(
            there,
            now,
            f"NodeSet {_worker_names([*seen.unread_nodesets])} cannot be read, nor who its workers are",
        )
    late = [
        one.subject for one in seen.sharing.readers if one.key_hash != there.hash or not one.rollout.is_done
    ]
    if late:
        return _wait(there, now, f"{', '.join(late)} is replaced for that")
    left = _until_arrival(seen, arrived, now)
    if left > timedelta(0):
        said = _waiting(there, "the kubelets bring it to the pods")
        return wait(said.subject, said.reason, said.message, seconds=left.total_seconds())
    for head in seen.sharing.heads:
        if waiting := _unread_by(head, there, arrived, now):
            return waiting
    return None


def _until_arrival(seen: Seen, arrived: datetime, now: datetime) -> timedelta:
    """How long the kubelets may still need. A clock may have been set since the ring was written.

    So this process must have known it for as long, too, by a clock that nobody can set.
    """
    known_since = seen.ring.known_since if isinstance(seen.ring, Secret) else None
    return max(arrived, known_since + ARRIVAL if known_since is not None else arrived) - now


def _unread_by(head: Head, there: Ring, arrived: datetime, now: datetime) -> Step | None:
    """The same for one slurmctld and its workers."""
    running = [pod for pod in (*head.pods, *head.workers.values()) if _runs(pod)]
    strangers = [pod.metadata.name for pod in running if names.KEY_RING not in pod.metadata.annotations]
    if strangers:
        return _wait(
            there,
            now,
            f"these have only one key and take part when they are replaced: {_worker_names(strangers)}",
        )
    if not isinstance(head.slurm, Snapshot):
        return _wait(there, now, f"Controller {head.key.name} cannot be asked: {head.slurm.why}")
    unasked = [pod for pod in head.pods if _runs(pod) and not _has_read(pod, there, arrived)]
    if unasked:
        asking = WriteSlurm(
            controller=head.key,
            write=Reconfigure(),
            reason=Reason.KEY_RING,
            message=f"told the daemons of Controller {head.key.name} to read their keys again",
        )
        assert there.since is not None
        noted = [
            config_state.note(
                pod, RING_READ, there.since.isoformat(), Reason.KEY_RING, f"{pod.metadata.name} read its keys"
            )
            for pod in unasked
        ]
        return step(
            [_waiting(there, "all daemons are told to read it")], [asking], noted, seconds=LOOK_SECONDS
        )
    behind = list(_behind(head, head.slurm, arrived))
    return _wait(there, now, f"waiting for {_worker_names(behind)}", asks=True) if behind else None


def _has_read(pod: Pod, there: Ring, arrived: datetime) -> bool:
    started = config_state.started_at(pod)
    noted = pod.metadata.annotations.get(RING_READ, "")
    since = there.since.isoformat() if there.since is not None else ""
    return noted == since or (started is not None and started > arrived)


def _behind(head: Head, slurm: Snapshot, arrived: datetime) -> Iterator[str]:
    """Workers that have not restarted themselves since the ring arrived."""
    for name, pod in head.workers.items():
        if _runs(pod):
            record = slurm.nodes.get(name)
            started = record.slurmd_start_time if record is not None else None
            if started is None or started < arrived.replace(microsecond=0):
                yield name


def _runs(pod: Pod) -> bool:
    return any(one.state.running is not None for one in pod.status.container_statuses)


def _waiting(there: Ring, why: str) -> Wait:
    doing = phase(there)
    return Wait(
        subject=_SUBJECT, reason=Reason.ROTATING_KEY, message=f"{doing[0].upper()}{doing[1:]}: {why}."
    )


def _wait(there: Ring, now: datetime, why: str, *, asks: bool = False) -> Step:
    said = _waiting(there, why)
    return wait(said.subject, said.reason, said.message, seconds=_look_seconds(there, now), asks_slurm=asks)


def _look_seconds(there: Ring, now: datetime) -> float:
    waited = (now - there.since).total_seconds() if there.since is not None else 0.0
    return min(max(LOOK_SECONDS, waited / LOOKS_PER_DELAY), LONGEST_LOOK_SECONDS)


def _worker_names(found: list[str]) -> str:
    return first_few(sorted(found), WORKERS_TOLD)
