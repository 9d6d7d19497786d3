"""What is said while the root is populated: lines in the log and, at the end, the termination message."""

import json
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from .failure import Failure, Reason

TERMINATION_LOG = Path("/dev/termination-log")

# Kubernetes cuts what is longer.
_MESSAGE_BYTES = 4096
_EVERY_S = 2.0


@dataclass
class Report:
    """Says what is done, at most every two seconds, and keeps the last of it for the end."""

    deadline_s: float | None = None
    started: float = field(default_factory=time.monotonic)
    phase: str = "Starting"
    notes: list[str] = field(default_factory=list)
    _said: float = 0.0
    _figures: dict[str, object] = field(default_factory=dict)

    def enter(self, phase: str) -> None:
        """The next phase; also a moment to see whether time is up."""
        self.phase, self._figures, self._said = phase, {}, 0.0
        self.tick()

    def tick(self, **figures: object) -> None:
        """Called between any two steps: says how far this phase is. Raises Failure when time is up."""
        self._figures.update(figures)
        now = time.monotonic()
        if self.deadline_s is not None and now - self.started > self.deadline_s:
            raise Failure(
                Reason.DEADLINE_EXCEEDED,
                f"Not done within {self.deadline_s:g} s; the phase was {self.phase}. The next run continues.",
            )
        if now - self._said >= _EVERY_S:
            self._said = now
            self._say({"phase": self.phase, **self._figures})

    def note(self, text: str) -> None:
        """Something that does not stop us but should be read."""
        self.notes.append(text)
        self._say({"phase": self.phase, "note": text})

    def end(self, result: Mapping[str, object], termination_log: Path = TERMINATION_LOG) -> None:
        """The last line, which is also the termination message."""
        seconds = round(time.monotonic() - self.started, 1)
        message = {**result, "seconds": seconds, **({"notes": self.notes} if self.notes else {})}
        self._say(message)
        with suppress(OSError):  # Outside Kubernetes there may be none; the line above says the same.
            termination_log.write_bytes(fitting(message))

    def _say(self, line: Mapping[str, object]) -> None:
        print(json.dumps(line), flush=True)


def fitting(message: Mapping[str, object]) -> bytes:
    """The message as JSON that Kubernetes does not cut: long texts are shortened first."""
    texts = dict(message)
    texts.setdefault("notes", [])
    limit = _MESSAGE_BYTES
    while len(encoded := json.dumps(texts).encode()) > _MESSAGE_BYTES:
        limit //= 2
        shortened = {key: value[:limit] if isinstance(value, str) else value for key, value in texts.items()}
        notes = [str(note)[:limit] for note in message.get("notes", [])]  # type: ignore[attr-defined]
        texts = {**shortened, "notes": notes[: max(1, limit // 256)]}
    return encoded
