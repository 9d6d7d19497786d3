"""Writes that an API server refuses for good: they are repeated ever more seldom, and shown all the while."""

import pytest

from simulation.apiserver import HUMAN, ApiServer
from simulation.deeds import Happening
from simulation.mutants import mutated
from simulation.refusing import ANSWERS, WRITES, Refusing
from simulation.runs import Story, play
from simulation.scenes import PARTS, Scene
from slurm_operator.api.shared.meta import ObjectKey
from slurm_operator.api.slinky.nodeset import NodeSet
from slurm_operator.manifests import kinds
from slurm_operator.runtime.act.refused_writes import Refusals
from testing.virtual_time import LoopClock, SimulatedLoop

ALONE = Scene(PARTS, has_login=False, has_token=False)
WORKERS = Scene(nodeset=(("replicas", 3),))


def told(scene: Scene, *happenings: tuple, seed: int = 2) -> Story:
    return Story(seed, tuple(Happening(*happening) for happening in happenings), scene=scene)


def number(verb: str, kind: str) -> int:
    return next(place for place, write in enumerate(WRITES) if (write[0], write[1].kind) == (verb, kind))


# A job that is suspended on a worker that has to leave keeps everybody looking at Slurm, every second.
BUSY = ((10, "submit", 1, 39), (1, "suspend"))

# fmt: off
NO_PODS = told(WORKERS, *BUSY, (2, "refuse_writes", number("create", "Pod"), 0), (1, "fail_worker", 1), (2, "change_image", 0, 3), (120, "calm"))
NO_NOTES = told(WORKERS, (10, "refuse_writes", number("patch", "Pod"), 1), (5, "submit", 1, 30), (2, "scale", 0, 0), (90, "calm"))
NO_DELETES = told(WORKERS, *BUSY, (2, "refuse_writes", number("delete", "Pod"), 0), (2, "scale", 0, 0), (90, "calm"))
NO_FILES = told(ALONE, (50, "refuse_writes", number("apply", "ConfigMap"), 1), (2, "edit_config", 0, 5), (120, "calm"))
NO_WORKLOAD = told(ALONE, (50, "refuse_writes", number("apply", "StatefulSet"), 1), (2, "change_daemon_image", 0, 3), (140, "calm"))
# fmt: on


@pytest.mark.parametrize(
    "story",
    [
        pytest.param(NO_PODS, id="no room for workers"),
        pytest.param(NO_NOTES, id="no notes on workers"),
        pytest.param(NO_DELETES, id="workers may not be deleted"),
        pytest.param(NO_FILES, id="no new configuration"),
        pytest.param(NO_WORKLOAD, id="no slurmctld"),
    ],
)
def test_a_refused_write_is_repeated_ever_more_seldom_and_made_in_the_end(story):
    assert play(story).broken is None


@pytest.mark.parametrize("story", [NO_PODS, NO_NOTES], ids=["workers", "notes"])
def test_a_write_that_is_sent_whenever_a_pass_plans_it_is_noticed(story):
    with mutated(Refusals.held, "if left > 0 and", "if False and"):
        assert "is sent again after" in (play(story).broken or "")


def test_a_refusal_that_nobody_hears_any_more_is_not_counted():
    assert play(Story.of(527, late=0.1)).broken is None


@pytest.mark.parametrize(
    ("deleted", "is_another"),
    [
        pytest.param("gpu", True, id="whom the worker belongs to"),
        pytest.param("cpu", False, id="somebody else"),
        pytest.param("", False, id="nobody"),
    ],
)
def test_a_refused_write_counts_as_another_one_when_its_owner_is_being_deleted(deleted, is_another):
    loop = SimulatedLoop()
    server, said, now = ApiServer(LoopClock(loop)), [], [0.0]
    refusing = Refusing(server, lambda: now[0], said.append)
    for name in ("gpu", "cpu"):
        meta = {"name": name, "namespace": "ns", "finalizers": ["x"]}
        server.create(NodeSet.KIND, {"metadata": meta, "spec": {}}, HUMAN)
    owner = {"uid": server.get(NodeSet.KIND, ObjectKey("ns", "gpu"))["metadata"]["uid"], "name": "gpu"}
    worker = ObjectKey("ns", "gpu-0")
    meta = {"name": worker.name, "namespace": "ns", "ownerReferences": [owner]}
    server.create(kinds.POD, {"metadata": meta, "spec": {}, "status": {}}, HUMAN)
    refusing.refuses[("patch", kinds.POD)] = ANSWERS[0]
    loop.close()

    for now[0] in (0.0, 10.0, 30.0, 70.0):
        refusing.look("patch", kinds.POD, worker, [{"path": "/metadata/labels/x"}])
    if deleted:
        server.delete(NodeSet.KIND, ObjectKey("ns", deleted), HUMAN)
    now[0] = 70.5
    refusing.look("patch", kinds.POD, worker, [{"path": "/metadata/labels/x"}])

    assert bool(said) is not is_another
