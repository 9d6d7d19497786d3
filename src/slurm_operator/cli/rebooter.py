"""`slurm-operator rebooter`: the flags that Soperator's DaemonSets pass, and some of ours."""

import shlex
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import click
import structlog

from slurm_operator.agents.rebooter.decide import Limits
from slurm_operator.agents.rebooter.host import REBOOT_COMMAND, Host
from slurm_operator.agents.rebooter.program import LEASE_NAME, Program, Settings
from slurm_operator.api.nebius.nodeconfigurator import EvictionMethod
from slurm_operator.api.schema import durations
from slurm_operator.cli.flags import ZAP_LEVELS, GoCommand, soperator_options, switch
from slurm_operator.http import loops
from slurm_operator.kube.auth import config
from slurm_operator.kube.errors import ConfigProblem
from slurm_operator.runtime.logs import configure
from slurm_operator.runtime.settings import Address, SettingsProblem

_METHODS = [str(method) for method in EvictionMethod]


@click.command(cls=GoCommand)
@click.option(
    "--node-name", envvar="REBOOTER_NODE_NAME", required=True, help="The Kubernetes node it runs on."
)
@click.option(
    "--eviction-method",
    envvar="REBOOTER_EVICTION_METHOD",
    type=click.Choice(_METHODS),
    default=_METHODS[0],
    show_default=True,
    help="How pods are removed: by eviction, which respects PodDisruptionBudgets.",
)
@click.option(
    "--reconcile-timeout", default="1m", show_default=True, help="How often to look when nothing changes."
)
@click.option(
    "--max-nodes",
    envvar="REBOOTER_MAX_NODES",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="How many Kubernetes nodes may be out of service at once.",
)
@click.option(
    "--max-reboots",
    envvar="REBOOTER_MAX_REBOOTS",
    type=click.IntRange(min=1),
    default=Limits.max_reboots,
    show_default=True,
    help="How often the reboot command may run on one Kubernetes node in 24 hours.",
)
@click.option(
    "--reboot-timeout",
    default="10m",
    show_default=True,
    help="After this time a reboot that did not happen is tried again.",
)
@click.option(
    "--reboot-command",
    envvar="REBOOTER_REBOOT_COMMAND",
    default=REBOOT_COMMAND,
    show_default=True,
    help="What reboots the Kubernetes node.",
)
@click.option(
    "--lease-name",
    default=LEASE_NAME,
    show_default=True,
    help="Lease with the list of Kubernetes nodes that are out of service.",
)
@click.option("--lease-namespace", default="", help="Namespace of that Lease; empty is our own.")
@click.option(
    "--host-proc",
    type=click.Path(path_type=Path, file_okay=False),
    default=Host.proc,
    show_default=True,
    help="Where the /proc of the Kubernetes node is.",
)
@switch("--dry-run", "Only log what would be done.", envvar="REBOOTER_DRY_RUN")
@soperator_options
@click.option(
    "--max-concurrent-reconciles", default="", help="Accepted for compatibility; there is one node."
)
@click.option("--operator-namespace", default="", help="Accepted for compatibility.")
def rebooter(**flags: Any) -> None:
    """Drain and reboot this Kubernetes node when its conditions ask for that, until stopped."""
    configure(flags["log_format"] or "json", ZAP_LEVELS[flags["log_level"]])
    try:
        access = config.find(flags["kubeconfig"], flags["context"])
        settings, host = settings_of(flags, access.namespace), host_of(flags)
    except (SettingsProblem, ConfigProblem) as problem:
        raise click.ClickException(str(problem)) from problem
    for note in access.notes:
        structlog.get_logger(__name__).warning(note)

    async def run() -> int:
        return await Program(access, settings, host).run()

    sys.exit(loops.run(run()))


def settings_of(flags: dict[str, Any], namespace: str) -> Settings:
    """The settings these flags ask for. Raises SettingsProblem."""
    return Settings(
        node_name=flags["node_name"],
        namespace=flags["lease_namespace"] or namespace,
        lease_name=flags["lease_name"],
        max_nodes=flags["max_nodes"],
        limits=Limits(
            look_again=_duration(flags, "reconcile_timeout"),
            reboot_timeout=_duration(flags, "reboot_timeout"),
            max_reboots=flags["max_reboots"],
        ),
        is_dry_run=flags["dry_run"],
        health=Address.parse(flags["health_probe_bind_address"]),
        metrics=Address.parse(flags["metrics_bind_address"]),
        metrics_secure=flags["metrics_secure"],
    )


def host_of(flags: dict[str, Any]) -> Host:
    """Raises SettingsProblem for a command that is none, before anything is drained for it."""
    try:
        words = shlex.split(flags["reboot_command"])
    except ValueError as error:
        raise SettingsProblem(f"--reboot-command: {error}.") from error
    if not words:
        raise SettingsProblem("--reboot-command is empty; name the program that reboots the node.")
    return Host(flags["host_proc"], tuple(words))


def _duration(flags: dict[str, Any], name: str) -> timedelta:
    flag = f"--{name.replace('_', '-')}"
    try:
        found = durations.parse(flags[name])
    except ValueError as error:
        raise SettingsProblem(f"{flag}: {error}.") from error
    if found < timedelta(seconds=1):
        raise SettingsProblem(f"{flag} is {flags[name]}; it must be at least 1s.")
    return found
