"""A real Slurm that runs elsewhere, watched by a Cluster: its state is told, and not one request changes it."""

import json

import pytest
from click.testing import CliRunner
from kinds_rig import apply, condition, get, ns, operator, ours, secret

from slurm_local.image.roots import slurm_rootfs
from slurm_local.paths import Paths
from slurm_local.progress import Quiet
from slurm_operator.cli.kubectl import kubectl_slurm
from testing.daemons import SlurmDaemons
from testing.managers import running_manager, until
from testing.overheard import overheard

__all__ = ["ns"]

pytestmark = [pytest.mark.full, pytest.mark.timeout(900)]

ABOUT_NODES = ("scontrol", "--oneliner", "--details", "show", "nodes")


@pytest.fixture
def slurm(tmp_path) -> SlurmDaemons:
    """Two workers, somebody's job on the first, a second that waits for the same one."""
    with SlurmDaemons(slurm_rootfs(Paths.of(), Quiet()), tmp_path / "slurm") as slurm:
        slurm.reset("w-0", "w-1")
        for state in ("RUNNING", "PENDING"):
            job = slurm.submit("sleep 3000", "--exclusive", "--nodelist=w-0")
            slurm.wait_for(lambda job=job, state=state: slurm.job_state(job) == state, f"job {job} {state}")
        yield slurm


def told(plane, ns: str) -> dict:
    return (get(plane, ns, "cluster", "far") or {}).get("status") or {}


def words(slurm: SlurmDaemons) -> dict[str, dict[str, str]]:
    """What somebody could have written to each node."""
    fields = ("State", "Reason", "Comment", "Extra", "ActiveFeatures", "Weight", "NodeAddr")
    lines = [
        dict(word.split("=", 1) for word in line.split() if "=" in word)
        for line in slurm.run(*ABOUT_NODES).splitlines()
        if line.startswith("NodeName=")
    ]
    return {line["NodeName"]: {field: line.get(field, "") for field in fields} for line in lines}


def test_a_real_slurm_elsewhere_is_told_about_and_nothing_is_written_to_it(plane, ns, slurm, tmp_path):
    before = words(slurm)
    flags = ("--namespaces", ns)
    with (
        overheard(slurm.rest_url) as (url, heard),
        running_manager(operator(plane, f"op-{ns}"), tmp_path / "log", *flags) as manager,
    ):
        manager.wait_ready()
        apply(plane, secret(ns, "login", SLURM_JWT=slurm.token()))
        apply(plane, ours("Cluster", ns, "far", {"server": url, "token": {"secretRef": "login"}}))

        until(lambda: told(plane, ns).get("isReady") is True, seconds=180, what="a word about that Slurm")
        status = told(plane, ns)
        assert status["slurmVersion"].startswith("26.")
        assert {name: count for name, count in status["nodes"].items() if count} == {
            "total": 2, "allocated": 1, "idle": 1,
        }  # fmt: skip
        assert {name: count for name, count in status["jobs"].items() if count} == {
            "running": 1,
            "pending": 1,
        }
        assert words(slurm) == before, "nobody has touched it"

        slurm.run("scontrol", "update", "nodename=w-1", "state=drain", "reason=new cables")
        until(
            lambda: told(plane, ns)["nodes"].get("drained") == 1, seconds=180, what="the drain in the status"
        )
        kubeconfig = str(plane.kubeconfig_for(f"person-{ns}", "system:masters"))
        where = ("-n", ns, "--kubeconfig", kubeconfig)
        shown = CliRunner().invoke(kubectl_slurm, ["status", *where, "-o", "json"])
        drained = CliRunner().invoke(kubectl_slurm, ["drain", "w-0", *where])
        plane.kubectl("delete", "cluster", "far", "-n", ns, "--timeout=60s")

    [found] = json.loads(shown.stdout)
    assert (found["name"], found["unreachable"]) == ("far", "")
    assert drained.exit_code == 1
    assert "runs elsewhere and is only watched; change it there" in drained.output
    assert len(heard) > 5
    assert {request.method for request in heard} == {"GET"}
    after = words(slurm)
    assert after["w-0"] == before["w-0"]
    assert after["w-1"] == {**before["w-1"], "State": after["w-1"]["State"], "Reason": after["w-1"]["Reason"]}
    assert condition(plane, ns, "cluster", "far")[0] == "", "it is gone, and Slurm goes on"
    assert sorted(slurm.run("squeue", "--noheader", "--format=%T").split()) == ["PENDING", "RUNNING"]
