"""Records that workers leave behind in Slurm: which go, which stay, and who has the last word."""

import pytest

from slurm_operator import wire
from slurm_operator.slurm.reservation import Reservation
from support.workers import (
    controller,
    job,
    machine,
    nodeset,
    ours,
    revision_of,
    slurm,
    slurm_node,
    told,
    worker,
    world,
)

GONE = worker(5)
DOWN = ("DOWN", "NOT_RESPONDING")


def left(*words, reason="", jobs=(), reservations=(), features=("gpu",), name="gpu-5"):
    """A Slurm with the record of a worker that has no pod."""
    record = slurm_node(GONE, *words, reason=reason, features=features)
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


def test_a_record_stays_for_a_worker_that_comes_back():
    made = seen(left("IDLE", "DRAIN", reason=ours(GONE, "Update"), name="gpu-0"), replicas=1)

    assert told(made) == ["create Pod gpu-0"]


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
