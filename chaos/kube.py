"""Objects of the tormented cluster, by requests to its API server."""

import http.client
from typing import Any, NamedTuple
from urllib.parse import quote

from chaos.impact import Missed
from slurm_local.cluster import Cluster
from slurm_local.errors import LocalError
from slurm_local.kubernetes.api_call import Refused
from slurm_operator.api import registry
from slurm_operator.api.schema.kind import Kind

NAMESPACE = "chaos"
_PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
_APPLY = "application/apply-patch+yaml"
_MERGE = "application/merge-patch+json"


class Named(NamedTuple):
    """One object of the Slurm cluster."""

    kind: Kind
    name: str

    @property
    def path(self) -> str:
        return self.kind.path(NAMESPACE, self.name)


class Change(NamedTuple):
    """A merge patch of an object's spec."""

    of: Named
    spec: dict[str, Any]


class Unwilling(Missed):
    """Refused, or there was nobody to ask."""


class Kube:
    """As administrator. Every call raises Unwilling when it is refused, or when nobody answers."""

    def __init__(self, cluster: Cluster, worker_label: str) -> None:
        self._cluster = cluster
        self._workers = f"labelSelector={quote(worker_label, safe='')}"

    def call(self, method: str, path: str, body: object = None, kind: str = "application/json") -> Any:
        try:
            return self._cluster.caller.call(method, path, body, kind=kind)
        except (Refused, OSError, http.client.HTTPException, LocalError) as error:
            raise Unwilling(f"{method} {path}: {error}") from error

    def get(self, of: Named) -> dict[str, Any]:
        found: dict[str, Any] = self.call("GET", of.path)
        return found

    def apply(self, wanted: dict[str, Any]) -> None:
        """Makes an object of ours be so."""
        known = registry.ALL.find(wanted["apiVersion"].partition("/")[0], wanted["kind"])
        assert known is not None
        path = Named(known.kind, wanted["metadata"]["name"]).path
        self.call("PATCH", f"{path}?fieldManager=chaos&force=true", wanted, _APPLY)

    def patch(self, change: Change) -> None:
        self.call("PATCH", change.of.path, {"spec": change.spec}, _MERGE)

    def delete(self, of: Named) -> None:
        self.call("DELETE", of.path)

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
        found = self.call("GET", f"{_PODS}?{self._workers}")["items"]
        return [pod["metadata"]["name"] for pod in found]

    def machine_of(self, worker: str) -> int:
        """The number of the machine that a worker runs on."""
        node_name = self.call("GET", f"{_PODS}/{worker}")["spec"].get("nodeName", "")
        if not node_name:
            raise Missed(f"{worker} is nowhere yet")
        return int(node_name.rpartition("-")[2])

    def workers_on(self, machine: int) -> set[str]:
        found = self.call("GET", f"{_PODS}?{self._workers}&fieldSelector=spec.nodeName%3Dnode-{machine}")[
            "items"
        ]
        return {pod["metadata"]["name"] for pod in found}
