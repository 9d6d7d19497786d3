"""`kubectl slurm status`."""

import sys
from pathlib import Path

import click

from slurm_operator.cli.kubectl.archive import bundle_option, sight_of
from slurm_operator.cli.kubectl.proposals import cluster_names
from slurm_operator.cli.kubectl.session import Session, output, where
from slurm_operator.kubectl import show
from slurm_operator.kubectl.clusters import NotFound, clusters, named
from slurm_operator.kubectl.look import Sight
from slurm_operator.kubectl.status import Status
from slurm_operator.kubectl.status import status as status_of
from slurm_operator.kubectl.status_screen import is_whole, screen
from slurm_operator.kubectl.verdict import verdicts
from slurm_operator.operator import program
from slurm_operator.runtime.settings import Settings


@click.command()
@click.argument("cluster", default="", shell_complete=cluster_names)
@bundle_option
@output
@where
def status(session: Session, cluster: str, bundle: Path | None, output: str) -> None:
    """Show Slurm clusters on one screen: daemons, node sets, nodes, jobs, and what waits for what.

    CLUSTER is the name of a Cluster, or of a Controller that no Cluster made. Without it, all are shown.
    Fails when one of them is not ready.
    """
    sight, _ = sight_of(session, bundle)
    try:
        found = statuses(sight, cluster)
    except NotFound as problem:
        raise click.ClickException(str(problem)) from problem
    show.emit(output, found, lambda: screen(found, sight.unseen, sight.picture.now))
    if not all(one.health.state in ("Ready", "Progressing") for one in found):
        sys.exit(1)


def statuses(sight: Sight, name: str) -> list[Status]:
    with sight.as_operator():
        judged = list(verdicts(program(Settings()).reconcilers, sight.picture))
    whole = is_whole(sight.unseen)
    return [status_of(one, judged, is_whole=whole) for one in named(clusters(sight.picture), name)]
