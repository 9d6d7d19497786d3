"""`kubectl slurm drain` and `kubectl slurm undrain`."""

import sys
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import click

from slurm_operator.cli.kubectl.shared.proposals import cluster_names, kube_nodes, slurm_nodes
from slurm_operator.cli.kubectl.shared.session import Session, output, run, where
from slurm_operator.insight.clusters import NotFound, clusters, only
from slurm_operator.insight.doctor.rights import user_name
from slurm_operator.insight.drain.decide import (
    DRAINED,
    UNDRAINED,
    NoSuchWorker,
    Outcome,
    chosen,
    draining,
    human_reason,
    outcomes_text,
    undraining,
)
from slurm_operator.insight.drain.send import Decide, carry_out
from slurm_operator.insight.slurm.access import NoWay, way
from slurm_operator.insight.text import output as show
from slurm_operator.slurm.hostlist import HostlistError
from slurm_operator.slurmrest.errors import SlurmFailure

Command = Callable[..., None]


class Targets(NamedTuple):
    """Which nodes of which cluster, and with whose token."""

    nodes: tuple[str, ...]
    on: tuple[str, ...]
    cluster: str
    token: str


def _targets(command: Command) -> Command:
    for option in (
        click.option("--token", default="", help="A Token to use, instead of the cluster's signing key."),
        click.option(
            "--cluster",
            default="",
            shell_complete=cluster_names,
            help="Which Slurm cluster, where there are several.",
        ),
        click.option(
            "--on",
            multiple=True,
            metavar="KUBENODE",
            shell_complete=kube_nodes,
            help="All workers on this Kubernetes node.",
        ),
        click.argument("nodes", nargs=-1, shell_complete=slurm_nodes),
    ):
        command = option(command)
    return command


@click.command()
@_targets
@click.option("--reason", default="", help="Why; your name is put before it.")
@click.option("--force", is_flag=True, help="Replace the reason of nodes that drain already.")
@output
@where
def drain(session: Session, reason: str, *, force: bool, output: str, **given: Any) -> None:
    """Let no new job start on Slurm nodes. Running jobs go on.

    NODES are names as Slurm has them, `gpu-3` or `gpu-[0-7]`, or `pod/NAME`. The drain is yours: it carries
    your name, and the operator never lifts it.
    """

    def decide(user: str, nodes: Sequence[str]) -> Decide:
        return lambda records: draining(nodes, records, human_reason(user, reason), force=force)

    _finish(run(_change(session, _chosen_targets(given), decide)), DRAINED, output)


@click.command()
@_targets
@click.option("--force", is_flag=True, help="Lift the drain of somebody else.")
@output
@where
def undrain(session: Session, *, force: bool, output: str, **given: Any) -> None:
    """Let jobs start on Slurm nodes again that you drained.

    NODES are names as Slurm has them, `gpu-3` or `gpu-[0-7]`, or `pod/NAME`. What somebody else drained stays
    drained, and you are told whose it is.
    """

    def decide(user: str, nodes: Sequence[str]) -> Decide:
        return lambda records: undraining(nodes, records, user, force=force)

    _finish(run(_change(session, _chosen_targets(given), decide)), UNDRAINED, output)


async def _change(
    session: Session, wanted: Targets, decide: Callable[[str, Sequence[str]], Decide]
) -> list[Outcome]:
    async with session.looker(may_write=True) as looker:
        sight = await looker.look()
        try:
            cluster = only(clusters(sight.picture), wanted.cluster)
            nodes = chosen(wanted.nodes, wanted.on, cluster.pods)
            rest = await way(looker, sight.picture, cluster, wanted.token)
            user = await user_name(looker.client)
            return await carry_out(rest, nodes, decide(user, nodes))
        except (NotFound, NoWay, NoSuchWorker, HostlistError, SlurmFailure) as problem:
            raise click.ClickException(str(problem)) from problem


def _chosen_targets(given: dict[str, Any]) -> Targets:
    wanted = Targets(**given)
    if not wanted.nodes and not wanted.on:
        raise click.UsageError("Say which nodes: names of Slurm, pod/NAME, or --on KUBENODE.")
    return wanted


def _finish(found: list[Outcome], done: str, output: str) -> None:
    show.emit(output, found, lambda: outcomes_text(found, done))
    if not all(one.is_good for one in found):
        sys.exit(1)
