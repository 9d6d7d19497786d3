"""`kubectl slurm status`."""

import sys
from pathlib import Path

import click

from slurm_operator.api import registry
from slurm_operator.api.nebius.slurmcluster import SlurmCluster
from slurm_operator.api.schema.kind import Kind
from slurm_operator.api.slinky.cluster import Cluster
from slurm_operator.api.slinky.controller import Controller
from slurm_operator.cli.echo import echo
from slurm_operator.cli.kubectl.screen.watching import again, watch_option
from slurm_operator.cli.kubectl.shared.archive import bundle_option, sight_of
from slurm_operator.cli.kubectl.shared.proposals import cluster_names
from slurm_operator.cli.kubectl.shared.session import (
    Session,
    as_slurm_user,
    output_option,
    run,
    selector_option,
    where,
)
from slurm_operator.insight.clusters import NotFound, clusters, clusters_named, strays
from slurm_operator.insight.collect import Looker, Sight
from slurm_operator.insight.evaluation import typed_name, verdicts
from slurm_operator.insight.status.cluster_status import Status, stray_status
from slurm_operator.insight.status.cluster_status import status as status_of
from slurm_operator.insight.text import output as show
from slurm_operator.insight.text.status_text import screen
from slurm_operator.kube import envelope
from slurm_operator.kube.request import Selection


@click.command()
@click.argument("cluster", default="", shell_complete=cluster_names)
@bundle_option
@selector_option
@watch_option
@output_option("name")
@where
@as_slurm_user
def status(
    session: Session, cluster: str, bundle: Path | None, selector: str, output: str, *, watch: bool
) -> None:
    """Show Slurm clusters on one screen: daemons, node sets, nodes, jobs, and what waits for what.

    CLUSTER is the name of a Cluster, of a SlurmCluster, or of a Controller that neither made. Without it,
    all are shown.
    Fails when one of them is not ready.
    """
    if bundle is not None and (selector or watch):
        raise click.UsageError(
            "A support archive does not change and knows no selectors: leave -w and -l out."
        )
    found: list[Status] = []
    for sight, found in again(
        lambda: _looked(session, bundle, cluster, selector), watch=watch, matter=lambda seen: seen[1]
    ):
        _show(found, sight, output)
    if not all(one.health.state in ("Ready", "Progressing") for one in found):
        sys.exit(1)


def _looked(session: Session, bundle: Path | None, name: str, selector: str) -> tuple[Sight, list[Status]]:
    sight, _ = sight_of(session, bundle)
    try:
        found = statuses(sight, name)
    except NotFound as problem:
        raise click.ClickException(str(problem)) from problem
    if not selector:
        return sight, found
    kept = run(_selected(session, selector))
    return sight, [one for one in found if (one.namespace, one.name) in kept]


def _show(found: list[Status], sight: Sight, output: str) -> None:
    if output == "name":
        known = (*(one.kind for one in registry.DEFAULT), SlurmCluster.KIND)
        kinds = {kind.kind: typed_name(kind) for kind in known}
        echo("".join(f"{kinds.get(one.kind, one.kind.lower())}/{one.name}\n" for one in found), nl=False)
        return
    show.emit(output, found, lambda: screen(found, sight.unseen, sight.picture.now, sight.operator))


async def _selected(session: Session, selector: str) -> set[tuple[str, str]]:
    """Clusters with these labels, by namespace and name. The API server reads the selector."""
    async with session.looker(every_group=True) as looker:
        found: set[tuple[str, str]] = set()
        for kind in (Cluster.KIND, Controller.KIND, *_others(looker)):
            wanted = Selection(kind=kind, namespace=session.namespace, label_selector=selector)
            async for page in looker.client.list_pages(wanted):
                found |= {envelope.name(item).key for item in page.items}
        return found


def _others(looker: Looker) -> list[Kind]:
    """The kind of clusters that not every Kubernetes has."""
    return [one.kind for one in looker.program.kinds if one.kind == SlurmCluster.KIND]


def statuses(sight: Sight, name: str) -> list[Status]:
    with sight.as_operator():
        judged = list(verdicts(sight.reconcilers, sight.picture))
    found = clusters(sight.picture)
    if not found and (right := _forbidden(sight)):
        raise NotFound(
            f"You may not {right} here, so nobody can say whether there is a Slurm cluster. Where the "
            "operator's roles are installed, the ClusterRole view has this right."
        )
    lost = [] if name or _forbidden(sight) else list(strays(sight.picture))
    chosen = [] if lost and not found else clusters_named(found, name)
    return [
        *(status_of(one, judged, sight.unseen, sight.limited.get(one.slurm_key)) for one in chosen),
        *(stray_status(one, sight.picture) for one in lost),
    ]


def _forbidden(sight: Sight) -> str:
    """The right to see clusters that the reader lacks; empty when they have it."""
    wanted = [f"list {kind.plural} ({kind.group})" for kind in (Cluster.KIND, Controller.KIND)]
    return " and ".join(right for right in wanted if any(one.right == right for one in sight.unseen))
