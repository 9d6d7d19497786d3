"""Names inside the cluster: CoreDNS as a process on the first node, behind the usual service."""

import http.client
from pathlib import Path

from slurm_local.kubernetes.commands import DNS_ADDRESS

USER = "system:coredns"
READY_PORT = 8181


def corefile(address: str, kubeconfig: Path) -> str:
    """No cache and a short life, so that a new pod has its name at once; names outside do not exist."""
    return f"""\
cluster.local:53 in-addr.arpa:53 ip6.arpa:53 {{
    bind {address}
    errors
    ready :{READY_PORT}
    kubernetes cluster.local in-addr.arpa ip6.arpa {{
        kubeconfig {kubeconfig}
        pods insecure
        ttl 1
    }}
}}
.:53 {{
    bind {address}
    template ANY ANY . {{
        rcode NXDOMAIN
    }}
}}
"""


def command(program: Path, file: Path) -> list[str]:
    return [str(program), "-conf", str(file)]


def objects(address: str) -> list[dict[str, object]]:
    """The service that pods ask, and CoreDNS' right to read names."""
    ports = [{"name": name, "port": 53, "protocol": name.upper()} for name in ("udp", "tcp")]
    meta = {"name": "kube-dns", "namespace": "kube-system"}
    role = {"name": USER, "labels": {"app.kubernetes.io/managed-by": "slurm-operator-local"}}
    return [
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": meta | {"labels": {"k8s-app": "kube-dns", "kubernetes.io/name": "CoreDNS"}},
            "spec": {"clusterIP": DNS_ADDRESS, "ports": ports},
        },
        {
            "apiVersion": "discovery.k8s.io/v1",
            "kind": "EndpointSlice",
            "metadata": meta | {"labels": {"kubernetes.io/service-name": "kube-dns"}},
            "addressType": "IPv4",
            "endpoints": [{"addresses": [address], "conditions": {"ready": True}}],
            "ports": ports,
        },
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRole",
            "metadata": role,
            "rules": [
                {
                    "apiGroups": [""],
                    "resources": ["services", "namespaces", "pods"],
                    "verbs": ["list", "watch"],
                },
                {
                    "apiGroups": ["discovery.k8s.io"],
                    "resources": ["endpointslices"],
                    "verbs": ["list", "watch"],
                },
            ],
        },
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": role,
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": USER},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": USER}],
        },
    ]


def is_ready(address: str) -> bool:
    """Whether CoreDNS has read all names and answers."""
    connection = http.client.HTTPConnection(address, READY_PORT, timeout=2)
    try:
        connection.request("GET", "/ready")
        return connection.getresponse().status == http.client.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
