"""A SlurmCluster of the second API, with real daemons: one root for all nodes, and no job is ended."""

import json
import sys

import directory_service
import pytest
from job_ledger import Ledger
from operator_rig import until
from slurmcluster_rig import (
    CLUSTER,
    FIRST,
    GROUP,
    LOGIN_PORT,
    MARKER,
    NAMESPACE,
    NODESET,
    SECOND,
    Jobs,
    Root,
    SharedRootSlurm,
    running,
)

from slurm_local import image
from slurm_local.progress import Quiet

# The first test waits for images to be made where there are none.
pytestmark = pytest.mark.timeout(900)


@pytest.fixture(scope="module")
def slurm(wanted, paths, tmp_path_factory):
    """The cluster of these tests, which is left with two idle workers by each of them."""
    with running(wanted, paths, tmp_path_factory.mktemp("audit")) as made:
        yield made


def test_what_a_job_writes_to_etc_is_on_every_node_and_in_ssh_sessions(slurm):
    slurm.step_on(FIRST, "echo written by $(hostname) > /etc/of-a-job")

    assert slurm.step_on(SECOND, "cat /etc/of-a-job") == f"written by {FIRST}\n"
    assert slurm.by_ssh("cat", "/etc/of-a-job") == f"written by {FIRST}\n"
    assert slurm.by_ssh("hostname") == f"{CLUSTER}-login-0\n"


def test_each_node_has_its_own_name_processes_and_tmp(slurm):
    for worker in (FIRST, SECOND):
        slurm.step_on(worker, f"echo {worker} > /tmp/whose")
    script = "hostname; cat /etc/hostname /tmp/whose"

    assert slurm.step_on(FIRST, script).split() == [FIRST] * 3
    assert slurm.step_on(SECOND, script).split() == [SECOND] * 3
    # That of its own process: a step may not read the links of process 1.
    own = "readlink /proc/self/ns/pid"
    assert slurm.step_on(FIRST, own) != slurm.step_on(SECOND, own)
    assert "supervisord" in slurm.step_on(FIRST, "cat /proc/1/cmdline")


# Ways by which processes lead to other roots, and where a pod's token would be. The container has /mnt/jail.
LOOK = """
for found in /mnt/jail /mnt/ssh-configs /run/secrets /var/run/secrets /run/slurm-keys /etc/supervisor/conf.d; do
    test -e $found && echo "sees $found"
done
for process in /proc/[0-9]*; do
    for way in root cwd fd/0 fd/1 fd/2 fd/3 fd/4 fd/5 fd/6 fd/7; do
        test -e $process/$way/mnt/jail/etc && echo "sees $process/$way of $(tr '\\0' ' ' < $process/cmdline)"
        test -e $process/$way/run/secrets && echo "sees a token by $process/$way"
    done
done
grep -l kubernetes.io/serviceaccount /proc/self/mountinfo
echo looked at $(ls -d /proc/[0-9]* | wc -l)
"""


@pytest.mark.parametrize("user", ["root", "alice"])
def test_a_job_sees_neither_the_containers_root_nor_a_token(slurm, user):
    if user != "root":
        slurm.run("sh", "-c", f"id {user} || useradd --create-home {user}")

    said = slurm.step_on(SECOND, LOOK, user).splitlines()

    assert len(said) == 1, said
    assert int(said[0].split()[-1]) > 3
    # The same search, outside, finds it.
    assert "sees /mnt/jail" in slurm.in_worker(SECOND, "sh", "-c", LOOK)


def test_a_user_who_is_added_on_one_node_runs_jobs_and_logs_in_everywhere(slurm):
    slurm.step_on(FIRST, "useradd --create-home --shell /bin/bash bob && echo ok")
    keys = (
        "mkdir -m 700 .ssh; ssh-keygen -q -t ed25519 -N '' -f .ssh/id; cat .ssh/id.pub > .ssh/authorized_keys"
    )
    slurm.run("su", "--login", "bob", "--command", f"{keys}; chmod 600 .ssh/*")

    said = slurm.run("su", "--login", "bob", "--command", "srun --nodes=2 sh -c 'whoami; pwd'")
    assert sorted(said.split()) == ["/home/bob", "/home/bob", "bob", "bob"]
    there = slurm.run("su", "--login", "bob", "--command", f"ssh -i .ssh/id {SECOND} 'whoami; hostname; pwd'")
    assert there.split() == ["bob", SECOND, "/home/bob"]


def test_root_reaches_workers_by_ssh_from_a_session_on_the_login_pod(slurm):
    said = slurm.by_ssh("ssh", SECOND, "'hostname; cat /etc/hostname; test -w /dev/null && sinfo --noheader'")

    assert said.split()[:2] == [SECOND, SECOND]
    assert "main*" in said


def test_scale_in_waits_for_the_job_on_the_worker_with_the_highest_number(slurm):
    slurm.run("rm", "--force", "/root/may-end", "/root/has-ended")
    wait = "until test -e /root/may-end; do sleep 0.2; done; echo ended > /root/has-ended"
    job = slurm.submit(SECOND, wait)
    until(lambda: slurm.job_state(job) == "RUNNING", 60, lambda: slurm.job_state(job))

    slurm.patch("nodesets", NODESET, {"replicas": 1})

    until(lambda: slurm.node_states().get(SECOND) == "draining", 60, lambda: str(slurm.node_states()))
    until(lambda: f"job {job}" in slurm.told() or f"jobs {job}" in slurm.told(), 60, slurm.told)
    assert slurm.job_state(job) == "RUNNING"
    assert slurm.node_states() == {FIRST: "idle", SECOND: "draining"}
    slurm.run("touch", "/root/may-end")
    until(lambda: SECOND not in slurm.pods() and SECOND not in slurm.node_states(), 120, slurm.told)
    assert slurm.job_state(job) == "COMPLETED"
    assert slurm.run("cat", "/root/has-ended") == "ended\n"
    assert slurm.node_states() == {FIRST: "idle"}

    slurm.patch("nodesets", NODESET, {"replicas": 2})
    slurm.wait_idle(FIRST, SECOND)


@pytest.mark.full
def test_slurmd_that_is_killed_is_started_again_and_its_job_goes_on(slurm):
    job = slurm.submit(FIRST, "sleep 20")
    until(lambda: slurm.job_state(job) == "RUNNING", 60, lambda: slurm.job_state(job))
    before = slurm.process(FIRST, "^slurmd ")

    slurm.in_worker(FIRST, "kill", "-KILL", before)

    until(lambda: slurm.process(FIRST, "^slurmd ") not in ("", before), 60)
    until(lambda: slurm.job_state(job) == "COMPLETED", 90, lambda: slurm.job_state(job))
    assert "Restarts=0" in slurm.run("scontrol", "show", "job", str(job))
    slurm.wait_idle(FIRST, SECOND)


@pytest.mark.full
def test_a_changed_setting_reaches_slurmctld_workers_and_the_root(slurm):
    spec = slurm.manifests()[1]["spec"]["customSlurmConfig"]
    slurm.patch("slurmclusters", CLUSTER, {"customSlurmConfig": f"{spec}JobFileAppend=1\n"})

    until(lambda: "JobFileAppend=1" in slurm.run("cat", "/etc/slurm/slurm.conf"), 120, slurm.told)
    until(lambda: "JobFileAppend           = 1" in slurm.run("scontrol", "show", "config"), 60, slurm.told)
    assert "JobFileAppend=1" in slurm.in_worker(FIRST, "cat", "/etc/slurm/slurm.conf")

    slurm.patch("slurmclusters", CLUSTER, {"customSlurmConfig": spec})
    until(lambda: "JobFileAppend=1" not in slurm.run("cat", "/etc/slurm/slurm.conf"), 120, slurm.told)
    slurm.wait_idle(FIRST, SECOND)


@pytest.mark.full
def test_workers_move_to_another_fabric_under_a_running_job(slurm):
    """The new file is tested, read by slurmctld and written into the root; records follow, then the old root goes."""

    def places() -> set[str]:
        shown = slurm.run("scontrol", "--oneliner", "show", "nodes")
        return {word for word in shown.split() if word.startswith("Topology=")}

    until(lambda: places() == {"Topology=default:root:unknown"}, 120, lambda: f"{places()} {slurm.told()}")
    job = slurm.submit(FIRST, "sleep 900")
    until(lambda: slurm.job_state(job) == "RUNNING", 60, slurm.told)
    pods = slurm.pods()

    slurm.patch("nodesets", NODESET, {"topology": {"fabric": "ib"}})
    until(lambda: places() == {"Topology=default:ib:ib.unknown"}, 240, lambda: f"{places()} {slurm.told()}")
    until(lambda: "SwitchName=root" not in slurm.run("cat", "/etc/slurm/topology.conf"), 240, slurm.told)
    assert f"Nodes={FIRST},{SECOND}" in slurm.in_worker(FIRST, "cat", "/etc/slurm/topology.conf")
    assert slurm.job_state(job) == "RUNNING"
    assert slurm.pods() == pods, "no worker was replaced"

    slurm.run("scancel", str(job))
    assert slurm.step_on(SECOND, "hostname") == f"{SECOND}\n"
    slurm.patch("nodesets", NODESET, {"topology": None})
    until(lambda: places() == {"Topology=default:root:unknown"}, 240, lambda: f"{places()} {slurm.told()}")
    slurm.wait_idle(FIRST, SECOND)


@pytest.mark.full
def test_the_exporter_shows_workers_and_jobs_and_is_deleted_with_its_switch(slurm):
    container = {"image": image.OPERATOR_IMAGE, "imagePullPolicy": "Never"}
    on = {"enabled": True, "exporterContainer": container, "collectionInterval": "1s"}
    slurm.patch("slurmclusters", CLUSTER, {"slurmNodes": {"exporter": on}})
    slurm.kubectl("wait", "--for=create", f"deployment/{CLUSTER}-slurm-exporter", "--timeout=60s")
    slurm.kubectl("rollout", "status", f"deployment/{CLUSTER}-slurm-exporter", "--timeout=120s")
    [pod] = json.loads(
        slurm.kubectl("get", "pods", "-l", "app.kubernetes.io/component=exporter", "-o", "json")
    )["items"]

    def page() -> str:
        fetch = "import sys, urllib.request as r; sys.stdout.write(r.urlopen(sys.argv[1]).read().decode())"
        url = f"http://{pod['status']['podIP']}:8080/metrics"
        return slurm.cluster.state.cell.run(sys.executable, "-IS", "-c", fetch, url)

    until(lambda: f'node_name="{FIRST}"' in page(), 60, slurm.told)
    slurm.run("sbatch", "--chdir=/", "--output=/dev/null", "--job-name=seen", "--wrap", "sleep 1")
    until(lambda: 'job_name="seen"' in page(), 60, slurm.told)

    slurm.patch("slurmclusters", CLUSTER, {"slurmNodes": {"exporter": {"enabled": False}}})
    slurm.kubectl("wait", "--for=delete", f"deployment/{CLUSTER}-slurm-exporter", "--timeout=60s")
    slurm.wait_idle(FIRST, SECOND)


@pytest.mark.full
def test_a_worker_that_starts_on_a_broken_root_takes_no_job_and_says_why(slurm):
    slurm.run("mv", f"/{MARKER}", f"/{MARKER}.away")
    slurm.in_worker(SECOND, "kill", "1")

    until(lambda: "is not populated: it has no" in slurm.told(), 90, slurm.told)
    slurm.run("mv", f"/{MARKER}.away", f"/{MARKER}")
    until(lambda: slurm.get(f"nodesets.{GROUP}/{NODESET}")["status"]["phase"] == "Ready", 180, slurm.told)
    slurm.wait_idle(FIRST, SECOND)


@pytest.mark.full
def test_maintenance_waits_for_a_job_and_gives_the_root_back_with_its_files(slurm):
    slurm.run("sh", "-c", "echo kept > /home/kept; rm --force /root/may-end")
    job = slurm.submit(SECOND, "until test -e /root/may-end; do sleep 0.2; done")
    until(lambda: slurm.job_state(job) == "RUNNING", 60, lambda: slurm.job_state(job))

    slurm.patch("slurmclusters", CLUSTER, {"maintenance": "downscale"})

    until(lambda: slurm.pods() == {SECOND} and not login_pods(slurm), 180, slurm.told)
    until(lambda: f"job {job}" in slurm.told() or f"jobs {job}" in slurm.told(), 60, slurm.told)
    assert "RUNNING" in slurm.beside_slurmctld("squeue", "--noheader", f"--jobs={job}", "--format=%T")
    assert slurm.phase() == "Not available"
    slurm.in_worker(SECOND, "touch", "/mnt/jail/root/may-end")
    until(lambda: not slurm.pods(), 120, slurm.told)
    assert "JobState=COMPLETED" in slurm.beside_slurmctld("scontrol", "show", "job", str(job))

    slurm.patch("slurmclusters", CLUSTER, {"maintenance": "none"})

    until(lambda: slurm.phase() == "Available", 240, slurm.told)
    slurm.wait_idle(FIRST, SECOND)
    assert slurm.run("cat", "/home/kept") == "kept\n"


@pytest.mark.full
def test_a_root_that_is_too_small_is_told_and_a_job_that_was_killed_goes_on(slurm):
    root = Root(slurm.cluster, "too-small", 30023)
    root.apply(volumeSources=[{"name": "jail", "emptyDir": {"medium": "Memory", "sizeLimit": "32Mi"}}])
    until(lambda: "(OutOfSpace)" in root.told().get("message", ""), 180, root.told)
    assert root.pods("login") == []

    root.apply()  # With the claim.
    until(lambda: any(map(is_running, root.pods("populate-jail"))), 120, root.told)
    root.kubectl("delete", "pods", "-l", "app.kubernetes.io/component=populate-jail", "--force")

    assert root.pods("login") == [] or root.told().get("status") == "True"
    until(lambda: root.told().get("status") == "True", 240, root.told)
    until(lambda: any(map(is_running, root.pods("login"))), 120, root.told)
    root.remove()


@pytest.mark.full
def test_why_a_root_cannot_be_populated_is_told_and_it_is_once_that_is_fixed(slurm):
    root = Root(slurm.cluster, "not-populated", 30024)
    without_archive = {"image": image.slurm_image("slurmd"), "k8sNodeFilterName": "all"}
    root.apply(populateJail=without_archive)
    until(lambda: "(NoSource)" in root.told().get("message", ""), 180, root.told)
    assert root.told("Ready")["reason"] == root.told("Degraded")["reason"] == "PopulateFailed"

    source = {"persistentVolumeClaim": {"claimName": "jail", "readOnly": True}}
    root.apply(volumeSources=[{"name": "jail", **source}])
    until(lambda: "(ReadOnly)" in root.told().get("message", ""), 180, root.told)
    assert root.pods("login") == []

    root.apply()
    until(lambda: root.told().get("status") == "True", 240, root.told)
    root.remove()


@pytest.mark.full
def test_a_root_that_only_one_kubernetes_node_can_mount_is_told(slurm):
    root = Root(slurm.cluster, "one-node", 30025)
    root.apply(access_mode="ReadWriteOnce")

    until(lambda: root.told("RootShared").get("reason") == "NotReadWriteMany", 60, root.told)
    assert "'jail' has the access modes ReadWriteOnce" in root.told("RootShared")["message"]
    until(lambda: root.told().get("status") == "True", 180, root.told)
    root.remove()


@pytest.mark.full
def test_a_plugin_that_root_replaces_in_the_root_is_used_by_no_step(slurm):
    """Steps have that of their own container, read-only."""
    directory = "/usr/lib/slurm-operator/plugins"
    in_volume = Jobs(slurm).ledgers.parent / directory.removeprefix("/") / "shared_root.so"
    in_volume.write_text("broken")
    try:
        refused = slurm.step_on(FIRST, f"echo broken > {directory}/shared_root.so || echo refused")
        assert refused == "refused\n"
        for worker in (FIRST, SECOND):
            assert slurm.step_on(worker, "cat /etc/hostname") == f"{worker}\n"
            assert int(slurm.step_on(worker, f"stat --format=%s {directory}/shared_root.so")) > len("broken")
    finally:
        in_volume.unlink()


@pytest.mark.full
def test_slurms_files_that_root_replaces_in_the_root_are_written_again(slurm):
    """Pods that run keep the directory that they mounted, and their jobs and steps go on."""
    job = Ledger(Jobs(slurm), f"--nodelist={SECOND}")
    replace = "mv /etc/slurm /etc/slurm.moved; mkdir /etc/slurm; echo Nonsense=1 > /etc/slurm/slurm.conf"
    slurm.run("sh", "-c", replace)
    try:
        spec = slurm.manifests()[1]["spec"]["customSlurmConfig"]
        slurm.patch("slurmclusters", CLUSTER, {"customSlurmConfig": f"{spec}JobFileAppend=1\n"})
        until(lambda: "JobFileAppend=1" in slurm.run("cat", "/etc/slurm/slurm.conf"), 120, slurm.told)

        assert "Nonsense" not in slurm.run("cat", "/etc/slurm/slurm.conf")
        assert slurm.step_on(FIRST, "cat /etc/hostname") == f"{FIRST}\n"
        assert "JobFileAppend" not in slurm.in_worker(FIRST, "cat", "/etc/slurm/slurm.conf")
        job.wait_ended_by_itself()
    finally:
        slurm.run("sh", "-c", "rm -r /etc/slurm && mv /etc/slurm.moved /etc/slurm")
        slurm.patch("slurmclusters", CLUSTER, {"customSlurmConfig": spec})
    until(lambda: "JobFileAppend" not in slurm.run("cat", "/etc/slurm/slurm.conf"), 120, slurm.told)
    slurm.wait_idle(FIRST, SECOND)


def is_running(pod: dict) -> bool:
    return pod["status"].get("phase") == "Running" and "deletionTimestamp" not in pod["metadata"]


@pytest.mark.full
def test_a_second_cluster_on_the_root_is_told_whose_it_is(slurm):
    second = slurm.manifests()[1]
    second["metadata"]["name"] = "second"
    second["spec"]["slurmNodes"]["login"]["sshdServiceNodePort"] = LOGIN_PORT + 2
    slurm.cluster.apply([second])

    def told() -> str:
        found = slurm.get(f"slurmclusters.{GROUP}/second").get("status", {}).get("conditions", ())
        return " ".join(one["message"] for one in found if one["reason"] == "RootTaken")

    until(lambda: f"SlurmCluster {NAMESPACE}/{CLUSTER}" in told(), 60, slurm.told)
    assert not [one for one in slurm.get("jobs")["items"] if one["metadata"]["name"].startswith("second-")]
    slurm.kubectl("delete", f"slurmclusters.{GROUP}", "second", "--timeout=120s")
    assert slurm.phase() == "Available"


def login_pods(slurm: SharedRootSlurm) -> list[str]:
    names = (one["metadata"]["name"] for one in slurm.get("pods")["items"])
    return [name for name in names if name.startswith(f"{CLUSTER}-login-")]


@pytest.mark.full
def test_a_broken_sssd_is_named_and_workers_can_still_be_removed(slurm):
    script = "echo no such domain > /dev/termination-log; exit 4"
    broken = {"image": image.slurm_image("slurmctld"), "command": ["sh", "-c", script]}
    slurm.patch("slurmclusters", CLUSTER, {"slurmNodes": {"controller": {"sssd": broken}}})

    def degraded() -> str:
        return slurm.conditions("slurmclusters", CLUSTER)["Degraded"].get("message", "")

    until(
        lambda: "container sssd that keeps ending with exit code 4: no such domain" in degraded(),
        180,
        slurm.told,
    )
    slurm.patch("nodesets", NODESET, {"replicas": 1})
    until(lambda: slurm.pods() == {FIRST} and slurm.node_states() == {FIRST: "idle"}, 120, slurm.told)

    slurm.patch("slurmclusters", CLUSTER, {"slurmNodes": {"controller": {"sssd": None}}})
    slurm.patch("nodesets", NODESET, {"replicas": 2})
    slurm.wait_idle(FIRST, SECOND)
    until(lambda: slurm.phase() == "Available", 120, slurm.told)


@pytest.mark.full
def test_users_of_a_directory_service_run_jobs_in_the_root(slurm, paths):
    slurm.cluster.apply(directory_service.manifests(NAMESPACE, paths, Quiet()))
    named = {"sssdConfSecretRefName": directory_service.SSSD_SECRET}
    wanted = {
        part: {"sssd": {"image": image.slurm_image(daemon)}, **named}
        for part, daemon in (("login", "login"), ("controller", "slurmctld"))
    }
    slurm.patch("slurmclusters", CLUSTER, {"slurmNodes": wanted})
    beside = slurm.manifests()[2]["spec"]["munge"]
    slurm.patch("nodesets", NODESET, {"sssd": beside, **named})

    # slurmctld, the login pod and both workers have been replaced then.
    until(lambda: len(slurm.with_volume("sssd-conf")) == 4, 240, slurm.told)
    until(lambda: slurm.phase() == "Available", 240, slurm.told)
    slurm.wait_idle(FIRST, SECOND)
    until(lambda: slurm.knows(directory_service.USER), 60, slurm.told)
    for worker in (FIRST, SECOND):
        said = slurm.step_on(worker, "whoami; id -u; id -gn", directory_service.USER)
        assert said.split() == [directory_service.USER, str(directory_service.NUMBER), "makers"]


@pytest.mark.full
def test_a_cluster_that_is_deleted_leaves_its_root_and_its_keys(slurm):
    slurm.run("sh", "-c", "echo stays > /home/stays")
    slurm.kubectl("delete", f"nodesets.{GROUP}", NODESET, "--timeout=180s")
    slurm.kubectl("delete", f"slurmclusters.{GROUP}", CLUSTER, "--timeout=180s")

    parts = "controllers,restapis,loginsets,accountings,jailedconfigs,statefulsets,deployments,jobs,roles,rolebindings"
    until(lambda: not slurm.get(parts)["items"], 120, lambda: slurm.kubectl("get", parts))
    assert "jail" in slurm.kubectl("get", "persistentvolumeclaims")
    for key in ("munge", "rest-jwt-key", "sshd-keys"):
        slurm.kubectl("get", "secret", f"{CLUSTER}-{key}")
    # The same manifests find both again.
    slurm.start()
    assert slurm.run("cat", "/home/stays") == "stays\n"
