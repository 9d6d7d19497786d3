"""Flags that several commands have, and how Go programs take them."""

import re
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Final

import click

from slurm_operator.api import nebius, registry
from slurm_operator.api.nebius.names import TIER_PREFIX
from slurm_operator.api.registry import DEFAULT_GROUPS, GROUPS
from slurm_operator.runtime.settings_file import CONFIG_VARIABLE

Decorator = Callable[[Callable[..., None]], Callable[..., None]]


class GoCommand(click.Command):
    """Takes `-flag` for `--flag`, as Go programs do."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return super().parse_args(ctx, [re.sub(r"^-(?=[a-z][a-z0-9-]+)", "--", arg) for arg in args])


def switch(name: str, text: str, *, default: bool = False, envvar: str | None = None) -> Decorator:
    """A flag that may be written `--x`, `--x=true` or `--x=false`, as Go programs take them."""
    return click.option(
        name,
        is_flag=False,
        flag_value="true",
        type=click.BOOL,
        default=default,
        envvar=envvar,
        show_default=True,
        help=text,
    )


# The API groups that are on, comma-separated, where no flag names one.
APIS_VARIABLE: Final = "SLURM_OPERATOR_APIS"

api_option: Final[Decorator] = click.option(
    "--api",
    "apis",
    multiple=True,
    envvar=APIS_VARIABLE,
    metavar="GROUP",
    callback=lambda _context, _flag, given: known_groups(given),
    help=f"An API group that is on; may be repeated. Groups: {', '.join(GROUPS)}. "
    f"Default: {', '.join(DEFAULT_GROUPS)}.",
)


def known_groups(given: Iterable[str]) -> tuple[str, ...]:
    """The groups that are asked for, in our own order. Raises BadParameter for one that does not exist."""
    wanted = {name for text in given for name in comma_separated(text)}
    try:
        return registry.ALL.on(wanted).groups or DEFAULT_GROUPS
    except ValueError as error:
        raise click.BadParameter(str(error)) from error


# Words of zap for levels, and ours. Nothing of ours is worse than an error.
ZAP_LEVELS: Final = {
    "debug": "debug",
    "info": "info",
    "warn": "warning",
    "error": "error",
    "dpanic": "error",
    "panic": "error",
    "fatal": "error",
}
_LEVEL_WORDS: Final = {**ZAP_LEVELS, "warning": "warning"}

config_option: Final[Decorator] = click.option(
    "--config",
    type=click.Path(path_type=Path),
    envvar=CONFIG_VARIABLE,
    help="Settings file, or a directory with a file for each key. Flags and the environment win over it.",
)

_LOG_OPTIONS: Final[tuple[Decorator, ...]] = (
    click.option(
        "--log-level",
        type=click.Choice(list(_LEVEL_WORDS), case_sensitive=False),
        default="info",
        show_default=True,
    ),
    click.option(
        "--log-format",
        type=click.Choice(["json", "plain"]),
        default=None,
        help="Default: plain on a terminal.",
    ),
    click.option(
        "--zap-log-level",
        default=None,
        callback=lambda _context, _flag, given: known_level(given),
        help="Same as --log-level; numbers above 0 are debug.",
    ),
    click.option(
        "--zap-encoder", type=click.Choice(["json", "console"]), default=None, help="Same as --log-format."
    ),
    switch("--zap-devel", "Plain log lines at debug level."),
    click.option(
        "--zap-stacktrace-level", default=None, help="Accepted for compatibility; traces go with errors."
    ),
    click.option("--zap-time-encoding", default=None, help="Accepted for compatibility; times are ISO 8601."),
)


_SOPERATOR_OPTIONS: Final[tuple[Decorator, ...]] = (
    click.option("--health-probe-bind-address", default=":8081", show_default=True),
    click.option("--metrics-bind-address", default=":8080", show_default=True, help="0 is off."),
    switch("--metrics-secure", "Serve metrics over HTTPS, to whom the API server lets read them."),
    switch("--leader-elect", "Of several, let only one act.", default=True),
    click.option("--log-level", type=click.Choice(list(ZAP_LEVELS)), default="info", show_default=True),
    click.option("--log-format", type=click.Choice(["json", "plain"]), default="json", show_default=True),
    click.option(
        "--cache-sync-timeout", default="", help="Accepted for compatibility; caches are waited for."
    ),
    switch("--enable-http2", "Accepted for compatibility; our servers speak HTTP/1.1 only."),
    click.option(
        "--kubeconfig", type=click.Path(path_type=Path), help="Outside a cluster: where the API server is."
    ),
    click.option("--context", default="", help="Which context of the kubeconfig."),
)


def log_options(command: Callable[..., None]) -> Callable[..., None]:
    """How to log, in our words and in those of other operators' Deployments."""
    return _with(_LOG_OPTIONS, command)


def soperator_options(command: Callable[..., None]) -> Callable[..., None]:
    """What all of Soperator's programs are told by their Deployments."""
    return _with(_SOPERATOR_OPTIONS, command)


def _with(options: Sequence[Decorator], command: Callable[..., None]) -> Callable[..., None]:
    for option in reversed(options):
        command = option(command)
    return command


def log_style(flags: dict[str, Any]) -> tuple[Any, str]:
    """(json or plain, level) from our flags and those of other operators' Deployments."""
    style = flags["log_format"] or {"json": "json", "console": "plain"}.get(flags["zap_encoder"] or "")
    if style is None:
        style = "plain" if flags["zap_devel"] or sys.stderr.isatty() else "json"
    if flags["zap_log_level"] is not None:
        return style, flags["zap_log_level"]
    return style, "debug" if flags["zap_devel"] else _LEVEL_WORDS[flags["log_level"]]


def known_level(given: str | None) -> str | None:
    """Our word for a level of zap, or for a number, which says how much beyond info. Raises BadParameter."""
    if given is None:
        return None
    word = given.strip().lower()
    if re.fullmatch(r"-?[0-9]+", word):
        return "debug" if int(word) > 0 else "info"
    if word not in _LEVEL_WORDS:
        raise click.BadParameter(f"{given!r} is no level. Levels: {', '.join(ZAP_LEVELS)}, or a number.")
    return _LEVEL_WORDS[word]


def given_by_people(context: click.Context) -> dict[str, str]:
    """Which parameters a `flag` or the `environment` names. The settings file does not go over those."""
    words = {"COMMANDLINE": "flag", "ENVIRONMENT": "environment"}
    found = {name: context.get_parameter_source(name) for name in context.params}
    return {name: words[one.name] for name, one in found.items() if one is not None and one.name in words}


# What Soperator's programs take for all namespaces.
EVERY_NAMESPACE: Final = "*"

soperator_namespaces_option: Final[Decorator] = click.option(
    "--namespaces",
    default=EVERY_NAMESPACE,
    envvar="SLURM_OPERATOR_WATCH_NAMESPACES",
    help="Comma-separated; * is all namespaces.",
)

operator_namespace_option: Final[Decorator] = click.option(
    "--operator-namespace", default="", help="Namespace of the Lease; empty is our own."
)

# Where the work of soperatorchecks is done.
tier_prefix_option: Final[Decorator] = click.option(
    "--topology-label-prefix",
    default=TIER_PREFIX,
    envvar="TOPOLOGY_LABEL_PREFIX",
    show_default=True,
    help="Of labels of Kubernetes nodes that say where they are: PREFIX/tier-1 is the switch next to them.",
)
checks_switch: Final[Decorator] = switch(
    "--checks",
    "Run ActiveChecks in this process; false where `soperatorchecks` runs in one of its own.",
    default=True,
    envvar="SLURM_OPERATOR_CHECKS",
)


nodes_switch: Final[Decorator] = switch(
    "--node-controllers",
    "Act on conditions of Kubernetes nodes with workers of a SlurmCluster; needs --checks.",
    default=True,
    envvar="SLURM_OPERATOR_NODE_CONTROLLERS",
)


def without_checks(*, is_on: bool) -> tuple[str, ...]:
    """The resources that are left to somebody else."""
    mine = (one.resource for one in registry.ALL if one.model is nebius.ActiveCheck)
    return () if is_on else tuple(mine)


def comma_separated(text: str) -> tuple[str, ...]:
    return tuple(sorted({part.strip() for part in text.split(",") if part.strip()}))
