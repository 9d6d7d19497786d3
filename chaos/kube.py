"""Objects of the tormented cluster, by requests to its API server."""

import http.client
from typing import Any

from chaos.impact import Missed
from slurm_local.cluster import Cluster
from slurm_local.errors import LocalError
from slurm_local.kubernetes.api_call import Refused

NAMESPACE = "chaos"
_OURS = f"/apis/slinky.slurm.net/v1beta1/namespaces/{NAMESPACE}"

_PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
_APPLY = "application/apply-patch+yaml"
_MERGE = "application/merge-patch+json"
_WORKERS = "labelSelector=app.kubernetes.io%2Fname%3Dslurmd"


class Unwilling(Missed):
    """Refused, or there was nobody to ask."""


class Kube:
    """As administrator. Every call raises Unwilling when it is refused, or when nobody answers."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def call(self, method: str, path: str, body: object = None, kind: str = "application/json") -> Any:
        try:
            return self._cluster.caller.call(method, path, body, kind=kind)
        except (Refused, OSError, http.client.HTTPException, LocalError) as error:
            raise Unwilling(f"{method} {path}: {error}") from error

    def get(self, kind: str, name: str) -> dict[str, Any]:
        found: dict[str, Any] = self.call("GET", f"{_OURS}/{kind}/{name}")
        return found

    def workload(self, kind: str, name: str) -> dict[str, Any]:
        """A Deployment or StatefulSet of the Slurm cluster."""
        found: dict[str, Any] = self.call("GET", f"/apis/apps/v1/namespaces/{NAMESPACE}/{kind}/{name}")
        return found

    def apply(self, wanted: dict[str, Any]) -> None:
        """Makes an object of ours be so."""
        path = f"{_OURS}/{wanted['kind'].lower()}s/{wanted['metadata']['name']}"
        self.call("PATCH", f"{path}?fieldManager=chaos&force=true", wanted, _APPLY)

    def patch(self, kind: str, name: str, spec: object) -> None:
        self.call("PATCH", f"{_OURS}/{kind}/{name}", {"spec": spec}, _MERGE)

    def delete(self, kind: str, name: str) -> None:
        self.call("DELETE", f"{_OURS}/{kind}/{name}")

    def delete_pod(self, name: str) -> None:
        self.call("DELETE", f"{_PODS}/{name}")

    def evict(self, pod: str) -> None:
        meta = {"name": pod, "namespace": NAMESPACE}
        body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": meta}
        self.call("POST", f"{_PODS}/{pod}/eviction", body)

    def set_cordon(self, machine: int, *, is_on: bool) -> None:
        path = f"/api/v1/nodes/node-{machine}"
        self.call("PATCH", path, {"spec": {"unschedulable": is_on or None}}, _MERGE)

    def workers(self) -> list[str]:
        found = self.call("GET", f"{_PODS}?{_WORKERS}")["items"]
        return [pod["metadata"]["name"] for pod in found]

    def machine_of(self, worker: str) -> int:
        """The number of the machine that a worker runs on."""
        node_name = self.call("GET", f"{_PODS}/{worker}")["spec"].get("nodeName", "")
        if not node_name:
            raise Missed(f"{worker} is nowhere yet")
        return int(node_name.rpartition("-")[2])

    def workers_on(self, machine: int) -> set[str]:
        found = self.call("GET", f"{_PODS}?{_WORKERS}&fieldSelector=spec.nodeName%3Dnode-{machine}")["items"]
        return {pod["metadata"]["name"] for pod in found}
