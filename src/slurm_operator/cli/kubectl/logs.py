"""`kubectl slurm logs`."""

import asyncio
import contextlib
from datetime import timedelta
from typing import NamedTuple

import click

from slurm_operator.cli.kubectl.shared.proposals import explainable
from slurm_operator.cli.kubectl.shared.session import Session, output, run, selector_option, where
from slurm_operator.insight.collect import Looker
from slurm_operator.insight.logs import reading
from slurm_operator.insight.logs.choice import DAEMONS, NoSuchLog, Stream, Wanted, chosen, span
from slurm_operator.insight.text import output as show
from slurm_operator.operator import OUR_CHILDREN

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
@click.argument("target", default="", shell_complete=explainable)
@selector_option
@click.option(
    "-d", "--daemon", "daemons", multiple=True, type=click.Choice(DAEMONS), help="Only this daemon."
)
@click.option("-c", "--container", default="", help="Only containers of this name.")
@click.option("-f", "--follow", is_flag=True, help="Go on as the logs grow.")
@click.option("-p", "--previous", is_flag=True, help="What a restarted container said before.")
@click.option("--since", type=_Span(), default=None, help="Only the last while, such as 10m or 1h30m.")
@click.option("--tail", type=click.IntRange(min=0), default=None, help="Lines of each log.  [default: 100]")
@click.option("--timestamps", is_flag=True, help="With the time of each line.")
@click.option("--raw", is_flag=True, help="Control characters as they were written, colours among them.")
@output
@where
def logs(
    session: Session,
    target: str,
    output: str,
    daemons: tuple[str, ...],
    container: str,
    selector: str,
    tail: int | None,
    since: timedelta | None,
    raw: bool,
    **flags: bool,
) -> None:
    """Show the logs of Slurm's daemons, sidecars included.

    TARGET is a cluster, one of its parts, a pod or a Slurm node: `demo`, `nodeset/demo-cpu`, `demo-cpu-0`.
    Without it, the logs of every daemon here are shown.

    A log can hold anything that somebody made a daemon write. What a terminal would obey is written out, as
    \\x1b; in a pipe too, since many end at a terminal. Where you trust a log and want its colours, use --raw.
    """
    if raw and output != "text":
        raise click.UsageError(
            "--raw is for text; in JSON and YAML a line has its control characters already."
        )
    lines = _DEFAULT_LINES if tail is None and since is None else tail
    wanted = Wanted(tail=lines, since=since, **flags)
    with contextlib.suppress(KeyboardInterrupt, asyncio.CancelledError):
        run(_print(session, _Choice(target, daemons, container, raw, selector), wanted, output))


class _Choice(NamedTuple):
    """Which logs, and whether as they were written."""

    target: str
    daemons: tuple[str, ...]
    container: str
    raw: bool
    selector: str = ""


async def _print(session: Session, choice: _Choice, wanted: Wanted, output: str) -> None:
    async with session.looker(greets=False) as looker:
        streams = await _streams(looker, choice)
        to = show.console()
        colours = {
            (stream.pod, stream.container): _COLOURS[at % len(_COLOURS)] for at, stream in enumerate(streams)
        }
        async for line in reading.lines(looker.client, streams, wanted):
            if output != "text":
                show.stream(line, to, output)
            else:
                origin = show.Cell(f"{line.pod} {line.container}", colours[line.pod, line.container])
                show.log_line(origin, line.text, to, raw=choice.raw)


async def _streams(looker: Looker, choice: _Choice) -> list[Stream]:
    labels = ",".join(filter(None, (OUR_CHILDREN, choice.selector)))
    pods = await reading.pods(looker.client, looker.namespace, labels)
    parts = await reading.parts(looker.client, looker.namespace) if choice.target else {}
    try:
        return chosen(pods, choice.target, parts, daemons=choice.daemons, container=choice.container)
    except NoSuchLog as problem:
        raise click.ClickException(str(problem)) from problem
