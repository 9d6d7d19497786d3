"""How much local storage workers use, read from their kubelets once a minute.

Only of workers with a limit. What is not read again within minutes is too old to be decided by.
"""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import NamedTuple

import structlog

from slurm_operator import wire
from slurm_operator.api.shared.meta import ObjectKey, key_of
from slurm_operator.kube.auth.access import Access
from slurm_operator.kube.auth.tls import Trust
from slurm_operator.kube.client import Client
from slurm_operator.kube.errors import KubeError
from slurm_operator.manifests.kinds import POD
from slurm_operator.manifests.objects import Pod
from slurm_operator.manifests.storage import StorageUse, storage_limit, storage_used
from slurm_operator.plan.world import World
from slurm_operator.runtime.kubelets import KubeletSettings
from slurm_operator.runtime.world.caches import Caches

log = structlog.get_logger(__name__)


class _Limit(NamedTuple):
    host: str
    limit_bytes: int


# The Kubernetes nodes that have workers whose storage matters: none or one for a pod.
Places = Callable[[Pod, World], Iterable[ObjectKey]]


class StorageWatch:
    """Notes in the caches what each worker uses, and has its Kubernetes node looked at again."""

    def __init__(
        self,
        client: Client,
        known: Caches,
        settings: KubeletSettings,
        places: Places,
        wake: Callable[[ObjectKey], None],
    ) -> None:
        self._client = client
        self._known = known
        self._settings = settings
        self._places = places
        self._wake = wake
        self._limits: dict[str, _Limit] = {}  # By the uid of the pod; they never change.
        self._troubles: dict[ObjectKey, str] = {}
        self._turns = asyncio.Semaphore(settings.at_once)

    async def run(self) -> None:
        while True:
            await self.look()
            await asyncio.sleep(self._settings.every_seconds)

    async def look(self) -> None:
        """Once, at every kubelet that has workers."""
        view, workers = self._known.view(), defaultdict[ObjectKey, list[Pod]](list)
        for pod in self._known.records[Pod].values():
            for place in self._places(pod, view) if not pod.has_ended else ():
                workers[place].append(pod)
        there = {pod.metadata.uid for pods in workers.values() for pod in pods}
        self._limits = {uid: limit for uid, limit in self._limits.items() if uid in there}
        self._known.storage = {uid: use for uid, use in self._known.storage.items() if uid in there}
        async with asyncio.TaskGroup() as group:
            for place, pods in workers.items():
                group.create_task(self._look_at(place, pods))

    async def _look_at(self, place: ObjectKey, pods: list[Pod]) -> None:
        async with self._turns:
            try:
                await self._read(place, pods)
            except (KubeError, wire.DecodeError) as error:
                self._say(place, str(error))
            else:
                self._say(place, "")

    async def _read(self, place: ObjectKey, pods: list[Pod]) -> None:
        limits = {pod.metadata.uid: await self._limit(pod) for pod in pods}
        hosts = [limit.host for limit in limits.values() if limit.limit_bytes and limit.host]
        if not hosts:
            return
        summary = await self._summary(hosts[0])
        at = self._known.clock.steady()
        for uid, used in storage_used(summary):
            if uid in limits and limits[uid].limit_bytes:
                use = StorageUse(used_bytes=used, limit_bytes=limits[uid].limit_bytes, read_at=at)
                self._known.storage[uid] = use
        self._wake(place)

    async def _limit(self, pod: Pod) -> _Limit:
        """From the pod itself, read once: the caches keep less of it."""
        known = self._limits.get(pod.metadata.uid)
        if known is None:
            whole = await self._client.get(POD, key_of(pod))
            known = _Limit(str((whole.get("status") or {}).get("hostIP", "")), storage_limit(whole))
            if known.host:
                self._limits[pod.metadata.uid] = known
        return known

    async def _summary(self, host: str) -> bytes:
        """As whoever we are to the API server: the kubelet asks that whether we may."""
        settings, own = self._settings, self._client.access
        name = f"[{host}]" if ":" in host else host
        authority = settings.authority or own.trust.authority
        trust = Trust(authority, settings.insecure, settings.server_name)
        access = Access(server=f"https://{name}:{settings.port}", trust=trust, credentials=own.credentials)
        async with Client(access, deadline_seconds=settings.timeout_seconds, connections=1) as kubelet:
            return await kubelet.text("/stats/summary")

    def _say(self, place: ObjectKey, trouble: str) -> None:
        """Once, until it is another one."""
        if trouble and trouble != self._troubles.get(place):
            log.warning("the storage of workers cannot be read", kube_node=place.name, why=trouble)
        self._troubles[place] = trouble
