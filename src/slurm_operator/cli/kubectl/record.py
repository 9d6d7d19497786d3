"""`kubectl slurm record …`: what the operator decided and why, kept and replayed."""

import sys
from pathlib import Path
from typing import Any

import click

from slurm_operator import wire
from slurm_operator.api.shared.meta import ObjectKey
from slurm_operator.cli.kubectl.shared.session import Session, output, run, where
from slurm_operator.insight.recording.fetch import NotRecording, fetched
from slurm_operator.insight.recording.replay import (
    NotARecording,
    Recorded,
    Replayed,
    read_files,
    recorded,
    replay,
    taken,
)
from slurm_operator.insight.text import output as show
from slurm_operator.operator import reconcilers
from slurm_operator.runtime.settings import Settings

_FILE = click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
_PATH = click.argument("path", type=click.Path(exists=True, path_type=Path))
_ABOUT = click.option("--about", default="", metavar="KIND/NAME", help="Only decisions about this object.")


@click.group()
def record() -> None:
    """What the operator decided, with the facts it came from.

    An operator that runs with --record keeps its last decisions; `fetch` brings them here. `take` records
    what it would decide right now, without any.
    """


class Kept(wire.Record):
    """What was written."""

    file: str
    bytes: int
    plans: int


@record.command()
@_FILE
@output
@where
def fetch(session: Session, file: Path, output: str) -> None:
    """Bring the recording of the running operator into FILE.

    -n says in which namespace the operator is; without it, it is looked for in all. Takes the right to create
    pods/exec there.
    """
    try:
        _keep(file, run(_fetch(session)), output)
    except NotRecording as problem:
        raise click.ClickException(str(problem)) from problem


async def _fetch(session: Session) -> bytes:
    async with session.looker() as looker:
        return await fetched(looker.client, session.given_namespace)


@record.command()
@_FILE
@output
@where
def take(session: Session, file: Path, output: str) -> None:
    """Record what the operator would decide now about everything, into FILE."""
    sight = run(session.look())
    with sight.as_operator():
        content = taken(sight.picture, reconcilers(Settings()))
    _keep(file, content, output)


def _keep(file: Path, content: bytes, output: str) -> None:
    """Readable for its owner alone: specs and names of jobs are in it."""
    try:
        file.touch(mode=0o600)
        file.write_bytes(content)
    except OSError as error:
        raise click.ClickException(f"Cannot write {file}: {error}") from error
    try:
        plans = sum(1 for _ in recorded([content]))
    except NotARecording as problem:
        raise click.ClickException(f"{file} is written, but cannot be read here. {problem}") from problem
    kept = Kept(file=str(file), bytes=len(content), plans=plans)
    told = f"{kept.file}: {show.counted(kept.plans, 'plan')}, {kept.bytes / 1024:.0f} KiB."
    show.emit(output, kept, lambda: show.paragraph(told))


@record.command(name="list")
@_PATH
@_ABOUT
@output
def list_(path: Path, about: str, output: str) -> None:
    """Show the decisions in a recording, oldest first."""
    found = [_summary(one) for one in _chosen(path, about)]
    head = ("TIME", "RECONCILER", "OBJECT", "DECISIONS")
    rows = [(one["at"], one["reconciler"], one["object"], "; ".join(one["actions"]) or "-") for one in found]
    show.emit(output, found, lambda: show.table(head, rows))


@record.command(name="replay")
@_PATH
@_ABOUT
@output
def replay_(path: Path, about: str, output: str) -> None:
    """Decide once more from the recorded facts. The exit code is 1 when a plan is another one now."""
    known = reconcilers(Settings())
    found = [replay(one, known) for one in _chosen(path, about)]
    show.emit(output, found, lambda: show.joined([show.paragraph(line) for line in _replay_text(found)]))
    sys.exit(0 if all(one.is_same for one in found) else 1)


def _chosen(path: Path, about: str) -> list[Recorded]:
    kind, _, name = about.lower().partition("/")
    try:
        every = list(recorded(read_files(path)))
    except NotARecording as problem:
        raise click.ClickException(f"{path}: {problem}") from problem
    return [
        one
        for one in every
        if kind in ("", one.flight.reconciler) and name in ("", ObjectKey(*one.flight.key).name)
    ]


def _summary(one: Recorded) -> dict[str, Any]:
    lanes = wire.plain(one.flight.plan or {}).get("lanes", ())
    actions = [action for lane in lanes for stage in lane["stages"] for action in stage]
    return {
        "at": f"{one.flight.decided_at:%Y-%m-%d %H:%M:%S}",
        "reconciler": one.flight.reconciler,
        "object": str(ObjectKey(*one.flight.key)),
        "actions": [f"{action['type']}: {action['message']}" for action in actions],
        "facts": len(one.answers),
    }


def _replay_text(found: list[Replayed]) -> list[str]:
    other = [one for one in found if not one.is_same]
    lines = [
        f"{one.decided_at:%Y-%m-%d %H:%M:%S} {one.reconciler} {ObjectKey(*one.key)}: {one.why}"
        for one in other
    ]
    same = len(found) - len(other)
    return [*lines, f"{same} of {len(found)} plans are the same as they were."]
