"""A slurmd that does not answer is drained and shown, and nothing ever kills it."""

from datetime import timedelta

import pytest

from slurm_operator import wire
from slurm_operator.api.schema import codec
from slurm_operator.api.schema.problems import References
from slurm_operator.api.shared import names
from slurm_operator.api.slinky.controller import Controller
from slurm_operator.manifests.objects import (
    Container,
    ContainerState,
    ContainerStateTerminated,
    Pod,
    PodCondition,
    Probe,
)
from slurm_operator.plan.actions import DeleteWorker
from slurm_operator.plan.plan import Outcome, Plan
from slurm_operator.reconcilers.nodeset import RECONCILER
from slurm_operator.reconcilers.nodeset.creation.pod import Slot, WorkerPods
from slurm_operator.reconcilers.nodeset.creation.revisions import Revision
from slurm_operator.reconcilers.nodeset.decide import decide
from slurm_operator.reconcilers.nodeset.unchanged_cache import Settled
from slurm_operator.slurm.snapshot import Unreachable
from testing.story import Story
from testing.workers import (
    KEY,
    NOW,
    STARTED,
    controller,
    job,
    machine,
    nodeset,
    ours,
    planned,
    revision_of,
    slurm,
    slurm_node,
    told,
    worker,
    world,
)

HASH = revision_of(nodeset(replicas=1)).metadata.labels[names.LABEL_REVISION]
MINUTE = timedelta(minutes=1)
SECOND = timedelta(seconds=1)
HOUR = timedelta(hours=1)
HTTP = {"httpGet": {"path": "/livez", "port": "slurmd"}}


def silent(for_: timedelta = MINUTE, **more) -> Pod:
    return worker(0, revision=HASH, ready=False, unready_for=for_, **more)


def with_conditions(pod: Pod, *conditions: PodCondition) -> Pod:
    return wire.replace(pod, status=wire.replace(pod.status, conditions=conditions))


def condition(type_: str, status: str, ago: timedelta) -> PodCondition:
    return PodCondition(type=type_, status=status, last_transition_time=NOW - ago)


def slurmd_is(pod: Pod, **fields) -> Pod:
    [slurmd] = pod.status.container_statuses
    return wire.replace(
        pod, status=wire.replace(pod.status, container_statuses=[wire.replace(slurmd, **fields)])
    )


def doubted() -> Pod:
    """Its machine is silent, so Kubernetes calls the pod not ready; the kubelet's own last words stay."""
    pod = with_conditions(
        silent(10 * MINUTE), condition("Ready", "False", 10 * MINUTE), condition("ContainersReady", "True", 60 * MINUTE)
    )  # fmt: skip
    return slurmd_is(pod, ready=True)


def crashed() -> Pod:
    ended = ContainerState(terminated=ContainerStateTerminated(exit_code=1, started_at=STARTED))
    return slurmd_is(silent(), state=ended)


def lately_restarted() -> Pod:
    """slurmd came up half a minute ago and has not been ready since."""
    running = wire.replace(silent().status.container_statuses[0].state.running, started_at=NOW - MINUTE / 2)
    return slurmd_is(silent(), state=ContainerState(running=running))


def head(status: str, ago: timedelta) -> Controller:
    ready = {"type": "Ready", "status": status, "reason": "X", "lastTransitionTime": f"{NOW - ago:%Y-%m-%dT%H:%M:%SZ}"}  # fmt: skip
    meta = {"name": "slurm", "namespace": "ns", "uid": "c"}
    return codec.read(Controller, {"metadata": meta, "spec": {}, "status": {"conditions": [ready]}})


def made(pod: Pod, *words: str, reason: str = "", jobs=(), things=(), head_=None, slurm_=None, spec=None):
    one = nodeset(replicas=1, **(spec or {}))
    record = slurm_node(pod, *(words or ("IDLE",)), reason=reason, reason_set_by="ada" if reason else "")
    return world(
        one, head_ or controller(), pod, *(things or (machine("n1"),)), revisions_=[revision_of(one)], slurm_=slurm_ or slurm(record, jobs=jobs)
    )  # fmt: skip


def drained(pod: Pod, cause: str = "Unresponsive", **more):
    return made(pod, "IDLE", "DRAIN", reason=ours(pod, cause), **more)


DRAIN = ["drain gpu-0 for Unresponsive"]
SILENT_MACHINE = machine("n1", conditions=[PodCondition(type="Ready", status="Unknown")])
READY_MACHINE = machine("n1", conditions=[PodCondition(type="Ready", status="True")])


@pytest.mark.parametrize(
    ("world_", "plan"),
    [
        pytest.param(made(silent()), DRAIN, id="not ready for a minute"),
        pytest.param(made(silent(59 * SECOND)), [], id="not yet"),
        pytest.param(made(silent(), "MIXED", jobs=[job(1, "gpu-0")]), DRAIN, id="with a job, which goes on"),
        pytest.param(made(silent(), things=[READY_MACHINE]), DRAIN, id="its machine is well"),
        pytest.param(made(with_conditions(silent(), condition("Ready", "False", HOUR), condition("ContainersReady", "False", MINUTE))), DRAIN, id="since when its containers say, not the pod"),
        pytest.param(made(worker(0, revision=HASH, ready=False)), [], id="it has never been ready since it started"),
        pytest.param(made(lately_restarted()), [], id="its slurmd was started since"),
        pytest.param(made(doubted()), [], id="the pod is not ready, but slurmd was when its kubelet last spoke"),
        pytest.param(made(silent(), things=[SILENT_MACHINE]), [], id="its machine is silent: nobody knows what slurmd does"),
        pytest.param(made(slurmd_is(silent(), ready=True)), [], id="a sidecar is not ready, slurmd is"),
        pytest.param(made(crashed()), [], id="it has crashed: its kubelet starts it again"),
        pytest.param(made(silent(), "IDLE", "DRAIN", reason="bad disk"), [], id="a human has drained it"),
        pytest.param(made(silent(), "DOWN", reason="bad disk"), [], id="a human has set it down"),
        pytest.param(made(silent(), "DOWN", "NOT_RESPONDING", reason="Not responding"), [], id="Slurm has given it up: that reason is needed to come back"),
        pytest.param(made(silent(), slurm_=Unreachable(since=NOW, why="no answer")), [], id="Slurm cannot be asked"),
        pytest.param(made(silent(), slurm_=slurm()), [], id="Slurm does not know it"),
        pytest.param(made(silent(), head_=head("True", 30 * SECOND)), [], id="slurmctld is back since half a minute"),
        pytest.param(made(silent(), head_=head("False", HOUR)), [], id="slurmctld is away"),
        pytest.param(made(silent(), head_=head("True", HOUR)), DRAIN, id="slurmctld was there all the time"),
        pytest.param(made(silent(), things=[machine("n1", cordoned=True)]), ["drain gpu-0 for NodeCordon"], id="a cordon says more"),
        pytest.param(made(silent(annotations={names.POD_CORDON: "true"})), ["drain gpu-0 for PodCordon"], id="and so does a user's"),
        pytest.param(made(silent(annotations={names.POD_REPLACE: "true"})), ["drain gpu-0 for Update"], id="who is to be replaced is"),
        pytest.param(drained(silent(10 * MINUTE)), [], id="drained for it, and free: it stays, and stays protected"),
        pytest.param(drained(silent(10 * MINUTE, protected=False)), ["Protected gpu-0"], id="protected if it is not"),
        pytest.param(drained(silent(SECOND)), [], id="it answered for a moment, and nobody saw it"),
        pytest.param(drained(silent(), things=[SILENT_MACHINE]), [], id="drained for it, and now its machine is silent"),
        pytest.param(drained(silent(), head_=head("False", SECOND)), [], id="drained for it, and now slurmctld is away"),
        pytest.param(drained(lately_restarted()), [], id="drained for it, and its slurmd was started since: until that is ready"),
        pytest.param(drained(worker(0, revision=HASH)), ["resume gpu-0"], id="it answers again"),
        pytest.param(drained(slurmd_is(silent(), ready=True)), ["resume gpu-0"], id="it answers again, though a sidecar does not"),
        pytest.param(drained(worker(0, revision=HASH), things=[machine("n1", cordoned=True)]), ["Released gpu-0"], id="it answers again, and its machine was cordoned"),
        pytest.param(drained(silent(), "NodeCordon"), [], id="the cordon is lifted while it does not answer"),
        pytest.param(made(silent(), "MIXED", "DRAIN", reason=ours(silent(), "ScaleIn"), jobs=[job(1, "gpu-0")]), DRAIN, id="it was to leave, and stays: the reason says so"),
    ],
)  # fmt: skip
def test_who_is_drained_for_its_silence(world_, plan):
    assert told(world_) == plan
    assert not any(isinstance(action, DeleteWorker) for action in planned(world_).actions())


@pytest.mark.parametrize(
    ("world_", "seconds"),
    [
        pytest.param(made(silent(20 * SECOND)), 40, id="when the minute is over"),
        pytest.param(made(silent(20 * SECOND), head_=head("True", 5 * SECOND)), 55, id="which counts from slurmctld's return"),
        pytest.param(made(worker(0, revision=HASH)), None, id="it answers"),
        pytest.param(made(lately_restarted()), 30, id="when it is shown as late to start"),
        pytest.param(made(worker(0, revision=HASH, ready=False)), None, id="it never did, for long"),
        pytest.param(drained(silent(10 * MINUTE)), None, id="it is drained"),
    ],
)  # fmt: skip
def test_it_is_looked_at_again_though_nothing_else_happens(world_, seconds):
    assert planned(world_).look_again == (timedelta(seconds=seconds) if seconds is not None else None)


def test_a_silent_worker_is_never_taken_for_settled():
    pod = silent(10 * SECOND)
    idle = PodCondition(type=f"{names.POD_CONDITION_PREFIX}Idle", status="True")
    settled, silent_ = Settled(), made(with_conditions(pod, *pod.status.conditions, idle))
    assert list(decide(RECONCILER.observe(KEY, silent_), NOW, settled).actions()) == []
    silent_.now = NOW + MINUTE
    plan = decide(RECONCILER.observe(KEY, silent_), silent_.now, settled)

    assert [action.reason for action in plan.actions()] == ["Unresponsive"]


def degraded(world_) -> tuple[str, str]:
    seen = RECONCILER.observe(KEY, world_)
    conditions = RECONCILER.status(seen, Plan(), Outcome()).conditions
    [found] = [one for one in conditions if one.type == "Degraded"]
    return found.reason, found.message


@pytest.mark.parametrize(
    ("world_", "reason", "words"),
    [
        pytest.param(made(silent()), "Unresponsive", "gpu-0 runs and has not been ready since 2026-01-01 11:59:00 UTC. It gets no new jobs", id="silent"),
        pytest.param(drained(silent()), "Unresponsive", "go on. kubectl slurm explain pod/gpu-0", id="drained for it"),
        pytest.param(made(worker(0, revision=HASH, ready=False)), "Unresponsive", "has never been ready since it started, so it is not drained", id="late to start"),
        pytest.param(made(worker(0, revision=HASH)), "AsExpected", "", id="all is well"),
        pytest.param(made(silent(10 * SECOND)), "AsExpected", "", id="not yet"),
        pytest.param(made(doubted(), things=[SILENT_MACHINE]), "AsExpected", "", id="its machine is silent"),
    ],
)  # fmt: skip
def test_the_status_says_so(world_, reason, words):
    found, message = degraded(world_)

    assert found == reason
    assert words in message


def test_a_slurmd_that_hangs_for_two_minutes_keeps_its_job_and_comes_back():
    story = Story({"replicas": 2}, machines=2).tick(10)
    job_ = story.submit(200)
    [name] = story.tick(2).slurm.jobs[1].nodes
    story.pods.hang(name)
    story.tick(58)
    assert not story.slurm.records[name].is_drain
    story.tick(5)
    assert "Unresponsive" in story.slurm.records[name].reason
    story.tick(60)
    assert story.slurm.records[name].is_drain
    story.pods.hang(name, hangs=False)
    story.tick(2)

    assert not story.slurm.records[name].is_drain
    assert (job_.state, story.broken) == ("RUNNING", [])


# ---- Probes


def slurmd_of(**spec) -> dict:
    pod = WorkerPods(nodeset(replicas=1, **spec), controller(), Revision("r1", 1, is_new=True)).pod(
        Slot("gpu-0", "gpu-0", 0)
    )
    [slurmd] = [one for one in pod["spec"]["containers"] if one["name"] == "slurmd"]
    return {key: value for key, value in slurmd.items() if key.endswith("Probe")}


READINESS = {"httpGet": {"path": "/readyz", "port": "slurmd"}, "periodSeconds": 1, "failureThreshold": 3}
ADJUSTED = {"timeoutSeconds": 10}


@pytest.mark.parametrize(
    ("spec", "probes"),
    [
        pytest.param({}, {}, id="no probe kills it"),
        pytest.param({"slurmd": {"livenessProbe": ADJUSTED}}, {}, id="what adjusted ours has nothing to ask"),
        pytest.param({"slurmd": {"startupProbe": ADJUSTED}}, {}, id="nor here"),
        pytest.param({"template": {"spec": {"containers": [{"name": "slurmd", "livenessProbe": ADJUSTED}]}}}, {}, id="nor in the template"),
        pytest.param({"slurmd": {"livenessProbe": None}}, {}, id="to remove what is not there"),
        pytest.param({"slurmd": {"livenessProbe": HTTP}}, {"livenessProbe": HTTP}, id="a user's own is made, and warned about"),
    ],
)  # fmt: skip
def test_a_new_worker_has_no_probe_that_kills_it(spec, probes):
    assert slurmd_of(**spec) == {"readinessProbe": READINESS, **probes}


def test_another_container_keeps_its_probes():
    given = {"name": "mine", "image": "x", "livenessProbe": {"exec": {"command": ["true"]}}}
    pod = WorkerPods(
        nodeset(template={"spec": {"containers": [given]}}), controller(), Revision("r1", 1, is_new=True)
    ).pod(Slot("gpu-0", "gpu-0", 0))

    assert given in pod["spec"]["containers"]


@pytest.mark.parametrize(
    ("spec", "warned"),
    [
        pytest.param({}, [], id="none"),
        pytest.param({"slurmd": {"livenessProbe": HTTP}}, ["spec.slurmd.livenessProbe: when it fails"], id="liveness"),
        pytest.param({"slurmd": {"startupProbe": HTTP}}, ["spec.slurmd.startupProbe: when it fails"], id="startup"),
        pytest.param({"slurmd": {"readinessProbe": HTTP}}, [], id="readiness kills nobody"),
        pytest.param({"slurmd": {"livenessProbe": ADJUSTED}}, ["spec.slurmd.livenessProbe: is ignored"], id="only adjusted"),
        pytest.param({"slurmd": {"livenessProbe": None}}, [], id="removed"),
        pytest.param({"template": {"spec": {"containers": [{"name": "x", "livenessProbe": HTTP}, {"name": "slurmd", "livenessProbe": HTTP}]}}}, ["spec.template.spec.containers[1].livenessProbe: when it fails"], id="in the template, for slurmd"),
        pytest.param({"template": {"spec": {"activeDeadlineSeconds": 60}}}, ["spec.template.spec.activeDeadlineSeconds: the kubelet ends"], id="a deadline of the pod"),
    ],
)  # fmt: skip
def test_who_asks_for_a_probe_that_kills_is_warned(spec, warned):
    found = [str(one) for one in nodeset(**spec).problems(None, References())]

    assert len(found) == len(warned)
    assert all(text.startswith(start) for text, start in zip(found, warned, strict=True))


def probed(pod: Pod) -> Pod:
    slurmd = Container(name="slurmd", liveness_probe=Probe())
    return wire.replace(pod, spec=wire.replace(pod.spec, containers=(slurmd,)))


def at_risk(world_) -> str:
    seen = RECONCILER.observe(KEY, world_)
    conditions = RECONCILER.status(seen, Plan(), Outcome()).conditions
    return next((one.message for one in conditions if one.type == "JobsAtRisk"), "")


def test_a_worker_that_has_a_probe_keeps_it_and_the_status_says_so():
    """Its revision is what the user asked for: that the operator makes pods without it replaces nobody."""
    old = made(probed(worker(0, revision=HASH)))

    assert told(old) == []
    message = at_risk(old)
    assert message.startswith("1 of 1 workers have a liveness probe: gpu-0.")
    assert f"kubectl annotate pod -n ns NAME {names.POD_REPLACE}=true" in message


def test_where_the_spec_asks_for_the_probe_the_status_names_the_field():
    assert "Remove spec.slurmd.livenessProbe" in at_risk(
        made(probed(worker(0, revision=HASH)), spec={"slurmd": {"livenessProbe": HTTP}})
    )


def test_without_such_workers_the_status_has_no_such_condition():
    assert at_risk(made(worker(0, revision=HASH))) == ""


def test_a_pod_is_read_with_its_probe():
    body = {"metadata": {"name": "x"}, "spec": {"containers": [{"name": "slurmd", "livenessProbe": HTTP}, {"name": "y"}]}}  # fmt: skip
    first, second = wire.convert(body, Pod).spec.containers

    assert (first.liveness_probe, second.liveness_probe) == (Probe(), None)
