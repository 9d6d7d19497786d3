"""`kubectl slurm doctor`."""

import sys

import click

from slurm_operator.cli.kubectl.session import Session, output, run, where
from slurm_operator.insight.doctor.checkup import findings, is_fit, report
from slurm_operator.insight.doctor.collection import collect_facts
from slurm_operator.insight.doctor.facts import Facts
from slurm_operator.insight.text import output as show


@click.command()
@output
@where
def doctor(session: Session, output: str) -> None:
    """Check whether this Kubernetes and one namespace of it fit for Slurm; each finding says what to do.

    Nothing is changed. Fails when something keeps Slurm from working.
    """
    found = findings(run(_look(session)))
    show.emit(output, found, lambda: report(found))
    if not is_fit(found):
        sys.exit(1)


async def _look(session: Session) -> Facts:
    async with session.looker() as looker:
        return await collect_facts(looker.client, session.namespace or session.access.namespace)
