"""Workers with lines in slurm.conf as Soperator writes them, and a slurmctld of ours on its state: jobs go on."""

import shutil
from collections.abc import Callable

import pytest
from rest_rig import running, shown

from slurm_local.errors import LocalError
from slurm_operator.api.schema import codec
from slurm_operator.api.slinky.nodeset import NodeSet
from slurm_operator.reconcilers.shared.node_lines import node_line
from testing.daemons import SlurmDaemons

NAMES = ("cpu-0", "cpu-1")
DOMAIN = "smallest-nodeset-svc.ns.svc"
THEIRS, OURS = "/var/spool/slurmctld/state", "/var/spool/slurmctld/smallest"
TREE = {"TopologyPlugin": "topology/tree"}
PARTITION = "PartitionName=main Nodes=ALL Default=YES PriorityTier=10 MaxTime=INFINITE State=UP"
THEIR_LINES = (
    f"NodeName=cpu-[0-1] State=CLOUD NodeAddr=cpu-[0-1].{DOMAIN} RealMemory=200",
    PARTITION,
    "NodeSet=cpu Nodes=cpu-[0-1]",
)
THEIR_NETWORK = "SwitchName=root Switches=leaf1\nSwitchName=leaf1 Nodes=cpu-[0-1]\n"
OUR_NETWORK = "SwitchName=root Switches=unknown\nSwitchName=unknown Nodes=cpu-[0-1]\n"


def our_lines(**extra: object) -> tuple[str, ...]:
    """The size that Soperator's line has: none but the memory."""
    whole = {
        "controllerRef": {"name": "smallest"},
        "records": "static",
        "extraConf": "RealMemory=200",
        **extra,
    }
    made = codec.read(NodeSet, {"metadata": {"name": "cpu", "namespace": "ns"}, "spec": whole})
    return (node_line(made, NAMES), "NodeSet=cpu Feature=cpu", PARTITION)


@pytest.fixture
def slurm(new_slurm: Callable[..., SlurmDaemons]) -> SlurmDaemons:
    """Its slurmctld, and workers that have told it their names, as Soperator's images do before slurmd starts."""
    found = new_slurm(lines=[*THEIR_LINES])
    head = found.head.box
    head.path("/etc/slurm/topology.conf").write_text(THEIR_NETWORK)
    for name in NAMES:
        worker = found.add_worker(name, arguments=["-N", name, "-b"])
        hosts = head.path("/etc/hosts")
        hosts.write_text(f"{hosts.read_text() if hosts.exists() else ''}{worker.address} {name}.{DOMAIN}\n")
    found.write_config(TREE, THEIR_LINES)
    found.reconfigure()
    for name in NAMES:
        found.run(
            "scontrol",
            "update",
            f"nodename={name}",
            f"nodeaddr={name}.{DOMAIN}",
            "topology=default:root:leaf1",
        )
    return found


def taken_over(slurm: SlurmDaemons, lines: tuple[str, ...], network: str = OUR_NETWORK) -> None:
    """slurmctld of Soperator ends, and one of ours finds the same volume at its own place."""
    slurm.head.slurmctld.stop()
    box = slurm.head.box
    shutil.move(box.path(THEIRS), box.path(OURS))
    box.path("/etc/slurm/topology.conf").write_text(network)
    slurm.write_config({"StateSaveLocation": OURS, **TREE}, lines)
    slurm.head.slurmctld.start()


async def test_a_job_goes_on_while_slurmctld_changes_hands(slurm: SlurmDaemons) -> None:
    job, short = await running(slurm, "--nodelist=cpu-0"), slurm.submit("sleep 10", "--nodelist=cpu-1")
    slurm.wait_for(lambda: slurm.job_state(short) == "RUNNING", "the short job")
    taken_over(slurm, our_lines())

    assert slurm.job_state(job) == "RUNNING"
    address = slurm.workers["cpu-0"].address
    known_by = shown(slurm, "node", "cpu-0")["NodeAddr"]
    assert known_by in (f"cpu-0.{DOMAIN}", address), "its name until it has registered again"
    slurm.wait_for(lambda: slurm.job_state(short) == "COMPLETED", "the short job to end")
    assert "Restarts=0" in slurm.run("scontrol", "-o", "show", "job", str(short))

    slurm.reconfigure()
    slurm.wait_for(lambda: shown(slurm, "node", "cpu-0")["NodeAddr"] == address, "slurmd to register again")
    assert slurm.job_state(job) == "RUNNING"
    assert not {"DOWN", "NOT_RESPONDING"} & slurm.node_states("cpu-0")


def test_slurmctld_does_not_start_without_the_places_that_records_name(slurm: SlurmDaemons) -> None:
    """Why the network's roots and blocks of Soperator's file are kept: also records of lines name them."""
    with pytest.raises(LocalError, match="Invalid node topology specified default:root:leaf1"):
        taken_over(slurm, our_lines(), OUR_NETWORK.replace("root", "other"))
