"""`slurm-operator soperator`: a manager that takes the place of Soperator's, started by its own Deployment.

It is told what Soperator's manager is told. The API group slurm.nebius.ai is on and the first one off, it
holds Soperator's own Lease, and it answers about admission in the same process.
"""

import asyncio
import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
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
    checks_switch,
    comma_separated,
    nodes_switch,
    operator_namespace_option,
    soperator_namespaces_option,
    soperator_options,
    switch,
    tier_prefix_option,
    without_checks,
)
from slurm_operator.cli.manager import run
from slurm_operator.cli.node_flags import kubelet_settings, node_options, node_settings
from slurm_operator.kube.auth.access import Access
from slurm_operator.runtime.logs import configure
from slurm_operator.runtime.manager import Beside
from slurm_operator.runtime.settings import Address, Settings, SettingsProblem
from slurm_operator.webhook.process import CERTIFICATES, Webhook
from slurm_operator.webhook.process import Settings as WebhookSettings

# Soperator's names for its controllers, and the kinds that ours of the same task are about. Those without one
# are part of another here, or not there yet.
CONTROLLERS: Final[Mapping[str, type[Any] | None]] = {
    "cluster": nebius.SlurmCluster,
    "nodeconfigurator": nebius.NodeConfigurator,
    "nodeset": nebius.NodeSet,
    "rollingupdate": None,
    "topology": None,
}

# What is accepted and does nothing, and why.
WITHOUT_MEANING: Final = {
    "cache_sync_timeout": "caches are waited for as long as it takes",
    "enable_http2": "our servers speak HTTP/1.1 only",
    "enable_topology_controller": "slurmConfig.topologyPlugin says whether there is a topology",
    "feature_gates": "there are none",
}
VARIABLES_WITHOUT_MEANING: Final = {
    "IS_APPARMOR_CRD_INSTALLED": "which kinds there are is found out",
    "IS_MARIADB_CRD_INSTALLED": "which kinds there are is found out",
    "IS_OPENTELEMETRY_COLLECTOR_CRD_INSTALLED": "which kinds there are is found out",
    "IS_PROMETHEUS_CRD_INSTALLED": "which kinds there are is found out",
}


@click.command(cls=GoCommand)
@soperator_options
@operator_namespace_option
@click.option(
    "--max-concurrent-reconciles",
    type=click.IntRange(min=1),
    default=1,
    help=f"How many objects of a kind are worked on at once; at least {Settings.default_workers} are.",
)
@click.option(
    "--controllers",
    default="",
    envvar="SLURM_OPERATOR_CONTROLLERS",
    help=f"Which reconcilers run, such as `*,-topology`; empty is all. Names: {', '.join(CONTROLLERS)}.",
)
@soperator_namespaces_option
@switch("--webhooks", "Answer about admission.", default=True, envvar="ENABLE_WEBHOOKS")
@click.option("--webhook-port", type=click.IntRange(1, 65535), default=9443, envvar="WEBHOOK_PORT")
@click.option(
    "--cert-dir",
    type=click.Path(path_type=Path),
    default=CERTIFICATES,
    envvar="WEBHOOK_CERT_DIR",
    help="tls.crt and tls.key for admission, reread when they change.",
)
@tier_prefix_option
@click.option(
    "--webhook-service",
    default="",
    envvar="WEBHOOK_SERVICE",
    help="Service in front of admission, and the configuration of that name. Where no certificate is "
    "mounted, one is made for it, kept in Secret SERVICE-certificates and renewed.",
)
@click.option("--cluster-domain", default="", envvar="KUBERNETES_CLUSTER_DOMAIN", help="Where names end.")
@checks_switch
@nodes_switch
@node_options
@switch("--enable-topology-controller", "Accepted for compatibility.")
@click.option("--feature-gates", default="", help="Accepted for compatibility.")
def soperator(**flags: Any) -> None:
    """Run the reconcilers of slurm.nebius.ai until stopped."""
    configure(flags["log_format"], ZAP_LEVELS[flags["log_level"]])
    try:
        settings = settings_of(flags)
    except SettingsProblem as problem:
        raise click.ClickException(str(problem)) from problem
    for note in notes(click.get_current_context(), os.environ):
        structlog.get_logger(__name__).info(note)
    run(settings, flags["cluster_domain"], partial(admission, settings, flags))


def settings_of(flags: Mapping[str, Any]) -> Settings:
    """The settings these flags ask for. Raises SettingsProblem."""
    _check_duration(flags["cache_sync_timeout"])
    watched = comma_separated(flags["namespaces"])
    return Settings(
        namespaces=() if EVERY_NAMESPACE in watched else watched,
        kubeconfig=flags["kubeconfig"],
        context=flags["context"],
        health=Address.parse(flags["health_probe_bind_address"]),
        metrics=Address.parse(flags["metrics_bind_address"]),
        metrics_secure=flags["metrics_secure"],
        leader_elect=flags["leader_elect"],
        leader_elect_id=names.SOPERATOR_LEASE,
        leader_elect_namespace=flags["operator_namespace"],
        default_workers=max(Settings.default_workers, flags["max_concurrent_reconciles"]),
        tier_prefix=flags["topology_label_prefix"],
        groups=(names.GROUP,),
        left_out=(
            *_left_out(chosen_controllers(flags["controllers"])),
            *without_checks(is_on=flags["checks"]),
        ),
        nodes=node_settings(flags) if flags["checks"] and flags["node_controllers"] else None,
        kubelets=kubelet_settings(flags) if flags["checks"] and flags["node_controllers"] else None,
    )


def chosen_controllers(text: str) -> frozenset[str]:
    """Those that run: `*` is all, `name` one more, `-name` one less. Raises SettingsProblem."""
    said = [part.strip() for part in text.split(",") if part.strip()]
    named, less = {one for one in said if one[0] != "-"}, {one[1:] for one in said if one[0] == "-"}
    if unknown := sorted((named | less) - {*CONTROLLERS, "*"}):
        raise SettingsProblem(
            f"--controllers: there is no {unknown[0]!r}. There are: {', '.join(CONTROLLERS)}, and *."
        )
    everything = not named or "*" in named
    return frozenset(CONTROLLERS if everything else named) - less


# Kinds that go with another one: Soperator has no controller of its own for them.
_TOGETHER: Final[Mapping[str, type[Any]]] = {"nodeset": nebius.NodeSetPowerState}


def _left_out(chosen: frozenset[str]) -> Iterator[str]:
    for name, model in CONTROLLERS.items():
        for one in (model, _TOGETHER.get(name)):
            found = registry.ALL.find(names.GROUP, one.KIND.kind) if one is not None else None
            if found is not None and name not in chosen:
                yield found.resource


def _check_duration(text: str) -> None:
    try:
        durations.parse(text or "0s")
    except ValueError as error:
        raise SettingsProblem(f"--cache-sync-timeout: {error}.") from error


def notes(context: click.Context, environment: Mapping[str, str]) -> Iterator[str]:
    """What was said to us that has no meaning here, each once."""
    default = click.core.ParameterSource.DEFAULT
    for name, why in WITHOUT_MEANING.items():
        if context.get_parameter_source(name) is not default:
            yield f"--{name.replace('_', '-')} has no effect: {why}"
    for name, why in VARIABLES_WITHOUT_MEANING.items():
        if environment.get(name):
            yield f"{name} has no effect: {why}"
    chosen = chosen_controllers(context.params["controllers"])
    for name in sorted({one for one, model in CONTROLLERS.items() if model is None} - chosen):
        yield f"--controllers: leaving out {name!r} has no effect: it has no reconciler of its own"


def admission(settings: Settings, flags: Mapping[str, Any], access: Access) -> Beside:
    """The webhook in the manager's process, with the certificate that the Deployment mounts."""
    if not flags["webhooks"]:
        return None
    webhook = Webhook(access, webhook_settings(settings, flags))
    return lambda: webhook.serve(asyncio.Event())


def webhook_settings(settings: Settings, flags: Mapping[str, Any]) -> WebhookSettings:
    asked = _webhook_settings(settings, flags)
    if not (service := flags["webhook_service"]):
        return asked
    own = {"secret": f"{service}-certificates", "service": service, "configurations": (service,)}
    return replace(asked, certificates=None, **own)


def _webhook_settings(settings: Settings, flags: Mapping[str, Any]) -> WebhookSettings:
    return WebhookSettings(
        server=Address("0.0.0.0", flags["webhook_port"]),
        health=Address("0.0.0.0", 0),
        metrics=Address("0.0.0.0", 0),
        namespaces=settings.namespaces,
        certificates=flags["cert_dir"],
        pods_binding=False,
        kinds=registry.ALL.on(settings.groups),
    )
