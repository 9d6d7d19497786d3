"""Loads what Slinky's operator leaves behind into a real API server, as its field manager wrote it."""

import base64
from pathlib import Path
from typing import Any

from slurm_operator.api import KINDS as OUR_KINDS
from slurm_operator.manifests import kinds
from testing import slinky, slinky_charts
from testing.control_plane import Plane

OURS = ("Controller", "RestApi", "NodeSet", "LoginSet", "Accounting", "Token")
LAST = ("Pod",)
_OTHERS = (
    kinds.CONFIG_MAP, kinds.SECRET, kinds.SERVICE, kinds.PERSISTENT_VOLUME_CLAIM, kinds.STATEFUL_SET,
    kinds.DEPLOYMENT, kinds.DISRUPTION_BUDGET, kinds.CONTROLLER_REVISION, kinds.POD,
)  # fmt: skip
KINDS = {kind.kind: kind for kind in (*_OTHERS, *(one.KIND for one in OUR_KINDS))}


def load(plane: Plane, ns: str, objects: list[slinky.Object]) -> None:
    """Owners first; whoever is owned names them by the uid that they have here."""
    uids: dict[str, str] = {}
    for one in sorted(objects, key=lambda one: (one["kind"] not in OURS, one["kind"] in LAST)):
        made = slinky.bare(one)
        made["metadata"]["ownerReferences"] = [
            {**owner, "uid": uids[owner["uid"]]}
            for owner in made["metadata"].get("ownerReferences", ())
            if owner["uid"] in uids
        ]
        _fill(made)
        there = call(plane, "POST", made["kind"], ns, body=made)
        uids[one["metadata"].get("uid", "")] = there["metadata"]["uid"]
        if one["kind"] == "Pod":
            pretend_running(plane, ns, one)


def call(
    plane: Plane, method: str, kind: str, ns: str, name: str = "", body: object = None, **more: str
) -> Any:
    """As the field manager of Slinky's operator; a process of kubectl for each would take minutes."""
    path = KINDS[kind].path(ns, name, more.get("subresource", ""))
    content = more.get("content", "application/json")
    return plane.caller.call(method, f"{path}?fieldManager={slinky.MANAGER}", body, kind=content)


def _fill(made: dict) -> None:
    """Contents of Secrets were not recorded."""
    if made["kind"] == "Secret" and "data" in made:
        made["data"] = {key: base64.b64encode(f"content of {key}".encode()).decode() for key in made["data"]}


def pretend_running(plane: Plane, ns: str, pod: dict) -> None:
    """No kubelet runs here; the pod says what it said when it was recorded."""
    started = {"running": {"startedAt": pod["metadata"]["creationTimestamp"]}}
    status: dict[str, Any] = {
        **pod["status"],
        "podIPs": [{"ip": pod["status"]["podIP"]}],
        "containerStatuses": [
            {
                "name": one["name"], "image": one["image"], "imageID": "", "restartCount": 0, "ready": True,
                "state": started, "started": True,
            }
            for one in pod["spec"]["containers"]
        ],
    }  # fmt: skip
    name, merge = pod["metadata"]["name"], "application/merge-patch+json"
    call(plane, "PATCH", "Pod", ns, name, {"status": status}, subresource="status", content=merge)


def lives(plane: Plane, ns: str) -> dict[str, str]:
    """Every pod with its uid, and every revision of workers with its own."""
    found = {}
    for kind in ("Pod", "ControllerRevision"):
        for one in call(plane, "GET", kind, ns)["items"]:
            found[f"{kind}/{one['metadata']['name']}"] = one["metadata"]["uid"]
    return found


def templates(plane: Plane, ns: str) -> dict[str, Any]:
    """What Kubernetes makes pods from, by workload: a change of it replaces them."""
    found = [*call(plane, "GET", "Deployment", ns)["items"], *call(plane, "GET", "StatefulSet", ns)["items"]]
    return {one["metadata"]["name"]: one["spec"]["template"] for one in found}


def swapped_operator(plane: Plane, user: str) -> Path:
    """A kubeconfig for a manager with the rights that Slinky's chart gives."""
    rbac, name = "rbac.authorization.k8s.io", f"slinky-{user}"
    role = {"metadata": {"name": name}, "rules": slinky_charts.rules()}
    binding = {
        "metadata": {"name": name},
        "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": name},
        "subjects": [{"apiGroup": rbac, "kind": "User", "name": user}],
    }
    plane.caller.call("POST", f"/apis/{rbac}/v1/clusterroles", role)
    plane.caller.call("POST", f"/apis/{rbac}/v1/clusterrolebindings", binding)
    return plane.kubeconfig_for(user, "swapped")
