"""Workers whose number is not wanted now, while Slurm powers their nodes down, off and up again."""

import pytest

from slurm_operator import wire
from slurm_operator.slurm.states import NodeState
from testing.workers import (
    controller,
    job,
    nodeset,
    ours,
    revision_of,
    slurm,
    slurm_node,
    told,
    worker,
    world,
)

OFF = worker(3, on="n3")


def plan(*words: str, pods=(OFF,), jobs=(), reason: str = "", records: str = "created", **spec) -> list[str]:
    wanted = nodeset(records=records, **{"replicas": 5, "ordinals": [0], **spec})
    revision = revision_of(wanted)
    staying = worker(0, on="n0", revision=revision.metadata.labels["controller.kubernetes.io/hash"])
    there = {number: slurm_node(worker(number), "IDLE", "CLOUD", "POWERED_DOWN") for number in (1, 2, 4)}
    record = slurm_node(OFF, *words, "CLOUD", reason=reason)
    up = slurm_node(staying, "IDLE", "CLOUD")
    if records == "static":
        record, up, *rest = (_static(one) for one in (record, up, *there.values()))
        there = dict(zip(there, rest, strict=True))
    made = world(
        controller(), wanted, staying, *pods,
        slurm_=slurm(record, up, *there.values(), jobs=jobs), revisions_=[revision],
    )  # fmt: skip
    return [line for line in told(made) if "gpu-3" in line]


def _static(record):
    return wire.replace(record, state=NodeState(record.state.words - {"DYNAMIC_NORM"}))


OURS = ours(OFF, "ScaleIn")


@pytest.mark.parametrize("records", ["created", "static"])
@pytest.mark.parametrize(
    ("words", "jobs", "reason", "steps"),
    [
        pytest.param(("IDLE", "POWERING_DOWN"), (), "", ["drain gpu-3 for ScaleIn"], id="drained first"),
        pytest.param(
            ("IDLE", "DRAIN", "POWERING_DOWN"), (), OURS, ["Leaving gpu-3", "delete gpu-3 (Drained)"],
            id="free: the pod is deleted, the record stays",
        ),
        pytest.param(
            ("MIXED", "DRAIN", "POWERING_UP"), (job(7, "gpu-3", words=("RUNNING", "CONFIGURING")),), OURS,
            ["wait gpu-3: Draining"], id="a job was sent there in between: it is waited for",
        ),
        pytest.param(
            ("MIXED",), (job(7, "gpu-3"),), "", ["drain gpu-3 for ScaleIn"], id="not idle at all: no new jobs"
        ),
    ],
)  # fmt: skip
def test_a_worker_that_is_switched_off_passes_the_gate_and_keeps_its_record(
    words, jobs, reason, steps, records
):
    assert plan(*words, jobs=jobs, reason=reason, records=records) == steps


@pytest.mark.parametrize("records", ["created", "static"])
@pytest.mark.parametrize(
    ("words", "steps"),
    [
        pytest.param(("IDLE", "DRAIN", "POWERING_DOWN"), ["resume gpu-3"], id="Slurm sends nobody there yet"),
        pytest.param(("IDLE", "DRAIN", "POWERED_DOWN"), ["resume gpu-3"], id="a job can wake it"),
        pytest.param(("IDLE", "DRAIN"), [], id="on for Slurm: a job would be sent to nobody"),
    ],
)
def test_our_drain_goes_when_slurm_has_switched_the_node_off(words, steps, records):
    assert plan(*words, pods=(), reason=OURS, records=records) == steps


def test_a_number_beyond_replicas_goes_for_good_when_its_jobs_are_done():
    busy = plan("MIXED", "DRAIN", jobs=(job(7, "gpu-3"),), reason=OURS, replicas=2)
    free = plan("IDLE", "DRAIN", reason=OURS, replicas=2)

    assert busy == ["wait gpu-3: Draining"]
    assert free == ["Retired gpu-3", "forget gpu-3", "delete gpu-3 (Drained)"]
