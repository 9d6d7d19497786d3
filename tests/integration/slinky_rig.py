"""Loads what Slinky's operator leaves behind into a real API server, as its field manager wrote it."""

import base64
import json
from typing import Any

from kinds_rig import get, merge

from slurm_operator.local.controlplane import Plane
from support import slinky

OURS = ("Controller", "RestApi", "NodeSet", "LoginSet", "Accounting", "Token")
LAST = ("Pod",)


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
        text = json.dumps(made)
        plane.kubectl("create", f"--field-manager={slinky.MANAGER}", "-f", "-", stdin=text)
        uids[one["metadata"].get("uid", "")] = uid_of(plane, ns, made)
        if one["kind"] == "Pod":
            pretend_running(plane, ns, one)


def uid_of(plane: Plane, ns: str, made: dict) -> str:
    found = get(plane, ns, made["kind"], made["metadata"]["name"])
    return str(found["metadata"]["uid"])


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
    merge(plane, ns, "pod", pod["metadata"]["name"], {"status": status}, "--subresource=status")


def lives(plane: Plane, ns: str) -> dict[str, tuple[str, str]]:
    """Every pod with its uid, and every revision of workers with its own."""
    found = {}
    for kind in ("pods", "controllerrevisions"):
        for one in json.loads(plane.kubectl("get", kind, "-n", ns, "-o", "json"))["items"]:
            found[f"{kind}/{one['metadata']['name']}"] = one["metadata"]["uid"]
    return found


def templates(plane: Plane, ns: str) -> dict[str, Any]:
    """What Kubernetes makes pods from, by workload: a change of it replaces them."""
    out = json.loads(plane.kubectl("get", "deployments,statefulsets", "-n", ns, "-o", "json"))
    return {one["metadata"]["name"]: one["spec"]["template"] for one in out["items"]}
