"""auth/munge with real daemons: munged as the sidecar of pods starts it, and jobs of users through it."""

import json
import os
import secrets
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from slurm_operator.api.shared.auth import Auth
from slurm_operator.api.shared.config_source import ConfigSource
from slurm_operator.api.shared.names import MUNGE_KEY_FILE, MUNGE_UID
from slurm_operator.manifests.builders import munge
from testing.boxed.box import Box, box_in
from testing.boxed.conf import CONTROLLER
from testing.boxed.daemon import Daemon
from testing.boxed.head import SLURM, TESTER
from testing.daemons import SlurmDaemons

MUNGED = (MUNGE_UID, MUNGE_UID)
MUNGE = {"AuthType": "auth/munge", "CredType": "cred/munge", "AuthInfo": "cred_expire=5"}


def munged(box: Box, key: bytes, log: Path) -> Daemon:
    """The sidecar of one pod: its own command and user, and volumes as a kubelet makes them."""
    script = munge.sidecar(Auth(), "image")["command"]
    for mount in munge.sidecar(Auth(), "image")["volumeMounts"]:
        path = box.path(mount["mountPath"])
        path.mkdir(parents=True, exist_ok=True)
        path.chmod(0o777)
    (box.path("/mnt/munge/..data")).mkdir()
    box.path(f"/mnt/munge/..data/{MUNGE_KEY_FILE}").write_bytes(key)
    box.path(f"/mnt/munge/{MUNGE_KEY_FILE}").symlink_to(f"..data/{MUNGE_KEY_FILE}")
    socket = box.path(munge.SOCKET)
    daemon = Daemon(box, script, log=log, ready=socket.is_socket, user=MUNGED)
    daemon.name = "munged"
    return daemon


@pytest.fixture
def sidecars() -> Iterator[dict[str, Daemon]]:
    """munged of each box; looked after until the boxes have ended."""
    started: dict[str, Daemon] = {}
    yield started
    for daemon in started.values():
        daemon.close()


@pytest.fixture
def start(sidecars: dict[str, Daemon], tmp_path_factory: pytest.TempPathFactory) -> Callable[[Box], None]:
    """Starts munged in a box, with one key for all of them."""
    key, logs = secrets.token_bytes(1024), tmp_path_factory.mktemp("munged")

    def start(box: Box) -> None:
        if box.hostname != CONTROLLER:
            # As in pods: slurmd and sackd that have one use auth/slurm.
            box.path("/etc/slurm/slurm.key").unlink(missing_ok=True)
        sidecars[box.hostname] = munged(box, key, logs / box.hostname)
        sidecars[box.hostname].start()

    return start


@pytest.fixture
def slurm(start: Callable[[Box], None], new_slurm: Callable[..., SlurmDaemons]) -> SlurmDaemons:
    return new_slurm(settings=MUNGE, beside=start)


def test_a_munge_cluster_runs_jobs_of_users(slurm: SlurmDaemons) -> None:
    for name in ("w-0", "w-1"):
        slurm.add_worker(name)

    said = slurm.run("srun", "--nodes=2", "--chdir=/tmp", "id", "--user", user=TESTER)
    job = slurm.submit("srun hostname")
    slurm.wait_for(lambda: slurm.job_state(job) == "COMPLETED", "the batch job to end")

    assert said.split() == [str(TESTER[0])] * 2
    assert "AuthType                = auth/munge" in slurm.run("scontrol", "show", "config")


def test_tokens_work_beside_munge_and_slurmrestd_needs_none(slurm: SlurmDaemons) -> None:
    request = urllib.request.Request(
        f"{slurm.rest_url}/slurm/v0.0.44/ping/",
        headers={"X-SLURM-USER-NAME": "slurm", "X-SLURM-USER-TOKEN": slurm.token()},
    )

    with urllib.request.urlopen(request, timeout=10) as answer:
        assert json.load(answer)["pings"][0]["responding"] is True


def test_a_munged_that_was_killed_is_started_again_and_jobs_go_on(
    slurm: SlurmDaemons, sidecars: dict[str, Daemon]
) -> None:
    """The kubelet starts it again in the same volumes: a socket and a lock of the previous one are in the way."""
    slurm.add_worker("w-0")

    sidecars["w-0"].kill()
    sidecars["w-0"].start()

    assert slurm.run("srun", "--chdir=/tmp", "hostname", user=TESTER) == "w-0\n"


def test_the_key_is_copied_for_nobody_else_to_read(slurm: SlurmDaemons) -> None:
    shown = slurm.run("stat", "--format=%a %u", f"/run/munge-key/{MUNGE_KEY_FILE}")

    assert shown == f"400 {MUNGE_UID}\n"


def test_sackd_fetches_the_configuration_where_people_log_in(
    slurm: SlurmDaemons, sidecars: dict[str, Daemon], start: Callable[[Box], None]
) -> None:
    """As the login pod does: without a Slurm key, sackd as Slurm's user, then jobs of users who log in there."""
    slurm.add_worker("w-0")
    with box_in(slurm.directory, slurm.rootfs, "login-0") as box:
        slurm.head.switch.plug_in(box)
        box.append("/etc/passwd", f"tester:x:{TESTER[0]}:{TESTER[1]}::/tmp:/bin/sh")
        start(box)
        box.path("/run/slurm").mkdir()
        os.chown(box.path("/run/slurm"), *SLURM)
        sackd = Daemon(
            box,
            ["sackd", "-D", "--conf-server", f"{slurm.head.address}:6817"],
            log=slurm.directory / "sackd.log",
            ready=lambda: box.run(*munge.ready(ConfigSource.CONFIGLESS), check=False).returncode == 0,
            user=SLURM,
        )
        sackd.start()

        assert box.run("srun", "--chdir=/tmp", "hostname", user=TESTER).stdout == "w-0\n"

        sackd.stop()
