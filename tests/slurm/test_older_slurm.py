"""Slurm 24.11, the oldest that the operator works with: what it has not, and that the promises hold without.

The whole floor runs on it with `--slurm-series 24.11`; the support matrix says what came of that.
"""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from parser_box import parser_box
from rest_rig import OURS, client_of, cluster_of, running, seen, shown, until

from slurm_local.paths import Paths
from slurm_local.progress import PlainProgress
from slurm_operator.reconcilers.controller.configuration.files import wanted_files
from slurm_operator.reconcilers.controller.observe import observe
from slurm_operator.slurm.node import SlurmNode
from slurm_operator.slurm.writes import DeleteNodes, DrainNodes, ResumeNodes, Verdict
from slurm_operator.slurmsync.connection import SlurmCluster
from testing.boxed.box import Box
from testing.boxed.series import older_slurm_rootfs
from testing.controllers import KEY, controller, thing, world
from testing.daemons import SlurmDaemons

pytestmark = pytest.mark.full

IMAGE = "slurmctld:24.11"


@pytest.fixture(scope="module")
def older() -> Path:
    return older_slurm_rootfs(Paths.of(), PlainProgress())


@pytest.fixture
def slurm(older: Path, tmp_path: Path) -> Iterator[SlurmDaemons]:
    with SlurmDaemons(older, tmp_path / "slurm") as daemons:
        daemons.add_worker("w-0")
        yield daemons


@pytest.fixture(scope="module")
def box(older: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Box]:
    with parser_box(older, tmp_path_factory.mktemp("parser")) as made:
        yield made


def parsed(box: Box, conf: str) -> str:
    """What Slurm's commands say about the file; empty when they take it."""
    box.path("/run/slurm.conf").write_text(conf)
    done = box.run("scontrol", "show", "hostnames", "x", env={"SLURM_CONF": "/run/slurm.conf"}, check=False)
    return "" if done.returncode == 0 else done.stderr


def _node(cluster: SlurmCluster) -> SlurmNode:
    facts = seen(cluster)
    assert facts is not None
    return facts.nodes["w-0"]


async def _removed(cluster: SlurmCluster) -> None:
    """Asks again while slurmrestd cannot read its nodes: 24.11 says `Unable to query partitions` now and then."""
    async with asyncio.timeout(40):
        while True:
            answer = (await cluster.write(DeleteNodes(nodes=("w-0",)))).answers["w-0"]
            if answer.verdict is not Verdict.NOT_SENT:
                break
            assert "Unable to query partitions" in answer.message
            await asyncio.sleep(1)
    assert answer.verdict is Verdict.DONE


def rendered(image: str) -> str:
    """slurm.conf of a Controller that wants metrics, with a worker that has a partition."""
    spec = {"slurmctld": {"image": image}, "metrics": {"enabled": True}}
    gpu = thing("NodeSet", "gpu", {"controllerRef": {"name": "slurm"}, "partition": {"enabled": True}})
    found = observe(KEY, world(controller(spec), gpu))
    assert found is not None
    return wanted_files(found).texts["slurm.conf"]


def test_what_is_rendered_for_an_older_image_is_understood_and_what_is_for_a_newer_one_is_not(
    box: Box,
) -> None:
    assert parsed(box, rendered(IMAGE)) == ""
    assert "unrecognized key: MetricsType" in parsed(box, rendered("slurmctld:26.05"))


@pytest.mark.parametrize(("daemon", "port"), [("slurmctld", 6817), ("slurmd", 6818)])
def test_daemons_listen_and_answer_no_http(slurm: SlurmDaemons, daemon: str, port: int) -> None:
    """So the probes for them are connections and no questions."""
    address = slurm.head.address if daemon == "slurmctld" else slurm.workers["w-0"].address
    connect = f"import socket; s = socket.create_connection(('{address}', {port}), 5); s.settimeout(5); s.sendall(b'GET /readyz HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n'); print(s.recv(100)[:9])"
    asked = slurm.head.box.run("python3", "-c", connect, check=False)
    assert "HTTP/1.1" not in asked.stdout
    only = f"import socket; socket.create_connection(('{address}', {port}), 5).close(); print('listens')"
    for _ in range(20):
        assert slurm.head.box.run("python3", "-c", only).stdout.strip() == "listens"
    job = slurm.submit("exit 0")
    slurm.wait_for(lambda: slurm.job_state(job) == "COMPLETED", "a job after so many probes")


async def test_a_worker_with_a_job_is_drained_and_kept_and_removed_after_its_job(slurm: SlurmDaemons) -> None:
    async with cluster_of(slurm) as cluster:
        await until(lambda: seen(cluster) is not None, "a first look")
        job = await running(slurm, "--nodelist=w-0")
        drained = await cluster.write(DrainNodes(nodes=("w-0",), reason=OURS))
        assert drained.answers["w-0"].verdict is Verdict.DONE
        await until(lambda: _node(cluster).state.is_drain, "the drain to be seen")
        assert _node(cluster).is_drained_by_us
        assert not _node(cluster).state.is_drained

        refused = await cluster.write(DeleteNodes(nodes=("w-0",)))
        assert refused.answers["w-0"].verdict is Verdict.REFUSED
        assert slurm.job_state(job) == "RUNNING"

        slurm.run("scancel", str(job))
        await until(lambda: _node(cluster).state.is_drained, "the end of its job")
        resumed = await cluster.write(ResumeNodes(nodes=("w-0",)))
        assert resumed.answers["w-0"].verdict is Verdict.DONE
        await running(slurm, "--nodelist=w-0")
        slurm.run("scancel", "--user=tester")
        await until(lambda: "IDLE" in slurm.node_states("w-0"), "its end")
        await _removed(cluster)
    assert slurm.node_states("w-0") == {"GONE"}


async def test_its_slurmrestd_speaks_the_oldest_version_that_the_operator_does(slurm: SlurmDaemons) -> None:
    client = client_of(slurm)
    listing = await client.read.nodes()
    assert listing is not None
    assert client.version == "v0.0.42"
    assert listing.records["w-0"].address == slurm.workers["w-0"].address
    assert shown(slurm, "node", "w-0")["Version"].startswith("24.11")


def test_a_job_goes_on_while_the_configuration_changes(slurm: SlurmDaemons) -> None:
    job = slurm.submit("sleep 600")
    slurm.wait_for(lambda: slurm.job_state(job) == "RUNNING", "the job to run")
    slurm.reconfigure()
    slurm.wait_for(lambda: "NOT_RESPONDING" not in slurm.node_states("w-0"), "the worker to answer")
    assert slurm.job_state(job) == "RUNNING"


def test_a_job_goes_on_while_slurmctld_restarts(slurm: SlurmDaemons) -> None:
    job = slurm.submit("sleep 600")
    slurm.wait_for(lambda: slurm.job_state(job) == "RUNNING", "the job to run")
    slurm.slurmctld.stop()
    slurm.slurmctld.start()
    slurm.wait_for(
        lambda: slurm.node_states("w-0") & {"MIXED", "ALLOCATED"} != set(), "the worker to be back"
    )
    assert slurm.job_state(job) == "RUNNING"
