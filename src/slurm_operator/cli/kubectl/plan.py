"""`kubectl slurm plan -f FILE`."""

import sys
from dataclasses import replace
from typing import TextIO

import click

from slurm_operator.cli.kubectl.session import Session, output, run, where
from slurm_operator.kubectl import show
from slurm_operator.kubectl.plan import BadFile, Refused, ServerSide, manifests
from slurm_operator.kubectl.plan import plan as planned
from slurm_operator.kubectl.plan_text import text
from slurm_operator.kubectl.planning.forecast import Forecast
from slurm_operator.manifests.meta import Manifest


@click.command()
@click.option(
    "-f", "--filename", type=click.File(), required=True, help="The file to apply; - is standard input."
)
@click.option("--delete", is_flag=True, help="As if the objects in the file were deleted.")
@click.option("--server-side", is_flag=True, help="As `kubectl apply --server-side` would do it.")
@click.option("--field-manager", default="kubectl", show_default=True, help="With --server-side: as whom.")
@click.option("--force-conflicts", is_flag=True, help="With --server-side: take fields over from others.")
@output
@where
def plan(
    session: Session,
    filename: TextIO,
    delete: bool,
    server_side: bool,
    field_manager: str,
    force_conflicts: bool,
    output: str,
) -> None:
    """Say what applying a file would create, change, restart and delete, and which jobs it meets.

    The API server is asked to try the file without keeping it, so its defaults and its refusals are the real
    ones; then the operator's own decisions are played through. Nothing is done.
    """
    try:
        given = manifests(filename.read(), session.namespace or session.access.namespace)
        how = ServerSide(field_manager, force_conflicts) if server_side else None
        found = run(_plan(session, given, how, delete=delete))
    except (BadFile, Refused) as problem:
        click.echo(f"Error: {problem}", err=True)
        sys.exit(2)
    show.emit(output, found, lambda: text(found))


async def _plan(
    session: Session, given: list[Manifest], server_side: ServerSide | None, *, delete: bool
) -> Forecast:
    places = {one["metadata"]["namespace"] for one in given}
    async with session.looker() as looker:
        wide = replace(looker, namespace=places.pop() if len(places) == 1 else "")
        return await planned(wide, given, delete=delete, server_side=server_side)
