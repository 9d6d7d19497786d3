"""slurmctld goes and comes back, or another takes its place: jobs go on, clients find it, and only one is in charge."""

import contextlib
import json

import pytest
from control_plane_rig import ControlPlane, control_plane, without_operator
from job_ledger import Ledger
from operator_rig import PROCESS_CONF, install, until

pytestmark = pytest.mark.timeout(900)

CONF = (
    PROCESS_CONF + "SlurmctldTimeout=10\nPartitionName=all Nodes=ALL Default=YES State=UP MaxTime=UNLIMITED\n"
)


@pytest.fixture(scope="module")
def operator(cluster, operator_image):
    install(cluster, operator_image)
    return cluster


def state_claim(slurm: ControlPlane) -> dict:
    """Where both slurmctlds keep their state."""
    return {
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "state", "namespace": slurm.namespace},
        "spec": {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Gi"}}},
    }  # fmt: skip


@pytest.fixture(scope="module")
def pair(operator):
    """A slurmctld with a backup, each on a machine of its own."""
    persistence = {"enabled": True, "existingClaim": "state"}
    ha = {"enabled": True, "backups": 1}
    with control_plane(operator, state_claim, extraConf=CONF, persistence=persistence, ha=ha) as made:
        until(lambda: len(made.heads()) == 2, what=lambda: made.heads())
        until(lambda: made.status().get("active"), what=made.told)
        yield made


def pods(slurm: ControlPlane) -> list[dict]:
    return slurm.cluster.items(
        f"/api/v1/namespaces/{slurm.namespace}/pods?labelSelector=app.kubernetes.io/name=slurmctld"
    )


def ready(slurm: ControlPlane) -> list[str]:
    """Of several slurmctlds only the one in charge is ready."""
    return [
        item["metadata"]["name"]
        for item in pods(slurm)
        if any(c["type"] == "Ready" and c["status"] == "True" for c in item["status"].get("conditions", ()))
    ]


def running(slurm: ControlPlane) -> list[str]:
    """Pods whose slurmctld runs, in charge or not, and that nobody has asked to end."""
    return [
        item["metadata"]["name"]
        for item in pods(slurm)
        if "deletionTimestamp" not in item["metadata"]
        for one in item["status"].get("containerStatuses", ())
        if one["name"] == "slurmctld" and "running" in one["state"]
    ]


def settle(slurm: ControlPlane) -> str:
    """Until both run and one is in charge for good: a first one that comes back takes over again. Gives its name."""
    seen: list[list[str]] = []

    def is_settled() -> bool:
        seen.append(ready(slurm) if len(running(slurm)) == 2 else [])
        return len(seen) >= 10 and len(seen[-1]) == 1 and all(one == seen[-1] for one in seen[-10:])

    until(is_settled, 240, lambda: f"one in charge: {seen[-10:]} {slurm.told()}")
    assert max(map(len, seen)) == 1, f"never two in charge: {seen}"
    slurm.head = seen[-1][0]
    return slurm.head


@contextlib.contextmanager
def closed(slurm: ControlPlane, name: str):
    """Nothing new starts on the machine of this pod, so that it cannot come back there."""
    machine = slurm.get("pod", name)["spec"]["nodeName"]
    slurm.cluster.kubectl("cordon", machine)
    try:
        yield
    finally:
        slurm.cluster.kubectl("uncordon", machine)


def fail_over(slurm: ControlPlane) -> str:
    """The slurmctld in charge dies and does not come back; gives the one that took over."""
    [first] = ready(slurm)
    [second] = set(slurm.heads()) - {first}
    seen: list[list[str]] = []
    slurm.cluster.kubectl("delete", "pod", first, "-n", slurm.namespace, "--grace-period=1", "--wait=false")
    slurm.head = second
    until(lambda: seen.append(ready(slurm)) or seen[-1] == [second], 180, lambda: f"{second}: {seen[-3:]}")
    assert max(len(one) for one in seen) == 1, f"never two in charge: {seen}"
    return second


def next_step(slurm: ControlPlane, job: Ledger) -> str:
    """What one more step of a running job prints: slurmctld and slurmd understand each other."""
    return slurm.answers("srun", "--overlap", f"--jobid={job.job}", "hostname")


def clients_find_it(slurm: ControlPlane) -> bool:
    """Through the Service, from a worker."""
    connect = f"exec 3<>/dev/tcp/slurm-controller.{slurm.namespace}/6817 && echo connected"
    out = slurm.cluster.kubectl(
        "exec", "-n", slurm.namespace, "cpu-0", "-c", "slurmd", "--", "timeout", "10", "bash", "-c", f"{connect} || true",
        timeout_s=30,
    )  # fmt: skip
    return "connected" in out


@pytest.mark.full
def test_a_backup_takes_over_and_the_job_goes_on(pair):
    first = settle(pair)
    job = Ledger(pair)

    with closed(pair, first):
        second = fail_over(pair)

        until(lambda: pair.status().get("active") == second, 60, pair.told)
        until(lambda: job.node in next_step(pair, job), 120, pair.told)
        assert job.is_running()
        assert clients_find_it(pair)
        labels = pair.get("pod", second)["metadata"]["labels"]
        assert labels.get("controller.slinky.slurm.net/active") == "true"
    head = settle(pair)
    until(lambda: pair.status().get("active") == head, 60, pair.told)
    job.wait_ended_by_itself()


@pytest.mark.full
def test_a_backup_takes_over_without_the_operator(pair):
    first = settle(pair)
    pair.wait_idle(1)
    job = Ledger(pair)

    with without_operator(pair.cluster), closed(pair, first):
        fail_over(pair)
        until(lambda: job.node in next_step(pair, job), 120, lambda: pair.states())
        assert job.is_running()
        assert clients_find_it(pair)
    head = settle(pair)
    until(lambda: pair.status().get("active") == head, 120, pair.told)
    job.wait_ended_by_itself()


@pytest.mark.full
def test_a_change_of_the_template_replaces_the_standby_first_and_never_both(pair):
    active = settle(pair)
    pair.wait_idle(1)
    job = Ledger(pair)
    before = pair.heads()
    order: list[str] = []
    least: list[str] = [*before]

    def replaced() -> bool:
        nonlocal least
        now, least = pair.heads(), min(least, running(pair), key=len)
        order.extend(
            name for name in before if name not in order and now.get(name, before[name]) != before[name]
        )
        return len(order) == 2

    template = {**pair.get("controller")["spec"]["template"], "metadata": {"labels": {"changed": "yes"}}}
    pair.cluster.kubectl(
        "patch", "controller", "slurm", "-n", pair.namespace, "--type=merge", "-p", json.dumps({"spec": {"template": template}})
    )  # fmt: skip
    until(replaced, 300, lambda: f"{order} {pair.told()}")
    assert order[1] == active
    assert least, "one of them always runs"
    settle(pair)
    assert job.is_running()
    job.wait_ended_by_itself()


def test_clients_find_slurmctld_again_without_the_operator(operator):
    """The Service needs nobody who keeps it up to date."""
    with control_plane(operator, extraConf=CONF) as slurm:
        job = Ledger(slurm)
        with without_operator(operator):
            assert clients_find_it(slurm)
            slurm.kill_head()
            until(lambda: clients_find_it(slurm), what=lambda: slurm.heads())
            until(lambda: job.node in next_step(slurm, job), 120, lambda: slurm.states())
            assert job.is_running()
        job.wait_ended_by_itself()
