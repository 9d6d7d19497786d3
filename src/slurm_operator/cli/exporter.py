"""`slurm-operator exporter`: the flags and variables of Soperator's exporter, and some of ours."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import click

from slurm_operator.api.schema import durations
from slurm_operator.cli.flags import ZAP_LEVELS, Decorator, GoCommand, switch
from slurm_operator.exporter.collecting import Plan
from slurm_operator.exporter.options import MOST_SERIES, Compat, Options
from slurm_operator.exporter.program import Login, Program, Settings
from slurm_operator.http import loops
from slurm_operator.kube.auth import config
from slurm_operator.kube.auth.access import Access
from slurm_operator.kube.errors import ConfigProblem
from slurm_operator.runtime.logs import configure
from slurm_operator.runtime.settings import Address, SettingsProblem

_PREFIX: Final = "SLURM_EXPORTER_"


def _variable(name: str) -> str:
    return _PREFIX + name.removeprefix("--").replace("-", "_").upper()


def _flag(name: str, default: str | None, text: str, *others: str, **more: Any) -> Decorator:
    """A flag that a variable of the same name stands in for. `others` are further names of it."""
    if default is not None:  # To click, a default of None is one, and nothing is required then.
        more |= {"default": default, "show_default": True}
    return click.option(name, *others, help=text, envvar=_variable(name), **more)


_OPTIONS: Final[tuple[Decorator, ...]] = (
    _flag(
        "--cluster-name",
        None,
        "Name of the Slurm cluster: the label `cluster` of every series.",
        required=True,
    ),
    _flag("--cluster-namespace", "soperator", "Namespace with the key for Slurm's tokens."),
    _flag(
        "--slurm-api-server", "http://localhost:6820", "URL of slurmrestd; several with commas.", "--server"
    ),
    _flag(
        "--collection-interval", "30s", "How often Slurm is read. Scrapes never ask Slurm.", "--cache-freq"
    ),
    _flag(
        "--max-collector-inflight", "1", "How often a part may be read at once.", type=click.IntRange(min=1)
    ),
    _flag(
        "--job-source",
        "controller",
        "Where jobs are read: slurmctld, or slurmdbd, which also has those that ended a while ago.",
        type=click.Choice(["controller", "accounting"]),
    ),
    _flag("--accounting-jobs-lookback", "1h", "With accounting: jobs of the last while."),
    _flag("--metrics-bind-address", ":8080", "Where /metrics and /health are."),
    _flag("--monitoring-bind-address", ":8081", "Where the exporter's own /metrics are; 0 is off."),
    _flag("--log-format", "json", "How to log.", type=click.Choice(["json", "plain"])),
    _flag("--log-level", "info", "How much to log.", type=click.Choice(list(ZAP_LEVELS))),
    _flag(
        "--compat",
        "none",
        "Whose names to use: ours (those of Soperator, without names of people), Soperator's or Slinky's.",
        type=click.Choice([str(one) for one in Compat]),
    ),
    click.option(
        "--personal-data/--no-personal-data",
        default=None,
        envvar=_variable("personal-data"),
        help="Names of jobs and users, mail addresses and paths. Default: with --compat, unless slurm.conf "
        "has PrivateData.",
    ),
    click.option(
        "--sums/--no-sums", default=True, envvar=_variable("sums"), help="Sums by pool, partition and reason."
    ),
    click.option(
        "--aliases/--no-aliases",
        default=False,
        envvar=_variable("aliases"),
        help="Further names of four metrics, such as slurm_rpc_calls_total.",
    ),
    _flag(
        "--max-series-per-family",
        str(MOST_SERIES),
        "A family with more series is cut; what was left out is told.",
        type=click.IntRange(min=1),
    ),
    _flag("--slurm-user", "", "Whose tokens are signed. Default: slurm; root with --compat soperator."),
    _flag(
        "--token-file",
        None,
        "A file with a Slurm token, read for each call.",
        type=click.Path(path_type=Path),
    ),
    _flag("--jwt-key-file", None, "A file with the key that signs tokens.", type=click.Path(path_type=Path)),
    click.option(
        "--static-token",
        default="",
        envvar=f"{_PREFIX}TOKEN",
        help="A Slurm token. With --compat slinky also in SLURM_JWT.",
    ),
    click.option("--slurm-jwt", default="", envvar="SLURM_JWT", hidden=True),
    switch("--standalone", "Ask scontrol on this machine for tokens.", envvar=_variable("standalone")),
    _flag("--scontrol-path", "scontrol", "With --standalone: where scontrol is."),
    _flag("--key-rotation-interval", "30m", "With --standalone: how long a token is used."),
    _flag(
        "--kubeconfig-path",
        None,
        "Outside a pod: the API server with the key and the labels of nodes.",
        type=click.Path(path_type=Path),
    ),
)


def _with_options(command: Callable[..., None]) -> Callable[..., None]:
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


@click.command(cls=GoCommand)
@_with_options
def exporter(**flags: Any) -> None:
    """Show the state of one Slurm cluster to Prometheus until stopped."""
    configure(flags["log_format"], ZAP_LEVELS[flags["log_level"]])
    try:
        settings = settings_of(flags)
        access = access_of(flags, settings.login)
    except (SettingsProblem, ConfigProblem) as problem:
        raise click.ClickException(str(problem)) from problem

    async def run() -> int:
        return await Program(settings, access).run()

    sys.exit(loops.run(run()))


def settings_of(flags: dict[str, Any]) -> Settings:
    """The settings these flags ask for. Raises SettingsProblem."""
    compat = Compat(flags["compat"])
    return Settings(
        plan=Plan(
            cluster=flags["cluster_name"],
            interval_seconds=_seconds(flags, "collection_interval"),
            most_in_flight=flags["max_collector_inflight"],
            is_accounting=flags["job_source"] == "accounting",
            lookback=durations.parse(_checked(flags, "accounting_jobs_lookback")),
        ),
        namespace=flags["cluster_namespace"],
        urls=_urls(flags["slurm_api_server"]),
        options=Options(
            compat=compat,
            personal_data=flags["personal_data"],
            sums=flags["sums"],
            aliases=flags["aliases"],
            most_series=flags["max_series_per_family"],
        ),
        login=Login(
            token_file=flags["token_file"],
            key_file=flags["jwt_key_file"],
            # Slurm's own commands read this variable, so elsewhere it may be there for those.
            static_token=flags["static_token"] or (flags["slurm_jwt"] if compat is Compat.SLINKY else ""),
            is_standalone=flags["standalone"],
            scontrol=flags["scontrol_path"],
            rotation_seconds=_seconds(flags, "key_rotation_interval", least=60.0),
            user=flags["slurm_user"] or ("root" if compat is Compat.SOPERATOR else "slurm"),
        ),
        metrics=Address.parse(flags["metrics_bind_address"]),
        monitoring=Address.parse(flags["monitoring_bind_address"]),
    )


def access_of(flags: dict[str, Any], login: Login) -> Access | None:
    """The API server: in a pod of one, or where a kubeconfig was named; otherwise none is needed."""
    if flags["kubeconfig_path"] is not None:
        return config.find(flags["kubeconfig_path"])
    is_alone = login.is_standalone or not config.is_in_cluster()
    return None if is_alone else config.in_cluster()


def _urls(text: str) -> tuple[str, ...]:
    found = tuple(part.strip() for part in text.split(",") if part.strip())
    for url in found:
        if not url.startswith(("http://", "https://")):
            raise SettingsProblem(f"--slurm-api-server: {url!r} is no URL; write it like http://slurm:6820.")
    if not found:
        raise SettingsProblem("--slurm-api-server is empty; name the URL of slurmrestd.")
    return found


def _seconds(flags: dict[str, Any], name: str, least: float = 0.5) -> float:
    seconds = durations.parse(_checked(flags, name)).total_seconds()
    if seconds < least:
        raise SettingsProblem(f"{_flag_name(name)} is {flags[name]}; it must be at least {least:g}s.")
    return seconds


def _checked(flags: dict[str, Any], name: str) -> str:
    try:
        durations.parse(flags[name])
    except ValueError as error:
        raise SettingsProblem(f"{_flag_name(name)}: {error}.") from error
    return str(flags[name])


def _flag_name(name: str) -> str:
    return f"--{name.replace('_', '-')}"
