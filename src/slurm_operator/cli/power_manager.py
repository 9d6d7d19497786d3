"""`slurm-operator power-manager`: the commands that Soperator's power scripts call, and one of ours."""

import asyncio
import sys
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, Final

import click

from slurm_operator.agents.power import program
from slurm_operator.agents.power.calls import RESUME, SUSPEND, CallError
from slurm_operator.api.schema import durations
from slurm_operator.cli.flags import GoCommand
from slurm_operator.kube.auth import config
from slurm_operator.kube.auth.access import Access
from slurm_operator.kube.errors import ConfigProblem, KubeError
from slurm_operator.runtime.logs import configure

CALLS: Final = Path("/run/slurm-power")

_NAMESPACE: Final = click.option("--namespace", default="", help="Empty is our own.")
_KUBECONFIG: Final = click.option(
    "--kubeconfig", type=click.Path(path_type=Path), help="Outside a cluster: where the API server is."
)


@click.group(no_args_is_help=True)
def power_manager() -> None:
    """Tell the API server which ephemeral nodes Slurm wants to run."""
    configure("json", "info")


# What the commands of Soperator's scripts do, and what they are told by.
_COMMANDS: Final = {
    "resume": (RESUME, False, "Add nodes to those that run; nodes that are not ephemeral are skipped."),
    "suspend": (SUSPEND, False, "Remove nodes from those that run."),
    "wait-added": (RESUME, True, "Wait until nodes are among those that should run."),
    "wait-removed": (SUSPEND, True, "Wait until nodes are not among those that should run."),
}


def _add(name: str, verb: str, text: str, *, is_waiting: bool) -> None:
    @power_manager.command(name, cls=GoCommand, help=text)
    @click.option("--nodes", required=True, help="A host list, such as gpu-[0-3].")
    @_NAMESPACE
    @click.option("--timeout", default="30s", show_default=True)
    @_KUBECONFIG
    def command(**flags: Any) -> None:
        _run(flags, verb, is_waiting=is_waiting)


for _name, (_verb, _is_waiting, _text) in _COMMANDS.items():
    _add(_name, _verb, _text, is_waiting=_is_waiting)


@power_manager.command("serve", cls=GoCommand)
@click.option(
    "--calls",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    default=CALLS,
    show_default=True,
    help="Where slurmctld's programs leave their notes.",
)
@_NAMESPACE
@_KUBECONFIG
def serve(calls: Path, namespace: str, kubeconfig: Path | None) -> None:
    """Carry out what slurmctld calls for, until stopped."""
    access = _access(kubeconfig)
    _exit(program.serve(access, namespace or access.namespace, calls))


def _run(flags: dict[str, Any], verb: str, *, is_waiting: bool) -> None:
    try:
        seconds = durations.parse(flags["timeout"]).total_seconds()
    except ValueError as error:
        raise click.BadParameter(f"{error}.", param_hint="--timeout") from error
    access = _access(flags["kubeconfig"])
    namespace = flags["namespace"] or access.namespace
    act = program.wait if is_waiting else program.once
    _exit(act(access, namespace, verb, flags["nodes"], seconds))


def _access(kubeconfig: Path | None) -> Access:
    try:
        return config.find(kubeconfig)
    except ConfigProblem as problem:
        raise click.ClickException(str(problem)) from problem


def _exit(work: Coroutine[Any, Any, int]) -> None:
    try:
        sys.exit(asyncio.run(work))
    except CallError as problem:
        raise click.BadParameter(f"{problem}.", param_hint="--nodes") from problem
    except TimeoutError as error:
        raise click.ClickException(
            "The API server did not answer in time; nothing is known to be done."
        ) from error
    except KubeError as error:
        raise click.ClickException(str(error)) from error
