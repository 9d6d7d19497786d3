"""`slurm-operator webhook`: every flag of ours, and those that existing Deployments pass."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import click
import structlog

from slurm_operator.api import registry
from slurm_operator.cli.flags import (
    GoCommand,
    api_option,
    comma_separated,
    config_option,
    given_by_people,
    log_options,
    log_style,
    switch,
)
from slurm_operator.http import loops
from slurm_operator.kube.auth import config
from slurm_operator.kube.errors import ConfigProblem
from slurm_operator.runtime import settings_file
from slurm_operator.runtime.logs import configure
from slurm_operator.runtime.settings import Address, SettingsProblem
from slurm_operator.webhook.process import CERTIFICATES, Settings, Webhook

DEFAULT_PORT = 9443


@click.command(cls=GoCommand)
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
    help="Certificate, instead of --cert-dir; its key is in the same file, or beside it as tls.key.",
)
@config_option
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
        settings = settings_of(flags, given_by_people(click.get_current_context()))
        access = config.find(flags["kubeconfig"], flags["context"])
    except (SettingsProblem, ConfigProblem) as problem:
        raise click.ClickException(str(problem)) from problem
    for note in access.notes:
        structlog.get_logger(__name__).warning(note)

    async def run() -> int:
        return await Webhook(access, settings).run()

    sys.exit(loops.run(run()))


def settings_of(flags: dict[str, Any], given: Mapping[str, str] = MappingProxyType({})) -> Settings:
    """The settings these flags ask for, with those of the file beside what is `given` by flag or environment.

    Raises SettingsProblem.
    """
    written = settings_file.read(flags["config"]) if flags["config"] is not None else {}
    port = os.environ.get("WEBHOOK_PORT") or written.get("webhook-port") or DEFAULT_PORT
    groups = flags["apis"] if "apis" in given else written.get("apis", flags["apis"])
    return Settings(
        server=Address.parse(flags["server_addr"] or f":{port}"),
        health=Address.parse(flags["health_addr"]),
        metrics=Address.parse(flags["metrics_addr"]),
        metrics_secure=flags["metrics_secure"],
        namespaces=comma_separated(flags["namespaces"]),
        certificates=_place(flags, given) or written.get("webhook-tls-file"),
        secret=flags["cert_secret"],
        service=flags["service_name"],
        more_hosts=comma_separated(flags["cert_hosts"]),
        configurations=comma_separated(flags["webhook_configurations"]),
        pods_binding=flags["pods_binding"],
        kinds=registry.ALL.on(groups),
    )


def _place(flags: dict[str, Any], given: Mapping[str, str]) -> Path | None:
    """Where the certificate is. A flag for the one wins over the environment's word for the other."""
    by_flag = [flags[name] for name in ("cert_file", "cert_dir") if given.get(name) == "flag"]
    found: Path | None = next(iter(by_flag), None) or flags["cert_file"] or flags["cert_dir"]
    return found
