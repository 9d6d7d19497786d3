"""`slurm-operator sconfigcontroller`: the flags that Soperator's Deployments pass, and one of ours."""

import os
import sys
from typing import Any

import click
import structlog

from slurm_operator.agents.sconfig.program import SETTLE_SECONDS, Program, Settings
from slurm_operator.api.schema import durations
from slurm_operator.cli.flags import ZAP_LEVELS, soperator_options
from slurm_operator.http import loops
from slurm_operator.kube.auth import config
from slurm_operator.kube.errors import ConfigProblem
from slurm_operator.runtime.logs import configure
from slurm_operator.runtime.settings import Address, SettingsProblem


@click.command()
@click.option("--cluster-namespace", default=Settings.namespace, show_default=True, help="Its namespace.")
@click.option("--cluster-name", default=Settings.cluster, show_default=True, help="Name of the SlurmCluster.")
@click.option(
    "--jail-path", default=Settings.root, show_default=True, help="Where the shared root is mounted."
)
@click.option("--slurmapiserver", default=Settings.slurm_url, show_default=True, help="URL of slurmrestd.")
@click.option(
    "--reconfigure-poll-interval",
    default="20s",
    show_default=True,
    help="How often to look whether every slurmd has read the files; more often in the first seconds.",
)
@click.option(
    "--reconfigure-wait-timeout",
    default="1m",
    show_default=True,
    help="After this time a reconfigure has failed and is repeated.",
)
@click.option(
    "--settle-time",
    default=f"{SETTLE_SECONDS:g}s",
    show_default=True,
    help="How long nodes may cache names in the shared root; 0s where its file system has no such cache.",
)
@soperator_options
@click.option("--max-concurrent-reconciles", default="", help="Accepted for compatibility; writes are one.")
@click.option("--operator-namespace", default="", help="Accepted for compatibility.")
def sconfigcontroller(**flags: Any) -> None:
    """Write JailedConfigs into the shared root until stopped."""
    configure(flags["log_format"], ZAP_LEVELS[flags["log_level"]])
    try:
        settings = settings_of(flags)
        access = config.find(flags["kubeconfig"], flags["context"])
    except (SettingsProblem, ConfigProblem) as problem:
        raise click.ClickException(str(problem)) from problem
    for note in access.notes:
        structlog.get_logger(__name__).warning(note)
    os.umask(0o022)  # Directories are made with the mode that they are to have.

    async def run() -> int:
        return await Program(access, settings).run()

    sys.exit(loops.run(run()))


def settings_of(flags: dict[str, Any]) -> Settings:
    """The settings these flags ask for. Raises SettingsProblem."""
    settings = Settings(
        cluster=flags["cluster_name"],
        namespace=flags["cluster_namespace"],
        root=flags["jail_path"],
        slurm_url=flags["slurmapiserver"],
        poll_seconds=_seconds(flags, "reconfigure_poll_interval"),
        wait_seconds=_seconds(flags, "reconfigure_wait_timeout"),
        settle_seconds=_seconds(flags, "settle_time", least=0.0),
        health=Address.parse(flags["health_probe_bind_address"]),
        metrics=Address.parse(flags["metrics_bind_address"]),
        metrics_secure=flags["metrics_secure"],
        leader_elect=flags["leader_elect"],
    )
    if settings.wait_seconds <= settings.poll_seconds:
        raise SettingsProblem("--reconfigure-wait-timeout must be longer than --reconfigure-poll-interval.")
    return settings


def _seconds(flags: dict[str, Any], name: str, least: float = 0.1) -> float:
    flag = f"--{name.replace('_', '-')}"
    try:
        seconds = durations.parse(flags[name]).total_seconds()
    except ValueError as error:
        raise SettingsProblem(f"{flag}: {error}.") from error
    if seconds < least:
        raise SettingsProblem(f"{flag} is {flags[name]}; it must be at least {least:g}s.")
    return seconds
