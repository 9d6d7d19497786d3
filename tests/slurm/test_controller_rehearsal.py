"""What a Controller mounts and rehearses, taken by a real slurmctld as it would be in the pod."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from parser_box import ADDRESS

from slurm_operator.reconcilers.controller.configuration.files import Files, files_of, refusal, wanted_files
from slurm_operator.reconcilers.controller.configuration.rehearsal import Verdict, config_map, judged
from slurm_operator.reconcilers.controller.configuration.slurm_conf import state_directory
from slurm_operator.reconcilers.controller.daemon.trial_scripts import (
    MOUNTED,
    STATE_VARIABLE,
    TRY_OUT,
    TRY_OUT_FIRST,
)
from slurm_operator.reconcilers.controller.observe import observe
from testing.boxed.box import Box, box_in
from testing.boxed.daemon import wait_until
from testing.controllers import KEY, child, controller, files, thing, world

SLURM = (401, 401)
GPU = thing("NodeSet", "gpu", {"controllerRef": {"name": "slurm"}, "partition": {"enabled": True, "config": "Default=YES"}})  # fmt: skip
BOOKS = thing("Accounting", "books")


@pytest.fixture(scope="module")
def box(rootfs: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Box]:
    """The rehearsal pod: the controller's host name, and just the directories that the pod has volumes for."""
    with box_in(tmp_path_factory.mktemp("rehearsal"), rootfs, "slurm-controller-0") as box:
        wait_until(box.path("/usr/bin/scontrol").exists, "the box to have its own files")
        # slurmctld looks up names only where there is more than the loopback; a pod always has more.
        box.run("ip", "link", "add", "one", "type", "veth", "peer", "name", "two")
        box.run("ip", "address", "add", f"{ADDRESS}/24", "dev", "one")
        box.run("ip", "link", "set", "one", "up")
        box.run("ip", "link", "set", "two", "up")
        box.append("/etc/hosts", f"{ADDRESS} slurm-controller-0")
        yield box


def rehearse(box: Box, made: Files, state: str) -> Verdict:
    writable = ["/run/slurmctld", "/var/log/slurm", state]
    box.run("rm", "-rf", "/etc/slurm", *writable)
    box.run("mkdir", "-p", "/etc/slurm", *writable)
    box.run("chown", "-R", "401:401", "/run", *writable)
    for name, text in made.texts.items():
        box.path(f"/etc/slurm/{name}").write_text(text)
    box.write_secret("/etc/slurm/slurm.key", b"x" * 1024, SLURM)
    box.write_secret("/etc/slurm/jwt.key", b"y" * 32, SLURM)
    script = TRY_OUT.replace("/dev/termination-log", "/run/verdict")
    box.run("sh", "-c", script, user=SLURM, check=False, timeout_s=90)
    return judged(box.path("/run/verdict").read_text())


def verdict(box: Box, made) -> Verdict:
    seen = observe(KEY, made)
    found = wanted_files(seen)
    assert refusal(seen, found) is None, "our own check lets it pass"
    return rehearse(box, files_of(child(config_map(seen, found))), state_directory(seen.controller))


@pytest.mark.parametrize(
    "made",
    [
        pytest.param(world(controller()), id="defaults"),
        pytest.param(world(controller({"metrics": {"enabled": True}}), GPU), id="a partition and metrics"),
        pytest.param(world(controller({"accountingRef": {"name": "books"}, "extraConf": "AccountingStorageEnforce=limits,qos\nPriorityType=priority/multifactor\n"}), BOOKS), id="accounting is not asked for"),
        pytest.param(world(controller({"ha": {"enabled": True}, "persistence": {"enabled": True, "existingClaim": "c"}})), id="backups are left alone"),
        pytest.param(world(controller({"extraConf": "SlurmctldParameters=Idle_On_Node_Suspend\nAuthInfo=cred_expire=5\nSlurmctldPort=7817\n"})), id="words of both sides"),
        pytest.param(world(controller({"configFileRefs": [{"name": "f"}]}), files("f", {"gres.conf": "AutoDetect=off\n", "cgroup.conf": "CgroupPlugin=disabled\n"})), id="files of the user"),
    ],
)  # fmt: skip
def test_slurmctld_starts_on_what_we_render(box, made):
    assert verdict(box, made) == Verdict(is_good=True)


@pytest.mark.parametrize(
    ("extra", "says"),
    [
        ("JobSubmitPlugins=job_submit/nonsense\n", "job_submit"),
        ("PartitionName=p Nodes=nowhere\n", "Invalid node names in partition p"),
        ("TopologyPlugin=topology/tree\n", "topology"),
        ("SchedulerType=sched/nonsense\n", "sched"),
    ],
)
def test_what_only_slurmctld_notices_is_refused_in_its_own_words(box, extra, says):
    found = verdict(box, world(controller({"extraConf": extra})))

    assert not found.is_good
    assert says in found.message


def first_trial(box: Box, made, *left: str) -> str:
    """What the container before slurmctld says to the files that it would start with; `left` is in its state."""
    seen = observe(KEY, made)
    found = wanted_files(seen)
    assert refusal(seen, found) is None, "our own check lets it pass"
    state = state_directory(seen.controller)
    mine = ["/run/slurmctld", "/var/log/slurm", "/etc/slurm", state]
    box.run("rm", "-rf", *mine, MOUNTED)
    box.run("mkdir", "-p", *mine, f"{MOUNTED}/etc", f"{MOUNTED}/state")
    box.run("chown", "-R", "401:401", "/run", *mine)
    for name, text in found.texts.items():
        box.path(f"{MOUNTED}/etc/{name}").write_text(text)
    box.write_secret(f"{MOUNTED}/etc/slurm.key", b"x" * 1024, SLURM)
    box.write_secret(f"{MOUNTED}/etc/jwt.key", b"y" * 32, SLURM)
    for name in left:
        box.path(f"{MOUNTED}/state/{name}").write_text("")
    box.path("/run/verdict").unlink(missing_ok=True)
    script = TRY_OUT_FIRST.replace("/dev/termination-log", "/run/verdict")
    box.run("env", f"{STATE_VARIABLE}={state}", "sh", "-c", script, user=SLURM, check=False, timeout_s=90)
    return box.path("/run/verdict").read_text()


CONTINUED = "AccountingStorageEnforce=\\\nlimits,\\\nqos\nSchedulerType=sched/backfill\n"
NONSENSE = controller({"extraConf": "SchedulerType=sched/nonsense\n"})


@pytest.mark.parametrize(
    "made",
    [
        pytest.param(world(controller({"metrics": {"enabled": True}}), GPU), id="a partition and metrics"),
        pytest.param(world(controller({"accountingRef": {"name": "books"}, "extraConf": CONTINUED}), BOOKS), id="accounting is not asked for"),
        pytest.param(world(controller({"ha": {"enabled": True}, "persistence": {"enabled": True, "existingClaim": "c"}})), id="backups are left alone"),
        pytest.param(world(controller({"extraConf": "slurmctldport = 7817\nStateSaveLocation=/nowhere\n"})), id="where it listens and keeps its state"),
    ],
)  # fmt: skip
def test_a_first_slurmctld_is_let_start_on_what_we_render(box, made):
    assert first_trial(box, made) == "good\n"


def test_what_keeps_a_first_slurmctld_from_starting_is_told_of_the_files_that_it_had(box):
    made = world(NONSENSE)

    digest, _, told = first_trial(box, made).partition("\n")
    assert digest == f"config_digest={wanted_files(observe(KEY, made)).digest}"
    found = judged(told)
    assert not found.is_good
    assert "sched" in found.message
    again = first_trial(box, made).partition("\n")[2]
    assert judged(again).message == found.message, "a second time, as after a pause of the kubelet"


@pytest.mark.parametrize(
    ("left", "passes"),
    [
        pytest.param(["clustername", "job_state"], True, id="a slurmctld has run here"),
        pytest.param(["lost+found"], False, id="a new disk"),
    ],
)
def test_a_slurmctld_that_finds_its_state_is_never_held_up(box, left, passes):
    assert (first_trial(box, world(NONSENSE), *left) == "good\n") is passes
