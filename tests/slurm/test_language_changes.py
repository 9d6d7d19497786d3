"""What our table says a changed key costs, tried on real daemons with a job running."""

from collections.abc import Callable

import pytest

from slurm_operator.slurm.conf.changes import changes, cost
from slurm_operator.slurm.conf.costs import Cost
from slurm_operator.slurm.conf.grammar import TABLES
from testing.boxed import conf
from testing.daemons import SlurmDaemons

RECONFIGURED = {
    "KillWait": "77 sec",
    "MinJobAge": "13 sec",
    "MessageTimeout": "21 sec",
    "SlurmdTimeout": "31 sec",
    "MaxJobCount": "777",
    "MaxNodeCount": "512",
    "TreeWidth": "33",
    "SchedulerParameters": "defer",
    "SlurmctldParameters": "enable_configless,digest_1",
    "SlurmctldDebug": "debug",
    "JobAcctGatherType": "jobacct_gather/linux",
    "PriorityType": "priority/basic",
    "PreemptType": "preempt/partition_prio",
    "PreemptMode": "REQUEUE",
    "GresTypes": "gpu",
    "ReturnToService": "1",
    "PrologFlags": "Alloc",
}


@pytest.fixture
def busy(new_slurm: Callable[..., SlurmDaemons]) -> tuple[SlurmDaemons, int]:
    """A Slurm of our own with one worker and a job on it."""
    slurm = new_slurm()
    slurm.add_worker("w-0")
    job = slurm.submit("sleep 300")
    slurm.wait_for(lambda: slurm.job_state(job) == "RUNNING", "the job to run")
    return slurm, job


def price(settings: dict[str, str], lines: tuple[str, ...] = conf.LINES) -> Cost:
    """What our table says about this change of the configuration that the daemons began with."""
    old = conf.slurm_conf("address", {}, conf.LINES)
    new = conf.slurm_conf("address", settings, lines)
    return cost(changes({"slurm.conf": old}, {"slurm.conf": new}, TABLES))


def test_a_reconfigure_is_enough_for_most_keys(busy):
    slurm, job = busy
    wanted = {key: value.removesuffix(" sec") for key, value in RECONFIGURED.items()}
    assert price(wanted) is Cost.RECONFIGURE

    slurm.write_config(wanted)
    slurm.reconfigure()

    lines = (line.partition("=") for line in slurm.run("scontrol", "show", "config").splitlines())
    shown = {key.strip(): value.strip() for key, _, value in lines}
    assert {key: shown[key] for key in RECONFIGURED} == RECONFIGURED
    assert slurm.job_state(job) == "RUNNING"


def test_another_port_needs_a_restart(busy):
    slurm, _ = busy
    assert price({"SlurmctldPort": "7001"}) is Cost.RESTART

    slurm.write_config({"SlurmctldPort": "7001"})

    # Commands already ask at the new port, where nobody is: not even a reconfigure gets through.
    asked = slurm.head.box.run("timeout", "3", "scontrol", "reconfigure", check=False)
    assert asked.returncode != 0


def test_another_place_for_the_state_loses_all_jobs_and_dynamic_nodes(busy):
    slurm, job = busy
    wanted = {"StateSaveLocation": "/var/spool/slurmctld/other"}
    assert price(wanted) is Cost.RESTART

    slurm.write_config(wanted)
    slurm.reconfigure()

    assert slurm.job_state(job) == "GONE"
    assert slurm.node_states("w-0") == {"GONE"}


def test_a_partition_that_goes_away_takes_its_running_jobs_along(busy):
    slurm, job = busy
    lines = ("NodeSet=all Feature=all", "PartitionName=other Nodes=ALL Default=YES")
    assert price({}, lines) is Cost.RECONFIGURE

    slurm.write_config(lines=lines)
    slurm.reconfigure()

    slurm.wait_for(lambda: slurm.job_state(job) != "RUNNING", "the job to end")
