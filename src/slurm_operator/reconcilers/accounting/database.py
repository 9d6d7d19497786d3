"""The database behind slurmdbd: where it is, and a MariaDB of our own if the manifest asks for one."""

from collections.abc import Iterator

from slurm_operator import wire
from slurm_operator.api.schema import codec
from slurm_operator.api.shared import names
from slurm_operator.api.shared.images import default_image
from slurm_operator.api.shared.refs import SecretKey
from slurm_operator.api.shared.services import Service
from slurm_operator.api.slinky.accounting import DATABASE, Accounting, ManagedDatabase
from slurm_operator.manifests.builders import hardening, parts
from slurm_operator.manifests.builders.workloads import Wish, with_input
from slurm_operator.manifests.compare.differences import quantity
from slurm_operator.manifests.meta import Manifest
from slurm_operator.manifests.secrets import SecretHandle

APP = "mariadb"
USER = "slurm"
PASSWORD = "password"  # noqa: S105 - the name of a Secret's entry
PASSWORD_HASH = "slinky.slurm.net/database-password-hash"  # noqa: S105 - the name of an annotation

# As in MariaDB's own image; ours takes any.
MARIADB_UID = 999

# What slurmdbd asks for. It dies of a write conflict under snapshot isolation, and complains about the rest.
SETTINGS = (
    "--innodb-snapshot-isolation=OFF",
    "--innodb-log-file-size=64M",
    "--innodb-lock-wait-timeout=900",
    "--max-allowed-packet=16M",
    "--ignore-db-dir=lost+found",
)

# What slurmdbd recommends; memory is taken as records fill it. A container with a limit gets half of that.
BUFFER_POOL_BYTES = 4 * 2**30

# Logs in over the network as slurmdbd will: the account and the database are there when this succeeds.
_LOG_IN = (
    'MYSQL_PWD="$MARIADB_PASSWORD" exec mariadb --no-defaults --loose-disable-ssl-verify-server-cert '
    '--protocol=TCP --host=127.0.0.1 --user="$MARIADB_USER" --execute="SELECT 1" "$MARIADB_DATABASE"'
)


class Address(wire.Record):
    """How slurmdbd reaches its database."""

    host: str
    port: int
    database: str
    user: str
    password: SecretKey
    is_managed: bool

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


def address(accounting: Accounting) -> Address | None:
    """Where the database is, or will be; None when the manifest does not say."""
    spec, name = accounting.spec, names.database_workload(accounting.metadata.name)
    if spec.managed is not None:
        return Address(
            host=f"{name}.{accounting.metadata.namespace}",
            port=names.DATABASE_PORT,
            database=DATABASE,
            user=USER,
            password=SecretKey(name=name, key=PASSWORD),
            is_managed=True,
        )
    if spec.storage_config is None:
        return None
    given = spec.storage_config
    return Address(
        host=given.host,
        port=given.port or names.DATABASE_PORT,
        database=given.database,
        user=given.username or USER,
        password=given.password_key_ref,
        is_managed=False,
    )


def owner(accounting: Accounting) -> parts.Owner:
    labels = accounting.spec.children.labels
    return parts.Owner(Accounting.KIND, accounting.metadata, app=APP, component="database", labels=labels)


def without_owner(metadata: Manifest) -> Manifest:
    """Metadata of what outlives the Accounting: records of jobs are not lost with it."""
    return {key: value for key, value in metadata.items() if key != "ownerReferences"}


def password_secret(accounting: Accounting) -> Manifest:
    """Where the generated password goes. It stays with the data, which know no other."""
    metadata = owner(accounting).metadata(names.database_workload(accounting.metadata.name))
    return {"apiVersion": "v1", "kind": "Secret", "metadata": without_owner(metadata), "type": "Opaque"}


def mariadb(
    accounting: Accounting, managed: ManagedDatabase, password: SecretHandle, stamp: str
) -> list[Manifest]:
    """Service, volume and StatefulSet."""
    name = names.database_workload(accounting.metadata.name)
    claims = [] if managed.storage.existing_claim else [claim(accounting, managed)]
    return [
        owner(accounting).service(name, Service(), APP, names.DATABASE_PORT),
        *claims,
        stateful_set(accounting, managed, password, stamp),
    ]


def claim(accounting: Accounting, managed: ManagedDatabase) -> Manifest:
    """A claim of its own, not a template in the StatefulSet: a template's size could never change."""
    storage = managed.storage
    metadata = owner(accounting).metadata(names.database_workload(accounting.metadata.name))
    spec: Manifest = {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": storage.size}},
    }
    if storage.storage_class_name is not None:
        spec["storageClassName"] = storage.storage_class_name
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": without_owner(metadata),
        "spec": spec,
    }


def stateful_set(
    accounting: Accounting, managed: ManagedDatabase, password: SecretHandle, stamp: str
) -> Manifest:
    ours, name = owner(accounting), names.database_workload(accounting.metadata.name)
    metadata = ours.pod_metadata(managed.template, APP, {PASSWORD_HASH: stamp})
    manifest: Manifest = {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": ours.metadata(name, managed.template.metadata),
        "spec": {
            "replicas": 1,
            "revisionHistoryLimit": 0,
            "serviceName": name,
            # A pod that never became ready must not stand in the way of the one that would.
            "podManagementPolicy": "Parallel",
            "selector": {"matchLabels": ours.selector},
            "template": hardening.noted({"metadata": metadata, "spec": pod(accounting, managed, password)}),
        },
    }
    return with_input(
        manifest,
        metadata,
        Wish(managed.mariadb),
        Wish(managed.template),
        [managed.extra_conf, managed.storage.existing_claim],
    )


def pod(accounting: Accounting, managed: ManagedDatabase, password: SecretHandle) -> Manifest:
    volume = managed.storage.existing_claim or names.database_workload(accounting.metadata.name)
    base: Manifest = {
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": MARIADB_UID,
            "runAsGroup": MARIADB_UID,
            "fsGroup": MARIADB_UID,
            "fsGroupChangePolicy": "OnRootMismatch",
        },
        "terminationGracePeriodSeconds": 120,
        "containers": [parts.container(container(managed, password), codec.plain(managed.mariadb))],
        "volumes": [
            {"name": "data", "persistentVolumeClaim": {"claimName": volume}},
            parts.memory_volume("run"),
        ],
    }
    return hardening.confined(parts.pod_spec(base, managed.template, required=(APP,)), (APP,))


def container(managed: ManagedDatabase, password: SecretHandle) -> Manifest:
    secret = {"secretKeyRef": {"name": password.name, "key": password.key}}
    return {
        "name": APP,
        "image": default_image(APP),
        "args": [*SETTINGS, buffer_pool(managed), *options(managed.extra_conf)],
        "env": [
            {"name": "MARIADB_DATABASE", "value": DATABASE},
            {"name": "MARIADB_USER", "value": USER},
            {"name": "MARIADB_PASSWORD", "valueFrom": secret},
            {"name": "MARIADB_RANDOM_ROOT_PASSWORD", "value": "1"},
        ],
        "ports": [{"name": APP, "containerPort": names.DATABASE_PORT, "protocol": "TCP"}],
        # After a crash it may have hours of log to go through before it answers.
        "startupProbe": {
            "exec": {"command": ["sh", "-c", _LOG_IN]},
            "periodSeconds": 1,
            "timeoutSeconds": 5,
            "failureThreshold": 7200,
        },
        "readinessProbe": parts.tcp_probe(APP, period_seconds=2, failures=3),
        "livenessProbe": parts.tcp_probe(APP, period_seconds=10, failures=6),
        "volumeMounts": [
            {"name": "data", "mountPath": "/var/lib/mysql"},
            {"name": "run", "mountPath": "/run/mysqld"},
        ],
    }


def buffer_pool(managed: ManagedDatabase) -> str:
    limits = (managed.mariadb.get("resources") or {}).get("limits") or {}
    limit = quantity(limits.get("memory", ""))
    fitting = BUFFER_POOL_BYTES if isinstance(limit, str) else min(BUFFER_POOL_BYTES, int(limit / 2))
    return f"--innodb-buffer-pool-size={fitting // 2**20}M"


def options(extra_conf: str) -> Iterator[str]:
    """Lines of a [mysqld] section as arguments, which every image of MariaDB takes, and last so they win."""
    for line in extra_conf.splitlines():
        setting = line.strip()
        if setting and setting[0] not in "#;[":
            key, equals, value = setting.partition("=")
            yield f"--{key.strip()}{equals}{value.strip()}"
