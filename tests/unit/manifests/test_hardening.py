"""Daemons cannot do what they never need, and whoever wants more of a container gets it."""

import os
import shlex
import stat
import subprocess
import time

import pytest

from slurm_operator.manifests.builders import hardening, logs

CONFINED = {
    "seccompProfile": {"type": "RuntimeDefault"},
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
}


def confined(security: dict, *, shared: dict | None = None, without_root=()) -> dict:
    container = {"name": "daemon", "securityContext": security}
    pod = {"securityContext": shared or {}, "containers": [container, {"name": "other"}]}
    [daemon, other] = hardening.confined(pod, ("daemon",), without_root=without_root)["containers"]
    assert other == {"name": "other"}
    return daemon["securityContext"]


@pytest.mark.parametrize(
    ("security", "expected"),
    [
        pytest.param({"runAsUser": 401}, CONFINED, id="a daemon as its own user"),
        pytest.param({"runAsUser": 0}, {**CONFINED, "capabilities": None}, id="root may need what root can do"),
        pytest.param({}, {**CONFINED, "capabilities": None}, id="the image says who it is: maybe root"),
        pytest.param({"privileged": True}, {}, id="privileged is what somebody wanted"),
        pytest.param(
            {"runAsUser": 401, "allowPrivilegeEscalation": True}, {**CONFINED, "allowPrivilegeEscalation": True}, id="sudo is wanted"
        ),
        pytest.param(
            {"runAsUser": 401, "capabilities": {"add": ["NET_BIND_SERVICE"]}},
            {**CONFINED, "capabilities": {"add": ["NET_BIND_SERVICE"], "drop": ["ALL"]}},
            id="a capability more",
        ),
        pytest.param(
            {"runAsUser": 401, "capabilities": {"add": ["SYS_ADMIN"]}},
            {**CONFINED, "allowPrivilegeEscalation": None, "capabilities": {"add": ["SYS_ADMIN"], "drop": ["ALL"]}},
            id="Kubernetes refuses no-new-privileges beside SYS_ADMIN",
        ),
        pytest.param(
            {"runAsUser": 401, "capabilities": {"drop": []}}, {**CONFINED, "capabilities": {"drop": []}}, id="nothing is to be dropped"
        ),
        pytest.param(
            {"runAsUser": 401, "seccompProfile": {"type": "Unconfined"}},
            {**CONFINED, "seccompProfile": {"type": "Unconfined"}},
            id="another profile",
        ),
    ],
)  # fmt: skip
def test_a_container_is_confined_as_far_as_nobody_wants_it_otherwise(security, expected):
    found = confined(security)

    assert found == {**security, **{key: value for key, value in expected.items() if value is not None}}


def test_what_the_pod_says_counts_for_its_containers():
    assert confined({}, shared={"runAsUser": 401})["capabilities"] == {"drop": ["ALL"]}
    assert "seccompProfile" not in confined({}, shared={"seccompProfile": {"type": "Unconfined"}})
    assert confined({}, without_root=("daemon",))["capabilities"] == {"drop": ["ALL"]}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
@pytest.mark.parametrize(("user", "may_write"), [(0, False), (1234, True)])
def test_jobs_cannot_touch_the_log_of_a_slurmd_that_root_follows(tmp_path, user, may_write):
    tmp_path.chmod(0o777)  # As volumes in memory are.
    for folder in list(tmp_path.parents)[:3]:
        folder.chmod(folder.stat().st_mode | 0o111)
    pipe, output = tmp_path / "slurmd.log", tmp_path.with_suffix(".out")
    with output.open("wb") as out:
        follower = subprocess.Popen(
            ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", "--no-new-privs", "--bounding-set=-all", "--inh-caps=-all",
             "sh", "-c", logs.FOLLOW], env={**os.environ, "SOCKET": str(pipe)}, stdout=out)  # fmt: skip
    try:
        ends = time.monotonic() + 60
        while not pipe.exists() and time.monotonic() < ends:
            time.sleep(0.01)
        written = as_job(f"echo forged > {shlex.quote(str(pipe))}")
        replaced = as_job(f"ln -sf /etc/passwd {shlex.quote(str(pipe))}")
        assert (written, replaced) == (may_write, may_write)
        if not may_write:
            with pipe.open("w") as log:
                log.write("slurmd: started\n")
            while b"started" not in output.read_bytes() and time.monotonic() < ends:
                time.sleep(0.01)
            assert output.read_bytes() == b"slurmd: started\n"
            assert stat.S_IMODE(pipe.stat().st_mode) == 0o600
    finally:
        follower.terminate()
        follower.wait()


def as_job(command: str) -> bool:
    """Whether another user can do this."""
    become = ["setpriv", "--reuid=4321", "--regid=4321", "--clear-groups", "timeout", "5", "sh", "-c"]
    return subprocess.run([*become, command], capture_output=True, check=False).returncode == 0
