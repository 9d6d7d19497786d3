"""A kubelet as far as the operator notices one: pods that were made run, pods that were deleted go.

For counting requests on an API server without machines. In benchmarks the scheduler and kwok start pods, and
this one only ends them.
"""

import asyncio
from contextlib import suppress
from datetime import UTC, datetime

from slurm_operator.api.shared.meta import ObjectKey, key_of
from slurm_operator.kube.client import Client
from slurm_operator.kube.errors import Conflict, NotFound
from slurm_operator.kube.watch.cache import Cache
from slurm_operator.manifests.kinds import POD
from slurm_operator.manifests.objects import Pod

AT_ONCE = 8


class Kubelet:
    """Follows the pods of a cache; `run` does what has to be done."""

    def __init__(self, client: Client, pods: Cache[Pod], *, starts_pods: bool = True) -> None:
        self._client, self._starts_pods = client, starts_pods
        self._started: set[str] = set()
        self._due: asyncio.Queue[Pod] = asyncio.Queue()
        pods.subscribe(self._follow)

    def _follow(self, old: Pod | None, new: Pod | None) -> None:
        if new is not None and (new.metadata.is_terminating or self._is_to_start(new)):
            self._due.put_nowait(new)

    def _is_to_start(self, pod: Pod) -> bool:
        return self._starts_pods and pod.metadata.uid not in self._started

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            for _ in range(AT_ONCE):
                group.create_task(self._work())

    async def _work(self) -> None:
        while True:
            pod = await self._due.get()
            with suppress(NotFound, Conflict):
                await (self._end(pod) if pod.metadata.is_terminating else self._start(pod))

    async def _start(self, pod: Pod) -> None:
        if pod.metadata.uid in self._started:
            return
        self._started.add(pod.metadata.uid)
        status = _running(len(self._started))
        await self._client.merge_patch(POD, key_of(pod), {"status": status}, subresource="status")

    async def _end(self, pod: Pod) -> None:
        key = ObjectKey(pod.metadata.namespace, pod.metadata.name)
        await self._client.delete(POD, key, uid=pod.metadata.uid, grace_seconds=0)


def _running(number: int) -> dict[str, object]:
    now = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
    address = f"10.{number // 62_500}.{number // 250 % 250}.{number % 250}"
    container = {
        "name": "slurmd",
        "image": "slurmd:1",
        "imageID": "",
        "ready": True,
        "restartCount": 0,
        "state": {"running": {"startedAt": now}},
    }
    conditions = [
        {"type": type_, "status": "True", "lastTransitionTime": now} for type_ in ("PodScheduled", "Ready")
    ]
    return {
        "phase": "Running",
        "podIP": address,
        "podIPs": [{"ip": address}],
        "conditions": conditions,
        "containerStatuses": [container],
    }
