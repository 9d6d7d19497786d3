"""The database of a SlurmCluster, where the MariaDB operator makes it: what it is told, and what it says.

Whether it does is chosen once. A database that exists is not left for another one, because its records would
stay behind: neither when the kinds of the MariaDB operator appear, nor when nobody can see them for a while.
"""

from enum import StrEnum
from typing import Final

from slurm_operator.api.nebius import names
from slurm_operator.api.nebius.accounting import MariadbOperator
from slurm_operator.api.nebius.amounts import amount_in
from slurm_operator.api.nebius.volumes import given
from slurm_operator.api.slinky.accounting import DATABASE, Accounting
from slurm_operator.conditions import Reason
from slurm_operator.manifests import kinds
from slurm_operator.manifests.meta import Child, Manifest
from slurm_operator.plan.actions import GenerateSecret
from slurm_operator.reconcilers.nebius.shared import pods
from slurm_operator.reconcilers.nebius.shared.objects import labels
from slurm_operator.reconcilers.nebius.slurmcluster.observe import Seen
from slurm_operator.reconcilers.nebius.slurmcluster.parts import maker

USER: Final = "slurm"
PORT: Final = 3306
COMPONENT: Final = "mariadb-operator"
PASSWORD: Final = "password"  # noqa: S105
_PASSWORD_BYTES = 24
_MEBI = 1 << 20
_BUFFER_MEBIBYTES = 32768  # Where nobody says how much memory the database has.


class MadeBy(StrEnum):
    """Who makes the database."""

    NOBODY = ""  # It exists already.
    OURSELVES = "slurm-operator"
    MARIADB_OPERATOR = "mariadb-operator"


def made_by(seen: Seen) -> MadeBy:
    """As it was chosen when the Accounting was made; before that, by what this Kubernetes has."""
    if not seen.spec.slurm_nodes.accounting.has_mariadb:
        return MadeBy.NOBODY
    there = next((one for one in seen.own("Accounting") if isinstance(one, Accounting)), None)
    if there is not None and there.spec.managed is not None:
        return MadeBy.OURSELVES
    storage_there = there.spec.storage_config if there is not None else None
    if storage_there is not None and storage_there.host == host(seen):
        return MadeBy.MARIADB_OPERATOR
    return MadeBy.MARIADB_OPERATOR if seen.has_mariadb_operator else MadeBy.OURSELVES


def host(seen: Seen) -> str:
    return f"{names.database(seen.name)}.{seen.meta.namespace}.svc"


def storage(seen: Seen) -> Manifest:
    """How slurmdbd reaches it."""
    secret, key = password(seen)
    return {
        "host": host(seen),
        "port": PORT,
        "database": DATABASE,
        "username": USER,
        "passwordKeyRef": {"name": secret, "key": key},
    }


def password(seen: Seen) -> tuple[str, str]:
    """Secret and entry. One that Soperator's MariaDB names is used on."""
    return _said(seen.children.get(_key(seen)), "passwordSecretKeyRef") or (
        names.database_password(seen.name),
        PASSWORD,
    )


def _root_password(seen: Seen) -> tuple[str, str]:
    return _said(seen.children.get(_key(seen)), "rootPasswordSecretKeyRef") or (
        names.database_root_password(seen.name),
        PASSWORD,
    )


def _said(live: Child | None, field: str) -> tuple[str, str] | None:
    ref = live.body["spec"].get(field) if live is not None else None
    return (str(ref["name"]), str(ref.get("key") or PASSWORD)) if ref and ref.get("name") else None


def _key(seen: Seen) -> tuple[kinds.Kind, str]:
    return kinds.MARIADB, names.database(seen.name)


def passwords(seen: Seen) -> list[GenerateSecret]:
    """Passwords that are not there; nothing owns them, so that the records can still be read without us."""
    wished = seen.spec.slurm_nodes.accounting.mariadb_operator
    wanted = [name for name, _ in (password(seen), _root_password(seen))]
    return [
        _generated(seen, name, is_guarded=wished is not None and wished.protected_secret)
        for name in dict.fromkeys(wanted)
        if name in seen.passwords and seen.passwords[name] is None
    ]


def _generated(seen: Seen, name: str, *, is_guarded: bool) -> GenerateSecret:
    manifest = maker(seen).object(kinds.SECRET, name, COMPONENT, is_owned=False) | {"type": "Opaque"}
    metadata = manifest["metadata"]
    if is_guarded:
        metadata["labels"] = {**metadata["labels"], names.GUARD_LABEL: "true"}
        metadata["annotations"] = {names.GUARDING_CLUSTER[0]: seen.name}
    return GenerateSecret(
        manifest=manifest,
        recipe="password",
        entry=PASSWORD,
        size=_PASSWORD_BYTES,
        reason=Reason.KEY_GENERATED,
        message=f"made a password in Secret {name}; it stays when the SlurmCluster is deleted",
    )


def objects(seen: Seen) -> list[Manifest]:
    """MariaDB and Grant, as Soperator's users know them."""
    wished = seen.spec.slurm_nodes.accounting.mariadb_operator
    assert wished is not None
    return [_mariadb(seen, wished), _grant(seen)]


def _reference(found: tuple[str, str]) -> Manifest:
    name, key = found
    return {"name": name, "key": key}


def _mariadb(seen: Seen, wished: MariadbOperator) -> Manifest:
    container = pods.container(wished)
    place = pods.place(seen.spec.filters.get(seen.spec.slurm_nodes.accounting.k8s_node_filter_name))
    fields = {
        "image": wished.image,
        "imagePullPolicy": str(wished.image_pull_policy),
        "imagePullSecrets": wished.image_pull_secrets,
        "command": wished.command,
        "args": wished.args,
        "env": container.get("env"),
        "resources": container.get("resources"),
        "livenessProbe": container.get("livenessProbe"),
        "readinessProbe": container.get("readinessProbe"),
        "podSecurityContext": given(wished.pod_security_context),
        "securityContext": given(wished.security_context),
        "replication": given(wished.replication),
        "storage": given(wished.storage),
        "priorityClassName": wished.priority_class_name,
    }
    spec: Manifest = {
        **pods.filled(fields),
        **place,
        "database": DATABASE,
        "username": USER,
        "passwordSecretKeyRef": _reference(password(seen)),
        "rootPasswordSecretKeyRef": _reference(_root_password(seen)),
        "port": wished.port or PORT,
        "replicas": 0 if seen.is_down else wished.replicas or 1,
        "metrics": {"enabled": wished.metrics.enabled},
        "myCnf": my_cnf(wished),
        "inheritMetadata": {"labels": labels(seen.name, COMPONENT)},
    }
    return maker(seen).object(kinds.MARIADB, names.database(seen.name), COMPONENT) | {"spec": spec}


def my_cnf(wished: MariadbOperator) -> str:
    """What slurmdbd needs of its database; half of the memory is for InnoDB."""
    memory = amount_in(wished.resources, "memory")
    buffer = int(memory / 2 / _MEBI) if memory else _BUFFER_MEBIBYTES
    lines = (
        "[mariadb]",
        "bind-address=*",
        "default_storage_engine=InnoDB",
        f"innodb_buffer_pool_size={buffer}M",
        "innodb_log_file_size=64M",
        "innodb_lock_wait_timeout=900",
        "max_allowed_packet=16M",
    )
    return "".join(f"{line}\n" for line in lines)


def _grant(seen: Seen) -> Manifest:
    spec = {
        "mariaDbRef": {"name": names.database(seen.name)},
        "privileges": ["ALL PRIVILEGES"],
        "database": DATABASE,
        "table": "*",
        "username": USER,
        "host": "%",
        "grantOption": True,
    }
    return maker(seen).object(kinds.MARIADB_GRANT, names.database(seen.name), COMPONENT) | {"spec": spec}


def trouble(seen: Seen) -> str:
    """What Soperator says of a database that is not ready; empty when it is."""
    if not _is_ready(seen.children.get(_key(seen))):
        return "MariaDB is not ready"
    if not _is_ready(seen.children.get((kinds.MARIADB_GRANT, names.database(seen.name)))):
        return "MariaDB Grant is not ready"
    return ""


def _is_ready(live: Child | None) -> bool:
    found = (live.body.get("status") or {}).get("conditions") or () if live is not None else ()
    return any(one.get("type") == "Ready" and one.get("status") == "True" for one in found)
