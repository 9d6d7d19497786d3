"""A tiny cluster for a Controller to be decided about: it does what plans say, as Kubernetes and Slurm would.

One call of `round` is one pass and what follows from it. What was decided is kept as a transcript.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from slurm_operator import wire
from slurm_operator.api.schema import codec
from slurm_operator.api.shared import names
from slurm_operator.api.shared.conditions import Condition
from slurm_operator.api.shared.meta import Meta, ObjectKey
from slurm_operator.api.slinky.controller import Controller
from slurm_operator.api.slinky.controller_status import ControllerStatus
from slurm_operator.manifests import kinds
from slurm_operator.manifests.meta import Manifest
from slurm_operator.manifests.objects import (
    ContainerState,
    ContainerStateRunning,
    ContainerStateTerminated,
    ContainerStateWaiting,
    ContainerStatus,
    Pod,
    PodCondition,
    PodSpec,
    PodStatus,
    Secret,
)
from slurm_operator.plan import actions
from slurm_operator.plan.actions import Action, subject
from slurm_operator.plan.plan import Outcome, Plan
from slurm_operator.reconcilers.controller import RECONCILER
from slurm_operator.reconcilers.controller.annotations import DIGEST_WORD
from slurm_operator.reconcilers.controller.configuration.files import Files, files_of
from slurm_operator.reconcilers.controller.daemon.trial_scripts import FIRST
from slurm_operator.reconcilers.controller.observe import Seen
from slurm_operator.slurm.conf.lines import parse
from slurm_operator.slurm.health import ControllerPing
from slurm_operator.slurm.jobs.job import SlurmJob
from slurm_operator.slurm.node import SlurmNode
from slurm_operator.slurm.snapshot import Snapshot, Unreachable, jobs_by_node
from slurm_operator.slurm.states import JobState
from testing.controllers import KEY, NAME, NS, child, put
from testing.rings import applied_secret
from testing.world import HandmadeWorld

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
GOOD = "good\n"


def job(job_id: int, partition: str = "gpu") -> SlurmJob:
    return SlurmJob(job_id=job_id, state=JobState(frozenset({"RUNNING"})), partition=partition)


def parameters(files: Files | None) -> tuple[str, ...]:
    conf = parse(files.texts["slurm.conf"], "") if files else None
    return tuple((conf.last("SlurmctldParameters") or "").split(",")) if conf else ()


@dataclass
class Play:
    """`rehearse` is what slurmctld says to files in a rehearsal, `takes` whether it takes them while running."""

    world: HandmadeWorld
    rehearse: Callable[[Files], str] = lambda files: GOOD
    takes: Callable[[Files], bool] = lambda files: True
    has_restapi: bool = True
    jobs: tuple[SlurmJob, ...] = ()
    nodes: Mapping[str, SlurmNode] = field(default_factory=dict)
    now: datetime = NOON
    running: Files | None = None
    restarts: int = 0
    transcript: list[str] = field(default_factory=list)
    uids: int = 0
    has_state: bool = False  # slurmctld has run, and its volume remembers it.

    def rounds(self, most: int = 90) -> "Play":
        """Passes until nothing is left to do or to wait for."""
        for _ in range(most):
            if not self.round():
                return self
        raise AssertionError("no end:\n" + "\n".join(self.transcript[-12:]))

    def round(self) -> bool:
        seen = RECONCILER.observe(KEY, self.world)
        if seen is None:
            return False
        plan = RECONCILER.decide(seen, self.now)
        done = list(plan.actions())
        self._tell(done)
        for action in done:
            self._perform(action)
        self._kubernetes()
        self._slurm()
        self._report(seen, plan, done)
        self.now += plan.look_again or timedelta(seconds=1)
        if plan.waits_on:
            self._slurm()  # It is read every second for those who wait for it.
        return any(not isinstance(a, actions.Wait) for a in done) or plan.look_again is not None

    def spec(self, **changes: Any) -> None:
        """The user edits the Controller."""
        old = self.controller
        spec = {**codec.plain(old.spec), **changes}
        new = codec.read(Controller, {"spec": spec, "status": codec.plain(old.status)})
        self._replace(
            wire.replace(new, metadata=wire.replace(old.metadata, generation=old.metadata.generation + 1))
        )
        self.transcript.append(f"-- the user changes {', '.join(changes)}")

    @property
    def controller(self) -> Controller:
        found = self.world.get(Controller, NS, NAME)
        assert found is not None
        return found

    def pods(self, app: str = "slurmctld") -> list[Pod]:
        return [p for p in self.world.all(Pod) if p.metadata.labels.get(names.APP_NAME) == app]

    def mounted(self) -> Files | None:
        return files_of(self.world.child(kinds.CONFIG_MAP, NS, names.controller_config(NAME)))

    def condition(self, type_: str) -> Condition:
        return next(c for c in self.controller.status.conditions if c.type == type_)

    def _tell(self, done: list[Action]) -> None:
        for action in done:
            if not isinstance(action, actions.PatchObject):
                line = f"{type(action).__name__:15} {subject(action)}: {action.reason}: {action.message}"
                if line not in self.transcript[-4:]:
                    self.transcript.append(line)

    def _perform(self, action: Action) -> None:
        match action:
            case actions.Apply(manifest=manifest) if manifest["kind"] == "Secret":
                made = applied_secret(manifest)
                self.world.named[Secret, ObjectKey(NS, made.metadata.name)] = made
            case actions.Apply(manifest=manifest):
                put(self.world, manifest, **({"status": {}} if manifest["kind"] == "StatefulSet" else {}))
            case actions.Create(manifest=manifest):
                self._new_pod(manifest)
            case actions.PatchObject(kind=kind, key=key) if kind == kinds.POD:
                self._patch_pod(ObjectKey(*key), action.operations)
            case actions.PatchObject(kind=kind) if kind == Controller.KIND:
                finalizers = action.operations[-1]["value"]
                self._replace(
                    wire.replace(
                        self.controller,
                        metadata=wire.replace(self.controller.metadata, finalizers=finalizers),
                    )
                )
            case actions.DeleteObject(kind=kind, key=key):
                name = ObjectKey(*key).name
                kept = [c for c in self.world.children_.get(kind, []) if c.metadata.name != name]
                self.world.children_[kind] = kept
                self.world.things = [t for t in self.world.things if not _belongs(t, f"uid-of-{name}")]
            case actions.DeleteDaemonPod(key=key):
                self.world.things = [
                    t
                    for t in self.world.things
                    if not (isinstance(t, Pod) and t.metadata.name == ObjectKey(*key).name)
                ]
                self.restarts += 1
            case actions.GenerateSecret(manifest=manifest, entry=entry):
                name = manifest["metadata"]["name"]
                made = Secret(metadata=Meta(name=name, namespace=NS), digests={entry: f"made-{name}"})
                self.world.named[Secret, ObjectKey(NS, name)] = made
            case actions.WriteSlurm():
                if (files := self.mounted()) is not None and self.takes(files):
                    self.running = files
            case actions.Wait() | actions.Tell():
                pass
            case actions.PatchObject():
                pass  # Of others nothing is kept here.
            case other:
                raise AssertionError(f"nobody taught this cluster about {type(other).__name__}")

    def _new_pod(self, manifest: Manifest) -> None:
        whole = child(manifest).body
        self.world.things.append(
            Pod(metadata=child(manifest).metadata, spec=PodSpec(hostname=whole["spec"].get("hostname", "")),
                status=PodStatus(phase="Pending"))
        )  # fmt: skip

    def _patch_pod(self, key: ObjectKey, operations: tuple[dict[str, object], ...]) -> None:
        pod = self.world.get(Pod, *key)
        assert pod is not None
        for operation in operations:
            _, _, where, name = str(operation["path"]).split("/", 3)
            values = dict(getattr(pod.metadata, where))
            if operation["op"] == "remove":
                values.pop(name.replace("~1", "/"))
            else:
                values[name.replace("~1", "/")] = operation["value"]
            pod = wire.replace(pod, metadata=wire.replace(pod.metadata, **{where: values}))
        self._replace(pod)

    def _kubernetes(self) -> None:
        """Rehearsals end, and a StatefulSet has the pods that it wants."""
        for pod in self.pods("slurm-rehearsal"):
            if not pod.has_ended:
                files = files_of(self.world.child(kinds.CONFIG_MAP, NS, pod.metadata.name))
                assert files is not None
                self._replace(ended(pod, self.rehearse(files)))
        workload = self.world.child(kinds.STATEFUL_SET, NS, names.controller_workload(NAME))
        if workload is None:
            return
        revision = f"r{hash(str(workload.body['spec']['template'])) & 0xFFFF}"
        status = {"observedGeneration": 1, "updateRevision": revision, "replicas": 1}
        put(self.world, {k: v for k, v in workload.body.items() if k != "status"}, status=status)
        there = {pod.metadata.name for pod in self.pods()}
        for index in range(workload.body["spec"]["replicas"]):
            name = names.controller_pod(NAME, index)
            if name not in there:
                self.uids += 1
                template = workload.body["spec"]["template"]["metadata"]
                labels = {**template["labels"], names.LABEL_REVISION: revision}
                meta = Meta(
                    name=name,
                    namespace=NS,
                    uid=f"pod-{self.uids}",
                    labels=labels,
                    annotations=template["annotations"],
                )
                mounted = self.mounted()
                said = GOOD if self.has_state or mounted is None else self.rehearse(mounted)
                if mounted is not None and said != GOOD:
                    self.world.things.append(held_up(Pod(metadata=meta), mounted.digest, said))
                    continue
                self.has_state = True
                self.world.things.append(
                    running(Pod(metadata=meta), self.now + timedelta(milliseconds=500), is_ready=index == 0)
                )
                self.running = mounted if index == 0 else self.running

    def _slurm(self) -> None:
        if not self.has_restapi or self.running is None:
            self.world.slurms[KEY] = Unreachable(since=NOON, why="there is no RestApi")
            return
        pings = tuple(
            ControllerPing(
                hostname=pod.metadata.name, is_primary=pod.metadata.name.endswith("-0"), is_responding=True
            )
            for pod in self.pods()
        )
        self.world.slurms[KEY] = Snapshot(
            nodes=dict(self.nodes), jobs={job.job_id: job for job in self.jobs}, jobs_by_node=jobs_by_node(self.jobs),
            nodes_asked_at=self.now, jobs_asked_at=self.now,
            pings=pings, slurmctld_parameters=parameters(self.running), release="26.05.5",
        )  # fmt: skip

    def _report(self, seen: Seen, plan: Plan, done: Sequence[Action]) -> None:
        report = RECONCILER.status(seen, plan, Outcome(done=tuple(done)))
        status = codec.read(
            ControllerStatus,
            {**codec.plain(report.fields), "conditions": codec.plain(list(report.conditions))},
        )
        if self.world.get(Controller, NS, NAME) is not None:
            self._replace(wire.replace(self.controller, status=status))

    def _replace(self, thing: Any) -> None:
        others = [
            t for t in self.world.things
            if not (type(t) is type(thing) and t.metadata.name == thing.metadata.name)
        ]  # fmt: skip
        self.world.things = [*others, thing]


def running(pod: Pod, at: datetime, *, is_ready: bool) -> Pod:
    state = ContainerState(running=ContainerStateRunning(started_at=at))
    conditions = (PodCondition(type="Ready", status="True" if is_ready else "False"),)
    container = ContainerStatus(name="slurmctld", ready=is_ready, state=state)
    return wire.replace(
        pod, status=PodStatus(phase="Running", conditions=conditions, container_statuses=(container,))
    )


def held_up(pod: Pod, digest: str, said: str) -> Pod:
    """What comes before slurmctld has refused the files, more than once."""
    words = f"{DIGEST_WORD}{digest}\n{said}"
    trial = ContainerStatus(
        name=FIRST,
        restart_count=2,
        state=ContainerState(waiting=ContainerStateWaiting(reason="CrashLoopBackOff")),
        last_state=ContainerState(terminated=ContainerStateTerminated(exit_code=1, message=words)),
    )
    waiting = ContainerState(waiting=ContainerStateWaiting(reason="PodInitializing"))
    main = ContainerStatus(name="slurmctld", state=waiting)
    status = PodStatus(phase="Pending", init_container_statuses=(trial,), container_statuses=(main,))
    return wire.replace(pod, status=status)


def crashing(pod: Pod, said: str, began: datetime | None = None) -> Pod:
    state = ContainerState(waiting=ContainerStateWaiting(reason="CrashLoopBackOff"))
    last = ContainerState(terminated=ContainerStateTerminated(exit_code=1, message=said, started_at=began))
    container = ContainerStatus(name="slurmctld", restart_count=3, state=state, last_state=last)
    return wire.replace(pod, status=PodStatus(phase="Running", container_statuses=(container,)))


def ended(pod: Pod, said: str) -> Pod:
    code = 0 if said == GOOD else 1
    state = ContainerState(terminated=ContainerStateTerminated(exit_code=code, message=said))
    container = ContainerStatus(name="slurmctld", state=state)
    phase = "Failed" if code else "Succeeded"
    return wire.replace(pod, status=PodStatus(phase=phase, container_statuses=(container,)))


def _belongs(thing: Any, uid: str) -> bool:
    return isinstance(thing, Pod) and any(o.uid == uid for o in thing.metadata.owner_references)
