"""`kubectl slurm logs`."""

import asyncio
import contextlib
from datetime import timedelta

import click
from rich.text import Text

from slurm_operator import wire
from slurm_operator.cli.kubectl.session import Session, output, run, where
from slurm_operator.kubectl import logs as logs_
from slurm_operator.kubectl import show
from slurm_operator.kubectl.logs import DAEMONS, Line, NoSuchLog, Stream, Wanted
from slurm_operator.kubectl.look import Looker

# One colour for each container, so that the eye can follow it.
_COLOURS = ("cyan", "magenta", "yellow", "green", "blue")


class _Span(click.ParamType[timedelta]):
    name = "time"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> timedelta:
        try:
            return logs_.span(str(value))
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
def logs(session: Session, target: str, output: str, **chosen: object) -> None:
    """Show the logs of Slurm's daemons, sidecars included.

    TARGET is a cluster, one of its parts, a pod or a Slurm node: `demo`, `nodeset/demo-cpu`, `demo-cpu-0`.
    Without it, the logs of every daemon here are shown.
    """
    with contextlib.suppress(KeyboardInterrupt, asyncio.CancelledError):
        run(_print(session, target, output, chosen))


async def _print(session: Session, target: str, output: str, given: dict[str, object]) -> None:
    wanted = _wanted(given)
    async with session.looker() as looker:
        streams = await _streams(looker, target, given)
        to = show.console()
        colours = {stream: _COLOURS[at % len(_COLOURS)] for at, stream in enumerate(streams)}
        by_name = {(stream.pod, stream.container): colour for stream, colour in colours.items()}
        async for line in logs_.lines(looker.client, streams, wanted):
            to.print(_text(line, by_name[line.pod, line.container], output))


def _wanted(given: dict[str, object]) -> Wanted:
    is_bounded = given["since"] is not None or given["tail"] is not None
    return Wanted(
        follow=bool(given["follow"]),
        previous=bool(given["previous"]),
        tail=given["tail"] if is_bounded else 100,  # type: ignore[arg-type]
        since=given["since"],  # type: ignore[arg-type]
        timestamps=bool(given["timestamps"]),
    )


async def _streams(looker: Looker, target: str, given: dict[str, object]) -> list[Stream]:
    pods = await logs_.pods(looker.client, looker.namespace)
    parts = await logs_.parts(looker.client, looker.namespace) if target else {}
    try:
        return logs_.chosen(
            pods,
            target,
            parts,
            daemons=given["daemons"],  # type: ignore[arg-type]
            container=str(given["container"]),
        )
    except NoSuchLog as problem:
        raise click.ClickException(str(problem)) from problem


def _text(line: Line, colour: str, output: str) -> Text:
    if output == "json":
        return Text(wire.encode(line).decode())
    return Text.assemble((f"{line.pod} {line.container} ", colour), line.text)
