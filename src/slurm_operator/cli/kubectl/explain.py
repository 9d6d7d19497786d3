"""`kubectl slurm explain KIND/NAME`."""

import sys
from pathlib import Path

import click

from slurm_operator import wire
from slurm_operator.api import registry
from slurm_operator.cli.kubectl.shared.archive import bundle_option, sight_of
from slurm_operator.cli.kubectl.shared.proposals import explainable
from slurm_operator.cli.kubectl.shared.session import Session, as_slurm_user, output, where
from slurm_operator.insight.explain.chain import Case, NotThere
from slurm_operator.insight.explain.job_ids import read_id
from slurm_operator.insight.explain.lookup import explain as explained
from slurm_operator.insight.explain.lookup import known_words
from slurm_operator.insight.text import output as show
from slurm_operator.insight.text.explain_text import text
from slurm_operator.insight.typed_names import of_kubernetes


@click.command()
@click.argument("what", metavar="KIND/NAME", nargs=-1, required=True, shell_complete=explainable)
@bundle_option
@output
@where
@as_slurm_user
def explain(session: Session, what: tuple[str, ...], bundle: Path | None, output: str) -> None:
    """Say why something is as it is: the causes one after the other, and what to do.

    KIND is cluster, controller, accounting, restapi, loginset, nodeset, token, slurmcluster, node (of Slurm
    or of Kubernetes), pod, or job. Kinds of the same name are told apart by their full names, such as
    nodesets.slurm.nebius.ai. Nothing is changed. The exit code is 1 when something is wrong,
    and 0 when nothing has to be done: what is not ready yet may become ready, and a job may wait its turn.
    A job is named as squeue prints it: 4, 4_0, 4_[1-3], 5+1.
    """
    kind, _, name = "/".join(what).partition("/")
    if not name:
        known = known_words(one.kind for one in registry.DEFAULT)
        raise click.UsageError(f"Say what to explain as KIND/NAME. Kinds: {', '.join(known)}.")
    wanted = read_id(name) if of_kubernetes(kind) == "job" else None
    job = wanted.base if wanted is not None else None
    sight, namespace = sight_of(session, bundle, closely=True, job=job)
    if not namespace:
        raise click.UsageError("An explanation is about one namespace: name it with -n.")
    case = Case(
        sight.picture,
        sight.reconcilers,
        namespace,
        sight.user,
        tuple(sight.unseen),
        sight.is_operator_away,
        sight.jobs,
        sight.booked,
    )
    try:
        with sight.as_operator():
            found = wire.replace(explained(kind, name, case), unseen=tuple(sight.unseen))
    except NotThere as problem:
        raise click.ClickException(str(problem)) from problem
    show.emit(output, found, lambda: text(found))
    sys.exit(0 if found.is_well else 1)
