"""One look at everything the operator looks at. Read only: nothing is written, no lease is taken.

Give it a client whose `may_write` says no. What one may not see is no error: it is told beside the picture.
"""

import asyncio
import contextlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from slurm_operator import wire
from slurm_operator.api.images import images_named, named_images
from slurm_operator.api.kind import Kind
from slurm_operator.api.meta import HasMeta, ObjectKey, key_of
from slurm_operator.kube import envelope
from slurm_operator.kube.client import Client, Decode
from slurm_operator.kube.errors import Forbidden, KubeError, NotFound, Unreadable
from slurm_operator.kube.referenced import read_secret
from slurm_operator.kube.request import Selection
from slurm_operator.kube.secret_values import decode_secret
from slurm_operator.kubectl import last_words
from slurm_operator.kubectl.logs import Stream, Wanted
from slurm_operator.kubectl.operator_pods import operator_images
from slurm_operator.kubectl.picture import Picture
from slurm_operator.kubectl.proxied import slurm_through
from slurm_operator.manifests import kinds
from slurm_operator.manifests.events import Event
from slurm_operator.manifests.meta import decode_child
from slurm_operator.manifests.objects import ConfigMap, Unread
from slurm_operator.manifests.secrets import bytes_of
from slurm_operator.plan.wiring import SlurmServer
from slurm_operator.runtime.clock import PassClock, SystemClock
from slurm_operator.runtime.manager import Program
from slurm_operator.runtime.slurm_ledger import Ledger
from slurm_operator.runtime.slurm_poller import SlurmPoller
from slurm_operator.slurm.snapshot import Snapshot, Unreachable
from slurm_operator.slurmrest.client import SlurmRest
from slurm_operator.slurmrest.tokens import ReadyToken

_decode_config_map = wire.decoder(ConfigMap)

# A name may lead to another: a Secret that is there makes a reconciler look for the next one.
_MOST_ROUNDS = 5


class Unseen(wire.Record):
    """Something that could not be looked at, and why; `right` is what somebody would have to grant."""

    what: str
    why: str
    right: str = ""


@dataclass
class Sight:
    """What was seen, and what was not; and the images that the operator takes where a manifest names none."""

    picture: Picture
    unseen: list[Unseen] = field(default_factory=list)
    images: Mapping[str, str] = field(default_factory=named_images)

    def as_operator(self) -> contextlib.AbstractContextManager[None]:
        """Within it reconcilers decide as they do in the operator: its images are the default ones."""
        return images_named(self.images)


@dataclass
class Looker:
    """Looks at one namespace, or with an empty name at all of them."""

    client: Client
    program: Program
    namespace: str = ""

    async def look(self) -> Sight:
        """Everything there is, Slurm included, as of now."""
        sight = Sight(Picture(), images=await operator_images(self.client))
        await asyncio.gather(
            *(
                self._list(
                    sight,
                    self._selection(source.kind, source.label_selector, source.field_selector),
                    source.decode,
                    source.type,
                )
                for source in self.program.sources.records
            ),
            *(
                self._list(
                    sight,
                    self._selection(kind, self.program.sources.child_source(kind).label_selector),
                    self.program.sources.child_source(kind).decode,
                    None,
                )
                for kind in self.program.sources.children
            ),
        )
        await self.complete(sight)
        await self._ask_slurms(sight)
        clock = PassClock(SystemClock())
        sight.picture.now = clock.now()
        sight.picture.slurms.update({key: clock.told(found) for key, found in sight.picture.slurms.items()})
        return sight

    async def complete(self, sight: Sight) -> None:
        """Read everything that a reconciler asks for by name."""
        for _ in range(_MOST_ROUNDS):
            self._observe_everything(sight.picture)
            if not await self.read_missed(sight):
                return

    async def read_missed(self, sight: Sight) -> bool:
        """Read what was asked for by name and is not in the picture; whether there was anything."""
        picture = sight.picture
        sets = picture.missed_secrets, picture.missed_config_maps, picture.missed_revisions
        missed = [set(one) for one in sets]
        for one in sets:
            one.clear()
        await asyncio.gather(
            *(self._read_secret(sight, key) for key in missed[0]),
            *(self._read_config_map(sight, key) for key in missed[1]),
            *(self._read_revision(sight, key) for key in missed[2]),
        )
        return any(missed)

    async def slurm(self, key: ObjectKey, server: SlurmServer) -> SlurmRest:
        """The way to one Slurm cluster. Raises KubeError when its signing key cannot be read."""
        assert server.key is not None, "there is no way to those without a key"
        values = await read_secret(self.client, ObjectKey(server.key.namespace, server.key.name))
        value = values.get(server.key.key, b"")
        value = bytes_of(value) if server.key.form == "base64url" else value
        now = SystemClock().now
        if server.is_only_watched:  # A Slurm elsewhere is reached as the operator reaches it.
            return SlurmRest(server.urls, ReadyToken(value.decode(errors="replace")), now=now)
        return slurm_through(self.client, server.urls, lambda: value, now=now)

    def servers(self, picture: Picture) -> Mapping[ObjectKey, SlurmServer]:
        """Where the Slurm clusters of a picture answer, by Controller."""
        found = self.program.slurm_servers(picture)
        return {key: server for key, server in found.items() if server.key is not None}

    async def warn(self, sight: Sight) -> None:
        """Add what Kubernetes has complained about lately: more than the operator itself looks at."""
        selection = self._selection(kinds.EVENT, fields="type=Warning")
        await self._list(sight, selection, wire.decoder(Event), Event)

    async def hear(self, sight: Sight) -> None:
        """Add what containers that keep ending said last, from their logs."""
        wanted = Wanted(previous=True, tail=last_words.TAIL)
        heard: dict[Stream, str] = {}
        for stream in last_words.silent(sight.picture):
            with contextlib.suppress(KubeError):  # Without the right to read logs it is no worse than before.
                said = await self.client.text(stream.path, params=wanted.params(stream.container))
                heard[stream] = said.decode(errors="replace")
        last_words.put(sight.picture, heard)

    def _selection(self, kind: Kind, labels: str = "", fields: str = "") -> Selection:
        namespace = self.namespace if kind.namespaced else ""
        return Selection(kind=kind, namespace=namespace, label_selector=labels, field_selector=fields)

    async def _list(
        self, sight: Sight, selection: Selection, decode: Decode[Any], type_: type[HasMeta] | None
    ) -> None:
        kind = selection.kind
        try:
            found = [item async for page in self.client.list_pages(selection) for item in page.items]
        except NotFound:
            if kind not in self.program.sources.optional_children:
                sight.unseen.append(Unseen(what=kind.plural, why="this Kubernetes has no such kind"))
            return
        except KubeError as error:
            sight.unseen.append(_unlisted(kind, error))
            return
        sight.picture.served.add(kind)
        for thing in _decoded(sight, kind, found, decode, type_):
            if type_ is None:
                sight.picture.put_child(kind, thing)
            else:
                sight.picture.put(thing)

    def _observe_everything(self, picture: Picture) -> None:
        self.program.slurm_servers(picture)
        for reconciler in self.program.reconcilers:
            for thing in picture.all(reconciler.about):
                reconciler.observe(key_of(thing), picture)

    async def _read_secret(self, sight: Sight, key: ObjectKey) -> None:
        try:
            sight.picture.secrets[key] = await self.client.read(kinds.SECRET, key, decode_secret)
        except NotFound:
            sight.picture.secrets[key] = None
        except KubeError as error:
            sight.picture.secrets[key] = Unread(why=str(error))
            sight.unseen.append(_unread(kinds.SECRET, key, error))

    async def _read_config_map(self, sight: Sight, key: ObjectKey) -> None:
        try:
            sight.picture.config_maps[key] = await self.client.read(kinds.CONFIG_MAP, key, _decode_config_map)
        except NotFound:
            sight.picture.config_maps[key] = None
        except KubeError as error:
            sight.picture.config_maps[key] = Unread(why=str(error))
            sight.unseen.append(_unread(kinds.CONFIG_MAP, key, error))

    async def _read_revision(self, sight: Sight, key: ObjectKey) -> None:
        kind = kinds.CONTROLLER_REVISION
        try:
            sight.picture.revisions[key] = await self.client.read(kind, key, decode_child)
        except NotFound:
            sight.picture.revisions[key] = None
        except KubeError as error:
            sight.picture.revisions[key] = Unread(why=str(error))
            sight.unseen.append(_unread(kind, key, error))

    async def _ask_slurms(self, sight: Sight) -> None:
        servers = self.servers(sight.picture)
        facts = await asyncio.gather(*(self._ask(key, server) for key, server in servers.items()))
        for key, found in zip(servers, facts, strict=True):
            sight.picture.slurms[key] = found
            if isinstance(found, Unreachable):
                right = "get services/proxy" if "services/proxy" in found.why else ""
                sight.unseen.append(Unseen(what=f"Slurm of {key}", why=found.why, right=right))

    async def _ask(self, key: ObjectKey, server: SlurmServer) -> Snapshot | Unreachable:
        clock = SystemClock()
        try:
            rest = await self.slurm(key, server)
        except KubeError as error:
            return Unreachable(since=clock.steady(), why=f"its signing key cannot be read: {error}")
        poller = SlurmPoller(rest, clock, Ledger())
        await poller.poll()
        return poller.facts()


def _decoded(
    sight: Sight,
    kind: Kind,
    items: Iterable[memoryview],
    decode: Decode[Any],
    type_: type[HasMeta] | None,
) -> list[Any]:
    found = []
    for item in items:
        try:
            found.append(decode(item))
        except (wire.DecodeError, ValueError, KeyError) as error:
            sight.unseen.append(Unseen(what=f"one of the {kind.plural}", why=f"it does not decode: {error}"))
            if type_ is not None:
                with contextlib.suppress(Unreadable):
                    sight.picture.undecoded.setdefault(type_, set()).add(envelope.name(item).key)
    return found


def _unlisted(kind: Kind, error: KubeError) -> Unseen:
    right = f"list {kind.plural}" + (f" ({kind.group})" if kind.group else "")
    return Unseen(what=kind.plural, why=str(error), right=right if isinstance(error, Forbidden) else "")


def _unread(kind: Kind, key: ObjectKey, error: KubeError) -> Unseen:
    right = f"get {kind.plural} in namespace {key.namespace}" if isinstance(error, Forbidden) else ""
    return Unseen(what=f"{kind.kind} {key}", why=str(error), right=right)
