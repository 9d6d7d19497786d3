"""What becomes of a node that Slurm has given up when its worker comes back, and what it takes to have it again."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from rest_rig import OURS, cluster_of, raw, until

from slurm_operator.slurm.reasons import OurReason, is_our_reason
from slurm_operator.slurm.writes import ResumeNodes
from testing.daemons import SlurmDaemons

V = "/slurm/v0.0.45"
LOST, REBOOTED = "Not responding", "Node unexpectedly rebooted"
LEFT_OUT, QUICK = {"ReturnToService": "0"}, {"SlurmdTimeout": "6"}


def node(slurm: SlurmDaemons, name: str) -> Mapping[str, Any]:
    return next(found for found in raw(slurm, "GET", f"{V}/nodes/").body["nodes"] if found["name"] == name)


def words(slurm: SlurmDaemons, name: str) -> set[str]:
    return set(node(slurm, name)["state"]) - {"DYNAMIC_NORM"}


def lost_and_back(slurm: SlurmDaemons, *names: str) -> None:
    """Their pods are gone for longer than SlurmdTimeout, and then there are new ones of the same names."""
    for name in names:
        slurm.remove_worker(name)
    gone = {"DOWN", "NOT_RESPONDING"}
    slurm.wait_for(lambda: all(words(slurm, name) >= gone for name in names), "Slurm to give them up", 120)
    for name in names:
        slurm.add_worker(name)
    slurm.wait_for(lambda: not any("NOT_RESPONDING" in words(slurm, name) for name in names), "their return")


@pytest.mark.timeout(300)
async def test_a_node_that_slurm_gave_up_stays_down_until_it_is_resumed(
    new_slurm: Callable[..., SlurmDaemons],
) -> None:
    slurm = new_slurm(settings=LEFT_OUT | QUICK)
    slurm.reset("w-0", "w-1", "w-2")
    slurm.run("scontrol", "update", "nodename=w-1", "state=drain", f"reason={OURS}")
    slurm.run("scontrol", "update", "nodename=w-2", "state=down", "reason=bad fan")

    lost_and_back(slurm, "w-0", "w-1", "w-2")

    assert words(slurm, "w-0") == {"DOWN"}
    assert (node(slurm, "w-0")["reason"], node(slurm, "w-0")["reason_set_by_user"]) == (LOST, "slurm")
    assert words(slurm, "w-1") == {"DOWN", "DRAIN"}
    assert node(slurm, "w-1")["reason"] == f"{OURS} : {LOST}", "said behind the reason that is there"
    assert is_our_reason(node(slurm, "w-1")["reason"])
    assert OurReason.read(node(slurm, "w-1")["reason"]) == OurReason.read(OURS)
    assert (words(slurm, "w-2"), node(slurm, "w-2")["reason"]) == ({"DOWN"}, "bad fan")
    since = node(slurm, "w-0")["reason_changed_at"]["number"]
    began = node(slurm, "w-0")["slurmd_start_time"]["number"]
    assert since <= began, "set before this slurmd was there; both are whole seconds"

    raw(slurm, "POST", f"{V}/nodes/", {"name": ["w-1"], "state": ["UNDRAIN"]})
    assert "DOWN" in words(slurm, "w-1"), "to lift the drain is not enough"

    async with cluster_of(slurm) as cluster:
        back = ResumeNodes(nodes=("w-0", "w-1", "w-2"), over=frozenset({LOST}), from_down=True)
        result = await cluster.write(back)

    assert {name: answer.is_good for name, answer in result.answers.items()} == {
        "w-0": True,
        "w-1": True,
        "w-2": False,
    }
    for name in ("w-0", "w-1"):
        await until(lambda name=name: words(slurm, name) == {"IDLE"}, f"{name} to be in service")
        assert node(slurm, name)["reason"] == ""
    assert words(slurm, "w-2") == {"DOWN"}, "a manual drain stays"
    job = slurm.submit("true", "--nodelist=w-[0-1]", "--nodes=2")
    await until(lambda: slurm.job_state(job) == "COMPLETED", "a job to run there")


@pytest.mark.timeout(300)
async def test_down_and_drain_are_lifted_by_one_resume(new_slurm: Callable[..., SlurmDaemons]) -> None:
    slurm = new_slurm(settings=LEFT_OUT | QUICK)
    slurm.reset("w-0")
    slurm.run("scontrol", "update", "nodename=w-0", "state=drain", f"reason={OURS}")
    lost_and_back(slurm, "w-0")
    assert words(slurm, "w-0") == {"DOWN", "DRAIN"}

    async with cluster_of(slurm) as cluster:
        result = await cluster.write(ResumeNodes(nodes=("w-0",), from_down=True))

    assert result.is_good
    await until(lambda: words(slurm, "w-0") == {"IDLE"}, "it to be in service")


@pytest.mark.timeout(300)
async def test_a_machine_that_rebooted_is_given_up_by_the_first_registration_after_it(
    new_slurm: Callable[..., SlurmDaemons],
) -> None:
    """So this is set after the slurmd had started that it is about."""
    slurm = new_slurm(settings=LEFT_OUT)
    slurm.reset("w-0")
    worker = slurm.workers["w-0"]
    worker.slurmd.stop()
    await asyncio.sleep(2.1)  # Slurm compares with when it last heard of it, in seconds.
    worker.slurmd.argv.append("-b")  # As if the machine had just booted.
    worker.slurmd.start()

    await until(lambda: words(slurm, "w-0") == {"DOWN"}, "Slurm to notice")

    found = node(slurm, "w-0")
    assert found["reason"] == REBOOTED
    assert found["reason_changed_at"]["number"] >= found["slurmd_start_time"]["number"]
