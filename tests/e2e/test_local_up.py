"""`slurm-operator up` as a newcomer runs it."""

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from slurm_local import stop
from slurm_local.paths import Paths
from slurm_local.progress import Quiet
from slurm_local.start import Wanted
from slurm_operator import wire

NAME = f"e2e-up-{os.getpid()}"


def program(*args: str, check: bool = True, stdin: str = "") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "slurm_operator.cli", *args]
    done = subprocess.run(command, input=stdin, capture_output=True, text=True, check=False, timeout=280)
    assert not check or done.returncode == 0, done.stdout + done.stderr
    return done


@pytest.fixture(scope="module")
def first_words(wanted: Wanted, paths: Paths) -> Iterator[str]:
    """What the first `up` said; `wanted` has made everything that takes minutes."""
    try:
        yield program("up", "--name", NAME).stderr
    finally:
        stop.down(NAME, paths, Quiet())


def suggested(first_words: str) -> list[str]:
    return [line.strip() for line in first_words.partition("Try:\n")[2].splitlines()]


def typed(line: str) -> subprocess.CompletedProcess[str]:
    """As somebody pastes it into a shell elsewhere."""
    return subprocess.run(
        ["bash", "-c", line],
        cwd="/",
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=280,
    )


def test_up_ends_with_a_job_that_ran_its_kubeconfig_and_things_to_try(first_words: str, paths: Paths) -> None:
    assert "The first job ran on: demo-cpu-0 demo-cpu-1" in first_words
    assert "MiB of memory" in first_words
    assert "started in " in first_words.lower()
    assert f"use the kubeconfig {paths.cluster(NAME) / 'kubeconfig'}" in first_words
    assert len(suggested(first_words)) == 6


def test_what_up_suggests_works_as_it_is_printed(first_words: str) -> None:
    *harmless, down = suggested(first_words)

    assert " down " in down
    for line in harmless:
        done = typed(line)
        assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"


def test_the_shell_has_a_slurm_in_it(first_words: str) -> None:
    shown = program("local", "shell", "--name", NAME, "sinfo", "--noheader", "--format=%D %T").stdout

    assert shown == "2 idle\n"


def test_the_webhook_answers_before_anything_is_stored(first_words: str) -> None:
    long = "a-cluster-with-quite-a-long-name-for-slurm"
    manifest = {
        "apiVersion": "slinky.slurm.net/v1beta1",
        "kind": "Cluster",
        "metadata": {"name": long, "namespace": "slurm"},
        "spec": {},
    }
    command = ["local", "kubectl", "--name", NAME, "create", "--dry-run=server", "-f", "-"]

    refused = program(*command, check=False, stdin=wire.encode(manifest).decode())

    assert refused.returncode != 0
    assert "longer than 40 characters; give it a shorter clusterName" in refused.stderr


def test_the_status_is_one_record_for_programs(first_words: str) -> None:
    found = wire.decode_any(program("local", "status", "--name", NAME, "-o", "json").stdout)

    assert found["is_running"]
    parts = {pod["name"].split("-")[1] for pod in found["slurm_pods"]}
    assert {"accounting", "controller", "cpu", "login", "restapi"} <= parts
    assert all(component["is_running"] for component in found["components"])


def test_up_again_says_that_it_is_up_and_changes_nothing(first_words: str, paths: Paths) -> None:
    before = (paths.cluster(NAME) / "state.json").read_bytes()

    assert f"Cluster {NAME} is up already." in program("up", "--name", NAME).stderr

    assert (paths.cluster(NAME) / "state.json").read_bytes() == before


def test_the_log_of_a_component_can_be_read_and_an_unknown_one_is_explained(first_words: str) -> None:
    assert "CoreDNS-" in program("local", "logs", "--name", NAME, "coredns").stdout

    refused = program("local", "logs", "--name", NAME, "corednss", check=False)

    assert refused.returncode != 0
    assert "There are: containerd-node-1" in refused.stderr


def test_status_of_a_cluster_that_does_not_exist_fails_and_says_so() -> None:
    done = program("local", "status", "--name", "nowhere", check=False)

    assert done.returncode == 1
    assert done.stdout == "Cluster nowhere is not running.\n"


@pytest.mark.full
def test_fake_nodes_are_ready_beside_real_ones(paths: Paths) -> None:
    name = f"e2e-fake-{os.getpid()}"
    try:
        program("up", "--name", name, "--kubernetes-only", "--nodes", "1", "--fake-nodes", "200")
        found = wire.decode_any(program("local", "status", "--name", name, "-o", "json").stdout)
        assert len(found["nodes"]) == 201
        assert all(node["is_ready"] for node in found["nodes"])

        program(
            "local",
            "kubectl",
            "--name",
            name,
            "create",
            "deployment",
            "many",
            "--image=any",
            "--replicas=300",
        )
        on_fakes = '{"spec":{"template":{"spec":{"nodeSelector":{"type":"fake"},"tolerations":[{"operator":"Exists"}]}}}}'
        program("local", "kubectl", "--name", name, "patch", "deployment", "many", "-p", on_fakes)
        program("local", "kubectl", "--name", name, "rollout", "status", "deployment/many", "--timeout=120s")
    finally:
        stop.down(name, paths, Quiet())
