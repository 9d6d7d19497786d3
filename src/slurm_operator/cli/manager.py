"""`slurm-operator manager`: every flag of ours, and those that existing Deployments pass."""

import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NoReturn

import click
import structlog

from slurm_operator.api.shared.images import DOMAIN_VARIABLE
from slurm_operator.cli.flags import (
    GoCommand,
    api_option,
    checks_switch,
    config_option,
    given_by_people,
    log_options,
    log_style,
    nodes_switch,
    switch,
    tier_prefix_option,
    without_checks,
)
from slurm_operator.cli.flags import comma_separated as comma_separated
from slurm_operator.cli.node_flags import kubelet_settings, node_options, node_settings
from slurm_operator.http import loops
from slurm_operator.kube.auth import config
from slurm_operator.kube.auth.access import Access
from slurm_operator.kube.errors import ConfigProblem
from slurm_operator.manifests.builders.dns import domain_in
from slurm_operator.operator import RECONCILER_NAMES, program
from slurm_operator.runtime.logs import configure
from slurm_operator.runtime.manager import Beside, Manager
from slurm_operator.runtime.settings import Address, Settings, SettingsProblem, with_file

RESOLV_CONF = Path("/etc/resolv.conf")


def worker_options(command: Callable[..., None]) -> Callable[..., None]:
    for name in reversed(RECONCILER_NAMES):
        command = click.option(
            f"--{name}-workers",
            type=click.IntRange(min=1),
            default=None,
            help=f"How many {name} objects are worked on at once.",
        )(command)
    return command


@click.command(cls=GoCommand)
@click.option(
    "--kubeconfig", type=click.Path(path_type=Path), help="Outside a cluster: where the API server is."
)
@click.option("--context", default="", help="Which context of the kubeconfig.")
@click.option(
    "--namespaces", default="", envvar="WATCH_NAMESPACE", help="Comma-separated; empty is all namespaces."
)
@api_option
@click.option("--health-addr", default=":8081", envvar="HEALTH_BIND_ADDRESS", show_default=True)
@click.option(
    "--metrics-addr", default=":8080", envvar="METRICS_BIND_ADDRESS", show_default=True, help="0 is off."
)
@switch("--metrics-secure", "Serve metrics over HTTPS, to whom the API server lets read them.")
@switch(
    "--leader-elect",
    "Of several managers, let only one act.",
    default=True,
    envvar="LEADER_ELECTION_ENABLED",
)
@click.option(
    "--leader-elect-id",
    default="slurm-operator",
    envvar="LEADER_ELECTION_ID",
    show_default=True,
    help="Name of the Lease.",
)
@click.option("--leader-elect-namespace", default="", help="Namespace of the Lease; empty is our own.")
@click.option("--leader-elect-lease-duration", type=click.IntRange(min=2), default=15, show_default=True)
@click.option("--leader-elect-renew-deadline", type=float, default=10.0, show_default=True)
@click.option("--leader-elect-retry-period", type=float, default=2.0, show_default=True)
@config_option
@click.option(
    "--propagated-node-conditions",
    default="",
    help="Node conditions to quote in drain reasons, comma-separated.",
)
@tier_prefix_option
@click.option(
    "--cluster-domain",
    default="",
    envvar=DOMAIN_VARIABLE,
    help="Where names of Services end; empty is what our own /etc/resolv.conf says, else cluster.local.",
)
@click.option(
    "--record",
    type=click.Path(path_type=Path),
    help="Keep the last plans, with the facts they came from, in this folder.",
)
@checks_switch
@nodes_switch
@node_options
@switch("--profile", "Serve /debug/profile?seconds=5.")
@click.option("--profile-addr", default="localhost:6060", show_default=True)
@switch("--enable-http2", "Accepted for compatibility; our servers speak HTTP/1.1 only.")
@log_options
@click.option(
    "--slurmclient-workers", default=None, help="Accepted for compatibility; each Slurm has one reader."
)
@worker_options
def manager(**flags: Any) -> None:
    """Run the reconcilers until stopped."""
    configure(*log_style(flags))
    try:
        settings = settings_of(flags, given_by_people(click.get_current_context()))
    except SettingsProblem as problem:
        raise click.ClickException(str(problem)) from problem
    run(settings, flags["cluster_domain"])


def run(
    settings: Settings, cluster_domain: str, beside: Callable[[Access], Beside] = lambda access: None
) -> NoReturn:
    """A manager until it is stopped, with what else runs in its process."""
    try:
        access = config.find(settings.kubeconfig, settings.context)
    except ConfigProblem as problem:
        raise click.ClickException(str(problem)) from problem
    os.environ[DOMAIN_VARIABLE] = cluster_domain or domain_found(RESOLV_CONF)
    for note in access.notes:
        structlog.get_logger(__name__).warning(note)
    sys.exit(loops.run(Manager(access, program(settings), settings, beside(access)).run()))


def domain_found(resolv_conf: Path) -> str:
    """The cluster domain that our own pod was given; empty when it was given none."""
    return domain_in(resolv_conf.read_text(errors="replace")) if resolv_conf.is_file() else ""


def _workers_flag(reconciler: str) -> str:
    """How click calls the value of `--NAME-workers`."""
    return f"{reconciler}_workers".replace("-", "_")


def settings_of(flags: dict[str, Any], given: Mapping[str, str] = MappingProxyType({})) -> Settings:
    """The settings these flags ask for, with those of the file beside what is `given` by flag or environment.

    Raises SettingsProblem.
    """
    settings = Settings(
        namespaces=comma_separated(flags["namespaces"]),
        kubeconfig=flags["kubeconfig"],
        context=flags["context"],
        health=Address.parse(flags["health_addr"]),
        metrics=Address.parse(flags["metrics_addr"]),
        metrics_secure=flags["metrics_secure"],
        leader_elect=flags["leader_elect"],
        leader_elect_id=flags["leader_elect_id"],
        leader_elect_namespace=flags["leader_elect_namespace"],
        lease_seconds=flags["leader_elect_lease_duration"],
        renew_deadline_seconds=flags["leader_elect_renew_deadline"],
        retry_seconds=flags["leader_elect_retry_period"],
        profile=Address.parse(flags["profile_addr"]) if flags["profile"] else Address("localhost", 0),
        workers={
            name: wanted for name in RECONCILER_NAMES if (wanted := flags[_workers_flag(name)]) is not None
        },
        propagated_node_conditions=comma_separated(flags["propagated_node_conditions"]),
        tier_prefix=flags["topology_label_prefix"],
        record=flags["record"],
        left_out=without_checks(is_on=flags["checks"]),
        groups=flags["apis"],
        nodes=node_settings(flags) if flags["checks"] and flags["node_controllers"] else None,
        kubelets=kubelet_settings(flags) if flags["checks"] and flags["node_controllers"] else None,
    )
    if not settings.retry_seconds < settings.renew_deadline_seconds < settings.lease_seconds:
        raise SettingsProblem(
            "A lease needs --leader-elect-retry-period < --leader-elect-renew-deadline "
            "< --leader-elect-lease-duration (seconds)."
        )
    if flags["config"] is None:
        return settings
    return with_file(settings, flags["config"], {"groups"} if "apis" in given else ())
