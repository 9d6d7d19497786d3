"""What a change comes to: the end of the play with it, compared with the end of the play without it."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from slurm_operator import wire
from slurm_operator.api.shared import belonging
from slurm_operator.api.shared.meta import ObjectKey, key_of
from slurm_operator.insight.collect import Unseen
from slurm_operator.insight.forecast.differences import Difference, differences
from slurm_operator.insight.forecast.objects import Known, is_new, objects
from slurm_operator.insight.forecast.simulate import Play, Story
from slurm_operator.insight.world_snapshot import Picture
from slurm_operator.manifests import kinds
from slurm_operator.plan.reconciler import Reconciler
from slurm_operator.runtime.report.reporter import REFUSED
from slurm_operator.slurm.jobs.job import SlurmJob
from slurm_operator.slurm.snapshot import Snapshot


class Effect(wire.Record):
    """One object that something happens to. Without a uid it does not exist yet."""

    kind: str
    namespace: str
    name: str
    uid: str = ""
    fields: tuple[Difference, ...] = ()


class JobInTheWay(wire.Record):
    """A job that is waited for, waits itself, or is ended by a drain policy: whose, how long, and why."""

    job_id: int
    user: str
    name: str
    partition: str
    nodes: tuple[str, ...]
    seconds_left: int | None
    why: str


class Forecast(wire.Record):
    """Nothing of this was done. `seconds` is how long at most, by the jobs' time limits; None: no end."""

    created: tuple[Effect, ...] = ()
    changed: tuple[Effect, ...] = ()
    restarted: tuple[Effect, ...] = ()
    deleted: tuple[Effect, ...] = ()
    waited_for: tuple[JobInTheWay, ...] = ()
    waiting: tuple[JobInTheWay, ...] = ()
    ended: tuple[JobInTheWay, ...] = ()
    seconds: int | None = 0
    stuck: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()  # What the operator would not do, in its words.
    kept: tuple[Effect, ...] = ()  # Of a deletion: what stays though nobody needs it any more.
    unseen: tuple[Unseen, ...] = ()

    @property
    def is_empty(self) -> bool:
        return not (
            self.created or self.changed or self.restarted or self.deleted or self.stuck or self.refused
        )


def forecast(
    now: Picture, then: Picture, reconcilers: Sequence[Reconciler[Any]], *, deletes: bool = False
) -> Forecast:
    """What is different in the end if the picture now were `then`. Both are left as they are."""
    without, with_it = now.copy(), then.copy()
    usual, story = Play(without, reconcilers).run(), Play(with_it, reconcilers).run()
    before, after = objects(without), objects(with_it)
    replaced = _replaced(before, after)
    gone = before.keys() - after.keys() - replaced.keys()
    fresh = after.keys() - before.keys() - set(replaced.values())
    return Forecast(
        created=_effects(after, fresh),
        changed=tuple(_changed(before, after)),
        restarted=_effects(before, replaced),
        deleted=_effects(before, gone),
        waited_for=_in_the_way(now, story.jobs, usual.jobs),
        waiting=tuple(_waiting(now, with_it)),
        ended=_ended(now, story, usual),
        seconds=_seconds(now.now, with_it.now, story),
        stuck=tuple(_stuck(story, usual)),
        refused=tuple(_refused(story, usual)),
        kept=_effects(before, _kept(before, after, with_it, reconcilers)) if deletes else (),
    )


def _kept(
    before: Mapping[Known, Any],
    after: Mapping[Known, Any],
    end: Picture,
    reconcilers: Sequence[Reconciler[Any]],
) -> Iterable[Known]:
    """Volumes and Secrets that are still there in the end, and that nothing that is left asks for."""
    needed = _asked_for(end, reconcilers)
    left = {known.name for known in after if known.kind not in _KEEPABLE}
    for known in before.keys() & after.keys():
        if known.kind == "Secret" and ObjectKey(known.namespace, known.name) not in needed:
            yield known
        if known.kind == _CLAIM and belonging.owner_of(_labels(after[known])) not in left:
            yield known


_CLAIM = kinds.PERSISTENT_VOLUME_CLAIM.kind
_KEEPABLE = {"Secret", _CLAIM}


def _labels(thing: Any) -> Mapping[str, str]:
    found: Mapping[str, str] = thing.body.get("metadata", {}).get("labels", {})
    return found


def _asked_for(end: Picture, reconcilers: Sequence[Reconciler[Any]]) -> set[ObjectKey]:
    """The Secrets that somebody looks for who is still there."""
    probe = end.copy()
    probe.is_whole, probe.secrets, probe.missed_secrets = False, {}, set()
    for reconciler in reconcilers:
        for thing in probe.all(reconciler.about):
            reconciler.observe(key_of(thing), probe)
    return probe.missed_secrets


def _replaced(before: Mapping[Known, Any], after: Mapping[Known, Any]) -> dict[Known, Known]:
    """Pods that come back: under the same name, or as another pod of the same Deployment."""
    same = {
        known: known
        for known, thing in before.items()
        if known.kind == "Pod" and known in after and is_new(after[known].uid) and not is_new(thing.uid)
    }
    free: dict[str, list[Known]] = {}
    for known, thing in sorted(after.items()):
        if known.kind == "Pod" and known not in before and thing.set_name:
            free.setdefault(thing.set_name, []).append(known)
    for known, thing in sorted(before.items()):
        if known.kind == "Pod" and known not in after and free.get(thing.set_name):
            same[known] = free[thing.set_name].pop(0)
    return same


def _effects(things: Mapping[Known, Any], chosen: Iterable[Known]) -> tuple[Effect, ...]:
    return tuple(
        Effect(
            kind=known.kind,
            namespace=known.namespace,
            name=known.name,
            uid="" if is_new(things[known].uid) else things[known].uid,
        )
        for known in sorted(chosen)
    )


def _changed(before: Mapping[Known, Any], after: Mapping[Known, Any]) -> Iterable[Effect]:
    for known in sorted(before.keys() & after.keys()):
        found = tuple(differences(before[known].body, after[known].body))
        if found:
            uid = "" if is_new(before[known].uid) else before[known].uid
            yield Effect(kind=known.kind, namespace=known.namespace, name=known.name, uid=uid, fields=found)


def _in_the_way(
    now: Picture, jobs: Mapping[tuple[ObjectKey, int], str], usual: Mapping[tuple[ObjectKey, int], str]
) -> tuple[JobInTheWay, ...]:
    found = []
    for (key, job_id), why in sorted(jobs.items()):
        snapshot = now.slurms.get(key)
        known = snapshot.jobs.get(job_id) if isinstance(snapshot, Snapshot) else None
        if known is not None and (key, job_id) not in usual:
            found.append(_job(known, why, now.now))
    return tuple(found)


def _waiting(now: Picture, end: Picture) -> Iterable[JobInTheWay]:
    """Jobs in the queue whose partition or node takes none in the end, though it does now."""
    for key, snapshot in sorted(now.slurms.items()):
        later = end.slurms.get(key)
        if not isinstance(snapshot, Snapshot):
            continue
        for job_id, job in sorted(snapshot.jobs.items()):
            why = _why_waiting(job, later) if job.state.is_pending else ""
            if why and not _why_waiting(job, snapshot):
                yield _job(snapshot.jobs[job_id], why, now.now)


def _why_waiting(job: SlurmJob, snapshot: object) -> str:
    if not isinstance(snapshot, Snapshot):
        return "its Slurm cluster is gone then"
    partitions = [snapshot.partitions.get(name) for name in job.partition.split(",")]
    if snapshot.partitions and not any(one is not None and one.takes_jobs for one in partitions):
        return f"partition {job.partition} takes no jobs then"
    gone = [name for name in job.required_nodes if name not in snapshot.nodes]
    return f"node {gone[0]}, which it insists on, is gone then" if gone else ""


def _ended(now: Picture, story: Story, usual: Story) -> tuple[JobInTheWay, ...]:
    return tuple(
        _job(snapshot.jobs[job_id], f"{how} by drainPolicy", now.now)
        for job_id, how in sorted(story.ended.items())
        for snapshot in now.slurms.values()
        if isinstance(snapshot, Snapshot) and job_id in snapshot.jobs and job_id not in usual.ended
    )


def _job(job: SlurmJob, why: str, now: datetime) -> JobInTheWay:
    left = max(0, int((job.deadline - now).total_seconds())) if job.deadline is not None else None
    return JobInTheWay(
        job_id=job.job_id,
        user=job.user or str(job.user_id),
        name=job.name,
        partition=job.partition,
        nodes=job.own_nodes,
        seconds_left=left,
        why=why,
    )


def _seconds(start: datetime, end: datetime, story: Story) -> int | None:
    """From now to the last step. What machines need for pulling and starting comes on top."""
    if story.is_endless:
        return None
    last = max((step.at for step in story.steps), default=start)
    return int((last - start).total_seconds()) if last <= end else 0


def _stuck(story: Story, usual: Story) -> Iterable[str]:
    """What is still waited for in the end, and would not be without the change."""
    known = {wait.message for waits in usual.waits.values() for wait in waits}
    for (reconciler, key), waits in sorted(story.waits.items()):
        for wait in waits:
            if wait.message not in known and wait.reason not in REFUSED:
                yield f"{reconciler} {key.name}: {wait.subject}: {wait.message}"
    if not story.is_settled and usual.is_settled:
        yield "the play did not end: the same steps repeat"


def _refused(story: Story, usual: Story) -> Iterable[str]:
    """What a person would have to correct before anything happens, and does not have to now."""
    known = {wait.message for waits in usual.waits.values() for wait in waits}
    for waits in story.waits.values():
        for wait in waits:
            if wait.reason in REFUSED and wait.message not in known:
                yield wait.message
