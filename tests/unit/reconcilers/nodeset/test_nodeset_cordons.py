"""A user's cordon of a worker: it holds for whoever comes in its place, until the user takes it away."""

from datetime import timedelta

import pytest

from slurm_operator import wire
from slurm_operator.api.schema import codec
from slurm_operator.api.shared import names
from slurm_operator.api.slinky.nodeset import NodeSet
from slurm_operator.manifests.objects import (
    ContainerState,
    ContainerStateWaiting,
    ContainerStatus,
    Pod,
    PodSpec,
)
from slurm_operator.plan.actions import Create
from slurm_operator.plan.plan import Outcome
from slurm_operator.reconcilers.nodeset import RECONCILER
from slurm_operator.reconcilers.nodeset.identity import daemon_pod_name
from testing.story import Story
from testing.workers import (
    KEY,
    NOW,
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

CORDONED = {names.POD_CORDON: "true"}
CORDON = {
    "op": "add",
    "path": f"/metadata/annotations/{names.POD_CORDON.replace('/', '~1')}",
    "value": "true",
}
LIFT = {"op": "remove", "path": CORDON["path"]}


def cordoned(**more) -> Story:
    """gpu-1 is taken out of service by a user."""
    story = Story({"replicas": 2, "slurmd": {"image": "slurmd:1"}, **more}, machines=2).tick(5)
    story.pods.patch("gpu-1", story.pods.pods["gpu-1"]["metadata"]["uid"], [CORDON])
    return story.tick(3)


def is_cordoned(story: Story) -> bool:
    pod, record = story.pods.pods["gpu-1"], story.slurm.records["gpu-1"]
    return (
        names.POD_CORDON in pod["metadata"]["annotations"]
        and record.is_drain
        and "PodCordon" in record.reason
    )


def images(story: Story) -> set[str]:
    return {pod["spec"]["containers"][0]["image"] for pod in story.pods.pods.values()}


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"slurmd": {"image": "slurmd:2"}}, id="another image"),
        pytest.param({"slurmd": {"image": "slurmd:2"}, "extraConf": "CPUs=3"}, id="other resources: the record is made again"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("seconds", [0, 30], ids=["idle", "with a job"])
def test_an_update_keeps_a_users_cordon(change, seconds):
    budget = {
        "updateStrategy": {"rollingUpdate": {"maxUnavailable": 2}}
    }  # The cordoned one is away all the time.
    story = Story({"replicas": 2, "slurmd": {"image": "slurmd:1"}, **budget}, machines=2).tick(5)
    if seconds:
        story.submit(seconds, width=2)
    story.tick(2).pods.patch("gpu-1", story.pods.pods["gpu-1"]["metadata"]["uid"], [CORDON])

    story.tick(3).change(**change).tick(80)

    assert images(story) == {"slurmd:2"}
    assert is_cordoned(story)
    assert not story.slurm.records["gpu-0"].is_drain

    story.pods.patch("gpu-1", story.pods.pods["gpu-1"]["metadata"]["uid"], [LIFT])
    story.tick(3)
    assert not story.slurm.records["gpu-1"].is_drain


def test_a_cordon_that_comes_while_the_worker_drains_for_an_update_holds_too():
    story = Story({"replicas": 1, "slurmd": {"image": "slurmd:1"}}).tick(5)
    story.submit(20)
    story.tick(2).change(slurmd={"image": "slurmd:2"}).tick(4)
    assert "Update" in story.slurm.records["gpu-0"].reason

    story.pods.patch("gpu-0", story.pods.pods["gpu-0"]["metadata"]["uid"], [CORDON])
    story.tick(40)

    assert images(story) == {"slurmd:2"}
    assert names.POD_CORDON in story.pods.pods["gpu-0"]["metadata"]["annotations"]
    assert story.slurm.records["gpu-0"].is_drain


def test_a_cordon_that_is_lifted_while_the_worker_cannot_start_does_not_come_back():
    story = cordoned(updateStrategy={"rollingUpdate": {"maxUnavailable": 2}})
    story.pods.bad_images.add("slurmd:broken")
    story.change(slurmd={"image": "slurmd:broken"}).tick(15)
    assert "slurmd:broken" in images(story)
    assert names.POD_CORDON in story.pods.pods["gpu-1"]["metadata"]["annotations"], "it came with it"

    story.pods.patch("gpu-1", story.pods.pods["gpu-1"]["metadata"]["uid"], [LIFT])
    story.tick(2).change(slurmd={"image": "slurmd:3"}).tick(40)

    assert images(story) == {"slurmd:3"}
    assert names.POD_CORDON not in story.pods.pods["gpu-1"]["metadata"]["annotations"]
    assert not story.slurm.records["gpu-1"].is_drain


def test_a_worker_that_goes_for_good_leaves_no_cordon_behind():
    story = cordoned().change(replicas=1).tick(10)

    story.change(replicas=2).tick(10)

    assert names.POD_CORDON not in story.pods.pods["gpu-1"]["metadata"]["annotations"]
    assert not story.slurm.records["gpu-1"].is_drain


def crashed(pod: Pod) -> Pod:
    waiting = ContainerState(waiting=ContainerStateWaiting(reason="CrashLoopBackOff"))
    status = ContainerStatus(name="slurmd", restart_count=3, state=waiting)
    return wire.replace(pod, status=wire.replace(pod.status, container_statuses=(status,)))


def on_host_network(pod: Pod) -> Pod:
    return wire.replace(pod, spec=PodSpec(node_name="n1", hostname=pod.spec.hostname, host_network=True))


def out_of_service(**more) -> Pod:
    return worker(0, revision="old", annotations=CORDONED, **more)


def daemon(on: str, spec: NodeSet, **more) -> Pod:
    return worker(0, mode="DaemonSet", on=on, name=daemon_pod_name(on, spec), hostname=on, **more)


def with_status(spec: NodeSet, cordoned: list[str]) -> NodeSet:
    return codec.read(NodeSet, {**codec.plain(spec), "status": {"cordoned": cordoned}})


def remembered(spec: NodeSet, *things, slurm_=None) -> list[str]:
    found = RECONCILER.observe(KEY, world(spec, controller(), *things, slurm_=slurm_))
    return RECONCILER.status(found, RECONCILER.decide(found, NOW), Outcome()).fields["cordoned"]


def successor(spec: NodeSet, *things, slurm_=None) -> dict:
    """The worker that comes next."""
    plan = planned(world(spec, controller(), *things, slurm_=slurm_))
    [pod] = [a.manifest for a in plan.actions() if isinstance(a, Create) and a.manifest["kind"] == "Pod"]
    return pod["metadata"]


OTHER_RESOURCES = nodeset(replicas=1, extraConf="Weight=3")
HOST_NETWORK = nodeset(replicas=1, template={"spec": {"hostNetwork": True}})
DAEMONS = nodeset(scalingMode="DaemonSet")
TO_NUMBERED = nodeset(replicas=1, ordinalPadding=3)
DAEMON = daemon("n1", DAEMONS, revision="old", annotations=CORDONED)


@pytest.mark.parametrize(
    ("spec", "pod"),
    [
        pytest.param(OTHER_RESOURCES, crashed(out_of_service(ready=False, unready_for=timedelta(minutes=5))), id="its slurmd has crashed"),
        pytest.param(OTHER_RESOURCES, out_of_service(ready=False, phase="Failed"), id="it has ended"),
        pytest.param(OTHER_RESOURCES, out_of_service(ready=False, started=False, phase="Pending", on=""), id="it never started"),
        pytest.param(HOST_NETWORK, on_host_network(out_of_service()), id="its record is called like its machine"),
        pytest.param(DAEMONS, DAEMON, id="it belongs to a machine"),
        pytest.param(DAEMONS, wire.replace(DAEMON, metadata=wire.replace(DAEMON.metadata, name="gpu-other")), id="and was called otherwise by the Slinky operator"),
        pytest.param(TO_NUMBERED, out_of_service(), id="its number is written otherwise by now"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("known", [None, slurm()], ids=["while Slurm is away", "when its record is gone"])
def test_a_users_cordon_needs_no_record_in_slurm(spec, pod, known):
    kept = remembered(spec, pod, machine("n1"), slurm_=known)
    after = with_status(spec, kept)

    assert successor(after, machine("n1"), slurm_=known)["annotations"][names.POD_CORDON] == "true"
    assert remembered(after, machine("n1"), slurm_=known) == kept, "until it is there"


TWO = nodeset(replicas=2)


@pytest.mark.parametrize(
    ("spec", "before", "things", "after"),
    [
        pytest.param(TWO, ["gpu-0"], [worker(0), worker(1)], [], id="the user has lifted it"),
        pytest.param(TWO, ["gpu-0"], [worker(1)], ["gpu-0"], id="its pod is not there yet"),
        pytest.param(TWO, ["gpu-0"], [worker(1), worker(5, terminating=True)], ["gpu-0"], id="nor before another one is gone"),
        pytest.param(TWO, ["gpu-0"], [worker(1), worker(2)], [], id="nobody comes: its NodeSet got smaller"),
        pytest.param(TWO, ["gpu-2"], [worker(0)], [], id="a number that nobody gets now"),
        pytest.param(nodeset(replicas=0), ["gpu-0"], [], [], id="none is wanted"),
        pytest.param(DAEMONS, [daemon_pod_name("n1", DAEMONS)], [machine("n1", cordoned=True)], [daemon_pod_name("n1", DAEMONS)], id="its machine is cordoned as well, and takes it back later"),
        pytest.param(DAEMONS, [daemon_pod_name("n1", DAEMONS)], [machine("n2")], [], id="its machine is gone"),
        pytest.param(DAEMONS, ["gpu-0"], [out_of_service(), machine("n1")], [], id="workers have no numbers any more"),
    ],
)  # fmt: skip
def test_a_users_cordon_is_remembered_as_long_as_somebody_comes(spec, before, things, after):
    assert remembered(with_status(spec, before), *things, slurm_=slurm()) == after


def test_machines_that_are_not_seen_may_be_there():
    made = world(with_status(DAEMONS, ["gpu-1a2b"]), controller(), slurm_=slurm())
    made.served.clear()
    found = RECONCILER.observe(KEY, made)

    assert RECONCILER.status(found, RECONCILER.decide(found, NOW), Outcome()).fields["cordoned"] == [
        "gpu-1a2b"
    ]


ONE = nodeset(replicas=1)
R = revision_of(ONE)
A = worker(0, revision=R.metadata.labels[names.LABEL_REVISION], annotations=CORDONED)
BY_MACHINE = "slurm-operator: Node (n1) was cordoned, Pod (ns/gpu-0) must be cordoned"
BY_SCALE_IN = "slurm-operator: Pod (ns/gpu-0) is pending termination for scale-in"
BY_USER = "slurm-operator: Pod (ns/gpu-0) was cordoned"


def taken_over(reason: str, *things, is_drain=True, jobs=()):
    record = slurm_node(A, "IDLE", *(["DRAIN"] if is_drain else []), reason=reason)
    return world(ONE, controller(), A, *things, revisions_=[R], slurm_=slurm(record, jobs=jobs))


@pytest.mark.parametrize(
    ("made", "story"),
    [
        pytest.param(taken_over(BY_MACHINE), ["Uncordoned gpu-0"], id="for its machine, which is uncordoned since"),
        pytest.param(taken_over(BY_MACHINE, machine("n1", cordoned=True)), ["Uncordoned gpu-0"], id="which is cordoned still"),
        pytest.param(taken_over(BY_SCALE_IN), ["Uncordoned gpu-0"], id="for a scale-in that is no longer wanted"),
        pytest.param(taken_over("slurm-operator: DIMM: replace slot 3"), ["Uncordoned gpu-0"], id="for its machine, in the words of who cordoned that"),
        pytest.param(taken_over("slurm-operator: (FanFailed: fan 2 is slow) : Not responding"), ["Uncordoned gpu-0"], id="in the words of the machine"),
        pytest.param(taken_over(f"{BY_USER} : Not responding"), ["Released gpu-0"], id="a user's, of one that fell silent"),
        pytest.param(taken_over("slurm-operator: Pod (ns/gpu-0) was uncordoned", is_drain=False), ["drain gpu-0 for PodCordon"], id="a user's of today, after one that was lifted"),
        pytest.param(taken_over("slurm-operator: PodTerminating: the pod is asked to end"), ["Released gpu-0"], id="a worker of ours drained itself"),
        pytest.param(taken_over(BY_USER), ["Released gpu-0"], id="a user's stands"),
        pytest.param(taken_over(ours(A, "PodCordon")), ["Released gpu-0"], id="so does one of our days"),
        pytest.param(taken_over(""), ["Released gpu-0"], id="a human's drain beside it"),
        pytest.param(taken_over("", is_drain=False), ["drain gpu-0 for PodCordon"], id="not drained yet"),
    ],
)  # fmt: skip
def test_a_cordon_of_the_operator_before_us_is_not_taken_for_a_users(made, story):
    assert told(made) == story


def test_a_worker_that_leaves_loses_the_cordon_of_the_operator_before_us_first():
    """Our own drain would replace the one that tells whose it was, and its successor would be cordoned for good."""
    old = worker(0, revision="old", annotations=CORDONED)
    record = slurm_node(old, "IDLE", "DRAIN", reason=BY_SCALE_IN)
    made = world(ONE, controller(), old, revisions_=[R], slurm_=slurm(record, jobs=[job(7, "gpu-0")]))

    assert told(made) == ["Uncordoned gpu-0"]
