"""`kubectl slurm logs`."""

import asyncio
import contextlib
from datetime import timedelta
from typing import NamedTuple

import click
from rich.text import Text

from slurm_operator import wire
from slurm_operator.cli.kubectl.session import Session, output, run, where
from slurm_operator.kubectl import logs_read, show
from slurm_operator.kubectl.logs import DAEMONS, Line, NoSuchLog, Stream, Wanted, chosen, span
from slurm_operator.kubectl.look import Looker

# One colour for each container, so that the eye can follow it.
_COLOURS = ("cyan", "magenta", "yellow", "green", "blue")

_DEFAULT_LINES = 100


class _Span(click.ParamType[timedelta]):
    name = "time"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> timedelta:
        try:
            return span(str(value))
        except ValueError as error:
            self.fail(str(error), param, ctx)


@click.command()
@click.argument("target", default="")
@click.option(
    "-d", "--daemon", "daemons", multiple=True, type=click.Choice(DAEMONS), help="Only this daemon."
)
@click.option("-c", "--container", default="", help="Only containers of this name.")
@click.option("-f", "--follow", is_flag=True, help="Go on as the logs grow.")
@click.option("-p", "--previous", is_flag=True, help="What a restarted container said before.")
@click.option("--since", type=_Span(), default=None, help="Only the last while, such as 10m or 1h30m.")
@click.option("--tail", type=click.IntRange(min=0), default=None, help="Lines of each log.  [default: 100]")
@click.option("--timestamps", is_flag=True, help="With the time of each line.")
@output
@where
def logs(
    session: Session,
    target: str,
    output: str,
    daemons: tuple[str, ...],
    container: str,
    tail: int | None,
    since: timedelta | None,
    **flags: bool,
) -> None:
    """Show the logs of Slurm's daemons, sidecars included.

    TARGET is a cluster, one of its parts, a pod or a Slurm node: `demo`, `nodeset/demo-cpu`, `demo-cpu-0`.
    Without it, the logs of every daemon here are shown.
    """
    lines = _DEFAULT_LINES if tail is None and since is None else tail
    wanted = Wanted(tail=lines, since=since, **flags)
    with contextlib.suppress(KeyboardInterrupt, asyncio.CancelledError):
        run(_print(session, _Choice(target, daemons, container), wanted, output))


class _Choice(NamedTuple):
    """Which logs."""

    target: str
    daemons: tuple[str, ...]
    container: str


async def _print(session: Session, choice: _Choice, wanted: Wanted, output: str) -> None:
    async with session.looker() as looker:
        streams = await _streams(looker, choice)
        to = show.console()
        colours = {
            (stream.pod, stream.container): _COLOURS[at % len(_COLOURS)] for at, stream in enumerate(streams)
        }
        async for line in logs_read.lines(looker.client, streams, wanted):
            to.print(_text(line, colours[line.pod, line.container], output))


async def _streams(looker: Looker, choice: _Choice) -> list[Stream]:
    pods = await logs_read.pods(looker.client, looker.namespace)
    parts = await logs_read.parts(looker.client, looker.namespace) if choice.target else {}
    try:
        return chosen(pods, choice.target, parts, daemons=choice.daemons, container=choice.container)
    except NoSuchLog as problem:
        raise click.ClickException(str(problem)) from problem


def _text(line: Line, colour: str, output: str) -> Text:
    if output == "json":
        return Text(wire.encode(line).decode())
    return Text.assemble((f"{line.pod} {line.container} ", colour), line.text)
