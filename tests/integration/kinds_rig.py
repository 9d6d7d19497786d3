"""What the tests of our kinds share: an API server with the CRDs, a manager, and short ways to ask."""

import base64
import json
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from slurm_local.slurm_cluster import wait_established
from slurm_operator.api import registry
from slurm_operator.api.registry import Registry
from slurm_operator.api.schema.crd import crd
from testing import rights
from testing.audit import changes_by
from testing.control_plane import ControlPlane, Plane
from testing.managers import until
from testing.rights import operator as operator

GROUP = "slinky.slurm.net/v1beta1"


@contextmanager
def serving_kinds(
    place: Path, *, controller_manager: bool = False, kinds: Registry = registry.DEFAULT
) -> Iterator[Plane]:
    """An API server with our kinds; its audit log tells who wrote what. No pod ever runs on it."""
    wanted = ControlPlane(place, controller_manager=controller_manager, audit="Metadata")
    with wanted.running() as plane:
        rights.grant(plane, kinds)
        for model in kinds.models:
            plane.caller.call("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", crd(model))
        wait_established(plane.kubectl)
        yield plane
        assert rights.refused(plane.audit_log) == []


@pytest.fixture(scope="module")
def plane(tmp_path_factory):
    """Where it is imported, the module has a server of its own instead of the one that all share."""
    with serving_kinds(tmp_path_factory.mktemp("kinds")) as plane:
        yield plane


@pytest.fixture
def ns(plane) -> str:
    name = f"kinds-{uuid.uuid4().hex[:8]}"
    plane.caller.call("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
    return name


def ours(kind: str, ns: str, name: str, spec: dict) -> dict:
    return {"apiVersion": GROUP, "kind": kind, "metadata": {"name": name, "namespace": ns}, "spec": spec}


def secret(ns: str, name: str, **entries: str) -> dict:
    data = {key: base64.b64encode(value.encode()).decode() for key, value in entries.items()}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": ns}, "data": data}


def config_map(ns: str, name: str, data: dict[str, str]) -> dict:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": ns},
        "data": data,
    }


def apply(plane: Plane, *manifests: dict) -> None:
    plane.kubectl("apply", "-f", "-", stdin="\n---\n".join(json.dumps(manifest) for manifest in manifests))


def get(plane: Plane, ns: str, kind: str, name: str) -> Any:
    out = plane.kubectl("get", kind, name, "-n", ns, "-o", "json", "--ignore-not-found")
    return json.loads(out) if out.strip() else None


def wait_for(plane: Plane, ns: str, kind: str, name: str) -> dict:
    until(lambda: get(plane, ns, kind, name) is not None, what=f"{kind} {name}")
    return get(plane, ns, kind, name)


def condition(plane: Plane, ns: str, kind: str, name: str, type_: str = "Ready") -> tuple[str, str, str]:
    """Status, reason and message of one condition; empty before there is one."""
    status = (get(plane, ns, kind, name) or {}).get("status") or {}
    found = {c["type"]: c for c in status.get("conditions") or ()}.get(type_, {})
    return found.get("status", ""), found.get("reason", ""), found.get("message", "")


def wait_reason(plane: Plane, ns: str, kind: str, name: str, reason: str, type_: str = "Ready") -> str:
    """Wait until a condition has this reason; gives its message."""
    until(lambda: condition(plane, ns, kind, name, type_)[1] == reason,
          what=f"{kind} {name} {type_}: {reason}; it is {condition(plane, ns, kind, name, type_)}")  # fmt: skip
    return condition(plane, ns, kind, name, type_)[2]


def merge(plane: Plane, ns: str, kind: str, name: str, patch: dict, *flags: str) -> None:
    plane.kubectl("patch", kind, name, "-n", ns, "--type=merge", "-p", json.dumps(patch), *flags)


def pretend_ready(plane: Plane, ns: str, kind: str, name: str) -> None:
    """No kubelet runs here, so we say what it would: every pod of this workload is ready."""
    found = get(plane, ns, kind, name)
    wanted = found["spec"]["replicas"]
    counts = dict.fromkeys(("replicas", "readyReplicas", "availableReplicas", "updatedReplicas"), wanted)
    status = {"observedGeneration": found["metadata"]["generation"], **counts}
    merge(plane, ns, kind, name, {"status": status}, "--subresource=status")


def owner_of(thing: dict) -> tuple[str, str]:
    [owner] = thing["metadata"]["ownerReferences"]
    return owner["kind"], owner["name"]


def writes_by(plane: Plane, user: str) -> list[str]:
    """What this user changed, as the API server's own log has it."""
    return [
        f"{entry['verb']} {entry['requestURI']}"
        for entry in changes_by(plane.audit_log, user)
        if entry.get("objectRef", {}).get("resource") != "leases"
    ]


def refusals(plane: Plane, ns: str, manifests: list[dict]) -> list[str]:
    """What the API server has against these objects; nothing is stored."""
    found = []
    for manifest in manifests:
        plain = {**manifest, "metadata": {**manifest["metadata"], "namespace": ns}}
        plain["metadata"].pop("ownerReferences", None)  # Its owner does not exist here.
        out = plane.kubectl(
            "apply",
            "--server-side",
            "--dry-run=server",
            "--validate=strict",
            "-f",
            "-",
            stdin=json.dumps(plain),
        )
        if "serverside-applied" not in out.replace(" ", "").replace("(serverdryrun)", ""):
            found.append(out)
    return found
