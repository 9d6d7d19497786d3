"""`kubectl slurm status`."""

import sys

import click

from slurm_operator.cli.kubectl.session import Session, output, run, where
from slurm_operator.kubectl import show
from slurm_operator.kubectl.clusters import NotFound, clusters, named
from slurm_operator.kubectl.look import Looker, Sight
from slurm_operator.kubectl.status import Status
from slurm_operator.kubectl.status import status as status_of
from slurm_operator.kubectl.status_screen import screen
from slurm_operator.kubectl.verdict import verdicts


@click.command()
@click.argument("cluster", default="")
@output
@where
def status(session: Session, cluster: str, output: str) -> None:
    """Show Slurm clusters on one screen: daemons, node sets, nodes, jobs, and what waits for what.

    CLUSTER is the name of a Cluster, or of a Controller that no Cluster made. Without it, all are shown.
    Fails when one of them is not ready.
    """
    statuses, sight = run(_look(session, cluster))
    show.emit(output, statuses, lambda: screen(statuses, sight.unseen, sight.picture.now))
    if not all(one.health.state in ("Ready", "Progressing") for one in statuses):
        sys.exit(1)


async def _look(session: Session, name: str) -> tuple[list[Status], Sight]:
    async with session.looker() as looker:
        sight = await looker.look()
        try:
            return statuses(looker, sight, name), sight
        except NotFound as problem:
            raise click.ClickException(str(problem)) from problem


def statuses(looker: Looker, sight: Sight, name: str) -> list[Status]:
    judged = list(verdicts(looker.program.reconcilers, sight.picture))
    return [status_of(one, judged) for one in named(clusters(sight.picture), name)]
