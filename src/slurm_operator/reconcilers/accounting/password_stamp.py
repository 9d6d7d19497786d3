"""Which password the pods were made for, in a word that says nothing about it.

A digest of a password in a pod template lets everybody who reads pods try passwords against it. So templates
have a stamp, which changes with the password and follows from nothing but generations of our own objects.
What it stands for is noted on the Secret with slurmdbd.conf, whose readers can read the password itself.
"""

import re
from collections.abc import Mapping

from slurm_operator.api.shared import names
from slurm_operator.manifests import kinds
from slurm_operator.manifests.digests import digest
from slurm_operator.manifests.meta import Child, Manifest
from slurm_operator.manifests.objects import Secret
from slurm_operator.manifests.secrets import SecretHandle
from slurm_operator.reconcilers.accounting import conf, database
from slurm_operator.reconcilers.accounting.observe import Seen

# Both on the Secret with slurmdbd.conf.
STAMP = "slinky.slurm.net/password-stamp"
DIGEST = "slinky.slurm.net/password-digest"

# The generations of slurmdbd's StatefulSet and of MariaDB's when it was chosen.
_STAMPED = re.compile(r"\d+-\d+")


def stamp(seen: Seen, password: SecretHandle) -> str:
    """As noted while the password is the same; another one after each change.

    Earlier versions wrote the digest itself into templates. There it stays until the password changes: a
    stamp in its place would replace pods for nothing.
    """
    notes = _notes(seen)
    if _is_noted(notes, password):
        return notes[STAMP]
    if STAMP not in notes and _has_digest(seen, password):
        return password.digest
    there = _note(_mariadb(seen), database.PASSWORD_HASH)
    if STAMP not in notes and _STAMPED.fullmatch(there):
        return there  # MariaDB came first, or what was noted is lost: its data know one password only.
    return f"{_generation(_slurmdbd(seen))}-{_generation(_mariadb(seen))}"


def stamp_of_mariadb(seen: Seen, password: SecretHandle) -> str:
    """It follows when the stamp has been noted: before that, each pass might choose another one."""
    there = _note(_mariadb(seen), database.PASSWORD_HASH)
    return stamp(seen, password) if _is_noted(_notes(seen), password) or not there else there


def noted(config: Manifest, word: str, password: SecretHandle) -> Manifest:
    """The Secret with slurmdbd.conf, with the stamp and what it stands for."""
    metadata = config["metadata"]
    annotations = {**metadata["annotations"], STAMP: word, DIGEST: password.digest}
    return config | {"metadata": {**metadata, "annotations": annotations}}


def conf_hash(seen: Seen, address: database.Address, password: SecretHandle, word: str) -> str:
    """Changes with slurmdbd.conf and with the stamp of its password."""
    stamped = SecretHandle(namespace=password.namespace, name=password.name, key=password.key, digest=word)
    return digest({conf.FILE: conf.slurmdbd_conf(seen.accounting, address, stamped)})


def _notes(seen: Seen) -> Mapping[str, str]:
    return seen.conf_secret.metadata.annotations if isinstance(seen.conf_secret, Secret) else {}


def _is_noted(notes: Mapping[str, str], password: SecretHandle) -> bool:
    return STAMP in notes and notes.get(DIGEST) == password.digest


def _has_digest(seen: Seen, password: SecretHandle) -> bool:
    """An earlier version made what runs, for this very password."""
    if _note(_mariadb(seen), database.PASSWORD_HASH) == password.digest:
        return True
    if seen.address is None:
        return False
    as_before = conf_hash(seen, seen.address, password, password.digest)
    return _note(_slurmdbd(seen), names.SLURMDBD_CONF_HASH) == as_before


def _slurmdbd(seen: Seen) -> Child | None:
    return seen.children.get((kinds.STATEFUL_SET, seen.accounting.child_names.workload))


def _mariadb(seen: Seen) -> Child | None:
    return seen.children.get((kinds.STATEFUL_SET, names.database_workload(seen.name)))


def _note(workload: Child | None, annotation: str) -> str:
    """What the pod template of a workload says under this annotation; empty when it says nothing."""
    if workload is None:
        return ""
    metadata = workload.body["spec"]["template"].get("metadata") or {}
    return str((metadata.get("annotations") or {}).get(annotation, ""))


def _generation(workload: Child | None) -> int:
    return workload.metadata.generation if workload is not None else 0
