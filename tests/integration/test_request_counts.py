"""What two hundred workers cost in requests, counted by the API server's own log and by a stub slurmrestd.

Seconds are the benchmarks' business: here nothing depends on how fast this machine is.
"""

import asyncio
from contextlib import AsyncExitStack

import pytest
from kinds_rig import plane

from bench.kubelet import Kubelet
from bench.rig import GROUP, NAMESPACE, OPERATOR, Call, Rig, nodeset, until, watching
from bench.scaling import noted

__all__ = ["plane"]

COUNT = 200


def own(calls: list[Call]) -> list[Call]:
    return [call for call in calls if call.user == OPERATOR and not call.is_lasting]


def writes(calls: list[Call]) -> list[str]:
    return [f"{call.verb} {call.what} {call.name}" for call in own(calls) if call.verb not in ("get", "list")]


async def told(there: Rig, **wanted: int) -> None:
    """Until the status says so."""
    async with asyncio.timeout(240):
        while True:
            status = (await there.nodeset()).get("status", {})
            if all(status.get(key, 0) == value for key, value in wanted.items()):
                return
            await asyncio.sleep(0.3)


@pytest.mark.timeout(600)
async def test_workers_come_stay_and_go_with_few_requests(plane):
    async with AsyncExitStack() as stack:
        there = await watching(plane, stack, machines=0)
        kubelet = asyncio.create_task(Kubelet(there.client, there.pods).run())
        stack.callback(kubelet.cancel)
        await there.create(f"{GROUP}/namespaces/{NAMESPACE}/nodesets", nodeset(0))

        async with there.operator() as operator:
            await until(lambda: "GET jobs" in there.stub.requests, "the operator to look at Slurm", pause=0.2)
            await told(there, observedGeneration=(await there.nodeset())["metadata"]["generation"])
            there.calls(), there.stub.requests.clear()

            await there.patch({"replicas": COUNT})
            await told(there, readyReplicas=COUNT, registeredReplicas=COUNT)
            await noted(there, COUNT)
            asked = own(there.calls())
            # The pod and the note on it; status and news are a handful, however many they are.
            assert len(asked) <= 2 * COUNT + 30, writes(asked)[-100:]
            posts = [what for what in there.stub.requests if not what.startswith("GET")]
            assert posts == [], "workers register themselves"
            assert operator.is_running

        async with there.operator() as operator:
            there.calls(), there.stub.requests.clear()
            await until(lambda: "GET jobs" in there.stub.requests, "the next one to look at Slurm", pause=0.2)
            await asyncio.sleep(3)
            assert writes(there.calls()) == [], "a restart changes nothing"

            await there.patch({"replicas": COUNT - 50})
            await told(there, replicas=COUNT - 50, readyReplicas=COUNT - 50, registeredReplicas=COUNT - 50)
            await until(
                lambda: len(there.stub.states()) == COUNT - 50, "the last record to be removed", pause=0.2
            )
            asked = own(there.calls())
            # Marked as retired and deleted, both on its pod; the rest is status and news.
            assert len(asked) <= 3 * 50 + 20, writes(asked)[-100:]
            sent = [what for what in there.stub.requests if not what.startswith("GET")]
            assert sent.count("POST nodes") == 1, "all of them drain by one request"
            assert len(sent) <= 50 / 2, "and their records go many at a time"

            left = COUNT - 50
            there.calls(), there.stub.requests.clear()
            await there.patch({"slurmd": {"image": "slurmd:2"}})
            generation = (await there.nodeset())["metadata"]["generation"]
            await told(
                there,
                observedGeneration=generation,
                updatedReplicas=left,
                registeredReplicas=left,
                draining=0,
            )
            asked = own(there.calls())
            # Marked, deleted, made again and noted; each pass may tell, and there are some for every quarter of them.
            assert len(asked) <= 4 * left + 100, writes(asked)[-100:]
            sent = [what for what in there.stub.requests if not what.startswith("GET")]
            assert len(sent) <= left / 2, "many are drained and resumed by one request"
            assert operator.is_running
