"""Flags that several commands have, and how Go programs take them."""

import sys
from collections.abc import Callable
from typing import Any, Final

import click

from slurm_operator.runtime.logs import LEVELS

Decorator = Callable[[Callable[..., None]], Callable[..., None]]


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


_LOG_OPTIONS: Final[tuple[Decorator, ...]] = (
    click.option("--log-level", type=click.Choice(list(LEVELS)), default="info", show_default=True),
    click.option(
        "--log-format",
        type=click.Choice(["json", "plain"]),
        default=None,
        help="Default: plain on a terminal.",
    ),
    click.option("--zap-log-level", default=None, help="Same as --log-level; integers above 0 are debug."),
    click.option(
        "--zap-encoder", type=click.Choice(["json", "console"]), default=None, help="Same as --log-format."
    ),
    switch("--zap-devel", "Plain log lines at debug level."),
    click.option(
        "--zap-stacktrace-level", default=None, help="Accepted for compatibility; traces go with errors."
    ),
    click.option("--zap-time-encoding", default=None, help="Accepted for compatibility; times are ISO 8601."),
)


def log_options(command: Callable[..., None]) -> Callable[..., None]:
    """How to log, in our words and in those of other operators' Deployments."""
    for option in reversed(_LOG_OPTIONS):
        command = option(command)
    return command


def log_style(flags: dict[str, Any]) -> tuple[Any, str]:
    """(json or plain, level) from our flags and those of other operators' Deployments."""
    style = flags["log_format"] or {"json": "json", "console": "plain"}.get(flags["zap_encoder"] or "")
    if style is None:
        style = "plain" if flags["zap_devel"] or sys.stderr.isatty() else "json"
    level = flags["log_level"]
    zap = flags["zap_log_level"]
    if zap is not None:
        level = zap if zap in LEVELS else {"panic": "error", "warn": "warning"}.get(zap, "debug")
    return style, "debug" if flags["zap_devel"] and zap is None else level


def comma_separated(text: str) -> tuple[str, ...]:
    return tuple(sorted({part.strip() for part in text.split(",") if part.strip()}))
