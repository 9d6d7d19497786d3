"""Records that are there before their slurmd: made by a call, or lines of slurm.conf."""

from collections.abc import Callable

from rest_rig import cluster_of, running, seen, shown, until

from slurm_operator.api.schema import codec
from slurm_operator.api.shared.config_source import ConfigSource
from slurm_operator.api.slinky.nodeset import NodeSet
from slurm_operator.manifests.builders import key_ring
from slurm_operator.reconcilers.shared.node_lines import node_line, own_conf, record_conf
from slurm_operator.slurm.writes import AddNodes, DeleteNodes, DrainNodes, Verdict
from slurm_operator.slurmsync.connection import SlurmCluster
from testing.boxed.box import box_in
from testing.boxed.conf import CGROUP_CONF
from testing.boxed.daemon import Daemon
from testing.daemons import SlurmDaemons, Worker

NAMES = ("gpu-0", "gpu-1")
OURS = "slurm-operator: ScaleIn: leaving the NodeSet"
LINES = ("NodeSet=gpu Feature=gpu", "PartitionName=gpu Nodes=gpu Default=YES State=UP")
# A job that is sent to a node that is off is told that its node is ready every half a minute at most.
READY_WITHIN_SECONDS = 60


def nodeset(**spec: object) -> NodeSet:
    limits = {"resources": {"limits": {"cpu": "1", "memory": "200Mi"}}}
    whole = {"controllerRef": {"name": "slurm"}, "slurmd": limits, **spec}
    return codec.read(NodeSet, {"metadata": {"name": "gpu", "namespace": "ns"}, "spec": whole})


async def written(cluster: SlurmCluster, write: AddNodes | DeleteNodes | DrainNodes) -> dict[str, Verdict]:
    result = await cluster.write(write)
    return {subject: answer.verdict for subject, answer in result.answers.items()}


async def test_a_created_record_is_there_before_its_worker_and_after_it(
    new_slurm: Callable[..., SlurmDaemons],
) -> None:
    slurm, made = new_slurm(lines=LINES), nodeset(records="created")
    async with cluster_of(slurm) as cluster:
        await until(lambda: seen(cluster) is not None, "a first look")
        assert await written(cluster, AddNodes(nodes=NAMES, conf=record_conf(made))) == dict.fromkeys(
            NAMES, Verdict.DONE
        )
        again = await written(cluster, AddNodes(nodes=("gpu-0", "gpu-2"), conf=record_conf(made)))
        assert again == {"gpu-0": Verdict.ALREADY, "gpu-2": Verdict.DONE}
        assert await written(cluster, DeleteNodes(nodes=("gpu-2",))) == {"gpu-2": Verdict.DONE}

        assert {"IDLE", "CLOUD", "POWERED_DOWN", "DYNAMIC_NORM"} <= slurm.node_states("gpu-0")
        assert shown(slurm, "node", "gpu-0")["CPUTot"] == "1"
        assert shown(slurm, "node", "gpu-0")["RealMemory"] == "200"
        assert shown(slurm, "partition", "gpu")["Nodes"] == "gpu-[0-1]", "partitions find it by its feature"

        worker = slurm.add_worker("gpu-0", arguments=["-Z", "-b", "--conf", own_conf(made)])
        await until(lambda: slurm.node_states("gpu-0") >= {"IDLE", "CLOUD"}, "it registers")
        assert "POWERED_DOWN" not in slurm.node_states("gpu-0")
        await until(lambda: _address(cluster, "gpu-0") == worker.address, "its address")

        job = await running(slurm, "--nodelist=gpu-0")
        assert await written(cluster, DeleteNodes(nodes=("gpu-0",))) == {"gpu-0": Verdict.REFUSED}
        assert slurm.job_state(job) == "RUNNING"

        slurm.run("scancel", str(job))
        await until(lambda: "IDLE" in slurm.node_states("gpu-0"), "its end")
        slurm.remove_worker("gpu-0")
        await until(lambda: "DOWN" in slurm.node_states("gpu-0"), "slurmctld to give it up", 90)
        assert "DYNAMIC_NORM" in slurm.node_states("gpu-0"), "the record stays"

        slurm.add_worker("gpu-0", arguments=["-Z", "-b", "--conf", own_conf(made)])
        await until(lambda: "IDLE" in slurm.node_states("gpu-0"), "the next pod uses it")
        await running(slurm, "--nodelist=gpu-0")


async def test_a_job_waits_for_the_worker_of_a_created_record(new_slurm: Callable[..., SlurmDaemons]) -> None:
    """So a worker that has not started may have a job already, and its record is not removed under it."""
    slurm, made = new_slurm(lines=LINES), nodeset(records="created")
    async with cluster_of(slurm) as cluster:
        await until(lambda: seen(cluster) is not None, "a first look")
        await written(cluster, AddNodes(nodes=("gpu-0",), conf=record_conf(made)))

        job = slurm.submit("sleep 600")
        await until(lambda: slurm.job_state(job) == "CONFIGURING", "it is given the node")
        assert await written(cluster, DeleteNodes(nodes=("gpu-0",))) == {"gpu-0": Verdict.REFUSED}

        slurm.add_worker("gpu-0", arguments=["-Z", "-b", "--conf", own_conf(made)])
        await until(lambda: slurm.job_state(job) == "RUNNING", "it runs", READY_WITHIN_SECONDS)


async def test_a_worker_registers_by_its_line_and_a_job_on_it_would_not_survive_the_line(
    new_slurm: Callable[..., SlurmDaemons],
) -> None:
    """Why a line is held while a job is there: slurmctld takes the files without a word."""
    made = nodeset(records="static")
    slurm = new_slurm(lines=(node_line(made, NAMES), *LINES))
    assert {"IDLE", "CLOUD", "POWERED_DOWN"} <= slurm.node_states("gpu-1")
    for name in NAMES:
        slurm.add_worker(name, arguments=["-N", name, "-b"])
    kept, lost = await running(slurm, "--nodelist=gpu-0"), await running(slurm, "--nodelist=gpu-1")

    slurm.write_config(lines=(node_line(made, (*NAMES, "gpu-2")), *LINES))
    slurm.reconfigure()
    assert slurm.job_state(lost) == "RUNNING", "more lines cost nothing"
    assert "CLOUD" in slurm.node_states("gpu-2")

    slurm.write_config(lines=(node_line(made, ("gpu-0",)), *LINES))
    slurm.reconfigure()
    await until(lambda: slurm.job_state(lost) != "RUNNING", "its end")
    assert slurm.job_state(kept) == "RUNNING"

    larger = nodeset(records="static", extraConf="CPUs=2")
    slurm.write_config(lines=(node_line(larger, ("gpu-0",)), *LINES))
    slurm.reconfigure()
    await until(lambda: slurm.job_state(kept) != "RUNNING", "other CPUs end it, too")


def _address(cluster: SlurmCluster, name: str) -> str:
    facts = seen(cluster)
    return facts.nodes[name].address if facts is not None and name in facts.nodes else ""


async def test_a_worker_with_files_of_its_own_finds_its_key_elsewhere(slurm: SlurmDaemons) -> None:
    """/etc/slurm is a volume of the user's there, and has no key."""
    conf = slurm.head.box.path("/etc/slurm/slurm.conf").read_text()
    box = box_in(slurm.directory, slurm.rootfs, "filed-0")
    address = slurm.head.switch.plug_in(box)
    box.path("/etc/slurm").mkdir(parents=True, exist_ok=True)
    box.path("/etc/slurm/slurm.conf").write_text(conf)
    box.path("/etc/slurm/cgroup.conf").write_text(CGROUP_CONF)
    box.path(key_ring.KEYS_DIRECTORY).mkdir(parents=True)
    box.write_secret(f"{key_ring.KEYS_DIRECTORY}/slurm.key", slurm.head.slurm_key, (0, 0))
    slurmd = Daemon(
        box,
        ["slurmd", "-D", "-Z", "--conf", "Features=all"],
        log=slurm.directory / "slurmd-filed-0.log",
        ready=lambda: "IDLE" in slurm.node_states("filed-0"),
        env={one["name"]: one["value"] for one in key_ring.environment(ConfigSource.FILES, has_ring=False)},
    )
    slurm.workers["filed-0"] = Worker("filed-0", address, box, slurmd)
    slurmd.start()

    await running(slurm, "--nodelist=filed-0")
