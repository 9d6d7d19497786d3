"""How far something has come is told every two seconds, and everything else at once."""

import re
from pathlib import Path
from typing import Any

import pytest

import slurm_operator
from slurm_operator.api.shared.meta import ObjectKey
from slurm_operator.reconcilers import accounting, cluster, controller, loginset, nodeset, restapi, token
from slurm_operator.runtime.report.status_throttle import TOLD_EVERY_SECONDS, StatusThrottle, is_mere_progress

WHO = ("nodeset", ObjectKey("ns", "gpu"))

RECONCILERS = [
    accounting.RECONCILER,
    cluster.RECONCILER,
    controller.RECONCILER,
    loginset.RECONCILER,
    nodeset.RECONCILER,
    restapi.RECONCILER,
    token.RECONCILER,
]


def status(
    ready: str = "False",
    progressing: str = "True",
    degraded: str = "False",
    *,
    generation: int = 1,
    why: str = "Starting",
    **fields: Any,
) -> dict[str, Any]:
    sides = {"Ready": ready, "Progressing": progressing, "Degraded": degraded}
    conditions = [
        {"type": type_, "status": side, "reason": why, "message": f"{why}.", "observedGeneration": generation}
        for type_, side in sides.items()
    ]
    return {"conditions": conditions, **fields}


@pytest.mark.parametrize(
    ("old", "new", "may_wait"),
    [
        pytest.param(status(ready_replicas=1), status(ready_replicas=2), True, id="it counts on"),
        pytest.param(
            status(why="Starting"), status(why="Rehearsing"), True, id="it waits for something else"
        ),
        pytest.param({}, status(), False, id="the first word about it"),
        pytest.param(status(), status(generation=2), False, id="about a new spec"),
        pytest.param(status(), status(ready="True"), False, id="it is ready"),
        pytest.param(status(ready="True"), status(), False, id="it is no longer ready"),
        pytest.param(status(ready="Unknown"), status(), False, id="it can be seen that it is not ready"),
        pytest.param(status(), status(progressing="False"), False, id="it has arrived, or cannot go on"),
        pytest.param(status(progressing="False"), status(), False, id="it is on its way again"),
        pytest.param(
            status(progressing="False", idle=1), status(progressing="False", idle=2), False, id="it rests"
        ),
        pytest.param(
            status("True"), status("True", degraded="True"), False, id="something is wrong with what runs"
        ),
        pytest.param(
            status("True", degraded="True"), status("True"), False, id="nothing is wrong with it any more"
        ),
        pytest.param(status(), status(degraded="True"), True, id="trouble while it is being started"),
        pytest.param(
            status(), status(progressing="False", degraded="True"), False, id="trouble that does not pass"
        ),
        pytest.param(status(), status(failures={"gpu-0": 1}), False, id="what the next pass decides by"),
        pytest.param(status(failures={"gpu-0": 1}), status(), False, id="what it must no longer decide by"),
    ],
)
def test_only_how_far_something_has_come_may_wait(old, new, may_wait):
    assert is_mere_progress(old, new, ("failures",)) is may_wait


def test_a_condition_that_comes_is_told_at_once():
    more = {"type": "ReservationCreated", "status": "True", "observedGeneration": 1}
    with_more = status()
    with_more["conditions"] = [*with_more["conditions"], more]

    assert not is_mere_progress(status(), with_more, ())


def test_progress_is_told_two_seconds_after_it_was_first_seen_however_much_comes():
    pace = StatusThrottle()

    assert pace.left_seconds(WHO, 100.0) == TOLD_EVERY_SECONDS
    assert pace.left_seconds(WHO, 100.0 + TOLD_EVERY_SECONDS - 0.5) == 0.5
    assert pace.left_seconds(WHO, 100.0 + TOLD_EVERY_SECONDS) == 0
    pace.settle(WHO)
    assert pace.left_seconds(WHO, 110.0) == TOLD_EVERY_SECONDS


CORE = Path(slurm_operator.__file__).parent
READ = re.compile(r"\w\.status\.([a-z_]+)")
ALWAYS_TOLD = {"conditions", "observedGeneration"}
# What a SlurmCluster only shows of its parts: it may be as late there as it is on them.
SHOWN = {"drains", "readyReplicas"}


def test_whatever_somebody_decides_by_is_written_at_once():
    """Every field of a status that decisions read back, in whatever way they spell the object."""
    files = (file for package in ("api", "plan", "reconcilers") for file in (CORE / package).rglob("*.py"))
    read = {rename(name) for file in files for name in READ.findall(file.read_text())}
    fields = {field for reconciler in RECONCILERS for field in _status_fields(reconciler.about)}
    told_at_once = {field for reconciler in RECONCILERS for field in reconciler.urgent_status_fields}

    assert told_at_once == (read & fields) - ALWAYS_TOLD - SHOWN


@pytest.mark.parametrize("reconciler", RECONCILERS, ids=lambda reconciler: reconciler.name)
def test_what_is_decided_by_is_a_field_of_the_status(reconciler):
    assert set(reconciler.urgent_status_fields) <= _status_fields(reconciler.about)


def _status_fields(about: type) -> set[str]:
    return {rename(name) for name in about.__annotations__["status"].__annotations__}


def rename(name: str) -> str:
    """`state_lost_since` here is `stateLostSince` in JSON."""
    first, *more = name.split("_")
    return first + "".join(word.capitalize() for word in more)
