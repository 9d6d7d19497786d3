"""What goes wrong between slurmdbd and its database: an Accounting for each fault, one MariaDB for all."""

import base64
from collections.abc import Callable, Iterator

from patient import Patient

from slurm_operator.local.image.images import slurm_image

PASSWORD = "correct-horse"


def missing_secret(it: Patient) -> Iterator[str]:
    start_database(it)
    yield from keeps_books(it, "unlocked", lambda: write_password(it, "unlocked"))


def wrong_key(it: Patient) -> Iterator[str]:
    start_database(it)
    write_password(it, "mislaid", entry="pass")
    yield from keeps_books(it, "mislaid", lambda: write_password(it, "mislaid"))


def database_down(it: Patient) -> Iterator[str]:
    it.kubectl("delete", "pod", "db", "--ignore-not-found")
    write_password(it, "lonely")
    yield from keeps_books(it, "lonely", lambda: start_database(it))


def wrong_grant(it: Patient) -> Iterator[str]:
    """The database lets its user in, and nothing more; then it starts with a GRANT."""
    start_database(it, granted="")
    write_password(it, "poor")
    yield from keeps_books(it, "poor", lambda: start_database(it))


def keeps_books(it: Patient, name: str, mend: Callable[[], None]) -> Iterator[str]:
    """An Accounting that keeps its records in the database, as soon as it can."""
    storage = {"host": "db", "database": "books", "username": "books"}
    key = {"passwordKeyRef": {"name": name, "key": "password"}}
    it.make("Accounting", name, {"storageConfig": {**storage, **key}})
    yield f"accounting/{name}"
    mend()
    it.wait_well(f"accounting/{name}")
    it.kubectl("delete", "accounting", name, "--timeout=120s")


def write_password(it: Patient, name: str, entry: str = "password") -> None:
    it.put("Secret", name, data={entry: base64.b64encode(PASSWORD.encode()).decode()})


def start_database(it: Patient, granted: str = "books") -> None:
    """A fresh MariaDB that nobody operates, with a user who may use this database."""
    it.kubectl("delete", "pod", "db", "--ignore-not-found")
    labels = {"app": "db"}
    values = {"MARIADB_DATABASE": granted, "MARIADB_USER": "books", "MARIADB_PASSWORD": PASSWORD}
    places = {"data": "/var/lib/mysql", "run": "/run/mysqld"}
    container = {
        "name": "mariadb", "image": slurm_image("mariadb"), "imagePullPolicy": "Never",
        "env": [{"name": key, "value": value} for key, value in values.items()],
        "readinessProbe": {"tcpSocket": {"port": 3306}, "periodSeconds": 1},
        "volumeMounts": [{"name": name, "mountPath": path} for name, path in places.items()],
    }  # fmt: skip
    pod = {
        "securityContext": {"runAsUser": 999, "runAsGroup": 999, "fsGroup": 999}, "containers": [container],
        "volumes": [{"name": name, "emptyDir": {}} for name in places], "terminationGracePeriodSeconds": 1,
    }  # fmt: skip
    it.put("Service", "db", spec={"selector": labels, "ports": [{"port": 3306}]})
    it.put("Pod", "db", labels=labels, spec=pod)
    it.kubectl("wait", "--for=condition=Ready", "pod/db", "--timeout=120s")
