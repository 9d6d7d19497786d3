"""The Accounting of a SlurmCluster: slurmdbd, with a database that exists or one of ours."""

from collections.abc import Iterator

from slurm_operator.api.nebius import names
from slurm_operator.api.nebius.accounting import ExternalDatabase, MariadbOperator, SlurmdbdConfig
from slurm_operator.api.nebius.volumes import given
from slurm_operator.api.schema.model import fields_of
from slurm_operator.api.shared import names as shared_names
from slurm_operator.api.slinky.accounting import DATABASE, Accounting
from slurm_operator.manifests.meta import Manifest
from slurm_operator.reconcilers.nebius.shared import pods
from slurm_operator.reconcilers.nebius.shared.objects import children
from slurm_operator.reconcilers.nebius.slurmcluster import mariadb
from slurm_operator.reconcilers.nebius.slurmcluster.mariadb import MadeBy
from slurm_operator.reconcilers.nebius.slurmcluster.observe import Seen
from slurm_operator.reconcilers.nebius.slurmcluster.parts import SLURM_USER, auth, jwt_key, maker

_CA = "/mnt/slurmdbd-ssl-ca-cert"
_CLIENT = "/mnt/slurmdbd-ssl-client-key"


def accounting(seen: Seen) -> Manifest:
    wished = seen.spec.slurm_nodes.accounting
    container = pods.container(wished.slurmdbd) if wished.slurmdbd is not None else {}
    volumes, mounts = _tls(wished.external_db)
    munge = {"name": "munge", **pods.container(wished.munge)} if wished.munge is not None else None
    port = wished.slurmdbd.port if wished.slurmdbd is not None else None
    spec: Manifest = {
        "auth": auth(seen),
        "slurmUser": SLURM_USER,
        "jwtKeyRef": jwt_key(seen),
        **({"slurmdbd": {**container, "volumeMounts": mounts}} if container or mounts else {}),
        "template": {
            "spec": {
                **pods.place(seen.spec.filters.get(wished.k8s_node_filter_name)),
                **pods.filled(
                    {
                        "priorityClassName": wished.priority_class,
                        "hostUsers": wished.host_users,
                        "imagePullSecrets": pods.pull_secrets(wished.slurmdbd, wished.munge),
                        "initContainers": [*wished.custom_init_containers, *([munge] if munge else [])],
                        "volumes": volumes,
                    }
                ),
            }
        },
        "extraConf": extra_conf(seen),
        **_database(seen),
        **({"service": {"port": port}} if port not in (None, 0, shared_names.SLURMDBD_PORT) else {}),
        "children": children(
            seen.name,
            "accounting",
            {
                "service": names.accounting_service(seen.name),
                "workload": names.accounting(seen.name),
                "config": names.slurmdbd_configs(seen.name),
            },
        ),
    }
    return maker(seen).part(Accounting.KIND, seen.name, "accounting", spec)


def extra_conf(seen: Seen) -> str:
    wished = seen.spec.slurm_nodes.accounting
    lines = [*_settings(wished.slurmdbd_config)]
    if not wished.has_mariadb and (parameters := storage_parameters(wished.external_db)):
        lines.append(f"StorageParameters={parameters}")
    return "".join(f"{line}\n" for line in lines)


def _settings(config: SlurmdbdConfig) -> Iterator[str]:
    for field in fields_of(SlurmdbdConfig):
        value = getattr(config, field.attribute)
        if value not in (None, ""):
            yield f"{_key(field.name)}={value}"


def _key(name: str) -> str:
    return "TCPTimeout" if name == "tcpTimeout" else f"{name[0].upper()}{name[1:]}"


def storage_parameters(database: ExternalDatabase) -> str:
    """Sorted, so that the same words always make the same line."""
    found = dict(database.storage_parameters)
    if database.tls is not None and database.tls.server_ca_secret_ref:
        found["SSL_CA"] = f"{_CA}/ca.crt"
    if database.tls is not None and database.tls.client_cert_secret_ref:
        found |= {"SSL_CERT": f"{_CLIENT}/tls.crt", "SSL_KEY": f"{_CLIENT}/tls.key"}
    return ",".join(f"{key}={value}" for key, value in sorted(found.items()))


def _tls(database: ExternalDatabase) -> tuple[list[Manifest], list[Manifest]]:
    """Certificates for the database: volumes, and where they appear."""
    tls = database.tls if database.enabled else None
    wanted = (
        ("slurmdbd-ssl-ca-cert", tls.server_ca_secret_ref, _CA) if tls is not None else None,
        ("slurmdbd-ssl-client-key", tls.client_cert_secret_ref, _CLIENT) if tls is not None else None,
    )
    found = [one for one in wanted if one is not None and one[1]]
    return (
        [pods.secret_volume(name, secret) for name, secret, _ in found],
        [pods.mount(name, path, read_only=True) for name, _, path in found],
    )


def _database(seen: Seen) -> Manifest:
    wished = seen.spec.slurm_nodes.accounting
    if mariadb.made_by(seen) is MadeBy.MARIADB_OPERATOR:
        return {"storageConfig": mariadb.storage(seen)}
    if wished.has_mariadb and wished.mariadb_operator is not None:
        return {"managed": _managed(wished.mariadb_operator)}
    database = wished.external_db
    if not database.enabled:
        return {}
    password = database.password_secret_key_ref
    return {
        "storageConfig": {
            "host": database.host,
            "port": database.port,
            "database": DATABASE,
            "username": database.user,
            "passwordKeyRef": {"name": password.name, "key": password.key},
        }
    }


def _managed(wished: MariadbOperator) -> Manifest:
    storage = {"size": wished.storage.get("size"), "storageClassName": wished.storage.get("storageClassName")}
    template = pods.filled(
        {
            "priorityClassName": wished.priority_class_name,
            "securityContext": wished.pod_security_context,
            "imagePullSecrets": wished.image_pull_secrets,
        }
    )
    container = pods.container(wished) if wished.is_given else {}
    confined = {**container.get("securityContext", {}), **given(wished.security_context)}
    return pods.filled(
        {
            "storage": pods.filled(storage),
            "mariadb": container | pods.filled({"securityContext": confined}),
            "template": {"spec": template} if template else {},
        }
    ) or {"storage": {}}
