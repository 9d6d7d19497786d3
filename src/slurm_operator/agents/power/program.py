"""power-manager beside slurmctld: what slurmctld calls for is told to the API server, however long it takes.

A note is removed when its change is there, and not before: a power-manager that is started again goes on.
Notes that are lost with their pod are made up for by the operator, which sees what slurmctld waits for.
"""

import asyncio
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import structlog

from slurm_operator.agents.power.calls import Batch, Change, changes, pending, read_notes
from slurm_operator.agents.power.states import Skipped, States
from slurm_operator.kube.auth.access import Access
from slurm_operator.kube.client import Client
from slurm_operator.kube.errors import KubeError

log = structlog.get_logger(__name__)

# slurmctld itself looks once a second whom to power up or down.
LOOK_SECONDS: Final = 0.5
LONGEST_PAUSE_SECONDS: Final = 30.0
POLL_SECONDS: Final = 2.0

TIMED_OUT: Final = 1


async def serve(access: Access, namespace: str, calls: Path) -> int:
    """Until SIGTERM or SIGINT."""
    ending, loop = asyncio.Event(), asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ending.set)
    async with Client(access) as client:
        await Server(States(client, namespace), calls).run(ending)
    return 0


class Server:
    """Looks for notes, and carries them out."""

    def __init__(self, states: States, calls: Path) -> None:
        self._states = states
        self._calls = calls
        self._pause = LOOK_SECONDS

    async def run(self, ending: asyncio.Event, look_seconds: float = LOOK_SECONDS) -> None:
        self._pause = look_seconds
        while not ending.is_set():
            is_done = await self.one_look()
            self._pause = look_seconds if is_done else min(self._pause * 2, LONGEST_PAUSE_SECONDS)
            try:
                async with asyncio.timeout(self._pause):
                    await ending.wait()
            except TimeoutError:
                pass

    async def one_look(self) -> bool:
        """Whether nothing is left to be done; what is left is tried again."""
        batch = read_notes(self._calls)
        for path, why in batch.useless:
            log.error("a call of slurmctld cannot be carried out", note=path.name, why=why)
            path.unlink(missing_ok=True)
        left = await self._carried_out(batch)
        if not left:
            for path in batch.files:
                path.unlink(missing_ok=True)
        return not left

    async def _carried_out(self, batch: Batch) -> bool:
        """Whether something is left. A note about two NodeSets of which one is done is carried out again:
        that changes nothing for the first.
        """
        failed = False
        for nodeset, change in batch.changes.items():
            try:
                told = await self._states.switch(nodeset, change)
            except KubeError as error:
                failed = True
                log.warning("the API server cannot be told; trying again", nodeset=nodeset, why=str(error))
            else:
                _log(nodeset, change, told)
        return failed


def _log(nodeset: str, change: Change, told: list[int] | Skipped) -> None:
    if isinstance(told, Skipped):
        log.info("skipped", nodeset=nodeset, why=told.why)
    else:
        log.info(
            "active nodes are set", nodeset=nodeset, on=sorted(change.on), off=sorted(change.off), active=told
        )


async def once(access: Access, namespace: str, verb: str, nodes: str, timeout_seconds: float) -> int:
    """One call, as Soperator's scripts make them. Raises CallError, KubeError, TimeoutError."""
    wanted = changes(verb, nodes)
    async with asyncio.timeout(timeout_seconds), Client(access) as client:
        states = States(client, namespace)
        for nodeset, change in wanted.items():
            _log(nodeset, change, await states.switch(nodeset, change))
    return 0


async def wait(
    access: Access,
    namespace: str,
    verb: str,
    nodes: str,
    timeout_seconds: float,
    *,
    poll_seconds: float = POLL_SECONDS,
) -> int:
    """0 when the power states show what a call asked for; 1 when they do not in time."""
    wanted = changes(verb, nodes)
    left: Mapping[str, list[int]] = {}
    try:
        async with asyncio.timeout(timeout_seconds), Client(access) as client:
            states = States(client, namespace)
            while left := await _left(states, wanted):  # noqa: ASYNC110 - the API server is asked
                await asyncio.sleep(poll_seconds)
    except TimeoutError:
        log.error("not in time", left=dict(left))
        return TIMED_OUT
    return 0


async def _left(states: States, wanted: Mapping[str, Change]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for nodeset, change in wanted.items():
        active = await states.active(nodeset)
        if not isinstance(active, Skipped) and (numbers := [*pending(active, change)]):
            found[nodeset] = numbers
    return found
