"""`kubectl slurm top`."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

import click
from rich.console import Console
from rich.live import Live
from rich.text import Text

from slurm_operator.cli.kubectl.screen.frames import Frame, frame, screen
from slurm_operator.cli.kubectl.screen.keys import QUIT, until_key
from slurm_operator.cli.kubectl.shared.proposals import cluster_names
from slurm_operator.cli.kubectl.shared.session import Session, as_slurm_user, output, run, where
from slurm_operator.clock import PassClock, SystemClock
from slurm_operator.insight.clusters import NotFound, SlurmCluster, clusters, only
from slurm_operator.insight.collect import Looker
from slurm_operator.insight.drain.decide import slurm_name
from slurm_operator.insight.text import output as show
from slurm_operator.slurmsync.pending_writes import Ledger
from slurm_operator.slurmsync.poller import SlurmPoller

# Who runs where changes rarely; Slurm alone is asked in between.
_LOOK_AGAIN_SECONDS = 30.0


@click.command()
@click.argument("cluster", default="", shell_complete=cluster_names)
@click.option("--interval", type=click.FloatRange(min=0.5), default=2.0, show_default=True, help="Seconds.")
@click.option("--once", is_flag=True, help="Print one frame and end; so it is without a terminal.")
@output
@where
@as_slurm_user
def top(session: Session, cluster: str, interval: float, *, once: bool, output: str) -> None:
    """Watch the nodes and jobs of one Slurm cluster live. q or Ctrl-C ends it.

    With -o json each frame is one line, with -o yaml one document.
    """
    with contextlib.suppress(KeyboardInterrupt, asyncio.CancelledError):
        run(_show(session, cluster, interval, output, once=once))


async def _show(session: Session, name: str, interval: float, output: str, *, once: bool) -> None:
    console = show.console()
    async with session.looker() as looker:
        frames = _frames(looker, name, interval)
        if once or (output == "text" and not console.is_terminal):
            first = await anext(frames)
            show.emit(output, first, lambda: screen(first), console)
        elif output != "text":
            async for one in frames:
                show.stream(one, console, output)
        else:
            with Live(console=console, screen=True, auto_refresh=False) as live:
                await until_key(QUIT, _draw(frames, live, console))


async def _draw(frames: AsyncIterator[Frame], live: Live, console: Console) -> None:
    async for one in frames:
        live.update(_in_width(screen(one, console.height)), refresh=True)


def _in_width(text: Text) -> Text:
    """Lines end at the edge of the screen: a row that went on below would move all others."""
    text.no_wrap, text.overflow = True, "ellipsis"
    return text


async def _frames(looker: Looker, name: str, interval: float) -> AsyncIterator[Frame]:
    while True:
        sight = await looker.look()
        try:
            cluster = only(clusters(sight.picture), name)
        except NotFound as problem:
            raise click.ClickException(str(problem)) from problem
        yield frame(str(cluster.key), cluster.slurm, _kube_nodes(cluster), sight.picture.now)
        server = looker.servers(sight.picture).get(cluster.slurm_key)
        if server is None:
            await asyncio.sleep(interval)
            continue
        poller = SlurmPoller(await looker.slurm(cluster.slurm_key, server), SystemClock(), Ledger())
        for _ in range(max(1, int(_LOOK_AGAIN_SECONDS / interval))):
            await asyncio.sleep(interval)
            await poller.poll()
            clock = PassClock(SystemClock())
            yield frame(str(cluster.key), clock.dated(poller.latest()), _kube_nodes(cluster), clock.now())


def _kube_nodes(cluster: SlurmCluster) -> dict[str, str]:
    return {slurm_name(pod): pod.spec.node_name for pod in cluster.pods}
