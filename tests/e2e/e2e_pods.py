"""Small pods that tests talk to, and ways to ask them."""

from typing import Any

from slurm_local import image
from slurm_local.cluster import Cluster
from slurm_local.errors import LocalError
from slurm_local.machine.cell import wait_until

# Answers every connection with the pod's own name.
_SERVER = """
use IO::Socket::INET;
$| = 1;
my $listener = IO::Socket::INET->new(LocalPort => 8080, Listen => 16, ReuseAddr => 1) or die;
print "listening\\n";
while (my $peer = $listener->accept) { print $peer $ENV{HOSTNAME}; close $peer }
"""
_ASK = 'my $s = IO::Socket::INET->new(PeerAddr => $ARGV[0], PeerPort => 8080, Timeout => 5) or die "$@"; print <$s>'


def server(name: str, node: str | None = None, **spec: object) -> dict[str, Any]:
    """A pod that answers with its name."""
    container = {"name": "server", "image": image.SLURM_IMAGE, "imagePullPolicy": "Never"}
    command = {"command": ["tini", "--", "perl", "-e", _SERVER]}
    probe = {"readinessProbe": {"tcpSocket": {"port": 8080}, "periodSeconds": 1}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": "server"}},
        "spec": {
            "containers": [{**container, **command, **probe}],
            "terminationGracePeriodSeconds": 1,
            "hostname": name,
            "subdomain": "servers",
            **({"nodeSelector": {"kubernetes.io/hostname": node}} if node else {}),
            **spec,
        },
    }


def service(name: str, **spec: object) -> dict[str, Any]:
    ports = [{"port": 8080}]
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name},
        "spec": {"selector": {"app": "server"}, "ports": ports, **spec},
    }


def run(cluster: Cluster, namespace: str, *objects: dict[str, Any]) -> None:
    """Makes the objects and waits until every pod among them is Ready."""
    for each in objects:
        each["metadata"]["namespace"] = namespace
    cluster.apply(list(objects))
    names = [f"pod/{each['metadata']['name']}" for each in objects if each["kind"] == "Pod"]
    if names:
        cluster.kubectl("wait", "-n", namespace, "--for=condition=Ready", "--timeout=60s", *names)


def ask(cluster: Cluster, namespace: str, pod: str, host: str) -> str:
    """What `host` answers when `pod` asks."""
    command = ["perl", "-MIO::Socket::INET", "-e", _ASK, host]
    return cluster.kubectl("exec", "-n", namespace, pod, "--", *command, timeout_s=30)


def wait_named(cluster: Cluster, namespace: str, pod: str, host: str, who: str) -> None:
    """Until `who` answers when `pod` asks for `host`: names follow pods that are Ready, a moment later."""

    def is_so() -> bool:
        try:
            return ask(cluster, namespace, pod, host) == who
        except LocalError:
            return False

    wait_until(is_so, f"{host} to be {who}")


def address(cluster: Cluster, namespace: str, pod: str) -> str:
    return cluster.kubectl("get", "pod", "-n", namespace, pod, "-o", "jsonpath={.status.podIP}")


def make_namespace(cluster: Cluster, name: str) -> None:
    """A namespace that pods can be made in."""
    cluster.kubectl("create", "namespace", name)
    accounts = f"/api/v1/namespaces/{name}/serviceaccounts"
    wait_until(lambda: bool(cluster.items(accounts)), f"namespace {name} to be ready for pods")
