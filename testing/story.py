"""A play: the real NodeSet reconciler against pods, machines and a Slurm cluster that exist only in memory.

Time passes in seconds. In each of them the world does something, then the reconciler makes one pass and its
plan is carried out: lanes shuffled into each other, and, on request, with failures thrown in. Everything comes
from the seed, so a play that went wrong can be watched again.
"""

import random
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from slurm_operator import wire
from slurm_operator.api.schema import codec
from slurm_operator.api.schema.kind import Kind
from slurm_operator.api.shared import names
from slurm_operator.api.slinky.nodeset import NodeSet
from slurm_operator.manifests import kinds
from slurm_operator.manifests.meta import Child, Manifest, Meta
from slurm_operator.plan.actions import (
    Action,
    Apply,
    Create,
    DeleteObject,
    DeleteWorker,
    Fence,
    PatchObject,
    Tell,
    Wait,
    WriteSlurm,
    subject,
)
from slurm_operator.plan.plan import Failure, Outcome, Plan
from slurm_operator.reconcilers.nodeset import RECONCILER
from slurm_operator.reconcilers.nodeset.observe import Seen
from slurm_operator.safety.gate import Candidate, version_to_delete, why_no_longer, why_not_fenced
from slurm_operator.slurm.reasons import OUR_REASON_PREFIX
from slurm_operator.slurm.snapshot import Snapshot, Unreachable
from slurm_operator.slurm.writes import SlurmWrite, subjects
from testing.fake_pods import FakePods, Machine, Rejected, patched
from testing.fake_slurm import FakeSlurm, Job, Refused
from testing.workers import KEY, NOTES, NOW, controller, world
from testing.world import HandmadeWorld

ENDS_AFTER = timedelta(seconds=2)  # How long a pod takes to end that waits for nothing.
RETURNS_AFTER = timedelta(seconds=5)  # How long a slurmd takes to notice that slurmctld has forgotten it.


@dataclass
class Story:
    """`fails` is the share of actions that fail; of those, some were carried out all the same."""

    spec: dict[str, Any]
    seed: int = 0
    machines: int = 6
    fails: float = 0.0
    lazy: float = 0.0  # The share of seconds in which Slurm is not read again.
    lines: list[str] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)  # Jobs that a pod took along.
    is_slurm_away: bool = False

    def __post_init__(self) -> None:
        self.chance = random.Random(self.seed)
        self.now = NOW
        self.pods = FakePods(NOW, [Machine(f"m{n}") for n in range(self.machines)])
        self.slurm = FakeSlurm(NOW)
        self.children: dict[Kind, list[Child]] = {
            kinds.CONTROLLER_REVISION: [],
            kinds.CONFIG_MAP: [],
            kinds.PERSISTENT_VOLUME_CLAIM: [],
        }
        self.meta: dict[str, Any] = {
            "name": "gpu",
            "namespace": "ns",
            "uid": "set-uid",
            "generation": 1,
            "resourceVersion": "1",
        }
        self.status: dict[str, Any] = {}
        self.read: tuple[Snapshot, int] = self.slurm.snapshot()
        self.away_since = NOW
        self.unknown_since: dict[str, datetime] = {}
        self.seen: Seen | None = None
        self.plan = Plan()
        self.said: set[str] = set()
        self.jobs_made = 0

    # ---- The world

    @property
    def second(self) -> int:
        return int((self.now - NOW).total_seconds())

    def tick(self, seconds: int = 1) -> "Story":
        for _ in range(seconds):
            self.now += timedelta(seconds=1)
            self.pods.now = self.now
            self._machines_work()
            running = self.pods.running().values()
            self.slurm.pass_time(self.now, {pod["metadata"]["uid"] for pod in running})
            if not self.is_slurm_away and self.chance.random() >= self.lazy:
                self.read = self.slurm.snapshot()
            self._pass()
        return self

    def _machines_work(self) -> None:
        self.pods.place()
        for name, pod in list(self.pods.pods.items()):
            if name in self.pods.dead:
                continue
            if "deletionTimestamp" in pod["metadata"]:
                self._end(name, pod)
            elif pod["status"]["containerStatuses"]:
                self._register(pod)
            else:
                self.pods.start(name)

    def _register(self, pod: dict[str, Any]) -> None:
        """A new slurmd registers at once; one that was forgotten needs a while to notice."""
        uid, name = pod["metadata"]["uid"], pod["metadata"]["labels"][names.LABEL_POD_HOSTNAME]
        record = self.slurm.records.get(name)
        if record is not None and record.pod_uid == uid:
            self.unknown_since[uid] = self.now + RETURNS_AFTER
        elif self.unknown_since.get(uid, self.now) <= self.now:
            self.slurm.register(name, uid, pod["status"]["podIP"])

    def _end(self, name: str, pod: dict[str, Any]) -> None:
        """Asked to end: whoever was deleted by hand drains itself and waits for its jobs."""
        meta, record = (
            pod["metadata"],
            self.slurm.records.get(pod["metadata"]["labels"][names.LABEL_POD_HOSTNAME]),
        )
        if meta["uid"] in self.pods.waiting:
            if record is not None and record.pod_uid == meta["uid"] and not record.is_drain:
                reason = f"{OUR_REASON_PREFIX}PodTerminating: asked to end (pod {meta['uid']})"
                self.slurm.drain(record.name, reason, "root")
            if self.jobs_in(meta["uid"]):
                return
        ends_at = codec.read(Meta, {"creationTimestamp": meta["deletionTimestamp"]}).creation_timestamp
        assert ends_at is not None
        asked_at = ends_at - timedelta(seconds=meta["deletionGracePeriodSeconds"])
        if self.now - asked_at >= ENDS_AFTER or not pod["status"]["containerStatuses"]:
            self.broken += [
                f"{self.second}: {name} took job {job.job_id} along" for job in self.jobs_in(meta["uid"])
            ]
            del self.pods.pods[name]

    def jobs_in(self, uid: str) -> list[Job]:
        """Jobs with a process in this pod, whether slurmctld knows of them or not."""
        jobs = [*self.slurm.jobs.values(), *self.slurm.orphans]
        return [job for job in jobs if job.runs and uid in job.processes.values()]

    # ---- What people do

    def submit(self, seconds: int, width: int = 1, **fields: Any) -> Job:
        self.jobs_made += 1
        job = self.slurm.jobs[self.jobs_made] = Job(self.jobs_made, width, seconds, **fields)
        return job

    def change(self, **spec: Any) -> "Story":
        self.spec = {**self.spec, **spec}
        self.meta["generation"] += 1
        return self

    def slurm_away(self, is_away: bool) -> "Story":
        self.is_slurm_away, self.away_since = is_away, self.now
        return self

    # ---- The operator

    def nodeset(self) -> NodeSet:
        spec = {"controllerRef": {"name": "slurm"}, **self.spec}
        return codec.read(NodeSet, {"metadata": self.meta, "spec": spec, "status": self.status})

    def facts(self) -> Snapshot | Unreachable:
        if self.is_slurm_away:
            return Unreachable(since=self.away_since, why="no answer")
        found, clock = self.read
        return wire.replace(found, behind=self.slurm.behind(clock))

    def world(self) -> HandmadeWorld:
        kube_nodes = [machine.kube_node() for machine in self.pods.machines]
        made = world(self.nodeset(), controller(), *self.pods.typed(), *kube_nodes, slurm_=self.facts())
        made.now = self.now
        made.children_ = {kind: list(children) for kind, children in self.children.items()}
        return made

    def _pass(self) -> None:
        self.seen = RECONCILER.observe(KEY, self.world())
        if self.seen is None:
            return
        self.plan = RECONCILER.decide(self.seen, self.now)
        outcome = self._act(self.plan)
        self._tell(outcome)
        report = RECONCILER.status(self.seen, self.plan, outcome)
        self.status = codec.plain({**report.fields, "conditions": list(report.conditions)})

    def _act(self, plan: Plan) -> Outcome:
        """Lanes in any order, their stages one after the other; a failure stops its own lane only."""
        done: list[Action] = []
        failed: list[Failure] = []
        lanes = [[list(stage) for stage in lane.stages] for lane in plan.lanes]
        while lanes:
            lane = self.chance.choice(lanes)
            self.chance.shuffle(lane[0])
            errors = [(action, error) for action in lane[0] if (error := self._try(action)) is not None]
            failed += [Failure(action=action, error=error) for action, error in errors]
            bad = [action for action, _ in errors]
            done += [action for action in lane[0] if action not in bad]
            del lane[0]
            if errors or not lane:
                lanes.remove(lane)
        return Outcome(done=tuple(done), failed=tuple(failed))

    def _try(self, action: Action) -> str | None:
        fails = not isinstance(action, Wait | Tell) and self.chance.random() < self.fails
        if fails and self.chance.random() < 0.7:
            return "it was not sent"
        try:
            self.perform(action)
        except (Rejected, Refused) as error:
            return str(error)
        return "no answer, though it was carried out" if fails else None

    def perform(self, action: Action) -> None:
        match action:
            case Create(manifest=manifest) | Apply(manifest=manifest):
                self._put(manifest)
            case PatchObject(kind=kinds.POD, key=key, uid=uid, operations=operations):
                self.pods.patch(key[1], uid, operations)
            case PatchObject(kind=kinds.CONTROLLER_REVISION, key=key, operations=operations):
                [child] = [c for c in self.children[kinds.CONTROLLER_REVISION] if c.metadata.name == key[1]]
                self._put(patched(child.body, operations))
            case PatchObject(operations=operations):
                self.meta["finalizers"] = operations[-1]["value"]
            case DeleteObject(kind=kind, key=key):
                self.children[kind] = [c for c in self.children[kind] if c.metadata.name != key[1]]
            case DeleteWorker():
                self._delete_worker(action)
            case WriteSlurm(write=write) if self.is_slurm_away:
                raise Refused(f"nobody there to take {type(write).__name__}")
            case WriteSlurm(write=write, fence=fence):
                self._check(fence, write)
                self.slurm.write(write)
            case Wait() | Tell():
                pass
            case other:
                raise AssertionError(f"nobody taught this story about {type(other).__name__}")

    def _put(self, manifest: Manifest) -> None:
        kind, meta = kinds.kind_of(manifest), manifest["metadata"]
        if kind == kinds.POD:
            self.pods.create(manifest)
            return
        self.children[kind] = [c for c in self.children[kind] if c.metadata.name != meta["name"]]
        known = codec.read(Meta, {**wire.plain(meta), "uid": f"uid-{meta['name']}"})
        self.children[kind].append(Child(metadata=known, body=dict(manifest)))

    def _check(self, fence: Fence | None, write: SlurmWrite) -> None:
        """As the performer does it: Slurm is read again before a record goes, and the gate asked."""
        pod = next((p for p in self.pods.typed() if fence and p.metadata.uid == fence.proof.pod_uid), None)
        if fence is not None:
            self.read = self.slurm.snapshot()
            why: str | None = "its pod has gone"
            if pod is not None:
                why = why_not_fenced(Candidate(pod, subjects(write)[0], self.facts()), self.now)
            if why is not None:
                raise Rejected(why)

    def _delete_worker(self, action: DeleteWorker) -> None:
        """As the performer does it: the proof is checked once more against what is known now."""
        pod = next((p for p in self.pods.typed() if p.metadata.name == action.key[1]), None)
        if pod is None or pod.metadata.uid != action.proof.pod_uid:
            return
        worker = Candidate(pod, action.slurm_node, self.facts())
        fenced_at = self.now if action.is_fenced else None
        changed = why_no_longer(action.proof, worker, self.now, fenced_at=fenced_at)
        if changed is not None and not self.is_slurm_away:
            self.read = self.slurm.snapshot()
            worker = Candidate(pod, action.slurm_node, self.facts())
            changed = why_no_longer(action.proof, worker, self.now, fenced_at=fenced_at)
        if changed is not None:
            raise Rejected(changed)
        version = version_to_delete(action.proof, pod)
        if version is None:
            raise Rejected("it is not marked as leaving")
        uid = action.proof.pod_uid
        self.pods.delete(action.key[1], uid, grace=action.grace_seconds, resource_version=version)

    def _tell(self, outcome: Outcome) -> None:
        """One line for everything that was done, and for each wait when it begins."""
        facts = {
            a for lane in self.plan.lanes if lane.name.startswith(NOTES) for a in map(id, lane.actions())
        }
        waits = set()
        for action in self.plan.actions():
            verb = type(action.write if isinstance(action, WriteSlurm) else action).__name__
            line = f"{verb:<13}  {subject(action):<16}  {action.reason}: {action.message}"
            if isinstance(action, Wait):
                waits.add(line)
            if id(action) in facts or line in self.said or not self._was_done(action, outcome):
                continue
            self.lines.append(f"{self.second:>3}  {line}")
        self.said = waits

    @staticmethod
    def _was_done(action: Action, outcome: Outcome) -> bool:
        return any(action is done for done in outcome.done)

    @property
    def transcript(self) -> str:
        return "\n".join(self.lines) + "\n"
