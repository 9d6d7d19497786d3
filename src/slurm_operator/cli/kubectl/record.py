"""`kubectl slurm record …`: what the operator decided and why, kept and replayed."""

import sys
from pathlib import Path
from typing import Any

import click

from slurm_operator import wire
from slurm_operator.api.meta import ObjectKey
from slurm_operator.cli.kubectl.session import Session, output, run, where
from slurm_operator.kubectl import show
from slurm_operator.kubectl.record import Recorded, Replayed, read_files, recorded, replay, taken
from slurm_operator.operator import reconcilers
from slurm_operator.runtime.settings import Settings

_PATH = click.argument("path", type=click.Path(exists=True, path_type=Path))
_ABOUT = click.option("--about", default="", metavar="KIND/NAME", help="Only decisions about this object.")


@click.group()
def record() -> None:
    """What the operator decided, with the facts it came from.

    `slurm-operator manager --record FOLDER` keeps the last decisions in a folder; copy it with `kubectl cp`.
    `take` records what the operator would decide right now, without a manager.
    """


@record.command()
@click.argument("file", type=click.File("wb"))
@where
def take(session: Session, file: Any) -> None:
    """Record what the operator would decide now about everything, into FILE."""
    sight = run(session.look())
    file.write(taken(sight.picture, reconcilers(Settings())))


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
    show.emit(output, found, lambda: show.joined([show.paragraph(line) for line in _told(found)]))
    sys.exit(0 if all(one.is_same for one in found) else 1)


def _chosen(path: Path, about: str) -> list[Recorded]:
    kind, _, name = about.lower().partition("/")
    every = recorded(read_files(path))
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


def _told(found: list[Replayed]) -> list[str]:
    other = [one for one in found if not one.is_same]
    lines = [
        f"{one.decided_at:%Y-%m-%d %H:%M:%S} {one.reconciler} {ObjectKey(*one.key)}: {one.why}"
        for one in other
    ]
    same = len(found) - len(other)
    return [*lines, f"{same} of {len(found)} plans are the same as they were."]
