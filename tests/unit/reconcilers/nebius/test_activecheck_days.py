"""Days of a check from seeds: jobs fail, people drain and resume nodes, the operator crashes, Slurm forgets.

Whatever happens and in which order: a person's drain keeps its reason, no more workers are out of service by
the check than the brake allows unless a person said so, a job that was handled is left alone, and in the end
every run is closed.
"""

import random
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cache

import pytest

from slurm_operator.api.nebius import ActiveCheck, names
from slurm_operator.api.schema import codec
from slurm_operator.manifests import kinds
from slurm_operator.manifests.objects import Unread
from slurm_operator.plan.actions import Action, Apply, PatchObject, WriteSlurm
from slurm_operator.plan.plan import Outcome
from slurm_operator.reconcilers.nebius.activecheck.runs import Run
from slurm_operator.runtime.report.reporter import full_status
from slurm_operator.slurm.writes import DrainNodes
from testing import checks, children
from testing.checks import NOW, RECONCILER, check, decide, ended, node, with_run, with_slurm, world

WORKERS, ALLOWED, WINDOW = 10, 2, timedelta(hours=1)
STATES = ("COMPLETED", "COMPLETED", "FAILED", "TIMEOUT", "NODE_FAIL", "CANCELLED", "OUT_OF_MEMORY")
PERSON = "grace: bad NIC"


@dataclass
class Job:
    id: int
    node: str
    ends_at: datetime
    state: str
    run: str


@dataclass
class Day:
    seed: int
    rng: random.Random = field(init=False)
    jobs: dict[int, Job] = field(default_factory=dict)
    reasons: dict[str, tuple[str, datetime]] = field(default_factory=dict)  # Of nodes that drain.
    handled: set[int] = field(default_factory=set)
    released: set[str] = field(default_factory=set)
    deeds: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.rng = random.Random(self.seed)
        self.there = world(check(runAfterCreation=False), workers=WORKERS)

    # ---- What happens

    def live(self, minutes: int) -> None:
        for minute in range(minutes):
            self.there.now = NOW + timedelta(minutes=minute)
            self.weather(calm=minute > minutes * 2 // 3)
            self.look()

    def weather(self, *, calm: bool) -> None:
        self.slurm()
        if calm:
            self.answer("brake-dismiss")
            return
        if self.rng.random() < 0.06:
            self.submit()
        if self.rng.random() < 0.05:
            self.reasons.setdefault(f"cpu-{self.rng.randrange(WORKERS)}", (PERSON, self.there.now))
        if self.reasons and self.rng.random() < 0.05:
            del self.reasons[self.rng.choice(sorted(self.reasons))]
        if self.rng.random() < 0.02:
            self.answer(self.rng.choice(["brake-release", "brake-dismiss"]))
        self.slurm()

    def submit(self) -> None:
        run = f"run-{len(self.deeds)}"
        ids = []
        for number in self.rng.sample(range(WORKERS), self.rng.randint(1, WORKERS)):
            job = len(self.jobs) + 1
            ends_at = self.there.now + timedelta(minutes=self.rng.randint(1, 20))
            self.jobs[job] = Job(job, f"cpu-{number}", ends_at, self.rng.choice(STATES), run)
            ids.append(str(job))
        self.deeds.append(run)
        with_run(self.there, ids=",".join(ids), run=run, made_at=self.there.now)

    def answer(self, how: str) -> None:
        """A person looks at the check, and answers for the run that it names."""
        found = self.there.get(ActiveCheck, "ns", "gpus")
        braked = next((one for one in found.status.conditions if one.type == "Braked"), None)
        if braked is None or str(braked.status) != "True":
            return
        run = braked.message.split("of Job ")[1].split(".")[0]
        if how == "brake-release":
            self.released.add(run)
        self._replace(found, metadata={"annotations": {f"slurm.nebius.ai/{how}": run}})

    def slurm(self) -> None:
        """Slurm as it is now. It forgets a job after half an hour; this cluster has no accounting."""
        nodes = {f"cpu-{number}": node(f"cpu-{number}") for number in range(WORKERS)}
        for name, (reason, at) in self.reasons.items():
            nodes[name] = node(name, "IDLE", "DRAIN", reason=reason, reason_changed_at=at)
        with_slurm(self.there, nodes)
        now, age = self.there.now, timedelta(minutes=30)
        self.there.job_ends = {
            job.id: Unread(why="it has not ended")
            if now < job.ends_at
            else (ended(job.id, job.state, job.node),)
            if now < job.ends_at + age
            else ()
            for job in self.jobs.values()
        }

    # ---- The operator

    def look(self) -> None:
        if self.rng.random() < 0.1:
            return  # It is away.
        seen, plan = decide(self.there)
        done: list[Action] = []
        for action in plan.actions():
            if self.rng.random() < 0.03:
                return  # It crashes between two writes, and tells nothing.
            self.perform(action)
            done.append(action)
        if self.rng.random() < 0.03:
            return
        report = RECONCILER.status(seen, plan, Outcome(done=tuple(done)))
        status = full_status(report, codec.plain(seen.check.status), generation=1, now=self.there.now)
        self._replace(self.there.get(ActiveCheck, "ns", "gpus"), status=status)

    def perform(self, action: Action) -> None:
        match action:
            case WriteSlurm(write=DrainNodes(nodes=drained, reason=reason)):
                for name in drained:
                    self.drain(name, reason)
            case PatchObject(kind=kind, key=key) if kind == kinds.JOB:
                before = self._unhandled(key[1])
                checks._annotate(self.there, key[1], action.operations)
                self.handled |= before - self._unhandled(key[1])
            case Apply(manifest=body):
                children.put(self.there, body)
            case _:
                pass

    def drain(self, name: str, reason: str) -> None:
        job = self.jobs[int(reason.split("job ")[1].split(" ", maxsplit=1)[0])]
        assert name not in self.reasons, f"{name} drains already: {self.reasons[name]}"
        assert job.node == name
        assert job.state in ("FAILED", "TIMEOUT", "NODE_FAIL")
        assert job.id not in self.handled, "it was handled before"
        self.reasons[name] = (reason, self.there.now)
        out = [
            one
            for one, (why, at) in self.reasons.items()
            if why != PERSON and at >= self.there.now - WINDOW and self._run_of(why) not in self.released
        ]
        if job.run not in self.released:
            assert len(out) <= ALLOWED, f"too many are out of service: {out}"

    def _unhandled(self, name: str) -> set[int]:
        """As it stands on the Job, whatever the operator makes of it."""
        noted = self.there.child(kinds.JOB, "ns", name).metadata.annotations[names.UNHANDLED_JOB_IDS]
        return {int(word) for word in noted.split(",") if word}

    def _run_of(self, reason: str) -> str:
        return self.jobs[int(reason.split("job ")[1].split(" ", maxsplit=1)[0])].run

    def _replace(self, found: ActiveCheck, **fields) -> None:
        body = codec.plain(found)
        for name, value in fields.items():
            body[name] = {**body[name], **value} if name == "metadata" else value
        self.there.things = [thing for thing in self.there.things if type(thing) is not ActiveCheck]
        self.there.things.append(codec.read(ActiveCheck, body))


SEEDS, MINUTES = range(5), 240


@cache
def lived(seed: int) -> Day:
    day = Day(seed)
    day.live(MINUTES)
    return day


@pytest.mark.parametrize("seed", SEEDS)
def test_a_day_of_a_check(seed):
    day = lived(seed)
    jobs = map(Run, day.there.children_.get(kinds.JOB, []))

    assert [run.name for run in jobs if not run.is_closed] == []
    assert day.deeds, "something happened"


def test_the_days_have_everything_in_them():
    """Or they would show nothing."""
    days = [lived(seed) for seed in SEEDS]
    every = [reason for day in days for reason, _ in day.reasons.values()]

    assert any(reason == PERSON for reason in every)
    assert any(reason != PERSON for reason in every)
    notes = [day.there.get(ActiveCheck, "ns", "gpus").metadata.annotations for day in days]
    assert any(names.BRAKE_DISMISS in one for one in notes)


@pytest.mark.parametrize(
    ("taken_out", "words"),
    [
        (("slurm_operator.reconcilers.nebius.activecheck.reactions.too_many", lambda *_: []), "too many"),
        (
            ("slurm_operator.reconcilers.nebius.activecheck.reactions._may_drain", lambda _: True),
            "drains already",
        ),
        (
            (
                "slurm_operator.reconcilers.nebius.activecheck.runs.Run.unhandled",
                property(lambda run: {*run.ids}),
            ),
            "handled before",
        ),
    ],
    ids=["without the brake", "over a person's drain", "without a note of what was handled"],
)
def test_a_day_shows_what_each_condition_is_for(taken_out, words, monkeypatch):
    monkeypatch.setattr(*taken_out)

    with pytest.raises(AssertionError, match=words):
        all(Day(seed).live(MINUTES) is None for seed in range(20))
