"""The same facts are looked at in the same order in every process, whatever its sets do."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any, cast

from slurm_operator.api.shared.meta import ObjectKey
from slurm_operator.clock import SystemClock
from slurm_operator.kube.auth.access import Access
from slurm_operator.kube.client import Client
from slurm_operator.kube.envelope import Page
from slurm_operator.kube.errors import NotFound, Status
from slurm_operator.kube.request import Selection
from slurm_operator.kube.watch.named_objects import NamedObjects, secrets
from slurm_operator.kube.watch.watched_scopes import HANDFUL
from slurm_operator.manifests.objects import Secret
from slurm_operator.plan.reconciler import SlurmWake
from slurm_operator.runtime.loop.reconcile import Loop
from slurm_operator.runtime.loop.subscriptions import _slurm
from slurm_operator.runtime.world.caches import Caches
from slurm_operator.runtime.world.sources import Sources
from slurm_operator.slurm.snapshot import Changes
from slurm_operator.slurmsync.connections import SlurmClusters

VIRTUAL_TIME = True

# So many that a set gives them in this order by no accident.
NAMES = [ObjectKey("ns", f"s{number:02}") for number in range(12)]
OTHERS = [ObjectKey(f"other{number}", "s") for number in range(12)]
CONTROLLER = ObjectKey("ns", "slurm")


def known() -> Caches:
    client = Client(Access(server="http://nowhere"))
    sources = Sources(records=(), children=(), child_selector="")
    return Caches(client, sources, ("",), SlurmClusters(client, lambda: True))


async def test_who_asked_for_a_name_is_told_of_it_in_order() -> None:
    it = known()
    for owner in reversed(NAMES):
        view = it.view()
        view.secret("ns", "key")
        it.want(("nodeset", owner), view)

    assert it.referrers(ObjectKey("ns", "key")) == [("nodeset", owner) for owner in NAMES]


async def test_names_that_are_not_read_yet_are_in_order() -> None:
    view = known().view()
    for name in reversed(NAMES):
        view.secret(*name)

    assert view.unread() == NAMES


class SilentServer:
    """Has nothing, and says so once. Remembers the order of questions."""

    def __init__(self) -> None:
        self.listed: list[Selection] = []
        self.read_names: list[ObjectKey] = []

    async def list_pages(self, selection: Selection, *, limit: int) -> AsyncIterator[Page]:
        self.listed.append(selection)
        yield Page(items=[], resource_version="1")

    @asynccontextmanager
    async def watch(self, selection: Selection, **more: Any) -> AsyncIterator[None]:
        await asyncio.Event().wait()
        yield None

    async def read(self, kind: Any, key: ObjectKey, decode: Any) -> Any:
        self.read_names.append(key)
        raise NotFound(Status(code=404))


@asynccontextmanager
async def referring(server: SilentServer) -> AsyncIterator[NamedObjects[Secret]]:
    it = secrets(cast("Client", server), SystemClock().steady)
    running = asyncio.create_task(it.run())
    try:
        yield it
    finally:
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running


async def test_watches_of_single_names_begin_in_order() -> None:
    server = SilentServer()
    async with referring(server) as it:
        it.want("me", OTHERS)
        await asyncio.sleep(1)

    assert [selection.namespace for selection in server.listed] == sorted(key.namespace for key in OTHERS)


async def test_names_that_a_wide_watch_does_not_tell_are_read_in_order() -> None:
    server = SilentServer()
    async with referring(server) as it:
        it.want("you", [ObjectKey("ns", f"a{number}") for number in range(HANDFUL + 1)])
        await asyncio.sleep(1)
        it.want("me", NAMES)
        await asyncio.sleep(1)

    assert server.read_names == NAMES


class FakeLoop:
    """A loop in which half of the keys wait for Slurm."""

    def __init__(self) -> None:
        self.queue = self
        self.added: list[ObjectKey] = []

    def add(self, key: ObjectKey) -> None:
        self.added.append(key)

    def waiting_on(self, cluster: ObjectKey) -> list[ObjectKey]:
        return NAMES[6:]


def test_what_slurm_wakes_is_woken_in_order() -> None:
    loop = FakeLoop()
    wake = SlurmWake(lambda controller, changes, world: iter(NAMES[:8]))

    _slurm(wake, cast("Loop", loop), known())(CONTROLLER, Changes(everything=True))

    assert loop.added == NAMES
