"""One manager for each Slurm cluster: an annotation on its Controller names the installation that acts on it.

Whoever finds none writes its own, once. Another installation acts only when the Lease that is named there is
gone, or has been silent for a minute. Until then it changes nothing, and a condition says why. The same while
Slinky's operator acts.
"""

import asyncio
import contextlib
from collections.abc import Callable, Iterator
from typing import Any, Final

import structlog

from slurm_operator import wire
from slurm_operator.api.schema.kind import Kind
from slurm_operator.api.shared import names
from slurm_operator.api.shared.meta import HasMeta, ObjectKey, key_of
from slurm_operator.api.slinky.accounting import Accounting
from slurm_operator.api.slinky.cluster import Cluster
from slurm_operator.api.slinky.controller import Controller
from slurm_operator.api.slinky.nodeset import NodeSet
from slurm_operator.conditions import Reason
from slurm_operator.kube.client import Client
from slurm_operator.kube.errors import Forbidden, KubeError, ServerError
from slurm_operator.kube.presence import Installation, LeaseWatch, Presence
from slurm_operator.plan.conditions import Condition, true
from slurm_operator.runtime.other_operator import FIELD_MANAGER, OBSERVING, REFUSED_SECONDS, observing, says
from slurm_operator.runtime.other_operator import REASON as ANOTHER_ACTS
from slurm_operator.runtime.slinky_operator import Acting, SlinkyOperator
from slurm_operator.runtime.world.caches import Caches

log = structlog.get_logger(__name__)

# How often other installations are looked for.
LOOK_SECONDS: Final = 10.0

ELSEWHERE: Final = Reason.MANAGED_ELSEWHERE
NOT_VISIBLE: Final = Reason.MANAGER_NOT_VISIBLE
UNREADABLE: Final = Reason.MANAGER_UNREADABLE


class Claim(wire.Record):
    """What an installation may do about one Controller. `reason` is None where it may act."""

    is_taken: bool = False  # It becomes ours as soon as that is written.
    reason: Reason | None = None
    message: str = ""

    @property
    def condition(self) -> Condition | None:
        return true(OBSERVING, self.reason, self.message) if self.reason is not None else None


OURS: Final = Claim()
TAKEN: Final = Claim(is_taken=True)


def claim(
    marked: str,
    ours: Installation | None,
    presence: Presence,
    acting: Acting | None,
    beside: str = "",
) -> Claim:
    """What may be done about a Controller that is `marked`; `presence` is that of who is named there.

    Without a Lease of our own we can name nobody, and act where nobody else does. A process `beside` a
    manager names nobody either: what a manager in that namespace has is its own, too.
    """
    if acting is not None:
        return Claim(reason=ANOTHER_ACTS, message=_another_acts(acting))
    named = Installation.parse(marked)
    is_beside = bool(beside) and named is not None and named.lease.namespace == beside
    if is_beside or (ours is not None and marked == str(ours)):
        return OURS
    if not marked or presence is Presence.GONE:
        return TAKEN if ours is not None and not beside else OURS
    remove = f"remove the annotation {names.MANAGER}"
    if named is None:
        return Claim(
            reason=UNREADABLE,
            message=f"The annotation {names.MANAGER} names no installation: {marked!r}. Nothing is changed "
            f"here until you {remove}.",
        )
    if presence is Presence.ALIVE:
        return Claim(
            reason=ELSEWHERE,
            message=f"The installation with Lease {named.lease} manages this Slurm cluster; the one with "
            f"{_called(ours)} changes nothing here. To hand it over, stop the first one, then {remove}.",
        )
    read = "may not read" if presence is Presence.NOT_ALLOWED else "could not read"
    return Claim(
        reason=NOT_VISIBLE,
        message=f"The annotation {names.MANAGER} names the installation with Lease {named.lease}. The one "
        f"with {_called(ours)} {read} that Lease, so it cannot tell whether the other is at work, and "
        f"changes nothing here. Stop the other and {remove}, or grant `get` on "
        f"leases.coordination.k8s.io in namespace {named.lease.namespace}.",
    )


def _called(ours: Installation | None) -> str:
    return f"Lease {ours.lease}" if ours is not None else "no Lease"


def _another_acts(acting: Acting) -> str:
    return (
        f"Deployment {acting.deployment} acts on this Slurm cluster: it {acting.seen_by}. It is Slinky's "
        "operator, or a version of this one without the annotation. Nothing is changed here until it stops: "
        f"`kubectl -n {acting.deployment.namespace} scale deployment/{acting.deployment.name} --replicas=0`."
    )


class Claims:
    """Who manages which Controller. `ours` gives our installation, None while there is no Lease of ours.

    `beside` is the namespace of the manager that leaves some kinds to this process.
    """

    def __init__(
        self,
        client: Client,
        known: Caches,
        ours: Callable[[], Installation | None],
        others: SlinkyOperator,
        leases: LeaseWatch,
        beside: str = "",
    ) -> None:
        self._client = client
        self._beside = beside
        self._known = known
        self._ours = ours
        self._others = others
        self._leases = leases
        self._acting: tuple[Acting, ...] | None = None  # Not known yet.
        self._presence: dict[str, Presence] = {}
        self._claims: dict[tuple[ObjectKey, str], Claim] = {}
        self._told: dict[ObjectKey, str] = {}
        self._cleared: set[ObjectKey] = set()
        self._refused_until = 0.0
        self._callbacks: list[Callable[[], None]] = []
        self._changed = asyncio.Event()

    def subscribe(self, callback: Callable[[], None]) -> None:
        """Call back whenever a Controller becomes ours, or is so no longer."""
        self._callbacks.append(callback)

    def covers(self, kind: Kind, thing: HasMeta) -> bool:
        """Whether this object is ours to act on: what it belongs to is."""
        if self._acting is None or any(one.covers(thing.metadata.namespace) for one in self._acting):
            return False
        return all(self._is_ours(controller) for controller in _clusters(kind, thing, self._controllers()))

    def covers_slurm(self, key: ObjectKey) -> bool:
        """Whether we talk to the Slurm of this Controller; one elsewhere has none."""
        controller = self._known.records[Controller].get(key)
        return controller is None or self._is_ours(controller)

    def _is_ours(self, controller: Controller) -> bool:
        return self._claims.get(_identity(controller)) == OURS

    def _controllers(self) -> list[Controller]:
        return sorted(self._known.records[Controller].values(), key=key_of)

    async def run(self) -> None:
        """Look at once at Controllers that change, and at everybody else from time to time."""
        self._known.records[Controller].subscribe(lambda old, new: self._changed.set())
        loop = asyncio.get_running_loop()
        due = loop.time() + LOOK_SECONDS
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout_at(due):
                    await self._changed.wait()
            self._changed.clear()
            if loop.time() >= due:  # However often Controllers change.
                due = loop.time() + LOOK_SECONDS
                await self.look()
            else:
                await self._judge()

    async def look(self) -> None:
        """Once, at everybody. While nobody can tell, what was known of Slinky's operator before stands.

        If nothing was, nothing is ours yet.
        """
        try:
            self._acting = await self._others.find()
        except KubeError as error:
            log.info("whether another operator acts cannot be seen", why=str(error))
        self._presence = {}
        await self._judge()

    async def _judge(self) -> None:
        """Claim what nobody else has, and say what somebody does."""
        if self._acting is None:
            return
        claims: dict[tuple[ObjectKey, str], Claim] = {}
        for controller in self._controllers():
            if not self._known.scope.covers(Controller.KIND, controller.metadata):
                continue
            found = await self._claim(controller)
            claims[_identity(controller)] = await self._taken(controller) if found.is_taken else found
        before, self._claims = self._claims, claims
        for controller in self._controllers():
            await self._tell(controller)
        if {who for who, one in before.items() if one == OURS} != {
            who for who, one in claims.items() if one == OURS
        }:
            for callback in self._callbacks:
                callback()

    async def _claim(self, controller: Controller) -> Claim:
        meta, ours = controller.metadata, self._ours()
        acting = next((one for one in self._acting or () if one.covers(meta.namespace)), None)
        marked = meta.annotations.get(names.MANAGER, "")
        named = Installation.parse(marked)
        if named is None or named == ours:
            return claim(marked, ours, Presence.UNKNOWN, acting, self._beside)
        if marked not in self._presence:
            self._presence[marked] = await self._leases.presence(named)
        return claim(marked, ours, self._presence[marked], acting, self._beside)

    async def _taken(self, controller: Controller) -> Claim:
        """Write our mark, if the Controller is still what was judged.

        Where none may be written none is needed. But over somebody else's, ours has to be there first.
        """
        meta, ours = controller.metadata, self._ours()
        path = f"/metadata/annotations/{names.MANAGER.replace('/', '~1')}"
        made = [] if meta.annotations else [{"op": "add", "path": "/metadata/annotations", "value": {}}]
        operations: list[dict[str, Any]] = [
            {"op": "test", "path": "/metadata/resourceVersion", "value": meta.resource_version},
            *made,
            {"op": "add", "path": path, "value": str(ours)},
        ]
        try:
            written = await self._client.json_patch(
                Controller.KIND, key_of(controller), operations, uid=meta.uid
            )
        except KubeError as error:
            log.info("a Controller was not claimed", key=str(key_of(controller)), why=str(error))
            is_unmarked = names.MANAGER not in meta.annotations
            # Another version of it is judged when the watch shows it.
            return OURS if is_unmarked and isinstance(error, Forbidden | ServerError) else TAKEN
        self._known.note_written(Controller.KIND, written)
        log.info("this installation manages the Slurm cluster", key=str(key_of(controller)), by=str(ours))
        return OURS

    async def _tell(self, controller: Controller) -> None:
        """A line in the log and a condition, each once; the condition is taken away when it is over."""
        key, found = key_of(controller), self._claims.get(_identity(controller))
        if found is None or found.is_taken:
            return
        if found.message != self._told.get(key, ""):
            if found.message:
                log.warning("observing", key=str(key), reason=found.reason, why=found.message)
            else:
                log.info("observing no longer: this Slurm cluster is ours to manage", key=str(key))
        self._told[key] = found.message
        if found.condition is not None:
            self._cleared.discard(key)
            is_right = says(controller, found.condition)
        else:
            # What another installation says stays: it alone can take that back, and we try once.
            is_right = key in self._cleared or says(controller, None)
            self._cleared.add(key)
        if not is_right and asyncio.get_running_loop().time() >= self._refused_until:
            await self._write(controller, found.condition)

    async def _write(self, controller: Controller, wanted: Condition | None) -> None:
        ours = self._ours()
        manager = f"{FIELD_MANAGER}-{ours.uid[:8]}" if ours is not None else FIELD_MANAGER
        manifest = observing(Controller.KIND, controller, wanted)
        try:
            written = await self._client.apply_status(Controller.KIND, manifest, manager=manager)
        except KubeError as error:
            self._refused_until = asyncio.get_running_loop().time() + REFUSED_SECONDS
            log.warning("status not written", key=str(key_of(controller)), error=str(error))
            return
        self._known.note_written(Controller.KIND, written)


def _identity(controller: Controller) -> tuple[ObjectKey, str]:
    return key_of(controller), controller.metadata.uid


def _clusters(kind: Kind, thing: Any, controllers: list[Controller]) -> Iterator[Controller]:
    """The Controller that an object belongs to; none where its namespace has none.

    What belongs to several, or to none by name, goes with the first: one installation alone acts on it.
    """
    here = [one for one in controllers if one.metadata.namespace == thing.metadata.namespace]
    if kind == Controller.KIND:
        named = {thing.metadata.name}
    elif kind == Accounting.KIND:
        named = {one.metadata.name for one in here if one.spec.accounting == thing.metadata.name}
    elif kind == Cluster.KIND:
        named = {one.metadata.name for one in here if thing.metadata.uid in _owners(one)}
    elif kind == NodeSet.KIND:
        named = {thing.spec.controller}
    else:
        named = {getattr(getattr(thing.spec, "controller_ref", None), "name", "")}
    yield from ([one for one in here if one.metadata.name in named] or here)[:1]


def _owners(controller: Controller) -> set[str]:
    return {owner.uid for owner in controller.metadata.owner_references}
