"""`kubectl slurm plan -f FILE`."""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import click

from slurm_operator.cli.echo import echo
from slurm_operator.cli.kubectl.shared.session import Session, output, run, where
from slurm_operator.insight.forecast.outcome import Forecast
from slurm_operator.insight.forecast.proposal import BadFile, Refused, ServerSide, manifests
from slurm_operator.insight.forecast.proposal import plan as planned
from slurm_operator.insight.text import output as show
from slurm_operator.insight.text.plan_text import text
from slurm_operator.manifests.meta import Manifest


@click.command()
@click.option(
    "-f",
    "--filename",
    "filenames",
    multiple=True,
    required=True,
    help="A file or a directory to apply; - is standard input. May be repeated.",
)
@click.option("-R", "--recursive", is_flag=True, help="Directories with all that is below them.")
@click.option("--delete", is_flag=True, help="As if the objects in the file were deleted.")
@click.option("--server-side", is_flag=True, help="As `kubectl apply --server-side` would do it.")
@click.option("--field-manager", default="kubectl", show_default=True, help="With --server-side: as whom.")
@click.option("--force-conflicts", is_flag=True, help="With --server-side: take fields over from others.")
@output
@where
def plan(
    session: Session,
    filenames: tuple[str, ...],
    recursive: bool,
    delete: bool,
    server_side: bool,
    field_manager: str,
    force_conflicts: bool,
    output: str,
) -> None:
    """Say what applying a file would create, change, restart and delete, and which jobs it meets.

    The API server is asked to try the file without keeping it, so its defaults and its refusals are the real
    ones; then the operator's own decisions are played through. Nothing is done.

    The exit code is 2 when the API server or the operator would refuse the file.
    """
    try:
        given = [
            one
            for name, text_ in read_files(filenames, recursive=recursive)
            for one in manifests(text_, session.namespace or session.access.namespace, name)
        ]
        how = ServerSide(field_manager, force_conflicts) if server_side else None
        found = run(_plan(session, given, how, delete=delete))
    except (BadFile, Refused) as problem:
        echo(f"Error: {problem}", err=True)
        sys.exit(2)
    show.emit(output, found, lambda: text(found))
    if found.refused:
        sys.exit(2)


# What kubectl takes from a directory.
_ENDINGS = (".yaml", ".yml", ".json")


def read_files(names: Sequence[str], *, recursive: bool) -> Iterator[tuple[str, str]]:
    """Name and text of each file that is meant, as kubectl reads them. Raises BadFile."""
    for name in names:
        if name == "-":
            yield "standard input", sys.stdin.read()
            continue
        path = Path(name)
        if path.is_dir():
            found = sorted(one for one in path.glob("**/*" if recursive else "*") if one.suffix in _ENDINGS)
            if not found:
                raise BadFile(f"There is no .yaml, .yml or .json file in {name}.")
            yield from ((str(one), _content(one)) for one in found)
        else:
            yield name, _content(path)


def _content(path: Path) -> str:
    try:
        return path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise BadFile(f"Cannot read {path}: {error}") from error


async def _plan(
    session: Session, given: list[Manifest], server_side: ServerSide | None, *, delete: bool
) -> Forecast:
    places = {one["metadata"]["namespace"] for one in given}
    async with session.looker(every_group=True) as looker:
        wide = replace(looker, namespace=places.pop() if len(places) == 1 else "")
        return await planned(wide, given, delete=delete, server_side=server_side)
