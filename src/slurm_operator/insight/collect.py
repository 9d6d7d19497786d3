"""One look at everything the operator looks at. Read only: nothing is written, no lease is taken.

Give it a client whose `may_write` says no. What one may not see is no error: it is told beside the picture.
"""

import asyncio
import base64
import contextlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import slurm_operator
from slurm_operator import wire
from slurm_operator.api import registry
from slurm_operator.api.schema.kind import Kind
from slurm_operator.api.shared import names
from slurm_operator.api.shared.images import images_named, named_images
from slurm_operator.api.shared.meta import HasMeta, ObjectKey, key_of
from slurm_operator.api.slinky.controller import Controller
from slurm_operator.clock import PassClock, SystemClock
from slurm_operator.insight.logs import crashes
from slurm_operator.insight.logs.choice import Stream, Wanted
from slurm_operator.insight.operator_pods import is_away, operator_pods, running_operator, told_images
from slurm_operator.insight.slurm.proxy import slurm_through
from slurm_operator.insight.world_snapshot import Picture
from slurm_operator.kube import envelope
from slurm_operator.kube.client import Client, Decode
from slurm_operator.kube.errors import Forbidden, KubeError, NotFound, Unreadable
from slurm_operator.kube.request import Selection
from slurm_operator.kube.secret_values import decode_secret
from slurm_operator.kube.watch.named_objects import read_secret
from slurm_operator.listing import first_few
from slurm_operator.manifests import kinds
from slurm_operator.manifests.events import Event
from slurm_operator.manifests.meta import decode_child
from slurm_operator.manifests.objects import ConfigMap, Unread
from slurm_operator.manifests.secrets import bytes_of
from slurm_operator.plan.reconciler import Reconciler, SlurmServer
from slurm_operator.runtime.manager import Program
from slurm_operator.slurm.accounting import AccountedJob
from slurm_operator.slurm.jobs.detail import JobDetail
from slurm_operator.slurm.snapshot import Snapshot, Unreachable
from slurm_operator.slurmrest.client import SlurmRest
from slurm_operator.slurmrest.errors import SlurmFailure
from slurm_operator.slurmrest.tokens import ReadyToken
from slurm_operator.slurmsync.pending_writes import Ledger
from slurm_operator.slurmsync.poller import SlurmPoller

_decode_config_map = wire.decoder(ConfigMap)

# So many rights are named for one thing that is not shown.
_SHOWN_RIGHTS = 4

# A name may lead to another: a Secret that is there makes a reconciler look for the next one.
_MOST_ROUNDS = 5


class Unseen(wire.Record):
    """Something that could not be looked at, and why; `right` is what somebody would have to grant.

    `hides` is what people do not get to see for that.
    """

    what: str
    why: str
    right: str = ""
    hides: str = ""


class Limited(wire.Record):
    """Slurm was asked as somebody who may not see everything: who, and what PrivateData keeps from them."""

    user: str
    private: tuple[str, ...] = ()


@dataclass
class Sight:
    """What was seen, and what was not; and the images that the operator takes where a manifest names none."""

    picture: Picture
    unseen: list[Unseen] = field(default_factory=list)
    reconcilers: Sequence[Reconciler[Any]] = ()  # Those of the kinds that were looked at.
    images: Mapping[str, str] = field(default_factory=named_images)
    user: str = ""  # Who looks, where that was asked.
    operator: str = ""  # That none runs, or one of another version.
    is_operator_away: bool = False  # None runs that one can see.
    limited: dict[ObjectKey, Limited] = field(default_factory=dict)
    jobs: dict[ObjectKey, tuple[JobDetail, ...]] = field(default_factory=dict)
    booked: dict[ObjectKey, tuple[AccountedJob, ...]] = field(default_factory=dict)

    def as_operator(self) -> contextlib.AbstractContextManager[None]:
        """Within it reconcilers decide as they do in the operator: its images are the default ones."""
        return images_named(self.images)


@dataclass
class Looker:
    """Looks at one namespace, or with an empty name at all of them."""

    client: Client
    program: Program
    namespace: str = ""
    token_secret: str = ""  # Whose token to use instead of one that the cluster's own key signs.

    async def look(self) -> Sight:
        """Everything there is, Slurm included, as of now."""
        sight = Sight(Picture(), reconcilers=self.program.reconcilers)
        with contextlib.suppress(KubeError):  # Who may not look for the operator can tell nothing of it.
            pods = await operator_pods(self.client, "")
            sight.images, sight.operator = (
                told_images(pods),
                running_operator(pods, slurm_operator.__version__),
            )
            sight.is_operator_away = is_away(pods)
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
        sight.picture.slurms.update({key: clock.dated(found) for key, found in sight.picture.slurms.items()})
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
        now = SystemClock().now
        if self.token_secret and not server.is_only_watched:
            token = await self.token(key.namespace)
            return slurm_through(self.client, server.urls, ReadyToken(token), now=now)
        assert server.key is not None, "there is no way to those without a key"
        values = await read_secret(self.client, ObjectKey(server.key.namespace, server.key.name))
        value = values.get(server.key.key, b"")
        value = bytes_of(value) if server.key.form == "base64url" else value
        if server.is_only_watched:  # A Slurm elsewhere is reached as the operator reaches it.
            given = ReadyToken(value.decode(errors="replace"))
            return SlurmRest(server.urls, given, now=now, authorities=server.authorities)
        return slurm_through(self.client, server.urls, lambda: value, now=now, user=server.user)

    def servers(self, picture: Picture) -> Mapping[ObjectKey, SlurmServer]:
        """Where the Slurm clusters of a picture answer, by Controller."""
        found = self.program.slurm_servers(picture)
        return {key: server for key, server in found.items() if server.key is not None or self.token_secret}

    async def token(self, namespace: str) -> str:
        """The token in the Secret that somebody named. Raises KubeError."""
        values = await read_secret(self.client, ObjectKey(namespace, self.token_secret))
        likely = [entry for entry in (names.TOKEN_KEY, "auth-token") if entry in values]
        entry = next(iter([*likely, *sorted(values)]), "")
        return values[entry].decode(errors="replace").strip() if entry else ""

    async def warn(self, sight: Sight) -> None:
        """Add what Kubernetes has complained about lately: more than the operator itself looks at."""
        selection = self._selection(kinds.EVENT, fields="type=Warning")
        await self._list(sight, selection, wire.decoder(Event), Event)

    async def ask_jobs(self, sight: Sight, job_id: int) -> None:
        """Add all that Slurm says of jobs, finished ones too; and what accounting says of this one."""
        for key, server in self.servers(sight.picture).items():
            if not isinstance(sight.picture.slurms.get(key), Snapshot):
                continue
            with contextlib.suppress(SlurmFailure, KubeError):
                rest = await self.slurm(key, server)
                sight.jobs[key] = tuple(await rest.read.job_details())
                sight.booked[key] = tuple(await rest.database.job(job_id))

    async def hear(self, sight: Sight) -> None:
        """Add what containers that keep ending said last, from their logs."""
        wanted = Wanted(previous=True, tail=crashes.TAIL)
        heard: dict[Stream, str] = {}
        for stream in crashes.silent(sight.picture):
            with contextlib.suppress(KubeError):  # Without the right to read logs it is no worse than before.
                said = await self.client.text(stream.path, params=wanted.params(stream.container))
                heard[stream] = said.decode(errors="replace")
        crashes.put(sight.picture, heard)

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
                sight.unseen.append(Unseen(what=self._called(kind), why="this Kubernetes has no such kind"))
            return
        except KubeError as error:
            sight.unseen.append(_unlisted(kind, self._called(kind), error))
            return
        sight.picture.served.add(kind)
        for thing in _decoded(sight, self._called(kind), found, decode, type_):
            if type_ is None:
                sight.picture.put_child(kind, thing)
            else:
                sight.picture.put(thing)

    def _called(self, kind: Kind) -> str:
        return self.program.kinds.resource(kind.group, kind.plural)

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
            unread = _unread(kinds.SECRET, key, error)
            # With a token nobody needs the key to ask Slurm.
            sight.unseen.append(wire.replace(unread, hides=_HIDES_PLANS) if self.token_secret else unread)

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
        facts = await asyncio.gather(*(self._ask(sight, key, server) for key, server in servers.items()))
        for key, found in zip(servers, facts, strict=True):
            sight.picture.slurms[key] = found
            if isinstance(found, Unreachable):
                right = "get services/proxy" if "services/proxy" in found.why else ""
                hides = SLURM_HIDDEN if right else ""
                sight.unseen.append(Unseen(what=f"Slurm of {key}", why=found.why, right=right, hides=hides))

    async def _ask(self, sight: Sight, key: ObjectKey, server: SlurmServer) -> Snapshot | Unreachable:
        clock = SystemClock()
        try:
            rest = await self.slurm(key, server)
        except KubeError as error:
            which = f"the token in Secret {self.token_secret}" if self.token_secret else "its signing key"
            return Unreachable(since=clock.steady(), why=f"{which} cannot be read: {error}")
        poller = SlurmPoller(rest, clock, Ledger())
        await poller.poll()
        found = poller.latest()
        if isinstance(found, Snapshot) and (self.token_secret or server.is_only_watched):
            await self._note_limits(sight, key, rest, server)
        return found

    async def _note_limits(self, sight: Sight, key: ObjectKey, rest: SlurmRest, server: SlurmServer) -> None:
        """As whom Slurm was asked, and what it keeps from them: a job that is hidden is not missing."""
        user = token_user(await self.token(key.namespace)) if not server.is_only_watched else ""
        private: tuple[str, ...] = ()
        try:
            private = await rest.read.private_data()
        except SlurmFailure:  # An older version does not say; then its configuration does.
            controller = sight.picture.get(Controller, key.namespace, key.name)
            private = private_in(controller.spec.extra_conf) if controller is not None else ()
        sight.limited[key] = Limited(user=user, private=private)


# What only Slurm itself tells.
SLURM_HIDDEN = "names of Slurm nodes and jobs"

# What somebody misses who may not list these.
_HIDES = {
    kinds.POD.plural: "pods of daemons, and why one does not start",
    kinds.EVENT.plural: "what Kubernetes complains about",
    kinds.KUBE_NODE.plural: "cordoned and lost Kubernetes nodes",
    kinds.SECRET.plural: SLURM_HIDDEN,
}
_HIDES_PLANS = "what the operator is about to do"

_PRIVATE = re.compile(r"^\s*PrivateData\s*=\s*(\S+)", re.IGNORECASE | re.MULTILINE)


def private_in(conf: str) -> tuple[str, ...]:
    """What the last PrivateData of these lines names."""
    found = _PRIVATE.findall(conf)
    return tuple(word.lower() for word in found[-1].split(",") if word.lower() != "none") if found else ()


def token_user(token: str) -> str:
    """Whom a token speaks for, as it says itself; empty where nobody can read it."""
    body = token.removeprefix("SLURM_JWT=").split(".")[1:2]
    try:
        claims = wire.decode_any(base64.urlsafe_b64decode(body[0] + "=" * (-len(body[0]) % 4)))
    except (IndexError, ValueError, wire.DecodeError):
        return ""
    return str(claims.get("sun", "")) if isinstance(claims, dict) else ""


def _decoded(
    sight: Sight,
    called: str,
    items: Iterable[memoryview],
    decode: Decode[Any],
    type_: type[HasMeta] | None,
) -> list[Any]:
    found = []
    for item in items:
        try:
            found.append(decode(item))
        except (wire.DecodeError, ValueError, KeyError) as error:
            sight.unseen.append(Unseen(what=f"one of the {called}", why=f"it does not decode: {error}"))
            if type_ is not None:
                with contextlib.suppress(Unreadable):
                    sight.picture.undecoded.setdefault(type_, set()).add(envelope.name(item).key)
    return found


def _unlisted(kind: Kind, called: str, error: KubeError) -> Unseen:
    if not isinstance(error, Forbidden):
        return Unseen(what=called, why=str(error))
    right = f"list {kind.plural}" + (f" ({kind.group})" if kind.group else "")
    ours = called if kind in {one.kind for one in registry.ALL} else _HIDES_PLANS
    return Unseen(what=called, why=str(error), right=right, hides=_HIDES.get(kind.plural, ours))


def _unread(kind: Kind, key: ObjectKey, error: KubeError) -> Unseen:
    if not isinstance(error, Forbidden):
        return Unseen(what=f"{kind.kind} {key}", why=str(error))
    right = f"get {kind.plural} in namespace {key.namespace}"
    hides = _HIDES.get(kind.plural, _HIDES_PLANS)
    return Unseen(what=f"{kind.kind} {key}", why=str(error), right=right, hides=hides)


def is_whole(unseen: Iterable[Unseen]) -> bool:
    """Whether nothing was kept from us that the operator may see."""
    return not any(one.right for one in unseen)


def hidden(unseen: Iterable[Unseen]) -> list[str]:
    """What is not shown because the reader may not see it, a sentence for each thing."""
    rights: dict[str, dict[str, None]] = {}
    for one in unseen:
        if one.right:
            rights.setdefault(one.hides or one.what, {})[one.right] = None
    return [f"You may not {_listed(list(missing))}. Not shown: {hides}." for hides, missing in rights.items()]


def _listed(rights: Sequence[str]) -> str:
    return first_few(rights, _SHOWN_RIGHTS)
