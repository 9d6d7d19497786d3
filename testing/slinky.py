"""The objects of a Slurm cluster as Slinky's own operator leaves them: recorded from it, not made up.

They were read from a real API server while Slinky's manager 1.3 ran a Controller, a RestApi, a LoginSet and a
NodeSet of three workers, with jobs on two of them. `testing/slinky_objects` has them with their managedFields. What
was not recorded is marked below: an Accounting and a Token, and a Controller with a claim of the user's.
"""

import copy
import json
from pathlib import Path
from typing import Any

Object = dict[str, Any]

FOLDER = Path(__file__).with_name("slinky_objects")
NAMESPACE = "a"
MANAGER = "manager"  # What a Go program without a name of its own is called in managedFields.
HASH = "6766bbb5b4"

CUSTOM = ("controllers", "restapis", "nodesets", "loginsets")
FILES = (
    *CUSTOM, "configmaps", "secrets", "services", "persistentvolumeclaims", "statefulsets", "deployments",
    "poddisruptionbudgets", "controllerrevisions", "pods",
)  # fmt: skip

# Where the namespace stands in texts.
_PLACES = (
    '"namespace": "{}"',
    "{}_slurm",
    "slurm-controller.{}",
    "internal.{})",
    "slurm-workers-slurm.{}.svc",
)


def recorded(namespace: str = NAMESPACE, *, existing_claim: bool = False) -> list[Object]:
    """Every object, as if it had been recorded in this namespace."""
    found = [
        one for file in FILES for one in json.loads(_moved((FOLDER / f"{file}.json").read_text(), namespace))
    ]
    return [_with_existing_claim(one) for one in found] if existing_claim else found


def hashes() -> list[tuple[Object, str]]:
    """Specs of NodeSets with the hash of their revision: the first as recorded, all as Go code gives it."""
    cases = json.loads((FOLDER / "revision_hashes.json").read_text())
    return [(case["spec"], case["hash"]) for case in cases]


def named(objects: list[Object], kind: str, name: str) -> Object:
    return next(one for one in objects if (one["kind"], one["metadata"]["name"]) == (kind, name))


def _moved(text: str, namespace: str) -> str:
    for place in _PLACES:
        text = text.replace(place.format(NAMESPACE), place.format(namespace))
    return text


def _with_existing_claim(thing: Object) -> Object:
    """Not recorded: with `existingClaim` Slinky mounts it as a volume, and makes no template of a claim."""
    made = copy.deepcopy(thing)
    if thing["kind"] == "Controller":
        made["spec"]["persistence"] = {"enabled": True, "existingClaim": "state"}
    if thing["kind"] == "StatefulSet":
        del made["spec"]["volumeClaimTemplates"]
        state = {"name": "statesave", "persistentVolumeClaim": {"claimName": "state"}}
        made["spec"]["template"]["spec"]["volumes"].append(state)
    if thing["kind"] == "PersistentVolumeClaim":
        made["metadata"] |= {"name": "state", "labels": {}}
    return made


def bare(thing: Object) -> Object:
    """As it is sent to an API server: without what that writes itself."""
    made = copy.deepcopy(thing)
    for field in ("uid", "resourceVersion", "creationTimestamp", "managedFields", "generation"):
        made["metadata"].pop(field, None)
    made.pop("status", None)
    if made["kind"] == "Service" and made["spec"].get("clusterIP") != "None":
        for field in ("clusterIP", "clusterIPs"):
            made["spec"].pop(field, None)
    return made


def accounting(namespace: str, uid: str = "accounting-uid") -> list[Object]:
    """Not recorded: an Accounting and its children, after the description of Slinky's builders."""
    marks = {
        "app.kubernetes.io/name": "slurmdbd", "app.kubernetes.io/instance": "books",
        "app.kubernetes.io/component": "accounting",
    }  # fmt: skip
    selector = {key: marks[key] for key in ("app.kubernetes.io/instance", "app.kubernetes.io/name")}
    owner = [{
        "apiVersion": "slinky.slurm.net/v1beta1", "kind": "Accounting", "name": "books", "uid": uid,
        "controller": True, "blockOwnerDeletion": True,
    }]  # fmt: skip
    meta = {"name": "books-accounting", "namespace": namespace, "labels": marks, "ownerReferences": owner}
    key = {"secret": {"name": "slurm-key", "items": [{"key": "slurm.key", "path": "slurm.key"}]}}
    sources = [
        {
            "secret": {
                "name": "books-accounting",
                "items": [{"key": "slurmdbd.conf", "path": "slurmdbd.conf"}],
            }
        },
        key,
        {"secret": {"name": "jwt-key", "items": [{"key": "jwt.key", "path": "jwt.key"}]}},
    ]
    probe = {"tcpSocket": {"port": 6819}, "periodSeconds": 10, "failureThreshold": 3}
    container = {
        "name": "slurmdbd", "image": "docker.io/local/slurmdbd:26.05", "imagePullPolicy": "IfNotPresent",
        "ports": [{"name": "slurmdbd", "containerPort": 6819, "protocol": "TCP"}], "readinessProbe": probe,
        "securityContext": {"runAsNonRoot": True, "runAsUser": 401, "runAsGroup": 401},
        "volumeMounts": [
            {"name": "slurm-etc", "mountPath": "/etc/slurm", "readOnly": True}, {"name": "run", "mountPath": "/run"},
        ],
    }  # fmt: skip
    pod = {
        "automountServiceAccountToken": False, "containers": [container],
        "securityContext": {"runAsNonRoot": True, "runAsUser": 401, "runAsGroup": 401, "fsGroup": 401},
        "volumes": [
            {"name": "slurm-etc", "projected": {"defaultMode": 0o600, "sources": sources}},
            {"name": "run", "emptyDir": {"medium": "Memory"}},
        ],
    }  # fmt: skip
    notes = {
        "kubectl.kubernetes.io/default-container": "slurmdbd",
        "slinky.slurm.net/slurm-key-hash": "f24865d4",
    }
    return [
        {
            "apiVersion": "slinky.slurm.net/v1beta1", "kind": "Accounting",
            "metadata": {"name": "books", "namespace": namespace, "uid": uid},
            "spec": {
                "slurmKeyRef": {"name": "slurm-key", "key": "slurm.key"},
                "jwtKeyRef": {"name": "jwt-key", "key": "jwt.key"},
                "storageConfig": {
                    "host": "mariadb", "port": 3306, "database": "slurm_acct_db", "username": "slurm",
                    "passwordKeyRef": {"name": "db", "key": "password"},
                },
                "slurmdbd": {"image": "docker.io/local/slurmdbd:26.05", "imagePullPolicy": "IfNotPresent"},
            },
        },
        {
            "apiVersion": "v1", "kind": "Service", "metadata": meta,
            "spec": {
                "type": "ClusterIP", "selector": selector,
                "ports": [{"name": "slurmdbd", "port": 6819, "protocol": "TCP", "targetPort": "slurmdbd"}],
            },
        },
        {
            "apiVersion": "v1", "kind": "Secret", "metadata": meta, "type": "Opaque", "immutable": False,
            "stringData": {"slurmdbd.conf": "#\n### GENERAL ###\nDbdHost=books-accounting-0\n"},
        },
        {
            "apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": meta,
            "spec": {
                "replicas": 1, "podManagementPolicy": "Parallel", "revisionHistoryLimit": 0,
                "serviceName": "books-accounting", "selector": {"matchLabels": selector},
                "template": {
                    "metadata": {
                        "name": "books-accounting", "namespace": namespace, "labels": marks, "annotations": notes,
                    },
                    "spec": pod,
                },
            },
        },
    ]  # fmt: skip


def token(namespace: str) -> list[Object]:
    """Not recorded: a Token and its Secret, which the Secret with the signing key owns."""
    key_uid = named(recorded(), "Secret", "jwt-key")["metadata"]["uid"]
    owner = [{
        "apiVersion": "v1", "kind": "Secret", "name": "jwt-key", "uid": key_uid,
        "controller": True, "blockOwnerDeletion": True,
    }]  # fmt: skip
    return [
        {
            "apiVersion": "slinky.slurm.net/v1beta1", "kind": "Token",
            "metadata": {"name": "tok", "namespace": namespace},
            "spec": {
                "username": "ada", "lifetime": "1h", "refresh": True,
                "jwtKeyRef": {"name": "jwt-key", "key": "jwt.key"},
            },
        },
        {
            "apiVersion": "v1", "kind": "Secret", "type": "Opaque", "immutable": False,
            "metadata": {"name": "tok-jwt-ada", "namespace": namespace, "ownerReferences": owner},
            "stringData": {"SLURM_JWT": "a token that has run out"},
        },
    ]  # fmt: skip
