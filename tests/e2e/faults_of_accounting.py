"""What goes wrong between slurmdbd and its database: an Accounting for each fault, one MariaDB for all."""

from collections.abc import Callable, Iterator

import foreign_database
from patient import Patient


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


def keeps_books(it: Patient, name: str, repair: Callable[[], None]) -> Iterator[str]:
    """An Accounting that keeps its records in the database, as soon as it can."""
    it.make("Accounting", name, {"storageConfig": foreign_database.storage(name)})
    yield f"accounting/{name}"
    repair()
    it.wait_well(f"accounting/{name}")
    it.kubectl("delete", "accounting", name, "--timeout=120s")


def write_password(it: Patient, name: str, entry: str = "password") -> None:
    it.cluster.apply([foreign_database.secret(it.namespace, name, **{entry: foreign_database.PASSWORD})])


def start_database(it: Patient, granted: str = foreign_database.DATABASE) -> None:
    """A fresh one, with a user who may use this database."""
    it.kubectl("delete", "pod", foreign_database.NAME, "--ignore-not-found")
    it.cluster.apply(foreign_database.manifests(it.namespace, granted))
    it.kubectl("wait", "--for=condition=Ready", f"pod/{foreign_database.NAME}", "--timeout=120s")
