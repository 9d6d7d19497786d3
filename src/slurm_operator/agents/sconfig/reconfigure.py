"""Having Slurm read its files again, and looking whether it did."""

import asyncio
from collections.abc import Mapping
from datetime import datetime
from typing import Final

from slurm_operator.agents.sconfig.report import Reconfigured
from slurm_operator.slurm.node import SlurmNode
from slurm_operator.slurm.states import NodeFlag
from slurm_operator.slurmrest.client import SlurmRest
from slurm_operator.slurmrest.errors import SlurmFailure
from slurm_operator.slurmrest.sender import few_names

# slurmds restart within a second or two; the poll interval is for those that take long.
_FIRST_POLL_SECONDS: Final = 1.0

_AWAY: Final = frozenset({NodeFlag.NOT_RESPONDING, NodeFlag.POWERING_DOWN, NodeFlag.POWERED_DOWN})


def start_times(nodes: Mapping[str, SlurmNode]) -> dict[str, datetime]:
    """When each slurmd started that can be expected to hear of a reconfigure."""
    return {
        name: node.slurmd_start_time
        for name, node in nodes.items()
        if node.slurmd_start_time is not None and _AWAY.isdisjoint(node.state.words)
    }


def behind(before: Mapping[str, datetime], nodes: Mapping[str, SlurmNode]) -> list[str]:
    """Nodes whose slurmd runs as it did before: a reconfigure makes each of them start again.

    One that stopped responding, was powered down or is gone reads its files when it starts.
    """
    now = start_times(nodes)
    return sorted(name for name, started in before.items() if name in now and now[name] <= started)


async def reconfigure(slurm: SlurmRest, *, poll_seconds: float, wait_seconds: float) -> Reconfigured:
    """Ask slurmctld to read its files, and wait until it and every slurmd did."""
    try:
        before = start_times(await _nodes(slurm))
        await _ask(slurm, before)
    except SlurmFailure as failure:
        return Reconfigured(_sentence(failure))
    loop = asyncio.get_running_loop()
    end, pause = loop.time() + wait_seconds, _FIRST_POLL_SECONDS
    while late := await _late(slurm, before):
        if loop.time() >= end:
            return Reconfigured(f"{late} {wait_seconds:g} s have passed since the reconfigure.")
        await asyncio.sleep(min(pause, poll_seconds, max(end - loop.time(), 0.0)))
        pause *= 2
    return Reconfigured()


async def _ask(slurm: SlurmRest, before: Mapping[str, datetime]) -> None:
    try:
        await slurm.send.reconfigure()
    except SlurmFailure as failure:
        # It may have happened: then every slurmd starts again. Without any, nothing would tell.
        if not failure.may_have_happened or not before:
            raise


async def _late(slurm: SlurmRest, before: Mapping[str, datetime]) -> str:
    """Who has not read the files yet; empty when all have."""
    try:
        pings = await slurm.read.ping()
        if not any(ping.is_primary and ping.is_responding for ping in pings):
            return "slurmctld does not respond."
        late = behind(before, await _nodes(slurm))
    except SlurmFailure as failure:  # slurmctld may be away for a moment while it reads its files.
        return _sentence(failure)
    return f"slurmd on {few_names(late)} has not read the files; check these nodes." if late else ""


async def _nodes(slurm: SlurmRest) -> Mapping[str, SlurmNode]:
    listing = await slurm.read.nodes()
    return listing.records if listing is not None else {}


def _sentence(failure: SlurmFailure) -> str:
    text = str(failure).rstrip(".")
    return f"{text[:1].upper()}{text[1:]}."
