"""What the operator decided and why, read back: the same facts give the same plan, or the program changed."""

import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from slurm_operator import __version__, wire
from slurm_operator.api.shared.images import images_named
from slurm_operator.api.shared.meta import ObjectKey, key_of
from slurm_operator.plan.plan import Plan
from slurm_operator.plan.reconciler import Reconciler
from slurm_operator.plan.world import World
from slurm_operator.reconcilers.shared import spec_refusal
from slurm_operator.redaction.recorded import RecordRedactor
from slurm_operator.runtime.report.recording import PATTERN, Fact, Flight, Line, lines
from slurm_operator.runtime.world.recording_world import Answer, NotRecorded, RecordingWorld, ReplayWorld

_decode_line: Callable[[bytes], Line] = wire.decoder(Line)  # type: ignore[arg-type]


class Recorded(wire.Record):
    """One decision with its facts."""

    flight: Flight
    answers: dict[tuple[str, ...], Any]  # Each an Answer, which has no form of its own on the wire.

    @property
    def plan(self) -> bytes:
        """The plan as it was written; equal plans have equal bytes."""
        return _canonical(self.flight.plan)


class Replayed(wire.Record):
    """What became of deciding once more: the same, or in what it differs."""

    reconciler: str
    key: ObjectKey
    decided_at: datetime
    is_same: bool
    why: str = ""


class NotARecording(Exception):  # noqa: N818 - it says what is the case
    """A line that no recording of this version has."""


_redactor = RecordRedactor()


def _canonical(plan: object) -> bytes:
    """Equal plans have equal bytes, whether they were just made or read from a file, which is redacted."""
    return wire.encode_sorted(_redactor.value(wire.decode_any(wire.encode_sorted(plan))))


def recorded(files: Iterable[bytes]) -> Iterator[Recorded]:
    """The decisions in these files. A file that breaks off in a line, as after a crash, ends there.

    Raises NotARecording where a whole line is of another program, or of another version of this one.
    """
    for content in files:
        facts: dict[str, Answer] = {}
        for text in io.BytesIO(content):
            try:
                line = _decode_line(text)
            except wire.DecodeError as error:
                if _is_whole(text):
                    raise NotARecording(_other(text, error)) from error
                break
            if isinstance(line, Fact):
                facts[line.digest] = Answer(line.value)
            else:
                answers = {tuple(question): facts[fact] for question, fact in line.facts}
                yield Recorded(flight=line, answers=answers)


def _is_whole(text: bytes) -> bool:
    try:
        wire.decode_any(text)
    except wire.DecodeError:
        return False
    return True


def _other(text: bytes, error: wire.DecodeError) -> str:
    line = wire.decode_any(text)
    version = line.get("version") if isinstance(line, dict) else None
    maker = f"of version {version}" if version else "of the version that made it"
    why = f"The recording does not fit this version, {__version__}: {error}."
    return f"{why} Read it with kubectl-slurm {maker}."


def read_files(path: Path) -> list[bytes]:
    """One file, or every file of a recorder's folder, oldest first."""
    found = sorted(path.glob(PATTERN)) if path.is_dir() else [path]
    return [one.read_bytes() for one in found]


def replay(one: Recorded, reconcilers: Sequence[Reconciler[Any]]) -> Replayed:
    """Decide again from the recorded facts."""
    flight = one.flight
    key = ObjectKey(*flight.key)
    found = next((it for it in reconcilers if it.name == flight.reconciler), None)
    why = "there is no such reconciler any more"
    if found is not None:
        try:
            with images_named(flight.images):
                plan = decided(found, key, ReplayWorld(flight.seen_at, one.answers), flight.decided_at)
            why = "" if _canonical(plan) == one.plan else "the plan is another one"
        except NotRecorded as missing:
            why = f"it looks at something that was not looked at then: {missing}"
        except wire.DecodeError as error:
            why = f"a fact of version {flight.version} does not fit this version, {__version__}: {error}"
    return Replayed(
        reconciler=flight.reconciler, key=key, decided_at=flight.decided_at, is_same=not why, why=why
    )


def decided(reconciler: Reconciler[Any], key: ObjectKey, world: World, now: datetime) -> Plan | None:
    """As the operator does it in a pass."""
    seen = reconciler.observe(key, world)
    about = world.get(reconciler.about, key.namespace, key.name)
    return None if seen is None or about is None else spec_refusal.decide(reconciler, about, seen, world, now)


def taken(world: World, reconcilers: Sequence[Reconciler[Any]]) -> bytes:
    """A recording of what the operator would decide about everything right now, from this picture."""
    known: dict[str, str] = {}
    found = []
    for reconciler in reconcilers:
        for thing in world.all(reconciler.about):
            witness = RecordingWorld(world)
            plan = decided(reconciler, key_of(thing), witness, world.now)
            flight = Flight(
                reconciler=reconciler.name,
                key=key_of(thing),
                seen_at=world.now,
                decided_at=world.now,
                facts=(),
                plan=plan,
            )
            found.append(lines(flight, witness.answers, known, _redactor))
    return b"".join(found)
