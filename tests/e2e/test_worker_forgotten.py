"""Workers of an image that never registers again: slurmctld lost its state, and the operator looks into them.

The image is ours, without its entry point: slurmd is the container, as in images of others. No program there
notices that slurmctld has forgotten the worker.
"""

import json
from collections.abc import Iterator

import pytest
from control_plane_rig import ControlPlane, complaints, control_plane_of
from job_ledger import Ledger
from operator_rig import install, until
from test_control_plane_state import lose_state

from slurm_local.cluster import Cluster
from slurm_local.slurm_cluster import OPERATOR_NAMESPACE
from slurm_operator.api.shared import names
from testing.docs import ROOT, section
from testing.readers import GUIDE_FROM_SLINKY

pytestmark = [pytest.mark.timeout(1500), pytest.mark.full]

# Arguments are written for a shell, which the entry points of images are.
SLURMD_ALONE = ["sh", "-c", 'eval "exec slurmd -D $*"', "slurmd"]
TITLE = "Workers that slurmctld has forgotten"

# Three minutes until the first look, and half a minute until the next one.
PATIENCE_S = 420


@pytest.fixture
def slurm(cluster: Cluster, operator_image: str) -> Iterator[ControlPlane]:
    install(cluster, operator_image)
    with control_plane_of(cluster) as made:
        nodeset = made.nodeset()
        nodeset["spec"]["slurmd"]["command"] = SLURMD_ALONE
        made.apply(made.files(), made.controller(), made.restapi(), nodeset)
        made.wait_idle(2, 240)
        until(lambda: made.status().get("workersKnownSince"), what=made.told)
        yield made


def commands_of(title: str) -> list[str]:
    """What the guide has a reader type there."""
    found = [command.text for command in section(ROOT / GUIDE_FROM_SLINKY, title)]
    assert found, f"the guide has nothing to type under {title!r}"
    return found


@pytest.fixture
def granted(cluster: Cluster) -> Iterator[None]:
    """The right that the guide gives, for as long as the test runs."""
    there = f"--serviceaccount={OPERATOR_NAMESPACE}:slurm-operator"
    commands = [
        line.replace("--serviceaccount=slinky:slurm-operator", there).split() for line in commands_of(TITLE)
    ]
    assert [words[:3] for words in commands] == [
        ["kubectl", "create", "clusterrole"],
        ["kubectl", "create", "clusterrolebinding"],
    ]
    for words in commands:
        cluster.kubectl(*words[1:])
    yield
    for _, _, kind, name, *_ in reversed(commands):
        cluster.kubectl("delete", kind, name)


def mismatches(slurm: ControlPlane) -> str:
    return json.dumps(slurm.status("nodeset", "cpu").get("mismatches"))


def test_where_no_step_runs_it_is_replaced_and_a_job_that_nobody_knows_ends_first(slurm, granted):
    job, before = Ledger(slurm, "--exclusive", "--nodelist=cpu-1"), slurm.pods()

    lose_state(slurm)
    until(lambda: slurm.status().get("stateLostSince"), 120, slurm.told)
    until(
        lambda: slurm.pods().get("cpu-0") not in (None, before["cpu-0"]),
        PATIENCE_S,
        lambda: f"cpu-0 to be replaced: {slurm.pods()} {mismatches(slurm)} {complaints(slurm.cluster)}",
    )
    until(lambda: slurm.states().get("cpu-0") == "idle", 120, lambda: f"{slurm.states()}")

    # The other one was looked into as well: its job has a step, of which no slurmctld knows.
    job.outlives(70)
    assert slurm.pods()["cpu-1"] == before["cpu-1"]
    assert names.POD_NO_STEPS not in json.loads(slurm.kubectl("get", "pod", "cpu-1", "-o", "json"))[
        "metadata"
    ].get("annotations", {})
    assert "slurmstepd" in mismatches(slurm), "and a person can look, too"

    job.wait_ended_by_itself()
    until(
        lambda: slurm.pods().get("cpu-1") not in (None, before["cpu-1"]),
        180,
        lambda: f"cpu-1 to be replaced: {slurm.pods()} {mismatches(slurm)} {complaints(slurm.cluster)}",
    )
    slurm.wait_idle(2, 120)
    until(lambda: not slurm.status().get("stateLostSince"), 180, slurm.told)
