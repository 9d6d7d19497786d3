"""The objects of a RestApi: a Deployment of slurmrestd, and the Service in front of it."""

from slurm_operator.api.schema import codec
from slurm_operator.api.shared import names
from slurm_operator.api.shared.images import default_image
from slurm_operator.api.slinky.restapi import RestApi
from slurm_operator.manifests import kinds
from slurm_operator.manifests.builders import hardening, parts
from slurm_operator.manifests.builders.workloads import Wish, with_input
from slurm_operator.manifests.digests import digest
from slurm_operator.manifests.meta import Manifest
from slurm_operator.manifests.secrets import SecretHandle
from slurm_operator.reconcilers.restapi.observe import APP, Seen
from slurm_operator.reconcilers.shared.dependencies import Need
from slurm_operator.slurm.conf.rest import has_slurmdbd

# slurmrestd's default is two threads per CPU, and as many calls to a slurmctld that hangs stall all others.
THREADS = 16

# Not among the arguments: tools expect those that Slinky's operator writes. The entry point of our image puts
# this in front of them; Slinky's image starts slurmrestd itself, which then has its own number of threads.
OPTIONS = "SLURMRESTD_OPTIONS"

LISTEN = f"0.0.0.0:{names.SLURMRESTD_PORT}"


def owner(restapi: RestApi) -> parts.Owner:
    return parts.Owner(
        RestApi.KIND, restapi.metadata, app=APP, component="restapi", labels=restapi.spec.children.labels
    )


def named_objects(restapi: RestApi) -> list[Manifest]:
    """What is made for it under a name that somebody may have chosen."""
    ours, called = owner(restapi), restapi.child_names
    return [
        ours.bare_child(kinds.SERVICE, called.service),
        ours.bare_child(kinds.DEPLOYMENT, called.workload),
    ]


def service(seen: Seen) -> Manifest:
    restapi = seen.restapi
    return owner(restapi).service(
        restapi.child_names.service, restapi.spec.service, APP, names.SLURMRESTD_PORT
    )


def deployment(seen: Seen) -> Manifest:
    """slurmrestd, as soon as it has all that it needs. Restarted when what it reads at its start changes."""
    assert not isinstance(seen.config, Need)
    assert not isinstance(seen.slurm_key, Need)
    restapi, spec, ours = seen.restapi, seen.restapi.spec, owner(seen.restapi)
    hashes = {
        names.SLURM_CONFIG_HASH: digest(seen.config),
        names.SLURM_KEY_HASH: seen.slurm_key.digest,
    }
    metadata = ours.pod_metadata(spec.template, APP, hashes)
    manifest: Manifest = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": ours.metadata(restapi.child_names.workload, spec.template.metadata),
        "spec": {
            "replicas": spec.replicas,
            "revisionHistoryLimit": 0,
            "selector": {"matchLabels": ours.selector},
            "template": hardening.noted({"metadata": metadata, "spec": pod(seen, seen.slurm_key)}),
        },
    }
    usual = names.controller_config(spec.controller_ref.name)
    return with_input(
        manifest,
        metadata,
        Wish(spec.slurmrestd),
        Wish(spec.template),
        [spec.controller_ref.name, seen.slurm_key.name, seen.slurm_key.key],
        *([] if seen.config_map == usual else [seen.config_map]),
    )


def pod(seen: Seen, slurm_key: SecretHandle) -> Manifest:
    spec = seen.restapi.spec
    files = [
        parts.config_map_file(seen.config_map, "slurm.conf", "slurm.conf"),
        parts.secret_file(slurm_key.name, slurm_key.key, names.SLURM_KEY_FILE),
    ]
    base: Manifest = {
        "securityContext": {"runAsNonRoot": True, **user(), "fsGroup": names.SLURMRESTD_UID},
        "containers": [container(seen)],
        "volumes": [parts.projected("slurm-etc", 0o600, *files)],
    }
    return hardening.confined(parts.pod_spec(base, spec.template, required=(APP,)), (APP,))


def container(seen: Seen) -> Manifest:
    """The listening address comes last, whatever arguments the user adds."""
    assert not isinstance(seen.config, Need)
    plugins = [] if has_slurmdbd(seen.config) else ["-s", "openapi/slurmctld"]
    base: Manifest = {
        "name": APP,
        "image": default_image(APP),
        "args": plugins,
        "env": [
            {"name": "SLURM_JWT", "value": "daemon"},
            {"name": OPTIONS, "value": f"-t {THREADS}"},
            {"name": "SLURMRESTD_SECURITY", "value": "disable_unshare_files,disable_unshare_sysv"},
        ],
        "ports": [{"name": APP, "containerPort": names.SLURMRESTD_PORT, "protocol": "TCP"}],
        "securityContext": {"runAsNonRoot": True, **user()},
        "startupProbe": parts.tcp_probe(APP, period_seconds=1, failures=60),
        "readinessProbe": parts.tcp_probe(APP, period_seconds=1, failures=3),
        "livenessProbe": parts.tcp_probe(APP, period_seconds=10, failures=6),
        "volumeMounts": [{"name": "slurm-etc", "mountPath": "/etc/slurm", "readOnly": True}],
    }
    ours = parts.container(base, codec.plain(seen.restapi.spec.slurmrestd))
    return ours | {"args": [*ours["args"], LISTEN], "env": [_with_threads(one) for one in ours["env"]]}


def _with_threads(variable: Manifest) -> Manifest:
    """What the user gives as options comes after ours, and counts more."""
    value = variable.get("value", "")
    if variable["name"] != OPTIONS or "valueFrom" in variable or value == f"-t {THREADS}":
        return variable
    return variable | {"value": f"-t {THREADS} {value}".rstrip()}


def user() -> Manifest:
    """slurmrestd refuses to run as root or as Slurm's own user."""
    return {"runAsUser": names.SLURMRESTD_UID, "runAsGroup": names.SLURMRESTD_UID}
