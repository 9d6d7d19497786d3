"""When a NodeSet has Slurm read often: while something is about to happen there, and only then."""

from datetime import timedelta

import pytest

from support.workers import (
    CONTROLLER,
    controller,
    nodeset,
    planned,
    revision_of,
    slurm,
    slurm_node,
    worker,
    world,
)

JUST_NOW = timedelta(seconds=2)
SPEC = nodeset(replicas=3)
REVISION = revision_of(SPEC)
HASH = REVISION.metadata.labels["controller-revision-hash"]
KNOWN = worker(0, revision=HASH)


@pytest.mark.parametrize(
    ("other", "waits"),
    [
        pytest.param(
            worker(1, revision=HASH, age=JUST_NOW), True, id="everybody is up, one has yet to register"
        ),
        pytest.param(
            worker(1, revision=HASH, ready=False, started=False, phase="Pending"),
            False,
            id="pods still start",
        ),
        pytest.param(
            worker(1, revision=HASH, age=timedelta(minutes=5)), False, id="it should have long registered"
        ),
    ],
)
def test_slurm_is_read_often_until_the_last_worker_has_registered(other, waits):
    late = worker(2, revision=HASH, ready=True, age=JUST_NOW) if not other.is_ready else None
    things = [thing for thing in (KNOWN, other, late) if thing is not None]
    made = world(SPEC, controller(), *things, slurm_=slurm(slurm_node(KNOWN, "IDLE")), revisions_=[REVISION])

    assert planned(made).waits_on == ((CONTROLLER,) if waits else ())
