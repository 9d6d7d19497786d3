"""The objects of slurmdbd: Service, Secret with its configuration, StatefulSet."""

from slurm_operator.api.schema import codec
from slurm_operator.api.shared import names
from slurm_operator.api.shared.auth import SlurmUser, with_munge
from slurm_operator.api.shared.images import default_image
from slurm_operator.api.slinky.accounting import Accounting
from slurm_operator.api.slinky.key_secrets import munge_key
from slurm_operator.manifests.builders import hardening, key_ring, munge, parts
from slurm_operator.manifests.builders.workloads import Wish, with_input
from slurm_operator.manifests.meta import Manifest
from slurm_operator.manifests.secrets import SecretHandle
from slurm_operator.reconcilers.accounting import check, conf, password_stamp
from slurm_operator.reconcilers.accounting.database import Address, without_owner
from slurm_operator.reconcilers.accounting.observe import APP, Seen


def owner(accounting: Accounting) -> parts.Owner:
    return parts.Owner(
        Accounting.KIND,
        accounting.metadata,
        app=APP,
        component="accounting",
        labels=accounting.spec.children.labels,
    )


def key_secret(accounting: Accounting, name: str) -> Manifest:
    """Where a generated key goes. Whoever was locked out by a lost key would never get in again: it stays."""
    metadata = owner(accounting).metadata(name)
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": without_owner(metadata),
        "type": "Opaque",
    }


def service(accounting: Accounting) -> Manifest:
    return owner(accounting).service(
        accounting.child_names.service, accounting.spec.service, APP, names.SLURMDBD_PORT
    )


def conf_secret(accounting: Accounting, address: Address, password: SecretHandle, stamp: str) -> Manifest:
    text = conf.slurmdbd_conf(accounting, address, password)
    config = owner(accounting).secret(accounting.child_names.config, {conf.FILE: text})
    return password_stamp.noted(config, stamp, password)


def stateful_set(seen: Seen, address: Address, conf_hash: str) -> Manifest:
    """slurmdbd, once it has all that it needs. Replaced when its configuration, key or image changes."""
    assert isinstance(seen.slurm_key, SecretHandle)
    assert isinstance(seen.signing_key, SecretHandle)
    spec, ours, called = seen.accounting.spec, owner(seen.accounting), seen.accounting.child_names
    hashes = {
        names.SLURMDBD_CONF_HASH: conf_hash,
        names.SLURM_KEY_HASH: seen.key_hash,
        names.JWT_KEY_HASH: seen.signing_key.digest,
    }
    metadata = ours.pod_metadata(spec.template, APP, hashes)
    ring = key_ring.optional_file(seen.slurm_key.name)
    files = [
        parts.secret_file(called.config, conf.FILE, conf.FILE),
        parts.secret_file(seen.slurm_key.name, seen.slurm_key.key, names.SLURM_KEY_FILE),
        parts.secret_file(seen.signing_key.name, seen.signing_key.key, names.JWT_KEY_FILE),
    ]
    if spec.jwks_key_ref is not None:
        jwks = spec.jwks_key_ref
        files.append(parts.config_map_file(jwks.name, jwks.key, names.JWKS_FILE))
    manifest: Manifest = {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": ours.metadata(called.workload, spec.template.metadata),
        "spec": {
            "replicas": 1,
            "revisionHistoryLimit": 0,
            "serviceName": called.service,
            "podManagementPolicy": "Parallel",
            "selector": {"matchLabels": ours.selector},
            "template": hardening.noted(
                {"metadata": metadata, "spec": pod(seen.accounting, address, [*files, ring])}
            ),
        },
    }
    inputs = [metadata, files, Wish(spec.slurmdbd), Wish(spec.template)]
    if (auth := with_munge(spec.auth)) is not None:
        inputs.append([munge.volumes(munge_key(seen.accounting)), Wish(auth.munge)])
    return with_input(manifest, *inputs)


def pod(accounting: Accounting, address: Address, files: list[Manifest]) -> Manifest:
    spec = accounting.spec
    slurmdbd = container(codec.plain(spec.slurmdbd), accounting.user)
    auth = with_munge(spec.auth)
    if auth is not None:
        slurmdbd["volumeMounts"] = [*slurmdbd["volumeMounts"], munge.mount()]
    base: Manifest = {
        # slurmdbd wants its configuration at 0600 or 0640; by the group it can read files of the kubelet.
        "securityContext": {**accounting.user.security, "fsGroup": accounting.user.gid},
        "initContainers": [
            *([munge.sidecar(auth, slurmdbd["image"])] if auth is not None else []),
            check.container(slurmdbd["image"], address, accounting.user),
        ],
        "containers": [slurmdbd],
        "volumes": [
            parts.projected("slurm-etc", 0o600, *files),
            parts.memory_volume("run"),
            *(munge.volumes(munge_key(accounting)) if auth is not None else []),
        ],
    }
    whole = parts.pod_spec(base, spec.template, required=(APP, munge.NAME))
    return hardening.confined(whole, (APP, munge.NAME, check.CONTAINER))


def container(wishes: Manifest, user: SlurmUser) -> Manifest:
    base: Manifest = {
        "name": APP,
        "image": default_image(APP),
        "ports": [{"name": APP, "containerPort": names.SLURMDBD_PORT, "protocol": "TCP"}],
        "securityContext": user.security,
        # A new version of Slurm converts the database before it listens; with many jobs that takes hours.
        "startupProbe": parts.tcp_probe(APP, period_seconds=1, failures=6 * 3600),
        "readinessProbe": parts.tcp_probe(APP, period_seconds=1, failures=3),
        "livenessProbe": parts.tcp_probe(APP, period_seconds=10, failures=6),
        "volumeMounts": [
            {"name": "slurm-etc", "mountPath": "/etc/slurm", "readOnly": True},
            {"name": "run", "mountPath": "/run"},
        ],
    }
    return parts.container(base, wishes)
