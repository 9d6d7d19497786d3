"""Workers that come, change and go on fake machines: what that takes the operator, read from outside."""

import asyncio
import json
import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from bench.rig import FLOOR, NAMESPACE, OPERATOR, Call, Operator, Rig, until
from slurm_operator import wire
from slurm_operator.api.schema import codec
from slurm_operator.api.shared import names
from slurm_operator.api.shared.meta import ObjectKey
from slurm_operator.api.slinky.controller import Controller
from slurm_operator.api.slinky.nodeset import NodeSet
from slurm_operator.manifests.kinds import POD
from slurm_operator.manifests.meta import Manifest
from slurm_operator.reconcilers.nodeset.creation import revisions
from slurm_operator.reconcilers.nodeset.creation.pod import Slot, WorkerPods

CONNECTIONS = 32
LONGEST_SECONDS = 900.0

Status = dict[str, Any]


class Cost(NamedTuple):
    """What one change took the operator."""

    cpu_s: float
    peak_mb: float
    kube_requests: int
    slurm_requests: int
    calls: list[Call]
    began: float

    def of(self, verb: str, what: str) -> list[Call]:
        return [call for call in self.calls if (call.verb, call.what) == (verb, what)]

    def until_last(self, verb: str, what: str) -> float:
        """Seconds from the wish to the answer of the last call of this kind."""
        return max((call.done_at for call in self.of(verb, what)), default=self.began) - self.began

    def counted(self) -> dict[str, int]:
        found: dict[str, int] = {}
        for call in self.calls:
            name = f"{call.verb} {call.what}" + (f" {call.code}" if call.code >= 400 else "")
            found[name] = found.get(name, 0) + 1
        return dict(sorted(found.items(), key=lambda item: -item[1]))


class Meter:
    """Counts from when it is made."""

    def __init__(self, rig: Rig, operator: Operator) -> None:
        self._rig, self._operator = rig, operator
        rig.calls()
        rig.stub.requests.clear()
        self._cpu = operator.usage().cpu_s
        self.began = time.time()

    def cost(self) -> Cost:
        used = self._operator.usage()
        calls = [call for call in self._rig.calls() if call.user == OPERATOR and not call.is_lasting]
        return Cost(
            cpu_s=used.cpu_s - self._cpu,
            peak_mb=used.peak_mb,
            kube_requests=len(calls),
            slurm_requests=len(self._rig.stub.requests),
            calls=calls,
            began=self.began,
        )


class ScaledOut(NamedTuple):
    cost: Cost
    created_s: float
    ready_s: float
    told_after_ready_s: float


async def scale_out(rig: Rig, operator: Operator, count: int) -> ScaledOut:
    """From a NodeSet of none to `count` workers, all of them Ready in its status and known to Slurm."""
    meter = Meter(rig, operator)
    await rig.patch({"replicas": count})
    ready_at = await until(lambda: len(rig.ready) >= count, "ready pods", LONGEST_SECONDS)
    told_at = await told(rig, lambda status: status.get("readyReplicas") == count)
    await told(rig, lambda status: status.get("registeredReplicas") == count)
    await noted(rig, count)
    cost = meter.cost()
    return ScaledOut(cost, cost.until_last("create", "pods"), ready_at - meter.began, told_at - ready_at)


async def scale_in(rig: Rig, operator: Operator) -> Cost:
    """To none: drained, forgotten by Slurm and deleted, all of them idle."""
    meter = Meter(rig, operator)
    await rig.patch({"replicas": 0})
    await until(lambda: not rig.workers(), "no pods", LONGEST_SECONDS)
    await told(rig, lambda status: not status.get("replicas"))
    return meter.cost()


async def roll(rig: Rig, operator: Operator, count: int, image: str) -> Cost:
    """Every worker replaced by one of another image, a quarter of them at a time."""
    meter = Meter(rig, operator)
    await rig.patch({"slurmd": {"image": image}})
    generation = (await rig.nodeset())["metadata"]["generation"]
    await told(
        rig, lambda status: status.get("observedGeneration") == generation and _is_whole(status, count)
    )
    return meter.cost()


def _is_whole(status: Status, count: int) -> bool:
    counted = (status.get(key) for key in ("updatedReplicas", "readyReplicas", "registeredReplicas"))
    return set(counted) == {count} and not status.get("draining")


class Started(NamedTuple):
    seconds: float
    cpu_s: float
    peak_mb: float
    writes: list[str]


async def start_up(rig: Rig, operator: Operator) -> Started:
    """A new process, until it has looked at the NodeSet once."""
    operator.stop()
    rig.calls()
    operator.start(NAMESPACE)
    while 'reconciles_total{reconciler="nodeset"' not in await operator.metrics():  # noqa: ASYNC110
        await asyncio.sleep(0.1)
    seconds, used = time.time() - operator.started_at, operator.usage()
    await asyncio.sleep(5)
    return Started(seconds, used.cpu_s, used.peak_mb, written(rig.calls()))


def written(calls: list[Call]) -> list[str]:
    """What the operator wrote, its Lease aside."""
    own = (call for call in calls if call.user == OPERATOR and not call.is_lasting)
    return [f"{call.verb} {call.what} {call.name}" for call in own if call.verb not in ("get", "list")]


class Idle(NamedTuple):
    cpu_s_per_minute: float
    slurm_per_minute: float
    writes: list[str]


async def idle(rig: Rig, operator: Operator, seconds: float = 30) -> Idle:
    meter = Meter(rig, operator)
    await asyncio.sleep(seconds)
    cost = meter.cost()
    return Idle(cost.cpu_s * 60 / seconds, cost.slurm_requests * 60 / seconds, written(cost.calls))


async def told(rig: Rig, holds: Callable[[Status], bool]) -> float:
    """When the status says so."""
    async with asyncio.timeout(LONGEST_SECONDS):
        while not holds((await rig.nodeset()).get("status", {})):  # noqa: ASYNC110
            await asyncio.sleep(0.1)
    return time.time()


async def noted(rig: Rig, count: int) -> None:
    """Until every pod says what its Slurm node does."""
    mark = names.POD_CONDITION_PREFIX + "Idle"
    await until(
        lambda: sum(pod.status.condition(mark) is not None for pod in rig.workers()) >= count,
        "conditions on the pods",
        LONGEST_SECONDS,
        pause=0.2,
    )


_floors = 0


class Floor(NamedTuple):
    """What a bare client needs: seconds to post the same pods, CPU to post, note and watch them."""

    seconds: float
    cpu_s: float


async def floor(rig: Rig, count: int) -> Floor:
    global _floors
    _floors += 1
    pods = await pods_of(rig, count)
    lines = [f"/api/v1/namespaces/{FLOOR}/pods\t{json.dumps(pod)}" for pod in pods]
    file = rig.plane.directory / "floor.txt"
    file.write_text("\n".join(lines))
    pki = rig.plane.certificates
    argv = [rig.plane.url, pki.ca, pki.admin.certificate, pki.admin.key, file, CONNECTIONS]
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "bench.bare", *map(str, argv), stdout=asyncio.subprocess.PIPE
    )
    out, _ = await process.communicate()
    took = json.loads(out)
    await _clear(rig, [pod["metadata"]["name"] for pod in pods])
    return Floor(took["ended"] - took["began"], took["cpu"])


async def _clear(rig: Rig, names: list[str]) -> None:
    """The machines have no room for the pods of all floors, and somebody would have to look after them."""
    left = iter(names)

    async def work() -> None:
        for name in left:
            await rig.client.delete(POD, ObjectKey(FLOOR, name), grace_seconds=0)

    async with asyncio.TaskGroup() as group:
        for _ in range(CONNECTIONS):
            group.create_task(work())


async def pods_of(rig: Rig, count: int) -> list[Manifest]:
    """As the operator would make them, under names of their own."""
    live = codec.read(NodeSet, await rig.nodeset())
    found = await rig.client.get(Controller.KIND, ObjectKey(NAMESPACE, "slurm"))
    pods = WorkerPods(live, codec.read(Controller, found), revisions.current(live, ()))
    made = []
    for number in range(count):
        name = f"floor-{_floors}-{number}"
        pod = wire.plain(pods.pod(Slot(pod_name=name, hostname=name, ordinal=number)))
        pod["metadata"] |= {"namespace": FLOOR, "ownerReferences": []}
        made.append(pod)
    return made
