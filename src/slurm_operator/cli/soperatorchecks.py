"""`slurm-operator soperatorchecks`: ActiveChecks in a process of their own, as Soperator starts it.

By default the manager does the same in its own process. Run one of the two: start the manager with
`--checks=false` where this runs.
"""

import os
from collections.abc import Iterator, Mapping
from typing import Any, Final

import click
import structlog

from slurm_operator.api import nebius, registry
from slurm_operator.api.nebius import names
from slurm_operator.api.schema import durations
from slurm_operator.cli.flags import ZAP_LEVELS, GoCommand, comma_separated, soperator_options, switch
from slurm_operator.cli.manager import run
from slurm_operator.cli.soperator import EVERY_NAMESPACE
from slurm_operator.runtime.logs import configure
from slurm_operator.runtime.settings import Address, Settings, SettingsProblem

LEASE: Final = "a22156dp.nebius.ai"

# Soperator's names for its controllers. One reconciler does the work of those about checks.
OF_CHECKS: Final = ("activecheck", "activecheckjob", "serviceaccount")
OF_MACHINES: Final = ("slurmnodes", "k8snodes", "podephemeralstoragecheck")
CONTROLLERS: Final = (*OF_CHECKS, *OF_MACHINES, "slurmapiclients")

_NO_MACHINES: Final = "Kubernetes nodes are neither drained, rebooted nor deleted by this release"
_NO_STORAGE: Final = "the storage of workers is not looked at by this release"
_WOKEN: Final = "checks are looked at when something about them changes, and every 10 s while a job runs"

# What is accepted and does nothing, and why.
WITHOUT_MEANING: Final = {
    "cache_sync_timeout": "caches are waited for as long as it takes",
    "enable_http2": "our servers speak HTTP/1.1 only",
    "requeue_after_activecheck": _WOKEN,
    "requeue_after_activecheckjob": _WOKEN,
    "requeue_after_slurm_nodes": _NO_MACHINES,
    "enable_node_replacement": _NO_MACHINES,
    "not_ready_timeout": _NO_MACHINES,
    "delete_not_ready_nodes": _NO_MACHINES,
    "maintenance_condition_type": _NO_MACHINES,
    "maintenance_ignore_node_labels": _NO_MACHINES,
    "requeue_after_pod_ephemeral_storage_check": _NO_STORAGE,
    "pod_ephemeral_max_concurrent_reconciles": _NO_STORAGE,
    "ephemeral_storage_threshold": _NO_STORAGE,
    "ephemeral_storage_resume_threshold": _NO_STORAGE,
    "kubelet_port": _NO_STORAGE,
    "kubelet_request_timeout": _NO_STORAGE,
    "kubelet_max_idle_conns": _NO_STORAGE,
    "kubelet_insecure_skip_tls_verify": _NO_STORAGE,
    "kubelet_ca_file": _NO_STORAGE,
    "kubelet_tls_server_name": _NO_STORAGE,
}


@click.command(cls=GoCommand)
@soperator_options
@click.option("--operator-namespace", default="", help="Namespace of the Lease; empty is our own.")
@click.option("--max-concurrent-reconciles", type=click.IntRange(min=1), default=1)
@click.option(
    "--controllers",
    default="",
    envvar="SLURM_OPERATOR_CONTROLLERS",
    help=f"Which of {', '.join(CONTROLLERS)} run, such as `*,-k8snodes`; empty is all.",
)
@click.option(
    "--namespaces",
    default=EVERY_NAMESPACE,
    envvar="SLURM_OPERATOR_WATCH_NAMESPACES",
    help="Comma-separated; * is all namespaces.",
)
@click.option("--cluster-domain", default="", envvar="KUBERNETES_CLUSTER_DOMAIN", help="Where names end.")
@click.option("--requeue-after-activecheck", default="10s", help="Accepted for compatibility.")
@click.option("--requeue-after-activecheckjob", default="1m", help="Accepted for compatibility.")
@click.option("--requeue-after-slurm-nodes", default="3m", help="Accepted for compatibility.")
@click.option("--requeue-after-pod-ephemeral-storage-check", default="1m", help="Accepted for compatibility.")
@click.option("--pod-ephemeral-max-concurrent-reconciles", default=50, help="Accepted for compatibility.")
@switch("--enable-node-replacement", "Accepted for compatibility; nothing is replaced.")
@click.option("--not-ready-timeout", default="15m", help="Accepted for compatibility.")
@switch("--delete-not-ready-nodes", "Accepted for compatibility; no Node is deleted.")
@click.option("--ephemeral-storage-threshold", default=85.0, help="Accepted for compatibility.")
@click.option("--ephemeral-storage-resume-threshold", default=80.0, help="Accepted for compatibility.")
@click.option(
    "--maintenance-condition-type", default="NebiusMaintenanceScheduled", help="Accepted for compatibility."
)
@click.option(
    "--maintenance-ignore-node-labels",
    default="",
    envvar="MAINTENANCE_IGNORE_NODE_LABELS",
    help="Accepted for compatibility.",
)
@click.option("--kubelet-port", default=10250, help="Accepted for compatibility.")
@click.option("--kubelet-request-timeout", default="10s", help="Accepted for compatibility.")
@click.option("--kubelet-max-idle-conns", default=1024, help="Accepted for compatibility.")
@switch("--kubelet-insecure-skip-tls-verify", "Accepted for compatibility.")
@click.option("--kubelet-ca-file", default="", help="Accepted for compatibility.")
@click.option("--kubelet-tls-server-name", default="", help="Accepted for compatibility.")
def soperatorchecks(**flags: Any) -> None:
    """Run ActiveChecks until stopped; start the manager with --checks=false."""
    configure(flags["log_format"], ZAP_LEVELS[flags["log_level"]])
    try:
        settings = settings_of(flags)
    except SettingsProblem as problem:
        raise click.ClickException(str(problem)) from problem
    for note in notes(click.get_current_context(), os.environ):
        structlog.get_logger(__name__).info(note)
    run(settings, flags["cluster_domain"])


def settings_of(flags: Mapping[str, Any]) -> Settings:
    """The settings these flags ask for. Raises SettingsProblem."""
    watched = comma_separated(flags["namespaces"])
    for name in ("requeue_after_activecheck", "requeue_after_activecheckjob", "not_ready_timeout"):
        try:
            durations.parse(flags[name])
        except ValueError as error:
            raise SettingsProblem(f"--{name.replace('_', '-')}: {error}.") from error
    return Settings(
        namespaces=() if EVERY_NAMESPACE in watched else watched,
        kubeconfig=flags["kubeconfig"],
        context=flags["context"],
        health=Address.parse(flags["health_probe_bind_address"]),
        metrics=Address.parse(flags["metrics_bind_address"]),
        metrics_secure=flags["metrics_secure"],
        leader_elect=flags["leader_elect"],
        leader_elect_id=LEASE,
        leader_elect_namespace=flags["operator_namespace"],
        default_workers=max(Settings.default_workers, flags["max_concurrent_reconciles"]),
        groups=(names.GROUP,),
        left_out=tuple(_left_out(_chosen(flags["controllers"]))),
    )


def _chosen(text: str) -> frozenset[str]:
    said = [part.strip() for part in text.split(",") if part.strip()]
    named, less = {one for one in said if one[0] != "-"}, {one[1:] for one in said if one[0] == "-"}
    if unknown := sorted((named | less) - {*CONTROLLERS, "*"}):
        raise SettingsProblem(
            f"--controllers: there is no {unknown[0]!r}. There are: {', '.join(CONTROLLERS)}, and *."
        )
    return frozenset(CONTROLLERS if not named or "*" in named else named) - less


def _left_out(chosen: frozenset[str]) -> Iterator[str]:
    """Everything but checks: clusters belong to the manager."""
    has_checks = not chosen.isdisjoint(OF_CHECKS)
    for one in registry.ALL:
        if not (one.model is nebius.ActiveCheck and has_checks):
            yield one.resource


def notes(context: click.Context, environment: Mapping[str, str]) -> Iterator[str]:
    """What was said to us that has no meaning here, each once."""
    default = click.core.ParameterSource.DEFAULT
    for name, why in WITHOUT_MEANING.items():
        if context.get_parameter_source(name) is not default:
            yield f"--{name.replace('_', '-')} has no effect: {why}"
    chosen = _chosen(context.params["controllers"])
    for name in sorted(chosen & set(OF_MACHINES)):
        yield f"the controller {name!r} has no counterpart in this release"
