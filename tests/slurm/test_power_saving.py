"""Slurm's power saving with created records: what slurmctld calls, and what its records say meanwhile."""

import json
import os
from collections.abc import Callable

import pytest
from rest_rig import cluster_of, seen, shown, until
from test_worker_records import READY_WITHIN_SECONDS, nodeset

from slurm_local.image.images import entry_layer
from slurm_local.image.tars import File
from slurm_operator.api.nebius.slurm_settings import SlurmConfig
from slurm_operator.reconcilers.nebius.powerstate.observe import Worker
from slurm_operator.reconcilers.nebius.powerstate.wishes import Wish, has_failed, wish
from slurm_operator.reconcilers.nebius.slurmcluster.power import CALLS
from slurm_operator.reconcilers.shared.node_lines import own_conf, record_conf
from slurm_operator.slurm.node import SlurmNode
from slurm_operator.slurm.writes import AddNodes, ExplainNodes, ResumeNodes, UpdateJob
from slurm_operator.slurmsync.connection import SlurmCluster
from testing.boxed.box import Box
from testing.boxed.head import SLURM
from testing.daemons import SlurmDaemons

BIN = "/opt/soperator/bin"
POWER = {
    "ResumeProgram": f"{BIN}/power_resume.sh",
    "ResumeFailProgram": f"{BIN}/power_resume_fail.sh",
    "SuspendProgram": f"{BIN}/power_suspend.sh",
    "SuspendTime": "6",
    "SuspendTimeout": "5",
    "ResumeTimeout": "20",
    # A range that is wider than what there is, as the operator writes it.
    "SuspendExcNodes": "cpu-[0-3]",
}
LINES = (
    "NodeSet=gpu Feature=gpu",
    "NodeSet=cpu Feature=cpu",
    "PartitionName=gpu Nodes=gpu Default=YES State=UP",
    "PartitionName=cpu Nodes=cpu State=UP",
)


def programs(box: Box) -> None:
    """The image's own programs, and a place for their notes. slurmctld looks for them when it starts."""
    for name, entry in entry_layer().items():
        path = box.path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(entry, File):
            path.write_bytes(entry.content)
            path.chmod(entry.mode)
    calls = box.path(CALLS)
    calls.mkdir(parents=True, exist_ok=True)
    os.chown(calls, *SLURM)


def notes(slurm: SlurmDaemons) -> list[tuple[str, str]]:
    """What slurmctld asked for so far, in order."""
    calls = slurm.head.box.path(CALLS)
    found = (json.loads(path.read_text()) for path in sorted(calls.glob("*.json")))
    return [(note["verb"], note["nodes"]) for note in found]


def knows(cluster: SlurmCluster, *names: str) -> bool:
    facts = seen(cluster)
    return facts is not None and facts.nodes.keys() >= set(names)


def record(cluster: SlurmCluster, name: str) -> SlurmNode:
    facts = seen(cluster)
    assert facts is not None
    return facts.nodes[name]


@pytest.mark.full
async def test_a_job_wakes_its_own_node_only_and_idle_time_switches_it_off(
    new_slurm: Callable[..., SlurmDaemons],
) -> None:
    slurm = new_slurm(lines=LINES, settings=POWER, beside=programs)
    made = nodeset(records="created")
    others = record_conf(made).replace("Features=gpu", "Features=cpu")
    async with cluster_of(slurm) as cluster:
        await until(lambda: seen(cluster) is not None, "a first look")
        await cluster.write(AddNodes(nodes=tuple(f"gpu-{n}" for n in range(5)), conf=record_conf(made)))
        await cluster.write(AddNodes(nodes=("cpu-0", "cpu-1"), conf=others))
        own = own_conf(made).replace("gpu", "cpu")
        slurm.add_worker("cpu-0", arguments=["-Z", "-b", "--conf", own])
        slurm.add_worker("cpu-2", arguments=["-Z", "--conf", own])  # Without a record beforehand.
        await until(lambda: knows(cluster, "gpu-3", "cpu-0", "cpu-2"), "the records")

        job = slurm.submit("sleep 1", "--nodelist=gpu-3")
        await until(lambda: ("resume", "gpu-3") in notes(slurm), "slurmctld calls the program")
        await until(
            lambda: wish(Worker(3, "gpu-3", record=record(cluster, "gpu-3"))) is Wish.UP, "its record"
        )
        assert [node for verb, node in notes(slurm) if verb == "resume"] == ["gpu-3"]
        note = "slurm-operator: gpu-3 does not start: no room"
        assert (await cluster.write(UpdateJob(job_id=job, admin_comment=note))).is_good

        worker = slurm.add_worker("gpu-3", arguments=["-Z", "-b", "--conf", own_conf(made)])
        await until(lambda: slurm.job_state(job) == "COMPLETED", "the job runs", READY_WITHIN_SECONDS)

        def is_going_off() -> bool:
            told = shown(slurm, "node", "gpu-3")
            return "POWERING_DOWN" in told["State"] and told["NodeAddr"] == worker.address

        await until(is_going_off, "its record still knows whose it is")
        await until(lambda: ("suspend", "gpu-3") in notes(slurm), "idle time is over")
        await until(lambda: record(cluster, "gpu-3").state.is_powered_off, "it is switched off")
        await until(lambda: "POWERED_DOWN" in slurm.node_states("gpu-3"), "off for good")
        await until(lambda: "POWERED_DOWN" in record(cluster, "gpu-3").state.words, "seen")
        assert worker.slurmd.is_running
        assert record(cluster, "gpu-3").address == "gpu-3", "where its slurmd is, is forgotten"
        slurm.remove_worker("gpu-3")
        assert "DYNAMIC_NORM" in slurm.node_states("gpu-3"), "the record stays"

        assert "cpu-" not in ",".join(node for _, node in notes(slurm)), "others are left alone"
        for name in ("cpu-0", "cpu-2"):
            assert slurm.node_states(name).isdisjoint({"POWERING_DOWN", "POWERED_DOWN"})


async def test_a_worker_that_never_starts_is_given_up_explained_and_resumed(
    new_slurm: Callable[..., SlurmDaemons],
) -> None:
    """With the SuspendTime of a SlurmCluster that says nothing of it: nodes are woken all the same."""
    never = {"SuspendTime": str(SlurmConfig().suspend_time), "ResumeTimeout": "5"}
    slurm = new_slurm(lines=LINES, settings=POWER | never, beside=programs)
    made = nodeset(records="created")
    async with cluster_of(slurm) as cluster:
        await until(lambda: seen(cluster) is not None, "a first look")
        await cluster.write(AddNodes(nodes=("gpu-0",), conf=record_conf(made)))
        await until(lambda: knows(cluster, "gpu-0"), "the record")
        slurm.submit("sleep 1")
        await until(lambda: ("resume-fail", "gpu-0") in notes(slurm), "its start timed out", 90)
        await until(lambda: has_failed(record(cluster, "gpu-0")), "its record says so")
        before = record(cluster, "gpu-0").reason

        explained = "slurm-operator: PowerUpFailed: pod gpu-0 cannot be scheduled"
        told = await cluster.write(ExplainNodes(nodes=("gpu-0",), reason=explained, over=frozenset({before})))
        assert told.is_good, told
        await until(lambda: record(cluster, "gpu-0").reason == explained, "its reason")
        assert has_failed(record(cluster, "gpu-0"))

        woken = notes(slurm).count(("resume", "gpu-0"))

        again = ResumeNodes(nodes=("gpu-0",), over=frozenset({explained}), from_down=True)
        assert (await cluster.write(again)).is_good
        await until(lambda: "DOWN" not in slurm.node_states("gpu-0"), "it is back")
        assert shown(slurm, "node", "gpu-0").get("Reason", "") in ("", "none"), "nothing is said of it"
        await until(lambda: notes(slurm).count(("resume", "gpu-0")) > woken, "a job wakes it again")


async def test_a_job_that_is_sent_to_a_node_before_slurmctld_has_programs_gets_its_worker(
    new_slurm: Callable[..., SlurmDaemons],
) -> None:
    """slurmctld calls nobody, and gives it up never: only its record shows what the job waits for."""
    slurm, made = new_slurm(lines=LINES), nodeset(records="created")
    async with cluster_of(slurm) as cluster:
        await until(lambda: seen(cluster) is not None, "a first look")
        await cluster.write(AddNodes(nodes=("gpu-0",), conf=record_conf(made)))
        await until(lambda: knows(cluster, "gpu-0"), "the record")
        job = slurm.submit("sleep 1")
        await until(lambda: slurm.job_state(job) == "CONFIGURING", "it is given the node")
        await until(
            lambda: wish(Worker(0, "gpu-0", record=record(cluster, "gpu-0"))) is Wish.UP, "its record"
        )
        assert slurm.node_states("gpu-0").isdisjoint({"POWER_UP", "POWERING_UP"})

        slurm.add_worker("gpu-0", arguments=["-Z", "-b", "--conf", own_conf(made)])
        await until(lambda: slurm.job_state(job) == "COMPLETED", "the job runs", READY_WITHIN_SECONDS)
