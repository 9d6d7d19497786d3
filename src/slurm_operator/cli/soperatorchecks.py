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
from slurm_operator.cli.flags import (
    EVERY_NAMESPACE,
    ZAP_LEVELS,
    GoCommand,
    comma_separated,
    operator_namespace_option,
    soperator_namespaces_option,
    soperator_options,
)
from slurm_operator.cli.manager import run
from slurm_operator.cli.node_flags import kubelet_settings, node_options, node_settings
from slurm_operator.reconcilers.nebius.kubenode.options import NodeOptions
from slurm_operator.runtime.logs import configure
from slurm_operator.runtime.settings import Address, Settings, SettingsProblem

LEASE: Final = "a22156dp.nebius.ai"

# Soperator's names for its controllers. One reconciler does the work of those about checks.
OF_CHECKS: Final = ("activecheck", "activecheckjob", "serviceaccount")
# One reconciler does the work of these, too; each has its own part of the rules.
OF_KUBE_NODES: Final = ("slurmnodes", "k8snodes")
OF_STORAGE: Final = "podephemeralstoragecheck"
CONTROLLERS: Final = (*OF_CHECKS, *OF_KUBE_NODES, OF_STORAGE, "slurmapiclients")

_EVENTS: Final = "Kubernetes nodes are looked at when something about them or in Slurm changes"
_ANEW: Final = "each look at a kubelet is a connection of its own"
_WOKEN: Final = "checks are looked at when something about them changes, and every 10 s while a job runs"

# What is accepted and does nothing, and why.
WITHOUT_MEANING: Final = {
    "cache_sync_timeout": "caches are waited for as long as it takes",
    "enable_http2": "our servers speak HTTP/1.1 only",
    "requeue_after_activecheck": _WOKEN,
    "requeue_after_activecheckjob": _WOKEN,
    "requeue_after_slurm_nodes": _EVENTS,
    "kubelet_max_idle_conns": _ANEW,
}


@click.command(cls=GoCommand)
@soperator_options
@operator_namespace_option
@click.option("--max-concurrent-reconciles", type=click.IntRange(min=1), default=1)
@click.option(
    "--controllers",
    default="",
    envvar="SLURM_OPERATOR_CONTROLLERS",
    help=f"Which of {', '.join(CONTROLLERS)} run, such as `*,-k8snodes`; empty is all.",
)
@soperator_namespaces_option
@click.option("--cluster-domain", default="", envvar="KUBERNETES_CLUSTER_DOMAIN", help="Where names end.")
@node_options
@click.option("--requeue-after-activecheck", default="10s", help="Accepted for compatibility.")
@click.option("--requeue-after-activecheckjob", default="1m", help="Accepted for compatibility.")
@click.option("--requeue-after-slurm-nodes", default="3m", help="Accepted for compatibility.")
@click.option("--kubelet-max-idle-conns", default=1024, help="Accepted for compatibility.")
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
    for name in ("requeue_after_activecheck", "requeue_after_activecheckjob", "requeue_after_slurm_nodes"):
        try:
            durations.parse(flags[name])
        except ValueError as error:
            raise SettingsProblem(f"--{name.replace('_', '-')}: {error}.") from error
    chosen = _chosen(flags["controllers"])
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
        left_out=tuple(_left_out(chosen)),
        is_beside_manager=True,
        nodes=_nodes(flags, chosen),
        kubelets=kubelet_settings(flags) if OF_STORAGE in chosen else None,
    )


def _chosen(text: str) -> frozenset[str]:
    said = [part.strip() for part in text.split(",") if part.strip()]
    named, less = {one for one in said if one[0] != "-"}, {one[1:] for one in said if one[0] == "-"}
    if unknown := sorted((named | less) - {*CONTROLLERS, "*"}):
        raise SettingsProblem(
            f"--controllers: there is no {unknown[0]!r}. There are: {', '.join(CONTROLLERS)}, and *."
        )
    return frozenset(CONTROLLERS if not named or "*" in named else named) - less


def _nodes(flags: Mapping[str, Any], chosen: frozenset[str]) -> NodeOptions | None:
    found = node_settings(
        flags,
        follows_slurm="slurmnodes" in chosen,
        follows_conditions="k8snodes" in chosen,
        follows_storage=OF_STORAGE in chosen,
    )
    return None if chosen.isdisjoint((*OF_KUBE_NODES, OF_STORAGE)) else found


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
