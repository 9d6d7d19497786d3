"""Events for people: events.k8s.io, repeats counted instead of repeated, never in anybody's way."""

import asyncio
import secrets
import socket
from collections import OrderedDict
from datetime import UTC, datetime
from typing import Literal, NamedTuple

import structlog

from slurm_operator import wire
from slurm_operator.api.schema.kind import Kind
from slurm_operator.api.shared.meta import Meta, ObjectKey
from slurm_operator.kube.client import Client
from slurm_operator.kube.errors import KubeError, NotFound
from slurm_operator.manifests.kinds import EVENT
from slurm_operator.manifests.meta import Manifest
from slurm_operator.printable import printable

# As long as an event keeps coming back within this time it is one event with a count.
_SERIES_SECONDS = 360.0
# A count is sent this long after the first repeat, then at doubling distances.
_FIRST_COUNT_SECONDS = 10.0
_LONGEST_COUNT_SECONDS = 600.0
# Longest note and names the API server takes.
_NOTE_LIMIT_BYTES = 1024
_NAME_LIMIT = 128
_OBJECT_NAME_LIMIT = 220

log = structlog.get_logger(__name__)


class Regarding(wire.CamelRecord):
    """The object an event is about."""

    api_version: str
    kind: str
    name: str
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""


def regarding(kind: Kind, meta: Meta) -> Regarding:
    return Regarding(
        api_version=kind.api_version,
        kind=kind.kind,
        name=meta.name,
        namespace=meta.namespace,
        uid=meta.uid,
        resource_version=meta.resource_version,
    )


class _Words(NamedTuple):
    """What makes two events the same."""

    about: tuple[str, str, str, str, str]
    reason: str
    note: str
    action: str
    type: str
    related: Regarding | None


class _Series:
    """One event and how often it has happened."""

    def __init__(self, about: Regarding, words: _Words, now: float) -> None:
        self.about = about
        self.words = words
        self.name = f"{about.name[:_OBJECT_NAME_LIMIT]}.{secrets.token_hex(8)}"
        self.happened_first = self.happened_last = _micro_time()
        self.last = now
        self.count = 1
        self.told = 0  # The count that the server knows.
        self.is_waiting = True
        self.next_count_seconds = _FIRST_COUNT_SECONDS

    def happened_again(self, now: float) -> None:
        self.count += 1
        self.last = now
        self.happened_last = _micro_time()

    @property
    def key(self) -> ObjectKey:
        # Events of cluster-wide objects live in `default`, as everybody's do.
        return ObjectKey(self.about.namespace or "default", self.name)

    @property
    def series(self) -> Manifest:
        return {"count": self.count, "lastObservedTime": self.happened_last}


class Recorder:
    """Sends events in the background. A full queue drops new ones and counts them in `dropped`."""

    def __init__(
        self,
        client: Client,
        *,
        component: str = "slurm-operator",
        instance: str = "",
        limit: int = 1000,
    ) -> None:
        self.sent = 0
        self.dropped = 0
        self.failed = 0
        self._client = client
        self._component = component
        self._instance = (instance or socket.gethostname())[:_NAME_LIMIT]
        self._limit = limit
        self._queue: asyncio.Queue[_Series] = asyncio.Queue(limit)
        self._recent: OrderedDict[_Words, _Series] = OrderedDict()

    def record(
        self,
        about: Regarding,
        reason: str,
        note: str,
        *,
        action: str = "Reconcile",
        type_: Literal["Normal", "Warning"] = "Normal",
        related: Regarding | None = None,
    ) -> None:
        """Tell people. Returns at once; equal events within minutes become one with a count."""
        now = asyncio.get_running_loop().time()
        object_ = (about.api_version, about.kind, about.namespace, about.name, about.uid)
        reason, note = printable(reason)[:_NAME_LIMIT], _shortened(printable(note))
        words = _Words(object_, reason, note, action[:_NAME_LIMIT], type_, related)
        known = self._recent.get(words)
        if known is not None and now - known.last < _SERIES_SECONDS:
            known.happened_again(now)
            self._recent.move_to_end(words)
            self._count_later(known)
        else:
            self._begin(words, _Series(about, words, now))

    def _begin(self, words: _Words, series: _Series) -> None:
        if not self._enqueue(series):
            return
        self._recent[words] = series
        self._recent.move_to_end(words)
        while len(self._recent) > self._limit:
            self._recent.popitem(last=False)

    def _count_later(self, series: _Series) -> None:
        if not series.is_waiting:
            series.is_waiting = True
            asyncio.get_running_loop().call_later(series.next_count_seconds, self._enqueue, series)
            series.next_count_seconds = min(series.next_count_seconds * 2, _LONGEST_COUNT_SECONDS)

    def _enqueue(self, series: _Series) -> bool:
        try:
            self._queue.put_nowait(series)
        except asyncio.QueueFull:
            self.dropped += 1
            series.is_waiting = False
            return False
        return True

    async def run(self) -> None:
        """Send what is recorded, until cancelled."""
        while True:
            await self._send_next()

    async def flush(self) -> None:
        """Send what is queued and what is still to be counted: for the end of a process."""
        while not self._queue.empty():
            await self._send_next()
        for series in list(self._recent.values()):
            await self._attempt(series)

    async def _send_next(self) -> None:
        series = await self._queue.get()
        series.is_waiting = False
        await self._attempt(series)

    async def _attempt(self, series: _Series) -> None:
        if series.told == series.count:
            return
        try:
            await self._send(series)
        except KubeError as error:
            # Not tried again: whatever an event says is also in a condition and in the log.
            self.failed += 1
            log.info("an event could not be sent", reason=series.words.reason, why=str(error))
        else:
            self.sent += 1

    async def _send(self, series: _Series) -> None:
        count = series.count
        if series.told:
            try:
                await self._client.merge_patch(EVENT, series.key, {"series": series.series})
            except NotFound:
                series.told = 0  # The server keeps events for an hour.
        if not series.told:
            await self._client.create(EVENT, self._event(series))
        series.told = count

    def _event(self, series: _Series) -> Manifest:
        words = series.words
        event: Manifest = {
            "metadata": {"namespace": series.key.namespace, "name": series.key.name},
            "eventTime": series.happened_first,
            "reportingController": self._component,
            "reportingInstance": self._instance,
            "regarding": _reference(series.about),
            "reason": words.reason,
            "action": words.action,
            "note": words.note,
            "type": words.type,
        }
        if words.related is not None:
            event["related"] = _reference(words.related)
        if series.count > 1:
            event["series"] = series.series
        return event


def _reference(thing: Regarding) -> Manifest:
    return {name: value for name, value in wire.plain(thing).items() if value}


def _shortened(note: str) -> str:
    """The API server counts bytes and takes 1024; half a character at the end is left out."""
    encoded = note.encode()
    if len(encoded) <= _NOTE_LIMIT_BYTES:
        return note
    return encoded[: _NOTE_LIMIT_BYTES - 3].decode(errors="ignore") + "…"


def _micro_time() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
