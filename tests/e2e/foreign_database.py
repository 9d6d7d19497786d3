"""A MariaDB that nobody operates: what it consists of, for tests of those who must live with one."""

import base64
from collections.abc import Sequence

from slurm_local.image.images import slurm_image

NAME = "db"
USER = DATABASE = "books"
PASSWORD = "correct-horse"


def manifests(namespace: str, granted: str = DATABASE, arguments: Sequence[str] = ()) -> list[dict]:
    """Service and pod, with a user who may use this database. Its data go with the pod."""
    labels = {"app": NAME}
    metadata = {"name": NAME, "namespace": namespace, "labels": labels}
    values = {"MARIADB_DATABASE": granted, "MARIADB_USER": USER, "MARIADB_PASSWORD": PASSWORD}
    places = {"data": "/var/lib/mysql", "run": "/run/mysqld"}
    container = {
        "name": "mariadb", "image": slurm_image("mariadb"), "imagePullPolicy": "Never", "args": [*arguments],
        "env": [{"name": key, "value": value} for key, value in values.items()],
        "readinessProbe": {"tcpSocket": {"port": 3306}, "periodSeconds": 1},
        "volumeMounts": [{"name": name, "mountPath": path} for name, path in places.items()],
    }  # fmt: skip
    pod = {
        "securityContext": {"runAsUser": 999, "runAsGroup": 999, "fsGroup": 999}, "containers": [container],
        "volumes": [{"name": name, "emptyDir": {}} for name in places], "terminationGracePeriodSeconds": 1,
    }  # fmt: skip
    service = {"selector": labels, "ports": [{"port": 3306}]}
    return [
        {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": service},
        {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": pod},
    ]


def secret(namespace: str, name: str, **entries: str) -> dict:
    data = {key: base64.b64encode(value.encode()).decode() for key, value in entries.items()}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": namespace}, "data": data}  # fmt: skip


def storage(password: str) -> dict:
    """How an Accounting names it; `password` is the Secret that has the word."""
    return {
        "host": NAME, "database": DATABASE, "username": USER,
        "passwordKeyRef": {"name": password, "key": "password"},
    }  # fmt: skip
