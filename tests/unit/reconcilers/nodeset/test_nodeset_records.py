"""Records that workers leave behind in Slurm: which go, which stay, and who has the last word."""

from datetime import timedelta

import pytest

from slurm_operator import wire
from slurm_operator.api.schema import codec
from slurm_operator.api.shared import names
from slurm_operator.api.slinky.controller import Controller
from slurm_operator.api.slinky.nodeset import NodeSet
from slurm_operator.manifests.objects import PodSpec
from slurm_operator.plan.actions import Create
from slurm_operator.plan.plan import Outcome
from slurm_operator.reconcilers.nodeset import RECONCILER
from slurm_operator.reconcilers.nodeset.identity import daemon_pod_name
from slurm_operator.slurm.reservation import Reservation
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

GONE = worker(5)
DOWN = ("DOWN", "NOT_RESPONDING")


def left(*words, reason="", jobs=(), reservations=(), features=("gpu",), name="gpu-5", gres="", comment=""):
    """A Slurm with the record of a worker that has no pod."""
    record = slurm_node(GONE, *words, reason=reason, features=features, gres=gres, comment=comment)
    return slurm(wire.replace(record, name=name), jobs=jobs, reservations=reservations)


def seen(state, *things, **spec):
    made = nodeset(**{"replicas": 0, **spec})
    return world(made, controller(), *things, revisions_=[revision_of(made)], slurm_=state)


SENT_AWAY = {"reason": ours(GONE, "ScaleIn")}


@pytest.mark.parametrize(
    ("state", "goes"),
    [
        pytest.param(left("IDLE", "DRAIN", **SENT_AWAY), True, id="sent away by us: at once"),
        pytest.param(left(*DOWN, "DRAIN", **SENT_AWAY), True, id="and when Slurm has given it up"),
        pytest.param(left(*DOWN, reason="Not responding"), True, id="a numbered worker that is gone"),
        pytest.param(left("IDLE"), False, id="it looks alive: somebody may stand behind it"),
        pytest.param(left("DOWN"), False, id="down by somebody's wish"),
        pytest.param(left(*DOWN, "DRAIN", reason="ask Ada"), False, id="a human's drain"),
        pytest.param(left("IDLE", "DRAIN", reason=ours(GONE, "NodeCordon")), False, id="drained for a cordon: it may come back"),
        pytest.param(left("IDLE", "DRAIN", jobs=[job(1, words=["PENDING"], required=["gpu-5"])], **SENT_AWAY), False, id="a pending job insists on it"),
        pytest.param(left("IDLE", "DRAIN", reservations=[Reservation(name="r", nodes=("gpu-5",))], **SENT_AWAY), False, id="a reservation names it"),
        pytest.param(left(*DOWN, features=("other",)), False, id="of another NodeSet"),
        pytest.param(left(*DOWN, name="hand-made-5"), False, id="not one of our names"),
    ],
)  # fmt: skip
def test_a_record_goes_when_nobody_can_need_it(state, goes):
    [name] = state.nodes
    assert told(seen(state)) == ([f"forget {name}"] if goes else [])


def test_a_record_is_removed_by_a_fresh_answer_alone():
    made = seen(left("IDLE", "DRAIN", reason=ours(GONE, "ScaleIn")))
    [(key, fresh)] = made.slurms.items()
    before = NOW - timedelta(seconds=20)
    made.slurms[key] = wire.replace(fresh, nodes_asked_at=before, jobs_asked_at=before)

    assert told(made) == []
    assert planned(made).waits_on, "Slurm is read again soon"
    assert planned(made).look_again == timedelta(seconds=1)

    made.slurms[key] = fresh
    assert told(made) == ["forget gpu-5"]


def test_a_record_stays_for_a_worker_that_comes_back():
    made = seen(left("IDLE", "DRAIN", reason=ours(GONE, "Update"), name="gpu-0"), replicas=1)

    assert told(made) == ["create Pod gpu-0"]


def test_a_record_goes_first_when_the_worker_comes_back_with_other_resources_after_it_failed():
    made = seen(left(*DOWN, reason="Not responding", name="gpu-0"), replicas=1, extraConf="CPUs=9")

    assert told(made) == ["forget gpu-0", "create Pod gpu-0"]


@pytest.mark.parametrize(
    ("extra", "gres", "story"),
    [
        pytest.param("Gres=gpu:2", "", ["forget gpu-0", "create Pod gpu-0"], id="the worker before it never told of them"),
        pytest.param("Gres=gpu:2", "gpu:a100:4(S:0-1)", ["forget gpu-0", "create Pod gpu-0"], id="others"),
        pytest.param("Gres=gpu:2", "gpu:a100:2(S:0-1)", ["create Pod gpu-0"], id="the same"),
        pytest.param("Weight=1", "gpu:2", ["create Pod gpu-0"], id="nothing is declared"),
        pytest.param("Gres=gpu:lots:of", "gpu:2", ["create Pod gpu-0"], id="what cannot be read is not compared"),
    ],
)  # fmt: skip
def test_a_record_with_other_gres_goes_before_its_worker_comes_back(extra, gres, story):
    there = left("IDLE", "DRAIN", reason=ours(GONE, "Update"), name="gpu-0", gres=gres)

    assert told(seen(there, replicas=1, extraConf=extra)) == story


def test_the_record_of_a_numbered_worker_goes_in_daemonset_mode_too():
    there = machine("rack1", cordoned=True)

    assert told(seen(left(*DOWN), there, scalingMode="DaemonSet")) == ["forget gpu-5"]


@pytest.mark.parametrize(
    ("words", "reason", "mode", "goes"),
    [
        pytest.param((*DOWN, "DRAIN"), ours(GONE, "NodeCordon"), "StatefulSet", True, id="nobody is called so any more"),
        pytest.param((*DOWN, "DRAIN"), ours(GONE, "NodeCordon"), "DaemonSet", False, id="its machine may be uncordoned"),
        pytest.param((*DOWN, "DRAIN"), "ask Ada", "StatefulSet", False, id="a human drained it"),
        pytest.param(DOWN, "Not responding", "StatefulSet", False, id="it may never have been a worker of ours"),
        pytest.param(("IDLE", "DRAIN"), ours(GONE, "NodeCordon"), "StatefulSet", False, id="Slurm still hears it"),
    ],
)  # fmt: skip
def test_the_record_of_a_cordoned_machine_goes_when_workers_get_numbers(words, reason, mode, goes):
    state = left(*words, reason=reason, name="rack1")

    assert told(seen(state, machine("rack1", cordoned=True), scalingMode=mode)) == (
        ["forget rack1"] if goes else []
    )


def says(namespace="ns", name="gpu", uid="set-uid"):
    """The comment that a worker of this NodeSet has in Slurm."""
    info = {"namespace": namespace, "podName": "x", "node": "rack1", "nodeSetName": name, "nodeSetUID": uid}
    return wire.encode(info).decode()


OURS = {"comment": says(), "name": "rack1"}


@pytest.mark.parametrize(
    ("policy", "there", "state", "goes"),
    [
        pytest.param("Never", "elsewhere", left(*DOWN, **OURS), False, id="Never: a machine may come back"),
        pytest.param("NodeNotFound", "elsewhere", left(*DOWN, **OURS), True, id="NodeNotFound: its machine is gone"),
        pytest.param("NodeNotFound", "rack1", left(*DOWN, **OURS), False, id="its machine is there"),
        pytest.param("NodeNotFound", "rack1.site", left(*DOWN, **OURS), False, id="its machine is there, with a domain"),
        pytest.param("NodeNotFound", "elsewhere", left("IDLE", **OURS), False, id="Slurm still hears it"),
        pytest.param("NodeNotFound", "elsewhere", left(*DOWN, name="rack1"), False, id="anybody may have given it our feature"),
        pytest.param("NodeNotFound", "elsewhere", left(*DOWN, name="rack1", comment="ask Ada"), False, id="somebody else wrote the comment"),
        pytest.param("NodeNotFound", "elsewhere", left(*DOWN, name="rack1", comment=says(name="cpu")), False, id="it says that it is of another NodeSet"),
        pytest.param("NodeNotFound", "elsewhere", left(*DOWN, name="rack1", comment=says(uid="x")), False, id="it says that it is of a NodeSet elsewhere"),
        pytest.param("NodeNotFound", "elsewhere", left(*DOWN, "DRAIN", name="rack1", reason=ours(GONE, "NodeTaint")), True, id="we drained it before its machine went"),
    ],
)  # fmt: skip
def test_records_of_daemons_follow_their_machines(policy, there, state, goes):
    made = seen(
        state,
        machine(there, taints=[("busy", "NoExecute")]),
        scalingMode="DaemonSet",
        pruneSlurmNodeRecords=policy,
    )

    assert told(made) == (["forget rack1"] if goes else [])


ON_THE_HOST = {"template": {"spec": {"hostNetwork": True}}}
DRAINED = {"name": "rack1", "reason": ours(GONE, "NodeTaint")}


@pytest.mark.parametrize(
    ("spec", "there", "state", "goes"),
    [
        pytest.param(ON_THE_HOST, "elsewhere", left(*DOWN, **OURS), True, id="on the host's network: its machine is gone"),
        pytest.param(ON_THE_HOST, "elsewhere", left(*DOWN, "DRAIN", **DRAINED), True, id="and we drained it before"),
        pytest.param(ON_THE_HOST, "rack1", left(*DOWN, **OURS), False, id="its machine is there: a worker may come to it"),
        pytest.param(ON_THE_HOST, "elsewhere", left(*DOWN, name="rack1"), False, id="it may never have been ours"),
        pytest.param({}, "rack1", left(*DOWN, **OURS), True, id="workers have numbers now: a machine matters no more"),
        pytest.param({}, "rack1", left("IDLE", **OURS), False, id="but Slurm still hears it"),
    ],
)  # fmt: skip
def test_records_that_are_called_like_machines_go_when_nobody_can_have_the_name(spec, there, state, goes):
    assert told(seen(state, machine(there), **spec)) == (["forget rack1"] if goes else [])


def sibling(name="a100", uid="other-uid", **spec):
    """Another NodeSet of the same Controller."""
    meta = {"name": name, "namespace": "ns", "uid": uid}
    return codec.read(NodeSet, {"metadata": meta, "spec": {"controllerRef": {"name": "slurm"}, **spec}})


def of_both(*words, name="a100-0", cause="Update"):
    """The record of a worker that `Features=gpu` in extraConf gave the feature of NodeSet gpu, too."""
    return left(*words, name=name, reason=ours(GONE, cause), features=("a100", "gpu"))


def orphaned(pod):
    return wire.replace(pod, metadata=wire.replace(pod.metadata, owner_references=[], labels={}))


def theirs(name="a100-0", **kwargs):
    pod = worker(0, name=name, **kwargs)
    owner = wire.replace(pod.metadata.owner_references[0], name="a100", uid="other-uid")
    return wire.replace(pod, metadata=wire.replace(pod.metadata, owner_references=[owner]))


A100 = sibling(extraConf="Features=gpu")
PER_MACHINE = sibling(scalingMode="DaemonSet", extraConf="Features=gpu")


@pytest.mark.parametrize(
    ("state", "others", "goes"),
    [
        pytest.param(of_both("IDLE", "DRAIN"), [A100, theirs()], False, id="its slurmd lives, and was drained for an update"),
        pytest.param(of_both("IDLE", "DRAIN"), [A100], False, id="the next one of that number is about to come"),
        pytest.param(of_both(*DOWN), [A100], False, id="whether it is left over is for the other NodeSet to say"),
        pytest.param(of_both("IDLE", "DRAIN", name="rack1"), [PER_MACHINE, machine("rack1")], False, id="called like a machine: it is the other's"),
        pytest.param(of_both("IDLE", "DRAIN", name="gpu-5"), [PER_MACHINE, machine("gpu-5")], False, id="called like our number and like a machine"),
        pytest.param(of_both("IDLE", "DRAIN", name="gpu-5"), [PER_MACHINE, machine("rack1")], True, id="called like our number alone"),
        pytest.param(of_both("IDLE", "DRAIN", name="gpu-5"), [A100], True, id="our number, not one of theirs"),
        pytest.param(left(*DOWN, name="gpu-05"), [sibling(template={"spec": {"hostname": "gpu-0"}})], True, id="both count so, but it has our feature only"),
        pytest.param(left(*DOWN, name="gpu-5", comment=says(name="a100")), [A100], False, id="it says that it is of the other"),
        pytest.param(left(*DOWN, name="gpu-5", comment=says(uid="before")), [A100], True, id="left by a NodeSet that was made again"),
        pytest.param(left("IDLE", "DRAIN", **SENT_AWAY), [sibling(), theirs("gpu-5")], False, id="another NodeSet has a worker of this name"),
        pytest.param(left("IDLE", "DRAIN", **SENT_AWAY), [orphaned(GONE)], False, id="nobody owns its worker, and it may be taken in"),
    ],
)  # fmt: skip
def test_records_of_another_nodeset_are_not_ours_to_remove(state, others, goes):
    [name] = state.nodes
    assert [line for line in told(seen(state, *others)) if "forget" in line] == (
        [f"forget {name}"] if goes else []
    )


@pytest.mark.parametrize(
    ("words", "is_external", "goes"),
    [
        pytest.param(("IDLE", "DRAIN"), False, True, id="our own Slurm: nobody else drains so"),
        pytest.param(("IDLE", "DRAIN"), True, False, id="another operator may have drained its own worker"),
        pytest.param((*DOWN, "DRAIN"), True, True, id="given up by Slurm"),
    ],
)
def test_a_slurm_outside_kubernetes_may_have_workers_of_another_operator(words, is_external, goes):
    made = seen(left(*words, name="rack1", reason=ours(GONE, "NodeUnfit")), scalingMode="DaemonSet")
    head = codec.read(
        Controller,
        {
            "metadata": {"name": "slurm", "namespace": "ns", "uid": "c"},
            "spec": {"external": is_external, "externalConfig": {"host": "ctld.site", "port": 6817}},
        },
    )
    made.things = [head if isinstance(thing, Controller) else thing for thing in made.things]

    assert told(made) == (["forget rack1"] if goes else [])


REFUSED = ("IDLE", "DRAIN", "INVALID_REG")
FRESH = {"nodeset.slinky.slurm.net/fresh-record": "true"}


def refused(*words, reason="Low CPUs", jobs=(), annotations=None):
    """One worker, and what Slurm says about its registration."""
    made = nodeset(replicas=1)
    revision = revision_of(made)
    label = revision.metadata.labels["controller-revision-hash"]
    pod = worker(0, revision=label, annotations=annotations)
    node = slurm_node(pod, *words, reason=ours(pod, reason) if reason in ("Resources", "ScaleIn") else reason)
    return world(made, controller(), pod, revisions_=[revision], slurm_=slurm(node, jobs=jobs))


@pytest.mark.parametrize(
    ("made", "story"),
    [
        pytest.param(refused(*REFUSED), ["drain gpu-0 for Resources"], id="first it is noted that the record goes"),
        pytest.param(refused(*REFUSED, reason="Resources"), ["Leaving gpu-0", "delete gpu-0 (Drained)"], id="then the pod goes"),
        pytest.param(refused("MIXED", "DRAIN", "INVALID_REG", jobs=[job(1, "gpu-0")]), ["wait gpu-0: Draining"], id="its jobs finish first"),
        pytest.param(refused(*REFUSED, annotations=FRESH), [], id="its own record is refused: another would be too"),
        pytest.param(refused(*REFUSED, reason="ask Ada"), [], id="a human has the last word"),
        pytest.param(refused("IDLE", "DRAIN"), [], id="drained by Slurm for something else"),
    ],
)  # fmt: skip
def test_a_worker_that_slurm_refuses_comes_again_with_a_record_of_its_own(made, story):
    assert told(made) == story


def test_the_worker_after_a_refused_one_is_known_to_have_a_new_record():
    made = seen(left(*REFUSED, reason=ours(GONE, "Resources"), name="gpu-0"), replicas=1)

    assert told(made) == ["forget gpu-0", "create Pod gpu-0"]
    [pod] = [action.manifest for action in planned(made).actions() if isinstance(action, Create)]
    assert pod["metadata"]["annotations"].items() >= FRESH.items()


FAST = {"template": {"spec": {"hostname": "fast-"}}}
DAEMONS = {"scalingMode": "DaemonSet"}
FAST_ON_MACHINES = {"template": {"spec": {"hostname": "fast-", "hostNetwork": True}}}
DAEMON = worker(0, mode="DaemonSet", hostname="n1", revision="before", name=daemon_pod_name("n1", nodeset()))
ON_MACHINE = wire.replace(
    worker(0, revision="before"), spec=PodSpec(node_name="n1", hostname="gpu-0", host_network=True)
)


def known(pod, *words, reason="", features=("gpu",), **more):
    return slurm(wire.replace(slurm_node(pod, *words, reason=reason, features=features), name="n1"), **more)


@pytest.mark.parametrize(
    ("spec", "pod"),
    [
        pytest.param({**FAST, **DAEMONS}, DAEMON, id="a daemon"),
        pytest.param(FAST_ON_MACHINES, ON_MACHINE, id="a number on the network of its machine"),
    ],
)
def test_a_worker_that_keeps_its_name_gets_a_new_record_when_its_nodeset_is_called_otherwise(spec, pod):
    """Partitions find workers by the name of their NodeSet, and a record keeps the one that it was made with."""
    name = pod.metadata.name
    assert told(seen(known(pod, "IDLE"), pod, machine("n1"), replicas=1, **spec)) == [
        "drain n1 for Resources"
    ]

    drained = known(pod, "IDLE", "DRAIN", reason=ours(pod, "Update"))
    assert told(seen(drained, pod, machine("n1"), replicas=1, **spec)) == [
        f"Retired {name}",
        "forget n1",
        f"delete {name} (Drained)",
    ]


@pytest.mark.parametrize(
    ("state", "story"),
    [
        pytest.param(known(DAEMON, *DOWN), ["forget n1", "create Pod"], id="it ended on its own: its record is removed first"),
        pytest.param(known(DAEMON, *DOWN, features=("gpu", "fast")), ["create Pod"], id="somebody gave it the name"),
        pytest.param(known(DAEMON, *DOWN, jobs=[job(1, words=["PENDING"], required=["n1"])]), ["create Pod"], id="a job insists on it"),
        pytest.param(known(DAEMON, *DOWN, "DRAIN", reason="ask Ada"), ["create Pod"], id="a human's drain"),
    ],
)  # fmt: skip
def test_a_record_that_partitions_do_not_find_goes_before_the_next_worker(state, story):
    made = told(seen(state, machine("n1"), **FAST, **DAEMONS))

    assert [line.removesuffix(f" {DAEMON.metadata.name}") for line in made] == story


@pytest.mark.parametrize(
    ("revision", "features", "is_told"),
    [
        pytest.param("now", ("gpu",), True, id="its record could not go"),
        pytest.param("now", ("gpu", "fast"), False, id="it has the name"),
        pytest.param("before", ("gpu",), False, id="it is about to be replaced"),
    ],
)
def test_a_worker_that_partitions_do_not_find_is_told(revision, features, is_told):
    spec = nodeset(**FAST, **DAEMONS)
    hash_ = revision_of(spec).metadata.labels[names.LABEL_REVISION] if revision == "now" else revision
    labels = {**DAEMON.metadata.labels, names.LABEL_REVISION: hash_}
    pod = wire.replace(DAEMON, metadata=wire.replace(DAEMON.metadata, labels=labels))
    found = RECONCILER.observe(
        KEY, seen(known(pod, "IDLE", features=features), pod, machine("n1"), **FAST, **DAEMONS)
    )
    told_ = RECONCILER.status(found, RECONCILER.decide(found, NOW), Outcome()).fields["mismatches"]

    assert ["features=fast,gpu" in one["message"] for one in told_] == ([True] if is_told else [])
