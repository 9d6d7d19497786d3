"""`kubectl slurm doctor`."""

import sys

import click

from slurm_operator.api import registry
from slurm_operator.cli.kubectl.shared.session import Session, output, run, where
from slurm_operator.insight.doctor import way_back, way_over
from slurm_operator.insight.doctor.checkup import findings, is_fit, lines, report
from slurm_operator.insight.doctor.collection import collect_facts
from slurm_operator.insight.doctor.facts import Facts
from slurm_operator.insight.doctor.finding import Finding, Level
from slurm_operator.insight.doctor.soperator import facts
from slurm_operator.insight.doctor.soperator import way_back as to_soperator
from slurm_operator.insight.doctor.soperator import way_over as from_soperator
from slurm_operator.insight.text import output as show
from slurm_operator.kube.client import Client

_SOPERATOR = "soperator"
_OTHERS = ("slinky", _SOPERATOR)


@click.command()
@click.option(
    "--from",
    "origin",
    type=click.Choice(_OTHERS),
    help="Say what moving over from another operator would change in the whole cluster, and in which order.",
)
@click.option(
    "--to",
    type=click.Choice(_OTHERS),
    help="List what would be left behind in the whole cluster if that operator took over again.",
)
@click.option("--release", is_flag=True, help="With --to: remove that. The operator has to be stopped first.")
@output
@where
def doctor(session: Session, origin: str | None, to: str | None, release: bool, output: str) -> None:
    """Check whether this Kubernetes and one namespace of it fit for Slurm; each finding says what to do.

    Nothing is changed without --release. Fails when something keeps Slurm from working.
    """
    if release and to is None:
        raise click.UsageError("--release removes what --to slinky or --to soperator lists; give both.")
    if origin is not None and to is not None:
        raise click.UsageError("--from and --to are two questions; ask one at a time.")
    if origin is not None:
        _show(run(_movable(session, origin)), output)
        return
    if to is not None:
        _show(run(_released(session, to) if release else _left(session, to)), output)
        return
    found = findings(run(_look(session)))
    show.emit(output, found, lambda: report(found))
    if not is_fit(found):
        sys.exit(1)


async def _look(session: Session) -> Facts:
    async with session.looker() as looker:
        return await collect_facts(looker.client, session.namespace or session.access.namespace)


def _show(found: list[Finding], output: str) -> None:
    show.emit(output, found, lambda: lines(found))
    if any(one.level is Level.FAIL for one in found):
        sys.exit(1)


async def _movable(session: Session, origin: str) -> list[Finding]:
    async with session.looker() as looker:
        if origin == _SOPERATOR:
            return from_soperator.findings(await facts.look(looker.client))
        return way_over.findings(await way_over.look(looker.client))


async def _left(session: Session, to: str) -> list[Finding]:
    async with session.looker() as looker:
        return await _left_behind(looker.client, to)


async def _left_behind(client: Client, to: str) -> list[Finding]:
    if to == _SOPERATOR:
        return to_soperator.findings(await to_soperator.look(client))
    return way_back.findings(await way_back.look(client))


async def _released(session: Session, to: str) -> list[Finding]:
    async with session.looker(may_write=True) as looker:
        of = registry.ALL if to == _SOPERATOR else registry.DEFAULT
        found = await way_back.look(looker.client, is_patient=True, of=of)
        if hindrances := [*way_back.running(found), *way_back.blocked(found)]:
            return hindrances
        done = await way_back.release(looker.client, way_back.leftovers(found))
        return [*done, *await _left_behind(looker.client, to)]
