"""Job steps in a root that all nodes share: made by the populate program, entered by the plugin, on real daemons."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from slurm.test_entry_points import ENTRY, add_entry_points
from slurm_local.image.debian import unpacked
from slurm_local.image.shared_root import (
    COMPILER_ROOT,
    ENTER_ROOT,
    PLUGIN,
    PLUGINS,
    content_root,
    plugin_layer,
)
from slurm_local.image.tars import File
from slurm_local.paths import Paths
from slurm_local.progress import PlainProgress
from slurm_operator.reconcilers.nebius.shared.places import SHARED_ROOT
from testing.boxed.box import Box, box_in
from testing.boxed.head import TESTER
from testing.daemons import SlurmDaemons

JAIL = "/mnt/jail"
ARGUMENTS = SHARED_ROOT
MARKER = "etc/soperator-jail-populated"
LOG = "/var/log/slurm/slurmd.log"
TOKEN = "run/secrets/kubernetes.io/serviceaccount/token"

# What containerd gives a container that asks for nothing, and the two that entering a root needs.
DEFAULTS = "chown,dac_override,fsetid,fowner,mknod,net_raw,setgid,setuid,setfcap,setpcap,net_bind_service,kill,audit_write"


def with_capabilities(*more: str) -> list[str]:
    names = ",".join(f"+{name}" for name in [*DEFAULTS.split(","), *more])
    return ["setpriv", f"--bounding-set=-all,{names}", f"--inh-caps=-all,{names}"]


def mount_in(box: Box, source: Path, inside: str) -> None:
    """A directory of the machine in a box, as a volume is in a pod."""
    box.run("mkdir", "--parents", inside)
    target = f"/proc/{box.pid}/root{inside}"
    subprocess.run(
        ["nsenter", f"--target={box.pid}", "--mount", "mount", "--bind", source, target], check=True, cwd="/"
    )


def add_plugin(box: Box) -> Box:
    for name, entry in plugin_layer(Paths.of(), PlainProgress()).items():
        assert isinstance(entry, File)
        path = box.path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(entry.content)
        path.chmod(entry.mode)
    return box


def populate(box: Box, **variables: str) -> "subprocess.CompletedProcess[str]":
    command = [*with_capabilities("sys_admin", "sys_chroot"), ENTRY, "populate-root"]
    return box.run(*command, env=variables, check=False, timeout_s=200)


@pytest.fixture(scope="module")
def shared(rootfs: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A populated root, as the Job leaves it."""
    directory = tmp_path_factory.mktemp("shared")
    root = directory / "root"
    root.mkdir()
    with add_entry_points(box_in(directory, rootfs, "populate-0")) as box:
        mount_in(box, root, JAIL)
        mount_in(box, content_root(Paths.of(), PlainProgress()).directory, "/usr/share/slurm-operator")
        done = populate(box)
    assert done.returncode == 0, done.stdout + done.stderr
    print(done.stdout)
    with (root / "etc/passwd").open("a") as file:
        file.write("tester:x:1000:1000::/home/tester:/bin/sh\n")
    with (root / "etc/group").open("a") as file:
        file.write("tester:x:1000:\n")
    (root / "home/tester").mkdir()
    os.chown(root / "home/tester", *TESTER)
    return root


class RootWorker:
    """A worker whose entry point tries the shared root before it starts slurmd."""

    def __init__(self, slurm: SlurmDaemons, rootfs: Path, shared: Path, name: str) -> None:
        self.slurm, self.name = slurm, name
        self.process: subprocess.Popen[bytes] | None = None
        self.log = slurm.directory / f"{name}.log"
        self.box = add_plugin(add_entry_points(box_in(slurm.directory, rootfs, name)))
        slurm.head.switch.plug_in(self.box)
        self.box.write_secret("/etc/slurm/slurm.key", slurm.head.slurm_key, (0, 0))
        self.box.path("/container-only").write_text("secret of the container")
        self.box.path(TOKEN).parent.mkdir(parents=True)
        self.box.path(TOKEN).write_text("token")
        self.box.path("/tmp/of-this-node").write_text(f"{name}\n")
        self.box.path(LOG).parent.mkdir(parents=True, exist_ok=True)
        mount_in(self.box, shared, JAIL)

    def start(self, **variables: str) -> "RootWorker":
        arguments = ["-Z", "--conf-server", f"{self.slurm.head.address}:6817", "--conf", "Features=all"]
        command = [*with_capabilities("sys_admin", "sys_chroot"), ENTRY, "slurmd", *arguments]
        env = {"SHARED_ROOT": ARGUMENTS, **variables}
        self.process = self.box.start(command, self.log, env=env)
        return self

    def wait_until_idle(self) -> "RootWorker":
        self.slurm.wait_for(lambda: self._is_idle(), f"{self.name} to be idle; see {self.log}")
        return self

    def _is_idle(self) -> bool:
        assert self.process is not None
        assert self.process.poll() is None, self.log.read_text()
        states = self.slurm.node_states(self.name)
        if "DRAIN" in states:
            self.slurm.run("scontrol", "update", f"nodename={self.name}", "state=resume")
        return "IDLE" in states and "DRAIN" not in states

    def __enter__(self) -> "RootWorker":
        return self

    def __exit__(self, *_: object) -> None:
        self.box.close()
        if self.process is not None:
            self.process.wait()


@pytest.fixture(scope="module")
def cluster(rootfs: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SlurmDaemons]:
    """slurmctld with the plugin in its plugstack.conf; each job has an extern step too."""
    directory = tmp_path_factory.mktemp("cluster")
    with SlurmDaemons(rootfs, directory, settings={"PrologFlags": "Contain", "SlurmdLogFile": LOG}) as slurm:
        add_plugin(slurm.head.box)
        slurm.head.box.path("/etc/slurm/plugstack.conf").write_text(f"required {PLUGIN} {ARGUMENTS}\n")
        slurm.reconfigure()
        yield slurm


@pytest.fixture(scope="module")
def started(cluster: SlurmDaemons, rootfs: Path, shared: Path) -> Iterator[tuple[RootWorker, RootWorker]]:
    with (
        RootWorker(cluster, rootfs, shared, "s-0") as first,
        RootWorker(cluster, rootfs, shared, "s-1") as second,
    ):
        yield first.start(), second.start()


@pytest.fixture
def workers(started: tuple[RootWorker, RootWorker]) -> tuple[RootWorker, RootWorker]:
    return started[0].wait_until_idle(), started[1].wait_until_idle()


def run_on(worker: RootWorker, script: str, user: tuple[int, int] | None = TESTER) -> str:
    """What a step on that worker prints."""
    command = ["srun", f"--nodelist={worker.name}", "--chdir=/tmp", "sh", "-c", script]
    return worker.slurm.run(*command, user=user)


def test_what_a_job_writes_to_etc_on_one_node_is_there_on_the_other(workers):
    run_on(workers[0], "echo 'from s-0' > /etc/written-by-a-job", user=None)

    assert run_on(workers[1], "cat /etc/written-by-a-job") == "from s-0\n"


def test_each_node_has_its_own_processes_files_in_tmp_and_name(workers):
    script = "hostname; cat /etc/hostname /tmp/of-this-node /proc/sys/kernel/hostname"

    assert [run_on(worker, script).split() for worker in workers] == [["s-0"] * 4, ["s-1"] * 4]
    first, second = (set(run_on(worker, "cat /proc/[0-9]*/cmdline").split("\0")) for worker in workers)
    assert "slurmd" in first & second
    assert not [argument for argument in first if "s-1" in argument]


# A program that answers where sssd would.
ANSWERS = """
import os, socket
place = "/var/lib/sss/pipes/nss"
server = socket.socket(socket.AF_UNIX)
server.bind(place)
os.chmod(place, 0o666)
server.listen()
while True:
    asked, _ = server.accept()
    asked.sendall(socket.gethostname().encode())
    asked.close()
"""
ASKS = 'import socket as s; c = s.socket(s.AF_UNIX); c.connect("/var/lib/sss/pipes/nss"); print(c.recv(99).decode())'


def test_a_job_asks_the_sssd_of_its_own_node_about_users(workers):
    for worker in workers:
        process = worker.box.start(["python3", "-c", ANSWERS], worker.slurm.directory / f"{worker.name}.sssd")
        worker.slurm.wait_for(worker.box.path("/var/lib/sss/pipes/nss").exists, "the socket")
        assert run_on(worker, f"python3 -c '{ASKS}'").strip() == worker.name
        process.kill()
        process.wait()


# Ways by which processes lead to the roots of others, and where a pod's token would be.
LOOK = """
for found in /container-only /run/secrets /var/run/secrets /mnt/jail/etc /mnt/host/etc /mnt/etc; do
    test -e $found && echo "sees $found"
done
for process in /proc/[0-9]*; do
    for way in root cwd fd/0 fd/1 fd/2 fd/3 fd/4 fd/5 fd/6 fd/7; do
        test -e $process/$way/container-only && echo "sees $process/$way of $(tr '\\0' ' ' < $process/cmdline)"
        test -e $process/$way/run/secrets && echo "sees the token by $process/$way"
    done
done
grep -l token-of-the-pod /run -r 2>/dev/null
echo looked at $(ls -d /proc/[0-9]* | wc -l)
"""


@pytest.mark.parametrize(
    "user", [pytest.param(TESTER, id="a user"), pytest.param(None, id="root in the root")]
)
def test_a_job_sees_neither_the_containers_root_nor_its_token(workers, user):
    said = run_on(workers[0], LOOK, user=user).splitlines()

    assert len(said) == 1, said
    assert int(said[0].split()[-1]) > 3


def test_root_in_a_job_cannot_mount_or_trace(workers):
    said = run_on(
        workers[0],
        "grep CapBnd /proc/self/status; mount -t tmpfs x /mnt 2>&1; ls /root > /dev/null && echo root",
        user=None,
    )

    bounding = int(said.split()[1], 16)
    assert not bounding >> 21 & 1  # SYS_ADMIN
    assert bounding & 1  # CHOWN stays: package managers need it.
    assert "permission denied" in said
    assert said.endswith("root\n")


def test_a_batch_job_runs_in_the_root_with_its_own_srun_and_output(workers, shared):
    slurm = workers[0].slurm
    options = ["--nodelist=s-0,s-1", "--nodes=2", "--chdir=/home/tester", "--output=/home/tester/out-%j"]
    job = slurm.submit("id --user --name; pwd; srun --label cat /tmp/of-this-node | sort", *options)
    slurm.wait_for(lambda: slurm.job_state(job) == "COMPLETED", f"job {job} to complete")

    said = (shared / f"home/tester/out-{job}").read_text()
    assert sorted(said.split()) == sorted(["tester", "/home/tester", "0:", "s-0", "1:", "s-1"]), said


def test_a_program_put_into_the_root_runs_in_a_job_that_is_running(workers, shared):
    slurm = workers[0].slurm
    script = "while test ! -x /usr/local/bin/new; do sleep 0.2; done; /usr/local/bin/new > /home/tester/new"
    job = slurm.submit(script, "--nodelist=s-0")
    slurm.wait_for(lambda: slurm.job_state(job) == "RUNNING", f"job {job} to run")
    install = (
        "printf '#!/bin/sh\\necho new program\\n' > /tmp/new; install -m 755 /tmp/new /usr/local/bin/new"
    )
    run_on(workers[1], install, user=None)

    slurm.wait_for(lambda: slurm.job_state(job) == "COMPLETED", f"job {job} to complete")
    assert (shared / "home/tester/new").read_text() == "new program\n"


def test_nothing_that_steps_mount_is_left_behind(workers):
    before = workers[0].box.path("/proc/1/mountinfo").read_text()
    run_on(workers[0], "true")

    assert workers[0].box.path("/proc/1/mountinfo").read_text() == before
    assert "jail/proc" not in before


@pytest.fixture
def without_marker(shared: Path) -> Iterator[None]:
    """As while the root is populated again."""
    content = (shared / MARKER).read_bytes()
    (shared / MARKER).unlink()
    yield
    (shared / MARKER).write_bytes(content)


def plugged(cluster: SlurmDaemons, line: str) -> Iterator[None]:
    """Another line in plugstack.conf for one test."""
    conf = cluster.head.box.path("/etc/slurm/plugstack.conf")
    usual = conf.read_text()
    conf.write_text(f"{line}\n")
    cluster.reconfigure()
    yield
    conf.write_text(usual)
    cluster.reconfigure()


@pytest.fixture
def optional_plugin(cluster: SlurmDaemons) -> Iterator[None]:
    yield from plugged(cluster, f"optional {PLUGIN} {ARGUMENTS}")


@pytest.fixture
def kept_capabilities(cluster: SlurmDaemons) -> Iterator[None]:
    yield from plugged(cluster, f"required {PLUGIN} {ARGUMENTS} capabilities=keep")


def test_root_with_all_capabilities_would_find_the_containers_root(workers, kept_capabilities):
    """The same search finds it when nothing is taken from the task, so it is a search."""
    workers[0].wait_until_idle()

    assert "sees the token by /proc/" in run_on(workers[0], LOOK, user=None)


def fails_on(worker: RootWorker, script: str) -> str:
    """What slurmd says about a step that does not start."""
    before = len(worker.box.path(LOG).read_text(errors="replace"))
    command = ["srun", f"--nodelist={worker.name}", "--chdir=/tmp", "sh", "-c", script]
    done = worker.slurm.head.box.run(*command, user=TESTER, check=False, timeout_s=60)
    assert done.returncode != 0, done.stdout
    return worker.box.path(LOG).read_text(errors="replace")[before:]


def test_a_step_does_not_start_in_a_root_that_is_not_complete(workers, without_marker):
    said = fails_on(workers[0], "echo ran > /tmp/ran-outside")

    assert f"shared_root: the step does not start: The shared root {JAIL} is not complete" in said
    assert not workers[0].box.path("/tmp/ran-outside").exists()


def test_no_step_runs_outside_the_root_where_the_plugin_is_optional(workers, optional_plugin, without_marker):
    said = fails_on(workers[0], "echo ran > /tmp/ran-outside")

    assert "is not complete" in said
    assert not workers[0].box.path("/tmp/ran-outside").exists()


def test_slurmd_does_not_start_on_a_root_that_is_not_complete(cluster, rootfs, shared, without_marker):
    with RootWorker(cluster, rootfs, shared, "s-2") as worker:
        worker.start()
        assert worker.process.wait(timeout=60) == 1
        assert "slurmd does not start: The shared root /mnt/jail is not populated" in worker.log.read_text()
        assert cluster.node_states("s-2") == {"GONE"}


@pytest.fixture(scope="module")
def box(rootfs: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Box]:
    """A container with no daemon in it."""
    with add_plugin(add_entry_points(box_in(tmp_path_factory.mktemp("box"), rootfs, "b-0"))) as box:
        box.path("/var/spool/slurmd").mkdir(parents=True)
        box.path("/container-only").write_text("secret of the container")
        box.path(TOKEN).parent.mkdir(parents=True)
        box.path(TOKEN).write_text("token")
        yield box


@pytest.fixture
def small(box: Box) -> Iterator[Path]:
    """A root of one static program, to be broken at will."""
    root = box.path(JAIL)
    box.run("mkdir", "--parents", JAIL)
    box.run("mount", "-t", "tmpfs", "tmpfs", JAIL)
    for path in ("proc", "sys", "dev", "tmp", "run", "var/spool/slurmd", PLUGINS[1:], "etc", "bin"):
        (root / path).mkdir(parents=True)
    (root / MARKER).write_text("{}")
    box.run("cp", "/usr/bin/catatonit", f"{JAIL}/bin/program")
    yield root
    box.run("umount", "--lazy", JAIL)


def enter(box: Box, *arguments: str, capabilities: tuple[str, ...] = ("sys_admin", "sys_chroot")) -> str:
    """What `enter-root` says; of a program that starts, its version."""
    given = [f"root={JAIL}", f"ro={PLUGINS}", *arguments]
    command = [*with_capabilities(*capabilities), ENTER_ROOT, *given, "--", "/bin/program", "--version"]
    done = box.run(*command, check=False)
    return done.stdout + done.stderr


def test_a_small_root_is_entered(box, small):
    assert "catatonit" in enter(box)


@pytest.mark.parametrize(
    "path", ["proc", "sys", "dev", "tmp", "run", "var/spool/slurmd", "var/spool", "usr/lib", "etc"]
)
@pytest.mark.parametrize("target", ["/", "/home", "../../../..", "/proc/1/root"])
def test_a_link_in_the_place_of_a_mount_point_is_not_followed(box, small, path, target):
    (small / path).rename(small / "moved")
    (small / path).symlink_to(target)

    assert "is a symbolic link or lies behind one" in enter(box)


@pytest.mark.parametrize("path", ["proc", "sys", "dev", "tmp", "run", "var/spool/slurmd"])
def test_a_missing_mount_point_is_named(box, small, path):
    (small / path).rmdir()

    assert enter(box) == f"The shared root {JAIL} has no /{path}; it is made when the root is populated.\n"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        pytest.param(["nonsense=1"], 'Unknown argument "nonsense=1"', id="unknown"),
        pytest.param(["root=jail"], "root=jail: must be an absolute path", id="relative"),
        pytest.param(["root=/"], "root=/: must be an absolute path below", id="the container's own"),
        pytest.param(["bind=/a/../b"], "bind=/a/../b: must be an absolute path", id="upwards"),
        pytest.param(["bind=/run"], "holds the pod's credentials", id="all of /run"),
        pytest.param(["ro=/var/run/secrets:/data"], "holds the pod's credentials", id="the token"),
        pytest.param(["run=slurm,secrets"], "holds the pod's credentials", id="the token among others"),
        pytest.param(["run=../etc"], "names of directories in /run are expected", id="out of /run"),
        pytest.param(
            ["bind=/etc/passwd:/etc"], "is not a directory; only directories are shown", id="a file"
        ),
        pytest.param(["bind=/nowhere:/etc"], "Cannot show /nowhere to the step", id="no source"),
        pytest.param(["bind=/srv:/nowhere"], "has no /nowhere", id="no mount point"),
        pytest.param(["capabilities=some"], '"drop" or "keep" is expected', id="capabilities"),
        pytest.param(["marker=/etc/other"], "is not complete: it has no /etc/other", id="another marker"),
    ],
)
def test_what_cannot_be_done_is_said(box, small, arguments, said):
    assert said in enter(box, *arguments)


def test_a_container_without_the_right_to_mount_is_told_what_it_needs(box, small):
    assert "needs the capabilities SYS_ADMIN and SYS_CHROOT" in enter(box, capabilities=("sys_chroot",))


def test_the_marker_must_be_a_file_of_the_root(box, small):
    (small / MARKER).unlink()
    (small / MARKER).symlink_to("/etc/passwd")

    assert "is a symbolic link" in enter(box)


def check_root(box: Box, **variables: str) -> str:
    command = [*with_capabilities("sys_admin", "sys_chroot"), ENTRY, "check-root"]
    done = box.run(*command, env={"SHARED_ROOT": f"root={JAIL} ro={PLUGINS}", **variables}, check=False)
    assert (done.returncode == 0) == (not done.stderr), done.stderr
    return done.stderr.removeprefix("slurmd does not start: ").strip()


@pytest.fixture
def checked(box: Box, shared: Path) -> Iterator[Box]:
    """The populated root under an overlay: whatever breaks it is gone afterwards."""
    mount_in(box, shared, "/lower")
    box.run("mkdir", "--parents", JAIL, "/changes")
    box.run("mount", "-t", "tmpfs", "tmpfs", "/changes")
    box.run("mkdir", "/changes/upper", "/changes/work")
    options = "lowerdir=/lower,upperdir=/changes/upper,workdir=/changes/work"
    box.run("mount", "-t", "overlay", "overlay", "-o", options, JAIL)
    yield box
    box.run("umount", "--lazy", JAIL, "/changes", "/lower")


def test_a_populated_root_is_found_in_order(checked):
    assert check_root(checked) == ""


@pytest.mark.parametrize(
    ("command", "said"),
    [
        pytest.param(
            "rm -r usr/bin/dash usr/bin/sh", "Cannot start /bin/sh in the shared root", id="no shell"
        ),
        pytest.param(
            "cp usr/bin/false usr/bin/dash",
            "/bin/sh does not run in the shared root (exit code 1)",
            id="broken shell",
        ),
        pytest.param("rm usr/bin/srun", "srun does not run in the shared root", id="no clients"),
        pytest.param(
            "printf '#!/bin/sh\necho slurm 24.11.5\n' > usr/bin/srun; chmod 755 usr/bin/srun",
            "The Slurm clients in the shared root are 24.11 and slurmd is 26.05",
            id="clients of another release",
        ),
        pytest.param(
            "printf '#!/bin/sh\nyes\n' > usr/bin/srun",
            "srun does not run in the shared root",
            id="clients that talk for ever",
        ),
        pytest.param(
            "mv run moved; ln -s tmp run", "/run in the shared root /mnt/jail is a symbolic link", id="a link"
        ),
        pytest.param(
            "rm etc/soperator-jail-populated; mkdir .slurm-operator-populate",
            "is being populated, or that was interrupted",
            id="half made",
        ),
        pytest.param("mount -o remount,bind,ro .", "is mounted read-only", id="read-only"),
        pytest.param("chmod 755 /tmp", "/tmp cannot be written by users", id="no room for users"),
    ],
)
def test_a_broken_root_is_named(checked, command, said):
    checked.run("sh", "-c", f"cd {JAIL} && {command}")
    found = check_root(checked)
    checked.run("chmod", "1777", "/tmp")

    assert said in found


def test_a_program_of_the_root_is_tried_without_any_right(checked):
    """Users who are root in the root may replace any program of it, and slurmd's container runs it."""
    script = (
        "#!/bin/sh\ngrep -E 'Uid|CapEff|CapBnd|NoNewPrivs' /proc/self/status; cat /container-only; exit 1\n"
    )
    checked.path(f"{JAIL}/usr/bin/srun").write_text(script)
    said = check_root(checked)

    assert "65534" in said
    assert "CapEff:\t0000000000000000" in said
    assert "NoNewPrivs:\t1" in said
    assert "secret of the container" not in said


def test_other_clients_are_allowed_where_somebody_says_so(checked):
    checked.run("rm", f"{JAIL}/usr/bin/srun")

    assert check_root(checked, SHARED_ROOT_CLIENTS="any") == ""


def complement(box: Box) -> "subprocess.CompletedProcess[str]":
    command = [*with_capabilities("sys_admin", "sys_chroot"), ENTRY, "complement-root"]
    return box.run(*command, env={"SHARED_ROOT": ARGUMENTS}, check=False)


def mounts_of(box: Box) -> list[str]:
    return box.run("cat", "/proc/self/mountinfo").stdout.splitlines()


def test_sessions_that_start_in_the_root_by_chroot_find_what_their_node_has(checked):
    checked.path("/tmp/of-this-node").write_text("b-0\n")
    lower = ("ls", "/lower/proc", "/lower/run")
    before = checked.run(*lower).stdout
    assert complement(checked).stderr == ""

    look = "cat /etc/hostname /tmp/of-this-node; test -r /proc/self/stat && : > /dev/null && echo devices; ls /run"
    said = checked.run("chroot", JAIL, "sh", "-c", look).stdout.split()
    assert said[:3] == ["b-0", "b-0", "devices"]
    assert "slurm-operator" in said
    assert "secrets" not in said
    assert checked.run("chroot", JAIL, "ls", PLUGINS).stdout == "shared_root.so\n"
    assert checked.run(*lower).stdout == before, "others on the root see nothing of it"


def test_a_root_that_is_complemented_is_left_as_it_is(checked):
    complement(checked)
    before = mounts_of(checked)

    assert complement(checked).returncode == 0
    assert mounts_of(checked) == before


def test_steps_enter_a_root_that_is_complemented(checked):
    complement(checked)

    assert check_root(checked) == ""


LIBRARIES = "/usr/lib/x86_64-linux-gnu"
MADE_UP = {"libcuda.so.550.1": "libcuda.so.1", "libnvidia-ml.so.550.1": "libnvidia-ml.so.1"}
FLAG = "etc/gpu_libs_installed.flag"
COMPILE = """
mount -t tmpfs tmpfs "$1/tmp"
echo "const char *driver(void) { return \\"$3\\"; }" > "$1/tmp/made-up.c"
chroot "$1" gcc -shared -fPIC -Wl,-soname,"$2" -o /tmp/made-up.so /tmp/made-up.c
cat "$1/tmp/made-up.so"
"""


def made_up_library(soname: str, release: str) -> bytes:
    """A library that says of which release it is."""
    root = unpacked(COMPILER_ROOT, Paths.of(), PlainProgress())
    command = ["unshare", "--mount", "sh", "-euc", COMPILE, "compile", str(root), soname, release]
    return subprocess.run(command, check=True, capture_output=True).stdout


def show_driver(box: Box, files: dict[str, bytes]) -> None:
    """As the container runtime of a Kubernetes node with GPUs mounts its driver: file by file, read-only."""
    box.run("mkdir", "--parents", "/driver")
    for name, content in files.items():
        box.path(f"/driver/{name}").write_bytes(content)
        box.path(f"/driver/{name}").chmod(0o755)
        directory = "/usr/bin" if name.startswith("nvidia-") else LIBRARIES
        box.run("touch", f"{directory}/{name}")
        box.run("mount", "--bind", f"/driver/{name}", f"{directory}/{name}")


@pytest.fixture(scope="module")
def driver() -> dict[str, bytes]:
    libraries = {name: made_up_library(soname, "550.1") for name, soname in MADE_UP.items()}
    return {**libraries, "nvidia-smi": b"#!/bin/sh\necho driver 550.1\n" + b"#" * 2048}


@pytest.fixture
def gpu_worker(rootfs: Path, shared: Path, driver: dict[str, bytes], tmp_path: Path) -> Iterator[Box]:
    """A container with the driver of its node, on a root that is thrown away."""
    with add_plugin(add_entry_points(box_in(tmp_path, rootfs, "g-0"))) as box:
        box.run("mkdir", "--parents", "/lower", "/changes", "/var/spool/slurmd", JAIL)
        mount_in(box, shared, "/lower")
        box.run("mount", "-t", "tmpfs", "tmpfs", "/changes")
        box.run("mkdir", "/changes/upper", "/changes/work")
        options = "lowerdir=/lower,upperdir=/changes/upper,workdir=/changes/work"
        box.run("mount", "-t", "overlay", "overlay", "-o", options, JAIL)
        show_driver(box, driver)
        yield box


def complement_with_gpus(box: Box) -> "subprocess.CompletedProcess[str]":
    command = [*with_capabilities("sys_admin", "sys_chroot"), ENTRY, "complement-root"]
    return box.run(*command, env={"SHARED_ROOT": ARGUMENTS, "NODESET_GPU_ENABLED": "true"}, check=False)


def in_root(box: Box, script: str) -> str:
    """What a program prints that has entered the root as a step does."""
    given = [f"root={JAIL}", f"ro={PLUGINS}"]
    command = [
        *with_capabilities("sys_admin", "sys_chroot"),
        ENTER_ROOT,
        *given,
        "--",
        "/bin/sh",
        "-c",
        script,
    ]
    done = box.run(*command, check=False)
    return done.stdout + done.stderr


ASK = (
    "python3 -c \"import ctypes as c; l = c.CDLL('libcuda.so.1'); l.driver.restype = c.c_char_p; "
    'print(l.driver().decode())"'
)


def test_programs_in_the_root_find_the_gpu_driver_of_their_node(gpu_worker):
    """With made-up libraries: no machine of the tests has GPUs."""
    before = gpu_worker.path("/changes/upper")
    assert complement_with_gpus(gpu_worker).stderr == ""

    assert in_root(gpu_worker, f"{ASK}; nvidia-smi").split("\n")[:2] == ["550.1", "driver 550.1"]
    assert gpu_worker.run("chroot", JAIL, "sh", "-c", ASK).stdout == "550.1\n"
    # Others on the root see files of a few bytes, and the flag that they are complete.
    for name in ("libcuda.so.550.1", "libnvidia-ml.so.550.1"):
        assert 0 < (before / LIBRARIES[1:] / name).stat().st_size < 64
    assert (before / LIBRARIES[1:] / "libcuda.so.1").readlink() == Path("libcuda.so.550.1")
    assert (before / FLAG).exists()


def test_nobody_in_the_root_can_write_to_the_driver_of_the_node(gpu_worker, driver):
    complement_with_gpus(gpu_worker)

    refused = gpu_worker.run(
        "chroot", JAIL, "sh", "-c", f"echo x > {LIBRARIES}/libcuda.so.550.1", check=False
    )
    assert "Read-only file system" in refused.stderr
    assert gpu_worker.path("/driver/libcuda.so.550.1").read_bytes() == driver["libcuda.so.550.1"]


def test_a_second_worker_finds_stand_ins_and_changes_nothing(gpu_worker):
    complement_with_gpus(gpu_worker)
    upper = gpu_worker.path("/changes/upper")
    files = [path for path in (upper / LIBRARIES[1:]).iterdir() if path.is_file()]
    before = {path: path.lstat().st_mtime_ns for path in [*files, upper / "etc/ld.so.cache"]}

    gpu_worker.run("umount", "--lazy", JAIL)
    options = "lowerdir=/lower,upperdir=/changes/upper,workdir=/changes/work"
    gpu_worker.run("mount", "-t", "overlay", "overlay", "-o", options, JAIL)
    assert complement_with_gpus(gpu_worker).stderr == ""

    assert {path: path.lstat().st_mtime_ns for path in before} == before
    assert in_root(gpu_worker, ASK) == "550.1\n"


def test_a_node_with_another_release_of_the_driver_is_named(gpu_worker):
    complement_with_gpus(gpu_worker)
    gpu_worker.run("umount", "--lazy", JAIL)
    options = "lowerdir=/lower,upperdir=/changes/upper,workdir=/changes/work"
    gpu_worker.run("mount", "-t", "overlay", "overlay", "-o", options, JAIL)
    for name in (f"{LIBRARIES}/libcuda.so.550.1", f"{LIBRARIES}/libnvidia-ml.so.550.1"):
        gpu_worker.run("umount", name)
        gpu_worker.run("rm", name)
    older = {"libnvidia-ml.so.535.2": made_up_library("libnvidia-ml.so.1", "535.2")}
    # A library of the release that was there first, as a whole: the link stays with the newer one.
    whole = gpu_worker.path(f"{JAIL}{LIBRARIES}/libnvidia-ml.so.550.1")
    whole.write_bytes(made_up_library("libnvidia-ml.so.1", "550.1"))
    show_driver(gpu_worker, older)

    said = complement_with_gpus(gpu_worker)
    assert said.returncode == 1
    assert "libnvidia-ml.so.1 in the root leads to libnvidia-ml.so.550.1" in said.stderr
    assert "has libnvidia-ml.so.535.2" in said.stderr


@pytest.mark.parametrize(
    ("prepare", "said"),
    [
        pytest.param(
            f"ln -s /etc/passwd {JAIL}{LIBRARIES}/libcuda.so.550.1", "is a link or a directory", id="a link"
        ),
        pytest.param("echo small > /driver/libcuda.so.550.1", "so it is no file of a GPU driver", id="small"),
    ],
)
def test_what_is_wrong_with_a_driver_file_is_said_and_the_flag_is_not_set(gpu_worker, prepare, said):
    gpu_worker.run("sh", "-c", prepare)
    done = complement_with_gpus(gpu_worker)

    assert done.returncode == 1
    assert said in done.stderr
    assert not gpu_worker.path(f"/changes/upper/{FLAG}").exists()


def test_a_gpu_worker_without_a_driver_says_so_and_starts(checked):
    done = complement_with_gpus(checked)

    assert done.returncode == 0
    assert "no file of their driver is mounted" in done.stderr


def test_two_workers_take_turns_at_the_stand_ins(gpu_worker):
    lock = f"{JAIL}/etc/complement_jail_gpu_placeholders.lock"
    hold = f"exec 9> {lock}; flock 9; sleep 3; date +%s%N > /released"
    gpu_worker.run(
        "sh", "-c", f"( {hold} ) > /dev/null 2>&1 & until test -e {lock}; do sleep 0.1; done; sleep 0.3"
    )
    assert complement_with_gpus(gpu_worker).stderr == ""

    flag = gpu_worker.path(f"/changes/upper/{FLAG}")
    assert flag.stat().st_mtime_ns > int(gpu_worker.path("/released").read_text())


def test_a_root_that_is_not_complete_is_not_complemented(checked):
    checked.run("rm", f"{JAIL}/{MARKER}")
    before = mounts_of(checked)
    done = complement(checked)

    assert done.returncode == 1
    assert f"sshd does not start: The shared root {JAIL} is not complete" in done.stderr
    assert mounts_of(checked) == before
