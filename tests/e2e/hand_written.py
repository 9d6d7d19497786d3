"""A Slurm cluster without an operator: the same pods, written by hand as it were, everything known beforehand."""

import json
from collections.abc import Iterator

from control_plane_rig import ControlPlane

from slurm_operator.api.shared import names

# What pods need, each before those that need it.
KINDS = ("secrets", "configmaps", "services", "persistentvolumeclaims", "pods")

# Whatever only a server writes.
GIVEN = ("creationTimestamp", "deletionGracePeriodSeconds", "generateName", "generation", "managedFields")
KNOWN_HERE = ("ownerReferences", "resourceVersion", "selfLink", "uid", "finalizers")


def copied(made: ControlPlane, namespace: str) -> list[dict]:
    """The objects of a running Slurm cluster, fit to be applied in another namespace."""
    return [json.loads(json.dumps(one).replace(made.namespace, namespace)) for one in _objects(made)]


def _objects(made: ControlPlane) -> Iterator[dict]:
    for kind in KINDS:
        for found in made.cluster.items(f"/api/v1/namespaces/{made.namespace}/{kind}"):
            if _is_needed(found["metadata"]):
                yield {"apiVersion": "v1", "kind": _NAMES[kind], **_bare(found)}


def _is_needed(metadata: dict) -> bool:
    """Everybody has the first already; the second has done its work."""
    is_rehearsal = (metadata.get("labels") or {}).get(names.APP_NAME) == "slurm-rehearsal"
    return metadata["name"] != "kube-root-ca.crt" and not is_rehearsal


_NAMES = {
    "secrets": "Secret",
    "configmaps": "ConfigMap",
    "services": "Service",
    "persistentvolumeclaims": "PersistentVolumeClaim",
    "pods": "Pod",
}


def _bare(found: dict) -> dict:
    metadata = {key: value for key, value in found["metadata"].items() if key not in GIVEN + KNOWN_HERE}
    metadata.pop("annotations", None)
    # Nobody protects these: they are nobody's workers.
    labels = metadata.get("labels") or {}
    metadata["labels"] = {key: value for key, value in labels.items() if key != names.LABEL_POD_PROTECT}
    rest = {key: value for key, value in found.items() if key not in ("metadata", "status", "spec")}
    return {**rest, "metadata": metadata, **({"spec": _spec(found["spec"])} if "spec" in found else {})}


def _spec(spec: dict) -> dict:
    """Without what was chosen for it: an address, a machine, a volume."""
    chosen = ("clusterIP", "clusterIPs", "nodeName", "volumeName")
    is_headless = spec.get("clusterIP") == "None"
    kept = {key: value for key, value in spec.items() if key not in chosen}
    return {**kept, **({"clusterIP": "None"} if is_headless else {})}
