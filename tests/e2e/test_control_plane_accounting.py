"""Books that are kept elsewhere: by a slurmdbd that is only pointed at, in a database that nobody here operates."""

import base64
import json

import foreign_database
import pytest
from control_plane_rig import ControlPlane, control_plane, control_plane_of, setting
from job_ledger import Ledger
from operator_rig import install, until

from slurm_local.image.images import slurm_image
from slurm_operator.api.shared import names

pytestmark = [pytest.mark.timeout(1500), pytest.mark.full]

# Shorter than slurmdbd asks for: worth a word, and nothing that breaks.
SETTING = "--innodb-lock-wait-timeout=50"


@pytest.fixture(scope="module")
def books(cluster, operator_image):
    """A slurmdbd in a namespace of its own, and a MariaDB that somebody else set up."""
    install(cluster, operator_image)
    with control_plane_of(cluster) as made:
        made.apply(
            *foreign_database.manifests(made.namespace, arguments=[SETTING]),
            password(made, foreign_database.PASSWORD),
            made.kind("Accounting", "books", {
                "slurmdbd": {"image": slurm_image("slurmdbd"), "imagePullPolicy": "Never"},
                "storageConfig": foreign_database.storage("word"),
            }),
        )  # fmt: skip
        made.wait_ready("accounting", "books")
        yield made


@pytest.fixture(scope="module")
def slurm(books):
    """A Slurm cluster in another namespace, which is told where that slurmdbd is and has its key."""
    there = f"{names.accounting_workload('books')}.{books.namespace}"
    key = books.get("secret", names.auth_slurm_secret("books"))["data"]

    def its_key(made: ControlPlane) -> dict:
        metadata = {"name": "their-key", "namespace": made.namespace}
        return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": key}

    def elsewhere(made: ControlPlane) -> dict:
        config = {"host": there, "port": names.SLURMDBD_PORT}
        ref = {"name": "their-key", "key": names.SLURM_KEY_FILE}
        return made.kind("Accounting", "elsewhere", {"external": True, "externalConfig": config, "slurmKeyRef": ref})  # fmt: skip

    more = {"workers": 2, "accountingRef": {"name": "elsewhere"}}
    with control_plane(books.cluster, its_key, elsewhere, **more) as made:
        made.keeps_books = True
        yield made


def password(books: ControlPlane, word: str) -> dict:
    return foreign_database.secret(books.namespace, "word", password=word)


def change_password(books: ControlPlane, old: str, new: str) -> None:
    """In the database, by its user; who is logged in stays so."""
    ask = "exec mariadb --no-defaults --protocol=TCP --host=127.0.0.1 --user=books --execute=\"SET PASSWORD = PASSWORD('$NEW')\""
    books.kubectl("exec", "db", "--", "env", f"MYSQL_PWD={old}", f"NEW={new}", "sh", "-c", ask)


def slurmdbd(books: ControlPlane) -> str:
    """The uid of the slurmdbd pod that there is."""
    found = json.loads(books.kubectl("get", "pods", "-l", "app.kubernetes.io/name=slurmdbd", "-o", "json"))
    return next((pod["metadata"]["uid"] for pod in found["items"]), "")


def told(books: ControlPlane) -> str:
    return json.dumps(books.status("accounting", "books").get("conditions"))


def test_a_setting_that_slurmdbd_asks_for_is_named(books):
    complaint = books.condition("Degraded", "accounting", "books")
    assert (complaint["status"], complaint["reason"]) == ("True", "DatabaseSettings")
    assert "innodb_lock_wait_timeout is 50; slurmdbd asks for 900" in complaint["message"]


def test_a_slurmdbd_elsewhere_is_in_slurm_conf_and_answers(slurm, books):
    host = f"{names.accounting_workload('books')}.{books.namespace}"
    assert setting(slurm.run("scontrol", "show", "config"), "AccountingStorageHost") == host
    job = Ledger(slurm)
    job.wait_ended_by_itself()  # And is in the books.

    name = slurm.status()["clusterName"]
    assert name in slurm.run("sacctmgr", "-n", "-P", "show", "cluster", "format=cluster").split()
    status = slurm.status("accounting", "elsewhere")
    assert status["endpoint"] == f"{host}:{names.SLURMDBD_PORT}"
    assert status["controllers"] == ["slurm"]
    assert slurm.condition("Ready", "accounting", "elsewhere")["reason"] == "External"
    made = slurm.cluster.items(f"/apis/apps/v1/namespaces/{slurm.namespace}/statefulsets")
    assert [one["metadata"]["name"] for one in made] == [names.controller_workload("slurm")]


def test_a_new_password_reaches_slurmdbd_and_no_record_is_lost_meanwhile(slurm, books):
    """The Secret first: slurmdbd waits, and says for what, until the database has the new password too."""
    old, new = foreign_database.PASSWORD, "battery-staple"
    before, running = slurmdbd(books), Ledger(slurm)
    heads = slurm.heads()

    books.apply(password(books, new))
    until(lambda: books.condition("Ready", "accounting", "books").get("reason") == "DatabaseLogin", 240, lambda: told(books))  # fmt: skip
    assert "Secret 'word'" in books.condition("Ready", "accounting", "books")["message"]
    assert new not in told(books)
    assert running.is_running()
    short = Ledger(slurm)
    short.wait_ended_by_itself(is_booked=False)  # While nobody writes it down.

    change_password(books, old, new)

    books.wait_ready("accounting", "books")
    assert slurmdbd(books) not in ("", before)
    assert new in base64.b64decode(books.get("secret", "books-accounting")["data"]["slurmdbd.conf"]).decode()
    assert running.is_running()
    running.wait_ended_by_itself(is_booked=False)
    for job in (short, running):
        until(lambda job=job: job.booked() == ["COMPLETED|0:0"], 240, lambda job=job: f"{job.booked()}")
    assert slurm.heads() == heads, "slurmctld has nothing to do with it"
