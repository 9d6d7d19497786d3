"""List once, then watch: tells somebody everything that happens to the objects of one selection."""

import asyncio
import random
from collections.abc import AsyncIterator, Callable
from typing import Generic, TypeVar

import structlog

from slurm_operator.api.shared.meta import HasMeta, ObjectKey, key_of
from slurm_operator.backoff import Backoff
from slurm_operator.kube import envelope, errors
from slurm_operator.kube.client import Client, Decode
from slurm_operator.kube.request import Selection
from slurm_operator.kube.watch.listeners import WatchListener

T = TypeVar("T", bound=HasMeta)

# The server ends a watch after so long. Not all at once: whoever started together would come back together.
_SHORTEST_WATCH_SECONDS = 300
_LONGEST_WATCH_SECONDS = 600
# Bookmarks come every minute. More than two missed ones, and the connection may be dead; or it is about
# Events, of which the server sends no bookmarks.
_IDLE_SECONDS = 150.0
# However long somebody on the way asks us to stay away: it may be back by then.
_LONGEST_ABSENCE_SECONDS = 60.0
# A round that lived this long was no failure, however it ended.
_HEALTHY_SECONDS = 10.0

log = structlog.get_logger(__name__)


class Reflector(Generic[T]):
    """One selection, one watch. `trouble` is why it is not up to date now; counters are since start."""

    def __init__(
        self,
        client: Client,
        selection: Selection,
        decode: Decode[T],
        sink: WatchListener[T],
        *,
        on_trouble: Callable[[errors.KubeError], None] = lambda trouble: None,
    ) -> None:
        self.selection = selection
        self.synced = asyncio.Event()
        self.trouble: errors.KubeError | None = None
        self.unreadable: dict[ObjectKey, str] = {}
        self.lists = 0
        self.watches = 0
        self.events = 0
        self.undecodable = 0
        self._client = client
        self._decode = decode
        self._sink = sink
        self._on_trouble = on_trouble
        self._version = ""
        self._heard_at = float("-inf")
        self._backoff = Backoff()

    @property
    def age_seconds(self) -> float:
        """Seconds since the server last said something about this selection."""
        return asyncio.get_running_loop().time() - self._heard_at

    async def run(self) -> None:
        """Goes on until cancelled: no answer of the server ends it."""
        clock = asyncio.get_running_loop().time
        while True:
            began = clock()
            least = await self._round()
            if clock() - began >= _HEALTHY_SECONDS:
                self._backoff.reset()
            await asyncio.sleep(max(self._backoff.next_seconds(), least))

    async def _round(self) -> float:
        """List if need be, and watch until that ends. Gives back how long the server asks us to stay away."""
        try:
            if not self._version:
                await self._list()
            await self._watch()
        except errors.Gone as error:
            log.info("the watch fell behind; listing again", what=str(self.selection), said=str(error))
            self._version = ""
        except errors.KubeError as error:
            self._note(error)
            return min(getattr(error, "retry_after", None) or 0.0, _LONGEST_ABSENCE_SECONDS)
        return 0.0

    async def _list(self) -> None:
        begun = self._sink.begin_list()
        try:
            things, version = await self._pages(limit=500)
        except errors.Gone:
            # A list so slow that its pages expire is asked for in one piece.
            things, version = await self._pages(limit=0)
        self.lists += 1
        self._sink.replace(
            self.selection.namespace,
            things,
            resource_version=version,
            begun=begun,
            unreadable=self.unreadable,
        )
        self._version = version
        self._heard()
        self.synced.set()

    async def _pages(self, limit: int) -> tuple[list[T], str]:
        things: list[T] = []
        version = ""
        # Until all pages are there, those before count: what cannot be read is not absent.
        gone = set(self.unreadable)
        async for page in self._client.list_pages(self.selection, limit=limit):
            version = page.resource_version
            for body in page.items:
                thing = self._read(body)
                if thing is not None:
                    things.append(thing)
                elif (named := _name(body)) is not None:
                    gone.discard(named.key)
        for key in gone:
            self.unreadable.pop(key, None)
        return things, version

    async def _watch(self) -> None:
        """Until the server ends it, or is silent. If that is trouble, the next watch will not begin."""
        before = self.watches
        seconds = random.randint(_SHORTEST_WATCH_SECONDS, _LONGEST_WATCH_SECONDS)  # noqa: S311
        try:
            async with self._client.watch(
                self.selection,
                resource_version=self._version,
                timeout_seconds=seconds,
                idle_seconds=_IDLE_SECONDS,
            ) as batches:
                self.watches += 1
                self._heard()
                await self._follow(batches)
        except errors.Timeout:
            if self.watches == before:
                raise
            log.debug("restarting a silent watch", what=str(self.selection))

    async def _follow(self, batches: AsyncIterator[list[bytes]]) -> None:
        async for lines in batches:
            self._heard()
            for line in lines:
                self._event(line)
            # A busy server ends watches that it cannot feed fast enough, after a second or less. Who is told
            # something each time is not turned away, and must not fall further behind by staying away.
            self._backoff.reset()

    def _event(self, line: bytes) -> None:
        self.events += 1
        try:
            event = envelope.event(line)
        except errors.Unreadable as error:
            # What follows tells the version, and if this was the last word, the next bookmark does.
            self._pass_over(None, error)
            return
        match event.type:
            case "ADDED" | "MODIFIED":
                self._changed(event.object)
            case "DELETED":
                self._deleted(event.object)
            case "BOOKMARK":
                self._reached(envelope.name(event.object).resource_version)
            case "ERROR":
                raise errors.from_body(500, bytes(event.object), attempted=f"watch {self.selection}")
            case _:
                log.warning("a watch event of a type we do not know", type=event.type)

    def _changed(self, body: memoryview) -> None:
        thing = self._read(body)
        if thing is not None:
            self._version = thing.metadata.resource_version
            self._sink.on_upsert(self.selection.namespace, thing)
        elif (named := _name(body)) is not None:
            self._reached(named.resource_version)

    def _deleted(self, body: memoryview) -> None:
        """Only the name is needed, so that what cannot be read can still go."""
        gone = envelope.name(body)
        self._version = gone.resource_version
        self.unreadable.pop(gone.key, None)
        self._sink.on_delete(self.selection.namespace, gone.key, gone.uid, gone.resource_version)

    def _reached(self, resource_version: str) -> None:
        self._version = resource_version
        self._sink.reached(self.selection.namespace, resource_version)

    def _read(self, body: memoryview) -> T | None:
        """The object, or None when it does not decode: then it is counted, and everything else goes on."""
        try:
            thing = self._decode(body)
        except Exception as error:  # One object, made by anybody, must not stop the operator.
            self._pass_over(_name(body), error)
            return None
        if self.unreadable:
            self.unreadable.pop(key_of(thing), None)
        return thing

    def _pass_over(self, named: envelope.Name | None, error: Exception) -> None:
        self.undecodable += 1
        if named is not None:
            self.unreadable[named.key] = str(error)
        log.warning(
            "an object does not decode and is passed over",
            what=str(self.selection),
            name=str(named.key) if named else "unknown",
            why=str(error),
        )

    def _heard(self) -> None:
        self._heard_at = asyncio.get_running_loop().time()
        if self.trouble is not None:
            log.info("watching again", what=str(self.selection))
            self.trouble = None

    def _note(self, error: errors.KubeError) -> None:
        """Said once, not with every try."""
        if self.trouble is None:
            log.warning("cannot watch; trying on", what=str(self.selection), why=str(error))
            self._on_trouble(error)
        self.trouble = error


def _name(body: memoryview) -> envelope.Name | None:
    try:
        return envelope.name(body)
    except errors.Unreadable:
        return None
