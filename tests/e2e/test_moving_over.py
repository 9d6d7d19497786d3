"""The guide from Slinky, typed command by command on a live cluster while a job runs: image, charts, release, and back.

Slinky's charts are stand-ins (`testing.slinky_charts`); of its programs nothing runs, so what its operator would have
made is made by hand (`inherited.py`). Its Slurm images are ours. Everything else is real.
"""

import json
import re
from pathlib import Path

import pytest
import yaml
from control_plane_rig import ControlPlane
from helm_rig import OPERATOR_VALUES
from inherited import CONF, Inherited
from job_ledger import Ledger
from operator_rig import LEDGER_MOUNT, until
from test_takeover import lives, pod_is_ready
from test_worker_forgotten import commands_of

from slurm_local import image
from slurm_local.cluster import Cluster
from slurm_local.image.images import slurm_image
from slurm_local.paths import Paths
from slurm_local.progress import Quiet
from slurm_operator.api.shared.names import APP_NAME
from testing.docs import Terminal
from testing.slinky_charts import write_charts

pytestmark = [pytest.mark.timeout(1800), pytest.mark.minutes]

HOME = "slinky"  # Where Slinky's operator is, as its own guide says.
NODESET = "slurm-worker-slinky"
NAMES = {
    "SLINKY-CHART": "slinky/slurm-operator",
    "SLINKY-WEBHOOK-IMAGE": "ghcr.io/slinkyproject/slurm-operator-webhook:1.3.0",
    "SLINKY-IMAGE": "ghcr.io/slinkyproject/slurm-operator:1.3.0",
    "WEBHOOK-IMAGE": image.WEBHOOK_IMAGE,
    "=IMAGE": f"={image.OPERATOR_IMAGE}",
}
UNPRIVILEGED = {
    "privileged": False,
    "capabilities": {"add": ["SETUID", "SETGID", "CHOWN", "KILL"], "drop": ["ALL"]},
}


def own_settings(kind: str, spec: dict, slurm: ControlPlane) -> None:
    """What this user's values say, in the objects that Slinky's chart renders of them."""
    daemon = {"Controller": "slurmctld", "RestApi": "slurmrestd", "NodeSet": "slurmd"}[kind]
    spec[daemon] |= {"image": slurm_image(daemon)}
    if kind == "RestApi":
        return
    spec[daemon] |= {"volumeMounts": [LEDGER_MOUNT]}
    spec["logfile"]["image"] = slurm_image(daemon)
    spec["template"]["spec"]["volumes"] = [slurm.ledger_volume]
    if kind == "Controller":
        spec["reconfigure"]["image"] = slurm_image(daemon)
        spec |= {"extraConf": CONF, "configFileRefs": [{"name": "files"}]}
        spec["persistence"]["resources"]["requests"]["storage"] = "1Gi"
    else:
        spec[daemon]["securityContext"] = UNPRIVILEGED
        spec["oversubscribeNode"] = True


def values(slurm: ControlPlane) -> dict:
    """The same for our chart."""
    pod = {"nodeSelector": {"kubernetes.io/os": "linux"}, "volumes": [slurm.ledger_volume]}
    mounts = {"volumeMounts": [LEDGER_MOUNT]}
    return {
        "imagePullPolicy": "IfNotPresent",
        "defaultImages": slurm_image("{daemon}"),
        "controller": {
            "slurmctld": mounts,
            "logfile": {"image": slurm_image("slurmctld")},
            "extraConf": CONF,
            "podSpec": pod,
            "persistence": {"resources": {"requests": {"storage": "1Gi"}}},
        },
        "configFiles": {"cgroup.conf": "CgroupPlugin=disabled\n"},
        "nodesets": {
            "slinky": {
                "replicas": 2,
                "slurmd": {**mounts, "securityContext": UNPRIVILEGED},
                "logfile": {"image": slurm_image("slurmd")},
                "oversubscribeNode": True,
                "partition": {"enabled": True},
                "podSpec": pod,
            }
        },
    }


class Mover:
    """Somebody with Slinky's operator, one cluster, and the guide."""

    def __init__(self, slurm: ControlPlane, terminal: Terminal) -> None:
        self.slurm, self.terminal = slurm, terminal

    def type(self, text: str, codes: tuple[int, ...] = (0,)) -> str:
        for name, own in NAMES.items():
            text = re.sub(
                rf"(?<![A-Z-]){re.escape(name)}\b" if name[0] != "=" else re.escape(name), own, text
            )
        done = self.terminal.type(text)
        assert done.returncode in codes, f"{text}\n{done.stdout}{done.stderr}\n{self.state()}"
        return done.stdout

    def section(self, title: str) -> None:
        for command in commands_of(title):
            self.type(command)

    def state(self) -> str:
        pods = self.slurm.cluster.kubectl("get", "pods", "-A", "-o", "wide")
        return f"{pods}\n{self.slurm.told()}"

    def wait_ours(self) -> None:
        """Our operator acts, and everything is ready."""
        for name in ("slurm-operator", "slurm-operator-webhook"):
            self.type(f"kubectl -n {HOME} rollout status deployment/{name} --timeout=180s")
        for what in ("controllers", "restapis", "nodesets"):
            for condition in ("Ready", "Degraded=false"):
                self.type(
                    f"kubectl -n slurm wait --for=condition={condition} {what}.slinky.slurm.net --all --timeout=180s"
                )


@pytest.fixture
def mover(fragile_cluster: Cluster, paths: Paths, tmp_path: Path) -> Mover:
    cluster = fragile_cluster
    cluster.load_image(image.operator_archive(paths, Quiet()))
    terminal = Terminal(
        tmp_path / "home", cluster.kubeconfig, kubectl=cluster.kubectl_program, helm=cluster.helm_program
    )
    write_charts(terminal.directory / "slinky")
    slurm = ControlPlane(cluster, "slurm")
    made = Mover(slurm, terminal)
    cluster.kubectl("create", "namespace", "slurm")
    slurm.apply(slurm.files())
    set_up(made)
    return made


def set_up(mover: Mover) -> None:
    """Slinky's releases, and what its operator made of them."""
    slurm, terminal = mover.slurm, mover.terminal
    mover.type("helm install slurm-operator-crds slinky/slurm-operator-crds")
    mover.type(f"helm install slurm-operator slinky/slurm-operator -n {HOME} --create-namespace")
    mover.type("kubectl wait --for=condition=Established crd --all --timeout=60s")
    rendered = mover.type("helm template slurm slinky/slurm -n slurm")
    objects = [one for one in yaml.safe_load_all(rendered) if one and one["kind"] != "LoginSet"]
    for one in objects:
        if one["kind"] in ("Controller", "RestApi", "NodeSet"):
            own_settings(one["kind"], one["spec"], slurm)
    chart = terminal.directory / "slinky" / "slurm" / "templates" / "cluster.yaml"
    chart.write_text(yaml.safe_dump_all(objects).replace("{{", "{{ `{{` }}"))
    mover.type("helm install slurm slinky/slurm -n slurm")
    Inherited(slurm, nodeset=NODESET, hostname="slinky-", keys=("slurm-auth-slurm", "slurm-auth-jwt")).make()
    until(lambda: pod_is_ready(slurm, "slurm-controller-0"), 120, mover.state)
    slurm.kubectl("label", "pod", "slurm-controller-0", "controller.slinky.slurm.net/active=true")
    slurm.wait_idle(2)
    for name, content in (
        ("values.yaml", OPERATOR_VALUES),
        ("slinky-values.yaml", {}),
        ("slurm-values.yaml", values(slurm)),
    ):
        (terminal.directory / name).write_text(yaml.safe_dump(content))


def pods_of(slurm: ControlPlane) -> dict[str, tuple[str, int]]:
    """Of the cluster, with their uids and restarts; no pod of a rehearsal."""
    found = json.loads(slurm.kubectl("get", "pods", "-o", "json"))["items"]
    names = {
        f"Pod/{one['metadata']['name']}"
        for one in found
        if one["metadata"]["labels"].get(APP_NAME) in ("slurmctld", "slurmd", "slurmrestd")
    }
    return {name: life for name, life in lives(slurm).items() if name in names}


def test_the_guide_is_typed_there_and_back_while_jobs_run(mover):
    slurm = mover.slurm
    job, before = Ledger(slurm, "--exclusive"), pods_of(slurm)
    assert len(before) == 4

    told = mover.type("kubectl slurm doctor --from slinky", codes=(0, 1))
    assert "1 NodeSet" in told
    mover.section("Never uninstall the CRDs")

    mover.section("Swap the image")
    mover.wait_ours()
    assert (job.is_running(), pods_of(slurm)) == (True, before)
    mover.section("Going back")
    mover.section("Back by image")
    assert (job.is_running(), pods_of(slurm)) == (True, before)

    mover.section("CRDs in a chart of their own")
    mover.wait_ours()
    assert (job.is_running(), pods_of(slurm)) == (True, before)

    mover.section("The release of a Slurm cluster")
    mover.wait_ours()
    until(lambda: slurm.status().get("config", {}).get("owed") == "nothing", 180, slurm.told)
    job.outlives(20)
    after = pods_of(slurm)
    workers = [name for name in before if "worker" in name]
    assert {name: after.get(name) for name in workers} == {name: before[name] for name in workers}, (
        f"the charts mean the same workers: {complaints_of(mover)}"
    )
    job.wait_ended_by_itself()

    slurm.wait_idle(2)
    second = Ledger(slurm, "--exclusive")
    assert second.node in {"slinky-0", "slinky-1"}
    before = pods_of(slurm)
    mover.section("Going back")
    mover.section("Back by chart")
    assert (second.is_running(), pods_of(slurm)) == (True, before)
    second.wait_ended_by_itself()
    slurm.wait_idle(2)


def complaints_of(mover: Mover) -> str:
    return mover.slurm.kubectl("get", "events", "--sort-by=.lastTimestamp")[-4000:]
