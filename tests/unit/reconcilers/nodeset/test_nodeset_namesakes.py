"""A name in Slurm belongs to one worker. Who would have the name of a living one waits, and says so."""

from datetime import timedelta

import pytest

from slurm_operator import wire
from slurm_operator.api.schema import codec
from slurm_operator.api.shared import names
from slurm_operator.api.slinky.nodeset import NodeSet
from slurm_operator.manifests.meta import OwnerReference
from slurm_operator.manifests.objects import Pod, PodSpec
from slurm_operator.plan.plan import Outcome
from slurm_operator.reconcilers.nodeset import RECONCILER
from testing.story import Story
from testing.workers import (
    KEY,
    NOW,
    controller,
    job,
    machine,
    nodeset,
    planned,
    revision_of,
    slurm,
    slurm_node,
    told,
    worker,
    world,
)

DAEMONS = {"scalingMode": "DaemonSet"}
EAST, WEST = "rack1.east.example.org", "rack1.west.example.org"


def sibling(**spec) -> NodeSet:
    meta = {"name": "cpu", "namespace": "ns", "uid": "cpu-uid", "resourceVersion": "1"}
    return codec.read(NodeSet, {"metadata": meta, "spec": {"controllerRef": {"name": "slurm"}, **spec}})


def of_sibling(pod: Pod) -> Pod:
    owner = OwnerReference(
        api_version="slinky.slurm.net/v1beta1", kind="NodeSet", name="cpu", uid="cpu-uid", controller=True
    )
    return wire.replace(pod, metadata=wire.replace(pod.metadata, owner_references=[owner]))


def of_nobody(pod: Pod) -> Pod:
    return wire.replace(pod, metadata=wire.replace(pod.metadata, owner_references=[]))


def of_cluster(name: str, pod: Pod) -> Pod:
    labels = {**pod.metadata.labels, names.LABEL_CLUSTER: name}
    return wire.replace(pod, metadata=wire.replace(pod.metadata, labels=labels))


def on_network_of(machine_: str, pod: Pod) -> Pod:
    return wire.replace(pod, spec=PodSpec(node_name=machine_, hostname=pod.spec.hostname, host_network=True))


def seen(spec: NodeSet, *things, record: dict | None = None):
    """Every pod there is at work; `record` is what Slurm says of them."""
    busy = [slurm_node(pod, "MIXED", **(record or {})) for pod in things if isinstance(pod, Pod)]
    jobs = [job(number, node.name) for number, node in enumerate(busy, 1)]
    known = slurm(*busy, jobs=jobs)
    return world(spec, controller(), *things, revisions_=[revision_of(spec)], slurm_=known)


def daemon(on: str, **more) -> Pod:
    made = {"name": f"gpu-{on}", "hostname": on.partition(".")[0], "on": on, **more}
    return worker(0, mode="DaemonSet", revision=HASH, **made)


HASH = revision_of(nodeset(**DAEMONS)).metadata.labels[names.LABEL_REVISION]
THEIRS = of_sibling(worker(10, name="cpu-10", hostname="rack110"))
THEIR_DAEMON = of_sibling(daemon("n1", name="cpu-aaaa"))
SHARED = {"oversubscribeNode": True, **DAEMONS}
RACK11 = nodeset(replicas=1, template={"spec": {"hostname": "rack11"}})
RACK1 = sibling(replicas=11, template={"spec": {"hostname": "rack1"}})


@pytest.mark.parametrize(
    ("made", "holder", "remedy"),
    [
        pytest.param(
            seen(nodeset(**DAEMONS), daemon(EAST), machine(EAST), machine(WEST)),
            f"'rack1', as it calls Pod gpu-{EAST},",
            f"Node {WEST} another name in its annotation nodeset.slinky.slurm.net/hostname-override",
            id="two machines of one short name",
        ),
        pytest.param(
            seen(nodeset(**DAEMONS), daemon("a", hostname="x"), *(machine(name, annotations={names.HOSTNAME_OVERRIDE: "x"}) for name in "ab")),
            "'x', as it calls Pod gpu-a,",
            "Node b another name",
            id="or of one name that somebody gave to both",
        ),
        pytest.param(seen(RACK11, RACK1, THEIRS), "'rack110', as it calls Pod cpu-10 of NodeSet cpu,", "another hostname in spec.template.spec", id="a number behind a prefix that is another's with a digit"),
        pytest.param(seen(RACK11, RACK1, of_nobody(THEIRS)), "'rack110', as it calls Pod cpu-10,", "another hostname", id="nobody owns it, and its job runs"),
        pytest.param(seen(nodeset(**SHARED), sibling(**SHARED), THEIR_DAEMON, machine("n1")), "'n1', as it calls Pod cpu-aaaa of NodeSet cpu,", "from this machine with spec.template.spec.nodeSelector", id="daemons of two NodeSets on one machine"),
        pytest.param(
            seen(nodeset(extraConf="CPUs=8", **DAEMONS), sibling(**DAEMONS), THEIR_DAEMON, machine("n1"), record={"cpus": 4}),
            "Pod cpu-aaaa of NodeSet cpu",
            "nodeSelector",
            id="whose record is not the one that ours would need",
        ),
    ],
)  # fmt: skip
def test_a_worker_waits_while_somebody_has_its_name(made, holder, remedy):
    [wait] = planned(made).waits

    assert wait.reason == "NameTaken"
    assert holder in wait.message
    assert remedy in wait.message
    assert not [line for line in told(made) if line.startswith(("create Pod", "forget"))]
    assert planned(made).look_again == timedelta(seconds=10), "nothing tells when the other one has gone"


def test_the_status_says_who_has_the_name():
    made = seen(nodeset(**DAEMONS), daemon(EAST), machine(EAST), machine(WEST))
    found = RECONCILER.observe(KEY, made)
    report = RECONCILER.status(found, RECONCILER.decide(found, NOW), Outcome())
    [progressing] = [one for one in report.conditions if one.type == "Progressing"]

    assert progressing.reason == "NameTaken"
    assert f"Pod gpu-{EAST}" in progressing.message


@pytest.mark.parametrize(
    "made",
    [
        pytest.param(seen(RACK11, RACK1, wire.replace(THEIRS, status=wire.replace(THEIRS.status, phase="Failed"))), id="who has ended has no name any more"),
        pytest.param(seen(RACK11, RACK1, of_nobody(of_cluster("other", THEIRS))), id="in another Slurm cluster anybody may be called so"),
        pytest.param(seen(nodeset(replicas=1), RACK1, THEIRS), id="another name"),
        pytest.param(seen(nodeset(replicas=1, template={"spec": {"hostNetwork": True}}), sibling(template={"spec": {"hostname": "gpu-"}}), of_sibling(worker(0, name="cpu-0", hostname="gpu-0"))), id="called like its machine, wherever that will be"),
    ],
)  # fmt: skip
def test_a_worker_comes_when_its_name_is_free(made):
    assert [line for line in told(made) if "gpu-0" in line] == ["create Pod gpu-0"]


def test_of_two_that_come_at_once_the_second_waits_for_the_first():
    made = seen(nodeset(**DAEMONS), machine(EAST), machine(WEST))
    [wait] = planned(made).waits

    assert len([line for line in told(made) if line.startswith("create Pod")]) == 1
    assert "which is created first" in wait.message


def test_one_that_waits_for_its_name_is_not_waited_for():
    """Neither as the first of a new revision, nor by those of another mode. It does count as away."""
    budget = {"updateStrategy": {"rollingUpdate": {"maxUnavailable": 2}}}
    template = {"template": {"metadata": {"annotations": {"new": "yes"}}}, **budget, **DAEMONS}
    there = [daemon(EAST), daemon("rack2")]
    machines = [machine(name) for name in (EAST, WEST, "rack2")]
    spec = nodeset(**template)
    known = slurm(*(slurm_node(pod, "IDLE") for pod in there))
    made = world(spec, controller(), *there, *machines, revisions_=[revision_of(spec)], slurm_=known)

    assert [line for line in told(made) if line.startswith("drain")] == ["drain rack1 for Update"]

    numbered = worker(3, revision=HASH)
    made = seen(nodeset(**DAEMONS), numbered, *there, *machines)
    assert "drain gpu-3 for ModeSwitch" in told(made)


def test_on_the_network_of_machines_the_old_workers_of_another_mode_go_first():
    spec = nodeset(extraConf="CPUs=8", template={"spec": {"hostNetwork": True}}, **DAEMONS)
    old = on_network_of("n1", worker(0, revision="old"))
    record = wire.replace(slurm_node(old, "IDLE", cpus=4), name="n1")
    made = world(spec, controller(), old, machine("n1"), revisions_=[revision_of(spec)], slurm_=slurm(record))

    assert [line.partition(":")[2] or line for line in told(made)] == [
        " NameTaken",
        "drain n1 for ModeSwitch",
    ]


HOST_NETWORK = {"template": {"spec": {"hostNetwork": True}}}


def machines_own(pod: Pod) -> Pod:
    """On the network of n1, with its address."""
    there = on_network_of("n1", pod)
    return wire.replace(there, status=wire.replace(there.status, pod_ip="192.168.0.1"))


ENDED = machines_own(worker(0, phase="Failed", ready=False))
ALIVE = machines_own(worker(1))


@pytest.mark.parametrize(
    ("others", "is_forgotten"),
    [
        pytest.param([], True, id="nobody else: it goes with the pod"),
        pytest.param([ALIVE], False, id="another number is on that machine by now"),
        pytest.param(
            [sibling(**HOST_NETWORK), of_sibling(ALIVE)], False, id="or a worker of another NodeSet"
        ),
    ],
)
def test_who_has_ended_takes_no_record_of_a_living_one_along(others, is_forgotten):
    spec = nodeset(deleted=True, **HOST_NETWORK)
    record = wire.replace(slurm_node(ALIVE, "IDLE"), name="n1")
    made = world(spec, controller(), ENDED, *others, machine("n1"), slurm_=slurm(record))

    assert "delete gpu-0 (Ended)" in told(made)
    assert ("forget n1" in told(made)) is is_forgotten


def test_one_that_was_never_heard_of_does_not_bar_another_of_its_name():
    """Made before names were kept apart: its machine is no place for it any more, and the other one idles."""
    mine = daemon("n1", started=False)
    spec = nodeset(template={"spec": {"nodeSelector": {"gpu": "yes"}}}, **DAEMONS)
    record = slurm_node(THEIR_DAEMON, "IDLE")
    made = world(
        spec, sibling(**DAEMONS), controller(), mine, THEIR_DAEMON, machine("n1"), slurm_=slurm(record)
    )

    assert f"delete {mine.metadata.name} (Unreported)" in told(made)
    assert "forget n1" not in told(made)


@pytest.mark.parametrize(("old", "new"), [("rack11", "rack1"), ("rack1", "rack11")])
def test_an_update_that_gives_workers_the_names_of_others_comes_to_its_end(old, new):
    story = Story({"replicas": 11, "template": {"spec": {"hostname": old}}}, machines=11).tick(10)
    for _ in range(3):
        story.submit(20)

    story.tick(2).change(template={"spec": {"hostname": new}}).tick(250)

    assert {pod["spec"]["hostname"] for pod in story.pods.pods.values()} == {f"{new}{n}" for n in range(11)}
    assert set(story.slurm.records) == {f"{new}{n}" for n in range(11)}
    assert not any(record.is_drain for record in story.slurm.records.values())
    assert not story.broken
