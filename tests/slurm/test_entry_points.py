"""The image's entry points with real daemons: what pods run, in boxes."""

import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from images.entry.watch import SURE_AFTER_S
from slurm_local.errors import LocalError
from slurm_local.image.images import entry_layer
from slurm_local.image.tars import File, Link
from slurm_operator.manifests.builders.shell import one_word
from slurm_operator.slurm.conf.merge import worker_conf
from testing.boxed.box import Box, box_in
from testing.boxed.head import MYSQL, SLURM
from testing.daemons import SlurmDaemons

ENTRY = "/usr/local/bin/slurm-entry"


def add_entry_points(box: Box) -> Box:
    for name, entry in entry_layer().items():
        path = box.path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        match entry:
            case File(content, mode):
                path.write_bytes(content)
                path.chmod(mode)
            case Link(target):
                path.symlink_to(target)
    return box


def called(box: Box, name: str) -> list[int]:
    return [pid for pid, argv in box.processes() if argv[0] == name]


def ssh_as(slurm: SlurmDaemons, box: Box, user: str, address: str) -> list[str]:
    """The ssh command from beside slurmctld to a user of the box, whose key it has."""
    slurm.run("sh", "-c", "test -e /tmp/key || ssh-keygen -q -t ed25519 -N '' -f /tmp/key")
    box.run("install", "--directory", "--mode=700", f"--owner={user}", f"/keys/{user}")
    box.write_secret(f"/keys/{user}/authorized_keys", slurm.run("cat", "/tmp/key.pub").encode(), (0, 0))
    box.run("chown", "--recursive", user, f"/keys/{user}")
    config = box.path("/etc/ssh/sshd_config.d/keys.conf")
    config.write_text("AuthorizedKeysFile /keys/%u/authorized_keys\n")
    quiet = ["-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null", "-o", "BatchMode=yes"]
    return ["ssh", "-i", "/tmp/key", *quiet, f"{user}@{address}"]


class EntryWorker:
    """A worker that the entry point started."""

    def __init__(self, slurm: SlurmDaemons, rootfs: Path, log: Path, conf: str = "") -> None:
        self.box = add_entry_points(box_in(log.parent, rootfs, "e-0"))
        self.address = slurm.head.switch.plug_in(self.box)
        self.box.write_secret("/etc/slurm/slurm.key", slurm.head.slurm_key, (0, 0))
        conf = conf or "'Features=all Topology='\"$SLINKY_TOPOLOGY\"' Weight=3'"
        arguments = ["-Z", "--conf-server", f"{slurm.head.address}:6817", "--conf", conf]
        env = {"POD_CPUS": "1", "POD_MEMORY": "1000", "SLINKY_TOPOLOGY": "", "SLURMD_WATCH_SECONDS": "1"}
        self.process = self.box.start([ENTRY, "slurmd", *arguments], log, env=env)
        slurm.wait_for(lambda: "IDLE" in slurm.node_states("e-0"), "e-0 to be idle")

    def close(self) -> None:
        self.box.close()
        self.process.wait()


@pytest.fixture
def worker(slurm: SlurmDaemons, rootfs: Path, tmp_path: Path) -> Iterator[EntryWorker]:
    worker = EntryWorker(slurm, rootfs, tmp_path / "slurmd.log")
    yield worker
    worker.close()


@pytest.fixture
def own_slurmctld(new_slurm: Callable[..., SlurmDaemons], tmp_path: Path) -> Iterator[SlurmDaemons]:
    """A Slurm whose slurmctld was started by the entry point, not in the foreground."""
    slurm = new_slurm()
    slurm.slurmctld.stop()
    add_entry_points(slurm.head.box)
    process = slurm.head.box.start([ENTRY, "slurmctld"], tmp_path / "entry.log", user=SLURM)
    slurm.wait_for(slurm.head.slurmctld_is_ready, "slurmctld to answer")
    yield slurm
    slurm.head.box.close()
    process.wait()


def test_a_worker_sets_aside_what_is_not_its_own(slurm, worker):
    shown = slurm.run("scontrol", "show", "node", "e-0")

    assert "MemSpecLimit=" in shown
    assert "Weight=3" in shown
    assert "AvailableFeatures=all" in shown


@pytest.mark.parametrize(
    ("conf", "shown_as"),
    [
        pytest.param("CPUs=1 RealMemory=1000", "CPUTot=1", id="as its limits are"),
        pytest.param("CPUs=4 RealMemory=1000", "CPUTot=4", id="more than its limits"),
        pytest.param("Sockets=2 CoresPerSocket=2 RealMemory=1000", "CPUTot=4", id="in sockets and cores"),
    ],
)
def test_a_worker_sets_aside_nothing_twice(slurm, rootfs, tmp_path, conf, shown_as):
    worker = EntryWorker(slurm, rootfs, tmp_path / "slurmd.log", f"'Features=all {conf}'")
    shown = slurm.run("scontrol", "show", "node", "e-0")
    worker.close()

    assert f"CPUEfctv=1 {shown_as}" in shown
    assert "RealMemory=1000" in shown
    assert "MemSpecLimit=" not in shown


def test_a_worker_says_all_that_its_pod_was_given(slurm, rootfs, tmp_path):
    conf = one_word(worker_conf("all", 'Weight=3 Reason="not $HOME, it\'s two words"'))
    worker = EntryWorker(slurm, rootfs, tmp_path / "slurmd.log", conf)
    [command] = [argv for _, argv in worker.box.processes() if argv[0] == "slurmd"]
    shown = slurm.run("scontrol", "show", "node", "e-0")
    worker.close()

    items = command[command.index("--conf") + 1]
    assert items.startswith('Features=all Reason="not $HOME, it\'s two words" Weight=3 ')
    assert "Weight=3" in shown
    assert "AvailableFeatures=all" in shown


def test_a_worker_keeps_its_job_through_a_reconfigure_that_changes_its_process(slurm, worker):
    job = slurm.submit("sleep 600", "--nodelist=e-0")
    slurm.wait_for(lambda: slurm.job_state(job) == "RUNNING", f"job {job} to run")
    before = called(worker.box, "slurmd")
    slurm.reconfigure()
    slurm.wait_for(lambda: called(worker.box, "slurmd") not in ([], before), "slurmd to replace itself")

    slurm.wait_for(lambda: len(called(worker.box, "slurmd")) == 1, "the old slurmd to end")
    assert slurm.job_state(job) == "RUNNING"
    assert worker.process.poll() is None


def test_a_forgotten_worker_registers_again(slurm, worker):
    slurm.run("scontrol", "delete", "nodename=e-0")

    slurm.wait_for(lambda: "IDLE" in slurm.node_states("e-0"), "e-0 to come back")
    assert worker.process.poll() is None


def test_a_leaving_worker_drains_itself_and_waits_for_its_job(slurm, worker, tmp_path):
    job = slurm.submit("while test ! -e /tmp/finish; do sleep 0.2; done", "--nodelist=e-0")
    slurm.wait_for(lambda: slurm.job_state(job) == "RUNNING", f"job {job} to run")
    env = {"POD_UID": "4f1c-22"}
    leaving = worker.box.start([ENTRY, "leave"], tmp_path / "leave.log", env=env)
    slurm.wait_for(lambda: "DRAIN" in slurm.node_states("e-0"), "e-0 to be drained")

    shown = slurm.run("scontrol", "show", "node", "e-0")
    assert "slurm-operator: PodTerminating: the pod is asked to end (pod 4f1c-22)" in shown
    assert leaving.poll() is None
    worker.box.path("/tmp/finish").touch()
    assert leaving.wait(timeout=60) == 0
    assert slurm.job_state(job) == "COMPLETED"


def test_a_leaving_worker_keeps_somebody_elses_reason(slurm, worker):
    slurm.run("scontrol", "update", "nodename=e-0", "state=drain", "reason=disk is loud")
    worker.box.run(ENTRY, "leave")

    assert "Reason=disk is loud" in slurm.run("scontrol", "show", "node", "e-0")


def test_a_leaving_worker_is_not_registered_again(slurm, worker):
    worker.box.run(ENTRY, "leave")
    slurm.run("scontrol", "delete", "nodename=e-0")

    with pytest.raises(Exception, match="e-0 to come back"):
        slurm.wait_for(
            lambda: "GONE" not in slurm.node_states("e-0"), "e-0 to come back", deadline_s=SURE_AFTER_S + 6
        )


def test_ssh_to_a_worker_is_for_users_with_a_job_there(slurm, rootfs, tmp_path):
    box = add_entry_points(box_in(tmp_path, rootfs, "e-0"))
    address = slurm.head.switch.plug_in(box)
    box.write_secret("/etc/slurm/slurm.key", slurm.head.slurm_key, (0, 0))
    box.append("/etc/passwd", "tester:x:1000:1000::/tmp:/bin/sh")
    box.append("/etc/group", "tester:x:1000:")
    box.append("/etc/shadow", "tester:*:20000::::::")
    as_root, as_tester = ssh_as(slurm, box, "root", address), ssh_as(slurm, box, "tester", address)
    # A pod that wants sshd brings its configuration, which is then a mount.
    box.run("mount", "--bind", "/etc/ssh/sshd_config", "/etc/ssh/sshd_config")
    arguments = ["-Z", "--conf-server", f"{slurm.head.address}:6817", "--conf", "Features=all"]
    process = box.start([ENTRY, "slurmd", *arguments], tmp_path / "slurmd.log")

    def lets_in(ssh: list[str]) -> bool:
        return slurm.head.box.run(*ssh, "true", check=False).returncode == 0

    slurm.wait_for(lambda: lets_in(as_root), "sshd to let root in")
    refused = slurm.head.box.run(*as_tester, "true", check=False)
    box.close()
    process.wait()

    assert refused.returncode != 0
    assert "no active jobs on this node" in refused.stderr


def test_the_container_ends_with_slurmd_and_says_how(slurm, worker):
    slurmd = called(worker.box, "slurmd")[0]
    worker.box.run("kill", f"-{signal.SIGKILL.value}", str(slurmd))

    assert worker.process.wait(timeout=30) == 128 + signal.SIGKILL


def test_a_terminated_entry_point_ends_slurmd(slurm, worker):
    [entry] = [pid for pid, argv in worker.box.processes() if ENTRY in argv]
    worker.box.run("kill", str(entry))
    worker.process.wait(timeout=30)

    assert called(worker.box, "slurmd") == []


def test_a_broken_configuration_does_not_end_slurmctld(own_slurmctld):
    slurm = own_slurmctld
    conf = slurm.head.box.path("/etc/slurm/slurm.conf")
    good = conf.read_text()
    slurm.head.box.path("/tmp/good.conf").write_text(good)
    conf.write_text(good + "Nonsense=1\n")
    env = {"SLURM_CONF": "/tmp/good.conf"}

    refused = slurm.head.box.run("scontrol", "reconfigure", env=env, check=False)

    assert refused.returncode != 0
    assert "UP" in slurm.head.box.run("scontrol", "ping", env=env).stdout
    conf.write_text(good)
    slurm.reconfigure()
    assert "UP" in slurm.run("scontrol", "ping")


def test_slurmctld_that_was_killed_before_it_saved_usage_goes_on_with_its_jobs(new_slurm, tmp_path):
    slurm = new_slurm(accounting=True)
    box = add_entry_points(slurm.head.box)
    slurm.add_worker("w-0")
    job = slurm.submit("sleep 600")
    slurm.wait_for(lambda: slurm.job_state(job) == "RUNNING", "the job to run")
    state = "/var/spool/slurmctld/state"
    slurm.wait_for(lambda: "job_state.old" in slurm.run("ls", state), "the job to be saved as running")
    slurm.slurmctld.kill()
    with pytest.raises(LocalError, match="No Assoc usage file"):
        slurm.slurmctld.start()

    process = box.start([ENTRY, "slurmctld"], tmp_path / "entry.log", user=SLURM)

    slurm.wait_for(slurm.head.slurmctld_is_ready, "slurmctld to answer")
    assert slurm.job_state(job) == "RUNNING"
    box.close()
    process.wait()


def test_a_login_pod_lets_users_in_and_follows_the_configuration(slurm, rootfs, tmp_path):
    box = add_entry_points(box_in(tmp_path, rootfs, "login-0"))
    address = slurm.head.switch.plug_in(box)
    box.write_secret("/etc/slurm/slurm.key", slurm.head.slurm_key, SLURM)
    ssh = ssh_as(slurm, box, "root", address)
    options = f"--conf-server {slurm.head.address}:6817"
    login = box.start([ENTRY, "login"], tmp_path / "login.log", env={"SACKD_OPTIONS": options})

    def answers(*command: str) -> bool:
        return slurm.head.box.run(*ssh, *command, check=False).returncode == 0

    slurm.wait_for(lambda: answers("scontrol", "ping"), "the login pod to reach slurmctld")
    assert "w-0" in slurm.run(*ssh, "srun", "--nodelist=w-0", "hostname")

    slurm.write_config({"SlurmdTimeout": "77"})
    slurm.reconfigure()
    slurm.wait_for(
        lambda: answers("grep", "-r", "SlurmdTimeout=77", "/run/slurm/conf"), "the new configuration"
    )
    slurm.write_config()
    slurm.reconfigure()
    box.close()
    login.wait()


def test_the_database_serves_the_account_that_the_pod_asks_for(new_slurm, tmp_path):
    slurm = new_slurm()
    box = add_entry_points(slurm.head.box)
    box.run("install", "--directory", "--mode=777", "/var/lib/mysql", "/run/mysqld")
    password = "o'clock\\"
    env = {"MARIADB_DATABASE": "acct", "MARIADB_USER": "slurm", "MARIADB_PASSWORD": password}
    server = box.start([ENTRY, "mariadb"], tmp_path / "mariadb.log", user=MYSQL, env=env)
    ask = ["mariadb", "--host=127.0.0.1", "--user=slurm", "--execute=SHOW TABLES", "acct"]

    def answers() -> "subprocess.CompletedProcess[str]":
        return box.run(*ask, env={"MYSQL_PWD": password}, check=False)

    slurm.wait_for(lambda: answers().returncode == 0, "the database to let us in")
    assert box.run(*ask, env={"MYSQL_PWD": "wrong"}, check=False).returncode != 0
    assert password not in (tmp_path / "mariadb.log").read_text()
    box.close()
    server.wait()
