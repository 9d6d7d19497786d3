"""`slurm-operator webhook`: every flag of ours, and those that existing Deployments pass."""

import os
import sys
from pathlib import Path
from typing import Any

import click
import structlog

from slurm_operator.api import registry
from slurm_operator.cli.flags import api_option, comma_separated, log_options, log_style, switch
from slurm_operator.http import loops
from slurm_operator.kube.auth import config
from slurm_operator.kube.errors import ConfigProblem
from slurm_operator.runtime.logs import configure
from slurm_operator.runtime.settings import Address, SettingsProblem
from slurm_operator.webhook.process import CERTIFICATES, Settings, Webhook


@click.command()
@click.option(
    "--kubeconfig", type=click.Path(path_type=Path), help="Outside a cluster: where the API server is."
)
@click.option("--context", default="", help="Which context of the kubeconfig.")
@click.option(
    "--namespaces", default="", envvar="WATCH_NAMESPACE", help="Comma-separated; empty is all namespaces."
)
@api_option
@click.option("--server-addr", default=None, help="Where admission is served. Default: WEBHOOK_PORT or 9443.")
@click.option("--health-addr", default=":8081", envvar="HEALTH_BIND_ADDRESS", show_default=True)
@click.option(
    "--metrics-addr", default="0", envvar="METRICS_BIND_ADDRESS", show_default=True, help="0 is off."
)
@switch("--metrics-secure", "Serve metrics over HTTPS, to whom the API server lets read them.")
@click.option(
    "--cert-dir",
    type=click.Path(path_type=Path),
    envvar="WEBHOOK_CERT_DIR",
    help="tls.crt and tls.key of somebody else, reread when they change. "
    f"Default: {CERTIFICATES} if they are there, else we make our own.",
)
@click.option(
    "--cert-file",
    type=click.Path(path_type=Path),
    envvar="WEBHOOK_TLS_FILE",
    help="Certificate and key in one file, instead of --cert-dir.",
)
@click.option(
    "--cert-secret",
    default=Settings.secret,
    show_default=True,
    help="Secret in our own namespace for certificates that we make.",
)
@click.option(
    "--service-name", default=Settings.service, show_default=True, help="The Service that leads to us."
)
@click.option("--cert-hosts", default="", help="More names or addresses to serve under, comma-separated.")
@click.option(
    "--webhook-configurations",
    default=",".join(Settings.configurations),
    show_default=True,
    help="Webhook configurations that are told our authority, comma-separated.",
)
@switch("--pods-binding", "Answer about pods/binding, where a configuration asks.", default=True)
@switch("--leader-elect", "Accepted for compatibility; replicas need no leader.")
@click.option("--leader-elect-namespace", default="", help="Accepted for compatibility.")
@switch("--enable-http2", "Accepted for compatibility; our servers speak HTTP/1.1 only.")
@log_options
def webhook(**flags: Any) -> None:
    """Answer the API server's questions about our kinds until stopped."""
    configure(*log_style(flags))
    try:
        settings = settings_of(flags)
        access = config.find(flags["kubeconfig"], flags["context"])
    except (SettingsProblem, ConfigProblem) as problem:
        raise click.ClickException(str(problem)) from problem
    for note in access.notes:
        structlog.get_logger(__name__).warning(note)

    async def run() -> int:
        return await Webhook(access, settings).run()

    sys.exit(loops.run(run()))


def settings_of(flags: dict[str, Any]) -> Settings:
    """The settings these flags ask for. Raises SettingsProblem."""
    return Settings(
        server=Address.parse(flags["server_addr"] or f":{os.environ.get('WEBHOOK_PORT') or 9443}"),
        health=Address.parse(flags["health_addr"]),
        metrics=Address.parse(flags["metrics_addr"]),
        metrics_secure=flags["metrics_secure"],
        namespaces=comma_separated(flags["namespaces"]),
        certificates=flags["cert_file"] or flags["cert_dir"],
        secret=flags["cert_secret"],
        service=flags["service_name"],
        more_hosts=comma_separated(flags["cert_hosts"]),
        configurations=comma_separated(flags["webhook_configurations"]),
        pods_binding=flags["pods_binding"],
        kinds=registry.ALL.on(flags["apis"]),
    )
