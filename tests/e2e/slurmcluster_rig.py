"""A SlurmCluster with two workers on a shared root, in a Kubernetes of its own."""

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from operator_rig import job_state, until

from slurm_local import image, shared_root_cluster, stop
from slurm_local.cluster import Cluster
from slurm_local.errors import LocalError
from slurm_local.paths import Paths
from slurm_local.progress import PlainProgress, Quiet
from slurm_local.shared_root_cluster import CLUSTER, GROUP, LOGIN_PORT, NAMESPACE, NODESET
from slurm_local.slurm_cluster import install
from slurm_local.start import Wanted, up
from slurm_operator.api import registry
from slurm_operator.api.nebius import names
from testing import rights
from testing.audit import audit_flags

FIRST, SECOND = f"{NODESET}-0", f"{NODESET}-1"
MARKER = "etc/soperator-jail-populated"

CHOSEN = {"k8sNodeFilterName": "all"}
ACCOUNTING = {
    **CHOSEN,
    "enabled": True,
    "slurmdbd": {"image": image.slurm_image("slurmdbd"), "port": 6819},
    "munge": {"image": image.slurm_image("slurmd")},
    "mariadbOperator": {"enabled": True, "image": image.slurm_image("mariadb"), "storage": {"size": "1Gi"}},
}


def key_pair() -> tuple[str, str]:
    key = Ed25519PrivateKey.generate()
    private = key.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption()).decode()
    return private, key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode()


class SharedRootSlurm:
    """`demo` of `slurm-operator up --api slurm.nebius.ai`, with a key for root that nobody else has."""

    def __init__(self, cluster: Cluster, **nodes: dict) -> None:
        """`nodes` replaces parts of the SlurmCluster, such as its accounting."""
        self.cluster = cluster
        self.nodes = nodes
        self.private, self.public = key_pair()

    def manifests(self, workers: int = 2) -> list[dict]:
        made = shared_root_cluster.manifests(workers)
        parts = made[1]["spec"]["slurmNodes"]
        parts |= self.nodes
        parts["login"]["sshRootPublicKeys"] = [self.public.strip()]
        return made

    def start(self) -> None:
        self.cluster.apply([{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}])
        self.cluster.apply(self.manifests())
        until(lambda: self.phase() == "Available", 300, lambda: f"Available: {self.told()}")
        self.wait_idle(FIRST, SECOND)

    def kubectl(self, *arguments: str) -> str:
        return self.cluster.kubectl("-n", NAMESPACE, *arguments)

    def get(self, what: str) -> dict:
        return json.loads(self.kubectl("get", what, "-o", "json"))

    def phase(self) -> str:
        return self.get(f"slurmclusters.{GROUP}/{CLUSTER}").get("status", {}).get("phase", "")

    def conditions(self, kind: str, name: str) -> dict[str, dict]:
        found = self.get(f"{kind}.{GROUP}/{name}").get("status", {}).get("conditions", ())
        return {one["type"]: one for one in found}

    def told(self) -> str:
        """What both objects say about themselves; for messages of tests."""
        found = [self.get(f"slurmclusters.{GROUP}/{CLUSTER}"), self.get(f"nodesets.{GROUP}/{NODESET}")]
        conditions = [one for each in found for one in each.get("status", {}).get("conditions", ())]
        return json.dumps({one["type"]: (one["status"], one.get("message", "")) for one in conditions})

    def power(self) -> str:
        """What power states and nodes say; for messages of tests."""
        found = self.get(f"nodesetpowerstates.{GROUP}")["items"]
        return f"{json.dumps([(one['spec'], one.get('status')) for one in found])} {self.node_states()}"

    def patch(self, kind: str, name: str, spec: dict) -> None:
        body = json.dumps({"spec": spec})
        self.kubectl("patch", f"{kind}.{GROUP}", name, "--type=merge", "-p", body)

    def run(self, *command: str) -> str:
        """What a command prints in the root, on the login pod."""
        return shared_root_cluster.login(self.cluster, *command)

    def beside_slurmctld(self, *command: str) -> str:
        return self.kubectl(
            "exec", f"{CLUSTER}-controller-0", "-c", "slurmctld", "--", "timeout", "30", *command
        )

    def in_worker(self, name: str, *command: str) -> str:
        """In the container of slurmd, outside the root."""
        return self.kubectl("exec", name, "-c", "slurmd", "--", *command)

    def step_on(self, worker: str, script: str, user: str = "root") -> str:
        """What a step of that user on that worker prints."""
        step = ("srun", f"--nodelist={worker}", "--chdir=/", "sh", "-c", script)
        return self.run("runuser", "--user", user, "--", *step)

    def submit(self, worker: str, script: str) -> int:
        options = ["--parsable", f"--nodelist={worker}", "--chdir=/", "--output=/dev/null"]
        return int(self.run("sbatch", *options, f"--wrap={script}").strip())

    def job_state(self, job: int) -> str:
        return job_state(self.run, job)

    def node_states(self) -> dict[str, str]:
        try:
            out = self.run(
                "sinfo", "--noheader", "--Node", "--partition=main", "--Format=NodeList:60,StateLong:40"
            )
        except (LocalError, subprocess.TimeoutExpired):
            return {}
        return dict(line.split() for line in out.splitlines() if len(line.split()) == 2)

    def wait_idle(self, *workers: str) -> None:
        until(
            lambda: {name for name, state in self.node_states().items() if state == "idle"} == set(workers),
            180,
            lambda: f"{workers} to be idle: {self.node_states()} {self.told()}",
        )

    def pods(self) -> set[str]:
        """Worker pods by name."""
        found = self.get("pods")["items"]
        return {
            one["metadata"]["name"] for one in found if "slurm.nebius.ai/worker" in one["metadata"]["labels"]
        }

    def with_volume(self, name: str) -> list[str]:
        """Pods that have such a volume."""
        found = self.get("pods")["items"]
        having = [one for one in found if any(v["name"] == name for v in one["spec"].get("volumes") or ())]
        return [one["metadata"]["name"] for one in having]

    def knows(self, user: str) -> bool:
        """Whether programs in the root of the login pod can look this user up."""
        try:
            return user in self.run("getent", "passwd", user)
        except LocalError:
            return False

    def by_ssh(self, *command: str) -> str:
        """From outside the root to the login pod, through the port of a Kubernetes node that the manifest asks for."""
        node = self.get("nodes")["items"][0]
        address = next(one["address"] for one in node["status"]["addresses"] if one["type"] == "InternalIP")
        script = (
            f"umask 077; echo '{self.private}' > /tmp/key; "
            f"exec ssh -i /tmp/key -p {LOGIN_PORT} -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null "
            f'-o LogLevel=ERROR root@{address} "$@"'
        )
        return self.beside_slurmctld("sh", "-c", script, "ssh", *command)

    def process(self, worker: str, pattern: str) -> str:
        """The id of a process in the container of slurmd; nothing where there is none."""
        find = 'pgrep --full --oldest "$1" || test $? = 1'
        return self.in_worker(worker, "sh", "-c", find, "find", pattern).strip()


@contextmanager
def running(wanted: Wanted, paths: Paths, place: Path, **nodes: dict) -> Iterator[SharedRootSlurm]:
    """A Kubernetes with this operator and a SlurmCluster, which writes down what the operator asks of it."""
    archives = (*wanted.archives, image.populate_archive(paths, PlainProgress()))
    name, flags = f"e2e-root-{os.getpid()}", tuple(audit_flags(place, "Metadata"))
    cluster, _ = up(replace(wanted, name=name, archives=archives, api_flags=flags), paths, Quiet())
    try:
        cluster.load_image(image.operator_archive(paths, Quiet()))
        install(cluster, image.OPERATOR_IMAGE, registry.ALL)
        made = SharedRootSlurm(cluster, **nodes)
        made.start()
        yield made
    finally:
        stop.down(name, paths, Quiet())
    assert rights.refused(place / "audit.log") == []


class Jobs:
    """What a ledger asks of Slurm; it is kept in the shared root, which is a directory of this machine."""

    def __init__(self, slurm: SharedRootSlurm) -> None:
        self.run, self.job_state, self.states = slurm.run, slurm.job_state, slurm.node_states
        self.namespace, self.keeps_books = NAMESPACE, "accounting" in slurm.nodes
        claim = slurm.get(f"persistentvolumeclaims/{names.JAIL}")["spec"]["volumeName"]
        volume = json.loads(slurm.cluster.kubectl("get", "persistentvolume", claim, "-o", "json"))["spec"]
        self.ledgers = Path(volume["hostPath"]["path"]) / "ledgers"
        self.ledgers.mkdir(exist_ok=True)

    def submit(self, script: str, *options: str) -> int:
        given = ("--parsable", "--chdir=/", "--output=/dev/null", *options)
        return int(self.run("sbatch", *given, f"--wrap={script}").strip())


class Root:
    """A SlurmCluster without workers in a namespace of its own: what becomes of its root."""

    def __init__(self, cluster: Cluster, namespace: str, login_port: int) -> None:
        self.cluster = cluster
        self.namespace = namespace
        self.login_port = login_port

    def apply(self, access_mode: str = "ReadWriteMany", **spec) -> None:
        self.cluster.apply([{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.namespace}}])
        claim, made, _ = shared_root_cluster.manifests(0, self.namespace, login_port=self.login_port, **spec)
        claim["spec"]["accessModes"] = [access_mode]
        self.cluster.apply([claim, made])

    def kubectl(self, *arguments: str) -> str:
        return self.cluster.kubectl("-n", self.namespace, *arguments)

    def told(self, type_: str = "RootPopulated") -> dict:
        """A condition about the root."""
        found = json.loads(self.kubectl("get", f"slurmclusters.{GROUP}/{CLUSTER}", "-o", "json"))
        conditions = found.get("status", {}).get("conditions", ())
        return next((one for one in conditions if one["type"] == type_), {})

    def pods(self, component: str) -> list[dict]:
        label = f"app.kubernetes.io/component={component}"
        return json.loads(self.kubectl("get", "pods", "-l", label, "-o", "json"))["items"]

    def remove(self) -> None:
        self.kubectl("delete", f"slurmclusters.{GROUP}", CLUSTER, "--timeout=120s")
        self.cluster.kubectl("delete", "namespace", self.namespace, "--wait=false")
