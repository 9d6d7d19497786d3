"""The play: every reconciler in turn against a picture, until nothing more happens."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from slurm_operator.api.schema import codec
from slurm_operator.api.shared import names
from slurm_operator.api.shared.meta import ObjectKey, key_of
from slurm_operator.insight.forecast.kubernetes import Kubernetes
from slurm_operator.insight.forecast.slurm import Slurm
from slurm_operator.insight.world_snapshot import Picture
from slurm_operator.manifests import kinds
from slurm_operator.plan import actions
from slurm_operator.plan.actions import Action, Wait, does_nothing
from slurm_operator.plan.plan import Outcome, Plan
from slurm_operator.plan.reconciler import Reconciler
from slurm_operator.reconcilers.shared import spec_refusal
from slurm_operator.runtime.report.reporter import full_status
from slurm_operator.slurm.jobs.job import SlurmJob
from slurm_operator.slurm.snapshot import Snapshot

# A real change settles in a few dozen rounds; beyond this something goes in circles, and that is told.
MOST_ROUNDS = 600

# What waits for no job is over in less than this, or needs somebody.
PATIENCE = timedelta(hours=1)

A_SECOND = timedelta(seconds=1)

_JOBS_IN_WORDS = re.compile(r"(?:unfinished jobs|jobs that have started): ([\d, ]+)")


@dataclass(frozen=True)
class Step:
    """One action of the play: when, by whom, about what."""

    at: datetime
    reconciler: str
    key: ObjectKey
    action: Action


@dataclass
class Story:
    """What happened on the way, and what was still waited for in the end."""

    steps: list[Step] = field(default_factory=list)
    waits: dict[tuple[str, ObjectKey], list[Wait]] = field(default_factory=dict)
    jobs: dict[tuple[ObjectKey, int], str] = field(default_factory=dict)  # Waited for, and why.
    ended: dict[int, str] = field(default_factory=dict)
    is_settled: bool = True
    is_endless: bool = False  # A job without a time limit is in the way.


class Play:
    """Changes the picture that it is given."""

    def __init__(self, picture: Picture, reconcilers: Sequence[Reconciler[Any]]) -> None:
        self.picture = picture
        picture.taken_at = picture.taken_at or picture.now
        self.kubernetes = Kubernetes(picture)
        self.slurm = Slurm(picture)
        self.story = Story()
        self._reconcilers = reconcilers
        self._waits: dict[tuple[str, ObjectKey], list[Wait]] = {}

    def run(self) -> Story:
        """Until everything has settled, or nothing but somebody's help goes on."""
        ends = self.picture.now + PATIENCE
        for _ in range(MOST_ROUNDS):
            before = self.kubernetes.changes + self.slurm.changes
            again = self.round()
            if self.kubernetes.changes + self.slurm.changes != before:
                self.picture.now += A_SECOND
                ends = max(ends, self.picture.now + PATIENCE)
                continue
            moment = self._next_moment(again)
            if moment is not None and (moment <= ends or self._ends_of_jobs()):
                self.picture.now = max(moment, self.picture.now + A_SECOND)
            elif not self._end_the_endless():
                break
        else:
            self.story.is_settled = False
        self.story.waits = self._waits
        self.story.ended = dict(self.slurm.ended)
        self.story.is_endless |= bool(self._awaited()) and not self._ends_of_jobs()
        return self.story

    def _end_the_endless(self) -> bool:
        """Nobody knows when a job without a time limit ends, but what comes after it can be told."""
        before = self.slurm.changes
        for key, job in list(self._awaited_jobs()):
            if job.deadline is None:
                self.slurm.end(key, [job])
        has_ended = self.slurm.changes != before
        self.story.is_endless |= has_ended
        return has_ended

    def round(self) -> timedelta | None:
        """One pass over everything, and what follows from it; when somebody wants to look again."""
        soonest: list[timedelta] = []
        self._waits = {}
        for reconciler in self._reconcilers:
            for thing in self.picture.all(reconciler.about):
                plan = self._pass(reconciler, key_of(thing))
                if plan is not None and plan.waits:
                    self._waits[reconciler.name, key_of(thing)] = plan.waits
                if plan is not None and plan.look_again is not None and not plan.is_idle:
                    soonest.append(plan.look_again)
        self._note_jobs()
        self.kubernetes.pass_time()
        self.slurm.pass_time(self._awaited())
        return min(soonest, default=None)

    def _pass(self, reconciler: Reconciler[Any], key: ObjectKey) -> Plan | None:
        seen = reconciler.observe(key, self.picture)
        about = self.picture.get(reconciler.about, *key)
        if seen is None or about is None:
            return None
        plan = spec_refusal.decide(reconciler, about, seen, self.picture, self.picture.now)
        done = list(plan.actions())
        for action in done:
            if not does_nothing(action):
                self.story.steps.append(Step(self.picture.now, reconciler.name, key, action))
                self.perform(action)
        report = spec_refusal.status(reconciler, seen, plan, Outcome(done=tuple(done)))
        self._tell(reconciler, key, report)
        return plan

    def _tell(self, reconciler: Reconciler[Any], key: ObjectKey, report: Any) -> None:
        about = self.picture.get(reconciler.about, *key)
        if about is None:
            return
        body = codec.plain(about)
        generation = about.metadata.generation
        status = full_status(report, body.get("status") or {}, generation=generation, now=self.picture.now)
        self.kubernetes.put_thing(codec.read(reconciler.about, {**body, "status": status}))

    def perform(self, action: Action) -> None:
        """Carry it out in the picture."""
        match action:
            case actions.Apply(manifest=manifest) | actions.Create(manifest=manifest):
                self.kubernetes.put(manifest)
            case actions.PatchObject(kind=kind, key=key, operations=operations):
                self.kubernetes.patch(kind, ObjectKey(*key), operations)
            case actions.DeleteObject(kind=kind, key=key, keeps_dependents=keeps):
                self.kubernetes.delete(kind, ObjectKey(*key), keeps_dependents=keeps)
            case actions.DeleteWorker(key=key) | actions.DeleteDaemonPod(key=key):
                self.kubernetes.delete(kinds.POD, ObjectKey(*key))
            case actions.DeleteKubeNode(name=name):
                self.kubernetes.delete(kinds.KUBE_NODE, ObjectKey("", name))
            case actions.EndWorker(key=key):
                self.kubernetes.delete(kinds.POD, ObjectKey(*key))
            case actions.GenerateSecret(manifest=manifest, entry=entry):
                self.kubernetes.generate(manifest, [entry] if entry else _host_keys())
            case actions.RestoreSecret(manifest=manifest, entries=entries):
                self.kubernetes.generate(manifest, list(entries))
            case actions.SignToken(manifest=manifest, entry=entry):
                self.kubernetes.generate(manifest, [entry])
            case actions.WriteSlurm(controller=controller, write=write):
                self.slurm.write(ObjectKey(*controller), write)
            case actions.Wait() | actions.Tell():
                pass

    def _note_jobs(self) -> None:
        for (key, job_id), why in self._awaited().items():
            self.story.jobs.setdefault((key, job_id), why)

    def _awaited(self) -> dict[tuple[ObjectKey, int], str]:
        """Jobs that somebody waits for now, with the cluster they belong to and why."""
        found: dict[tuple[ObjectKey, int], str] = {}
        for (_, owner), waits in self._waits.items():
            for wait in waits:
                for job_id in jobs_of(wait):
                    for key, snapshot in self.picture.slurms.items():
                        known = isinstance(snapshot, Snapshot) and job_id in snapshot.jobs
                        if known and key.namespace == owner.namespace:
                            found[key, job_id] = f"{wait.subject}: {wait.message}"
        return found

    def _awaited_jobs(self) -> Iterator[tuple[ObjectKey, SlurmJob]]:
        for key, job_id in self._awaited():
            snapshot = self.picture.slurms[key]
            assert isinstance(snapshot, Snapshot)
            yield key, snapshot.jobs[job_id]

    def _ends_of_jobs(self) -> list[datetime]:
        return [job.deadline for _, job in self._awaited_jobs() if job.deadline is not None]

    def _next_moment(self, again: timedelta | None) -> datetime | None:
        """When something can be different: a job has ended, or somebody wants to look again."""
        moments = self._ends_of_jobs()
        if again is not None and (not moments or not self._is_polling(again)):
            moments.append(self.picture.now + again)
        return min(moments, default=None)

    @staticmethod
    def _is_polling(again: timedelta) -> bool:
        """A short look-again while jobs run only asks Slurm once more."""
        return again <= timedelta(seconds=30)


def jobs_of(wait: Wait) -> tuple[int, ...]:
    """The jobs that a wait is about. A Controller names its in the message."""
    found = _JOBS_IN_WORDS.search(wait.message)
    named = tuple(int(word) for word in found[1].replace(",", " ").split()) if found else ()
    return wait.jobs or named


def _host_keys() -> list[str]:
    return [f"ssh_host_{kind}_key{end}" for kind in names.SSH_HOST_KEY_TYPES for end in ("", ".pub")]
