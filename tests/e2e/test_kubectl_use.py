"""`kubectl slurm` as people use it, on a real cluster: look, drain, read logs, pack an archive."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from operator_rig import install, until
from test_cluster_kind import Demo

from slurm_local import slurm_cluster
from slurm_operator.cli.kubectl import kubectl_slurm
from testing.examples import example

pytestmark = pytest.mark.timeout(900)

# The program as it is installed beside this Python.
PROGRAM = Path(sys.executable).parent / "kubectl-slurm"


# Every command that can speak to programs, and in what order it makes sense. `logs` prints an object per line.
FOR_PROGRAMS = (
    "status -n {ns}", "top --once -n {ns}", "explain cluster/demo -n {ns}", "doctor -n {ns}", "logs demo --tail 2 -n {ns}",
    "plan -f {dir}/demo.json -n {ns}", "drain demo-cpu-0 -n {ns}", "undrain demo-cpu-0 -n {ns}",
    "bundle -f {dir}/bundle.tar.gz -n {ns}", "record take {dir}/taken.jsonl -n {ns}",
    "record fetch {dir}/fetched.jsonl -n slurm-operator", "record list {dir}/fetched.jsonl", "record replay {dir}/fetched.jsonl",
)  # fmt: skip


class Commands:
    """`kubectl slurm` in the namespace of one Cluster."""

    def __init__(self, demo: Demo) -> None:
        self.demo = demo

    def __call__(self, *arguments: str, good: bool = True) -> str:
        where = ("-n", self.demo.namespace, "--kubeconfig", str(self.demo.cluster.kubeconfig))
        done = subprocess.run(
            [PROGRAM, *arguments, *where], text=True, capture_output=True, check=False, timeout=120
        )
        assert (done.returncode == 0) == good, f"{arguments}: {done.stdout}\n{done.stderr}"
        return done.stdout

    def json(self, *arguments: str):
        return json.loads(self(*arguments, "-o", "json"))


@pytest.fixture(scope="module")
def demo(cluster, operator_image) -> Iterator[Demo]:
    """One Cluster for all tests here; its workers leave the machines to others afterwards."""
    install(cluster, operator_image)
    made = Demo(cluster, example("cluster-smallest"))
    made.wait_ready()
    until(lambda: made.status.get("nodes", {}).get("idle") == 2, 120, made.told)
    yield made
    cluster.kubectl("delete", "cluster", "demo", "-n", made.namespace, "--timeout=180s", timeout_s=200)


@pytest.fixture(scope="module")
def slurm(demo) -> Commands:
    return Commands(demo)


def node(demo: Demo, name: str) -> str:
    return demo.run("scontrol", "show", "node", "--oneliner", name)


def test_one_screen_says_how_the_cluster_is(slurm, demo):
    text = slurm("status")

    assert f"Cluster {demo.namespace}/demo   Ready   Slurm 26." in text
    assert "slurmctld    Controller demo   1/1" in text
    assert "demo-cpu-[0-1]" in text
    assert "\x1b" not in text, "no colours without a terminal"
    [found] = slurm.json("status")
    assert (found["node_sets"][0]["registered"], found["unreachable"]) == (2, "")


def test_a_humans_drain_stands_until_that_human_lifts_it(slurm, demo):
    on = next(row["kube_node"] for row in slurm.json("top", "--once")["nodes"] if row["name"] == "demo-cpu-1")

    assert "demo-cpu-0 drained; no job is there." in slurm("drain", "demo-cpu-0", "--reason", "new cables")
    assert "Reason=admin: new cables" in node(demo, "demo-cpu-0")
    assert "demo-cpu-1 drained" in slurm("drain", "--on", on)
    demo.run("scontrol", "update", "nodename=demo-cpu-1", "state=drain", "reason=bad disk")

    until(lambda: demo.status.get("nodes", {}).get("drained") == 2, 60, demo.told)
    refused = slurm("undrain", "demo-cpu-[0-1]", good=False)
    assert "demo-cpu-0 undrained" in refused
    assert "demo-cpu-1 is drained" in refused
    assert "'bad disk'. You are 'admin'" in refused
    assert "DRAIN" not in node(demo, "demo-cpu-0").split("State=")[1].split()[0]
    assert "DRAIN" in node(demo, "demo-cpu-1").split("State=")[1].split()[0]
    assert "demo-cpu-1 undrained" in slurm("undrain", "demo-cpu-1", "--force")


@pytest.mark.full
def test_waiting_jobs_are_shown_with_the_reason_and_running_ones_with_their_nodes(slurm, demo):
    until(lambda: demo.status.get("nodes", {}).get("idle") == 2, 120, demo.told)
    submit = ("sbatch", "--parsable", "--output=/dev/null", "--exclusive")
    running = int(demo.run(*submit, "--nodes=2", "--wrap=sleep 600").strip())
    until(lambda: "RUNNING" in demo.run("squeue", "--noheader", "--format=%T"), 60)
    waiting = int(demo.run(*submit, "--wrap=true").strip())
    until(lambda: "(Resources)" in demo.run("squeue", "--noheader", "--format=%R"), 60)

    [found] = slurm.json("status")
    frame = slurm.json("top", "--once")
    drained = slurm("drain", "demo-cpu-0")
    slurm("undrain", "demo-cpu-0")

    assert [(one["reason"], one["jobs"]) for one in found["waiting_jobs"]] == [("Resources", [waiting])]
    assert next((row["job_id"], row["nodes"]) for row in frame["jobs"]) == (running, "demo-cpu-[0-1]")
    assert f"1 job still there: {running}." in drained
    demo.run("scancel", str(running))


@pytest.mark.full
def test_logs_are_found_by_cluster_set_and_worker_with_their_sidecars(slurm):
    lines = [json.loads(line) for line in slurm("logs", "demo", "--tail", "3", "-o", "json").splitlines()]

    assert {line["pod"] for line in lines} >= {"demo-controller-0", "demo-cpu-0", "demo-cpu-1"}
    assert {line["container"] for line in lines if line["pod"] == "demo-cpu-0"} >= {"slurmd", "logfile"}
    assert "slurmctld" in slurm("logs", "demo", "-d", "slurmctld", "--tail", "1")
    assert "demo-cpu-1" not in slurm("logs", "demo-cpu-0", "--tail", "1")


@pytest.mark.full
def test_the_local_cluster_fits_and_an_archive_of_it_holds_no_key(slurm, demo, tmp_path):
    found = {one["check"]: one["level"] for one in slurm.json("doctor")}
    to = tmp_path / "bundle.tar.gz"

    slurm("bundle", "-f", str(to))

    assert found["Nodes"] == found["DNS"] == found["CRDs"] == found["Operator"] == "ok"
    assert "FAIL" not in found.values()
    packed = subprocess.run(["tar", "xzOf", to], capture_output=True, check=True).stdout.decode()
    secrets = json.loads(demo.get("secrets", "-o", "json"))["items"]
    keys = [value for secret in secrets for value in (secret.get("data") or {}).values() if len(value) > 20]
    assert len(keys) >= 2
    assert not any(key in packed for key in keys)
    shown = subprocess.run(
        [PROGRAM, "status", "--bundle", to], text=True, capture_output=True, check=False
    ).stdout
    assert f"Cluster {demo.namespace}/demo" in shown


@pytest.mark.full
def test_every_command_speaks_to_programs(demo, recording, tmp_path):
    spec = {"nodeSets": [{"name": "cpu", "replicas": 3}]}
    (tmp_path / "demo.json").write_text(json.dumps(demo.manifest(spec)))
    lines = [line.format(ns=demo.namespace, dir=tmp_path) for line in FOR_PROGRAMS]
    assert {command_of(line) for line in lines} == set(speaking(kubectl_slurm))

    for line in lines:
        done = subprocess.run(
            [PROGRAM, *line.split(), "-o", "json"], text=True, capture_output=True, check=False, timeout=180,
            env={**os.environ, "KUBECONFIG": str(demo.cluster.kubeconfig)},
        )  # fmt: skip
        said = done.stdout.splitlines() if line.startswith("logs") else [done.stdout]

        assert done.returncode == 0, f"{line}: {done.stdout}\n{done.stderr}"
        assert all(json.loads(one) for one in said), line
    assert all(plan["is_same"] for plan in json.loads(said[0])), "the last one replays"


def command_of(line: str) -> str:
    words = line.split()
    return " ".join(words[: 2 if words[0] == "record" else 1])


def speaking(group: click.Group, prefix: str = "") -> Iterator[str]:
    """The commands that take `-o json`."""
    for name in group.list_commands(click.Context(group)):
        command = group.get_command(click.Context(group), name)
        if isinstance(command, click.Group):
            yield from speaking(command, f"{prefix}{name} ")
        elif any("--output" in each.opts for each in command.params):
            yield f"{prefix}{name}"


@pytest.fixture
def recording(demo, operator_image) -> Iterator[None]:
    """The operator keeps its decisions meanwhile."""
    demo.cluster.apply(slurm_cluster.installation(operator_image, is_recording=True))
    slurm_cluster.wait_started(demo.cluster, "slurm-operator")
    yield
    demo.cluster.apply(slurm_cluster.installation(operator_image))
    slurm_cluster.wait_started(demo.cluster, "slurm-operator")
