"""Records that workers leave behind in Slurm: which go, which stay, and who has the last word."""

from datetime import timedelta

import pytest

from slurm_operator import wire
from slurm_operator.plan.actions import Create
from slurm_operator.slurm.reservation import Reservation
from support.workers import (
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


def left(*words, reason="", jobs=(), reservations=(), features=("gpu",), name="gpu-5", gres=""):
    """A Slurm with the record of a worker that has no pod."""
    record = slurm_node(GONE, *words, reason=reason, features=features, gres=gres)
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


@pytest.mark.parametrize(
    ("policy", "there", "words", "goes"),
    [
        pytest.param("Never", "elsewhere", DOWN, False, id="Never: a machine may come back"),
        pytest.param("NodeNotFound", "elsewhere", DOWN, True, id="NodeNotFound: its machine is gone"),
        pytest.param("NodeNotFound", "rack1", DOWN, False, id="its machine is there"),
        pytest.param("NodeNotFound", "elsewhere", ("IDLE",), False, id="Slurm still hears it"),
    ],
)
def test_records_of_daemons_follow_their_machines(policy, there, words, goes):
    state = left(*words, name="rack1")
    made = seen(
        state,
        machine(there, taints=[("busy", "NoExecute")]),
        scalingMode="DaemonSet",
        pruneSlurmNodeRecords=policy,
    )

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
        pytest.param(refused(*REFUSED, reason="Resources"), ["delete gpu-0 (Drained)"], id="then the pod goes"),
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
