"""The flight recorder: every plan, with the facts it came from, in a bounded ring of files.

A file has one JSON value in a line. A fact stands in it once, under its digest; a plan names the facts that
it came from, so that each file can be read alone. Secrets are in neither: facts have digests instead, and
what looks like a secret in a manifest is redacted. No digest is of anything that was redacted.
"""

import contextlib
import queue
import threading
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import IO, Any

import structlog

from slurm_operator import __version__, wire
from slurm_operator.api.shared.images import named_images
from slurm_operator.api.shared.meta import ObjectKey
from slurm_operator.manifests.digests import digest
from slurm_operator.plan.plan import Plan
from slurm_operator.redaction.recorded import RecordRedactor
from slurm_operator.runtime.world.recording_world import Question, plain_answer

log = structlog.get_logger(__name__)

FILE_BYTES = 8 << 20
FILES = 8

# What cannot be written so fast is not kept: the operator never waits for its recorder.
MOST_WAITING = 1000

PATTERN = "plans-*.jsonl"


class Fact(wire.Record, tag="fact"):
    digest: str
    value: Any


class Flight(wire.Record, tag="plan"):
    """One decision: about what, when it looked and decided, the questions with their facts, the plan.

    The images that the operator was told to use stand in its environment, which a reader does not have.
    """

    reconciler: str
    key: ObjectKey
    seen_at: datetime
    decided_at: datetime
    facts: tuple[tuple[Question, str], ...]
    plan: Any
    version: str = __version__
    images: dict[str, str] = wire.field(default_factory=named_images)


Line = Fact | Flight


class Recorder:
    """Writes in a thread of its own. A plan that is as idle as the last one about its object is left out."""

    def __init__(self, folder: Path, *, file_bytes: int = FILE_BYTES, files: int = FILES) -> None:
        self.dropped = 0
        self._folder = folder
        self._file_bytes = file_bytes
        self._files = files
        self._waiting: queue.Queue[tuple[Flight, Mapping[Question, Any]] | None] = queue.Queue(MOST_WAITING)
        self._last: dict[tuple[str, ObjectKey], Plan] = {}
        self._known: dict[str, str] = {}
        self._redactor = RecordRedactor()
        self._thread = threading.Thread(target=self._work, name="recorder", daemon=True)

    def start(self) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        self._thread.start()

    def close(self) -> None:
        """After what waits has been written."""
        self._waiting.put(None)
        self._thread.join()

    def note(
        self,
        reconciler: str,
        key: ObjectKey,
        answers: Mapping[Question, Any],
        plan: Plan,
        *,
        seen_at: datetime,
        decided_at: datetime,
    ) -> None:
        """Keep this decision. Never waits."""
        if plan.is_idle and self._last.get((reconciler, key)) == plan:
            return
        self._last[reconciler, key] = plan
        flight = Flight(
            reconciler=reconciler, key=key, seen_at=seen_at, decided_at=decided_at, facts=(), plan=plan
        )
        try:
            self._waiting.put_nowait((flight, dict(answers)))
        except queue.Full:
            self.dropped += 1

    def _work(self) -> None:
        file: IO[bytes] | None = None
        while (item := self._waiting.get()) is not None:
            try:
                file = self._write(file, lines(*item, self._known, self._redactor))
            except Exception as error:  # A recorder that breaks must not take the operator with it.
                log.warning("a plan was not recorded", folder=str(self._folder), error=str(error))
                self._known.clear()
                if file is not None:
                    file.close()
                file = None
        if file is not None:
            file.close()

    def _write(self, file: IO[bytes] | None, text: bytes) -> IO[bytes]:
        if file is None:
            file = self._next_file()
        file.write(text)
        file.flush()
        if file.tell() >= self._file_bytes:
            file.close()
            self._known.clear()
            return self._next_file()
        return file

    def _next_file(self) -> IO[bytes]:
        there = sorted(self._folder.glob(PATTERN))
        number = int(there[-1].stem.rpartition("-")[2]) + 1 if there else 1
        for old in there[: max(0, len(there) + 1 - self._files)]:
            with contextlib.suppress(FileNotFoundError):
                old.unlink()
        return (self._folder / f"plans-{number:08}.jsonl").open("ab")


def lines(
    flight: Flight, answers: Mapping[Question, Any], known: dict[str, str], redactor: RecordRedactor
) -> bytes:
    """The lines for one decision: facts that the file does not have yet, then the plan.

    `known` has the digest of each fact in the file by that of the fact before it was redacted.
    """
    found: list[Line] = []
    named = []
    for question, answer in answers.items():
        value = plain_answer(answer)
        before = digest(value)
        if before not in known:
            redacted = redactor.value(value)
            known[before] = digest(redacted)
            found.append(Fact(digest=known[before], value=redacted))
        named.append((question, known[before]))
    plan = redactor.value(wire.plain(flight.plan))
    found.append(wire.replace(flight, facts=tuple(named), plan=plan))
    return b"".join(wire.encode_sorted(line) + b"\n" for line in found)
