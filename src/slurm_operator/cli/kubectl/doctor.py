"""`kubectl slurm doctor`."""

import sys

import click

from slurm_operator.cli.kubectl.session import Session, output, run, where
from slurm_operator.insight.doctor import way_over
from slurm_operator.insight.doctor.checkup import findings, is_fit, lines, report
from slurm_operator.insight.doctor.collection import collect_facts
from slurm_operator.insight.doctor.facts import Facts
from slurm_operator.insight.doctor.finding import Finding, Level
from slurm_operator.insight.text import output as show


@click.command()
@click.option(
    "--from",
    "origin",
    type=click.Choice(["slinky"]),
    help="Say what moving over from Slinky's operator would change in the whole cluster, and in which order.",
)
@output
@where
def doctor(session: Session, origin: str | None, output: str) -> None:
    """Check whether this Kubernetes and one namespace of it fit for Slurm; each finding says what to do.

    Nothing is changed. Fails when something keeps Slurm from working.
    """
    if origin is not None:
        _move(session, output)
        return
    found = findings(run(_look(session)))
    show.emit(output, found, lambda: report(found))
    if not is_fit(found):
        sys.exit(1)


async def _look(session: Session) -> Facts:
    async with session.looker() as looker:
        return await collect_facts(looker.client, session.namespace or session.access.namespace)


def _move(session: Session, output: str) -> None:
    found = run(_movable(session))
    show.emit(output, found, lambda: lines(found))
    if any(one.level is Level.FAIL for one in found):
        sys.exit(1)


async def _movable(session: Session) -> list[Finding]:
    async with session.looker() as looker:
        return way_over.findings(await way_over.look(looker.client))
