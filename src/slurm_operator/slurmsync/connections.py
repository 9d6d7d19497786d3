"""Every Slurm cluster that the operator talks to, connected as soon as its address and key are known."""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

import structlog

from slurm_operator.api.shared.meta import ObjectKey
from slurm_operator.clock import Clock, SystemClock
from slurm_operator.kube.client import Client
from slurm_operator.kube.errors import KubeError, NotFound
from slurm_operator.kube.watch.named_objects import read_secret, value_digest
from slurm_operator.manifests.objects import Unread
from slurm_operator.manifests.secrets import SecretHandle, bytes_of
from slurm_operator.plan.reconciler import SlurmServer
from slurm_operator.slurm.jobs.ended import EndedJob
from slurm_operator.slurm.snapshot import Changes, Snapshot, Unreachable
from slurm_operator.slurm.writes import SlurmWrite, WriteResult
from slurm_operator.slurmrest.tokens import Keys, ReadyToken
from slurm_operator.slurmrest.transport import DEADLINE_SECONDS
from slurm_operator.slurmsync.connection import SlurmCluster
from slurm_operator.slurmsync.remove_nodes import Guard
from slurm_operator.slurmsync.startup_grace import FirstWords

log = structlog.get_logger(__name__)

RETRY_SECONDS = 2.0

_Named = tuple[ObjectKey, SlurmServer]


class SlurmClusters:
    """The clusters by their Controller, each with a task of its own: one that hangs holds up no other."""

    def __init__(
        self,
        client: Client,
        may_write: Callable[[], bool],
        *,
        deadline_seconds: float = DEADLINE_SECONDS,
    ) -> None:
        self._client = client
        self._may_write = may_write
        self._deadline_seconds = deadline_seconds
        self._servers: dict[ObjectKey, SlurmServer] = {}
        self._clusters: dict[ObjectKey, SlurmCluster] = {}
        self._keys: dict[ObjectKey, tuple[bytes, ...]] = {}  # The only place that keeps them.
        self._tasks: dict[ObjectKey, asyncio.Task[None]] = {}
        self._callbacks: list[Callable[[ObjectKey, Changes], None]] = []
        self._heard: set[ObjectKey] = set()
        self._first_words = FirstWords(lambda: asyncio.get_running_loop().time())
        self._clock: Clock = SystemClock()
        self._since = self._clock.steady()

    def subscribe(self, callback: Callable[[ObjectKey, Changes], None]) -> None:
        """Call back with a Controller's key whenever its cluster was read, and with what changed."""
        self._callbacks.append(callback)

    def latest(self, key: ObjectKey) -> Snapshot | Unreachable:
        """What is known, dated by the steady clock. See PassClock."""
        cluster = self._clusters.get(key)
        if cluster is not None:
            return cluster.latest()
        if key in self._servers:
            return Unreachable(since=self._since, why="connecting")
        return Unreachable(
            since=self._since, why="there is no RestApi for this Controller that is ready to be asked"
        )

    def job_end(self, key: ObjectKey, job_id: int) -> tuple[EndedJob, ...] | Unread:
        """How a job of this cluster ended; nothing where nobody knows it any more."""
        cluster = self._clusters.get(key)
        return cluster.job_end(job_id) if cluster is not None else Unread(why="the cluster is not connected")

    def request_polling(self, key: ObjectKey, who: str, *, soon: bool) -> None:
        """Somebody waits for something in this cluster, or no longer does; it is read more or less often."""
        cluster = self._clusters.get(key)
        if cluster is not None:
            cluster.request_polling(who, soon=soon)

    async def write(
        self, key: ObjectKey, write: SlurmWrite, guard: Guard | None = None
    ) -> WriteResult | None:
        """What became of the write; None when the cluster is not connected."""
        cluster = self._clusters.get(key)
        return await cluster.write(write, guard) if cluster is not None else None

    async def refresh(self, key: ObjectKey) -> None:
        """Have the cluster read again, and wait for it."""
        cluster = self._clusters.get(key)
        if cluster is not None:
            await cluster.refresh()

    def reconfigure(self, servers: Mapping[ObjectKey, SlurmServer], *, are_all_known: bool = True) -> None:
        """Talk to exactly these from now on. A changed key is a new connection, a lost one none."""
        servers = dict(self._with_known_keys(servers))
        self._first_words.ask(servers.keys(), are_all_known=are_all_known)
        self._move(servers)
        for key in [key for key, server in self._servers.items() if servers.get(key) != server]:
            del self._servers[key]
            self._clusters.pop(key, None)
            if key not in servers:
                self._keys.pop(key, None)
            self._tasks.pop(key).cancel()
            self._heard.discard(key)
            self._tell(key, Changes(everything=True))
        for key, server in servers.items():
            if key not in self._servers:
                self._servers[key] = server
                self._tasks[key] = asyncio.create_task(self._run(key, server))

    def _with_known_keys(self, servers: Mapping[ObjectKey, SlurmServer]) -> Iterator[_Named]:
        """Those that can be talked to. Where no Secret has the key any more, we go on with ours."""
        for key, server in servers.items():
            known = self._servers.get(key)
            if known is not None and self._is_known(key, server.key):
                yield key, replace(known, urls=server.urls)
            elif server.key is not None:
                yield key, server

    def _is_known(self, cluster: ObjectKey, key: SecretHandle | None) -> bool:
        """Whether we have this key in use: it is gone, or we are pointed to a copy of it."""
        keys = self._keys.get(cluster)
        if not keys:
            return False
        return key is None or (key.form == "base64url" and key.key == f"key-{value_digest(keys[0])}")

    def _move(self, servers: Mapping[ObjectKey, SlurmServer]) -> None:
        """Clusters that only have more or fewer slurmrestds than before stay connected."""
        for key, server in servers.items():
            known, cluster = self._servers.get(key), self._clusters.get(key)
            if known is None or cluster is None or known == server:
                continue
            if server == replace(known, urls=server.urls):
                self._servers[key] = server
                cluster.use(server.urls)

    @property
    def heard(self) -> frozenset[ObjectKey]:
        """Clusters that have been asked once, with or without success."""
        return frozenset(self._heard)

    def awaited_seconds(self, key: ObjectKey) -> float:
        """For how long the first answer of this cluster since our start may still be waited for."""
        return self._first_words.left_seconds(key)

    async def close(self) -> None:
        tasks = list(self._tasks.values())
        self.reconfigure({})
        await asyncio.gather(*tasks, return_exceptions=True)

    def ages(self) -> dict[ObjectKey, float]:
        """Seconds since each cluster was last seen, for metrics."""
        now = self._clock.steady()
        return {
            key: (now - _seen_at(cluster.latest())).total_seconds() for key, cluster in self._clusters.items()
        }

    async def _run(self, key: ObjectKey, server: SlurmServer) -> None:
        assert server.key is not None, "whom nobody has a key for is not connected"
        first = await self._read_key(server.key, self._keys.get(key, ()))
        former = [found for handle in server.former if (found := await self._read_copy(handle))]
        keys = self._keys[key] = (first, *former)
        cluster = self._connection(str(key), server, Keys(*keys))
        cluster.subscribe(lambda changes: self._hear(key, changes))
        self._clusters[key] = cluster
        try:
            await cluster.run()
        except Exception:
            log.exception("reading a Slurm cluster broke; starting over", controller=str(key))
            self._clusters.pop(key, None)
            await asyncio.sleep(RETRY_SECONDS)
            self._tasks[key] = asyncio.create_task(self._run(key, self._servers[key]))

    def remembered(self, digest: str) -> bytes | None:
        """A key that is in use, by its digest, also when no Secret has it any more."""
        known = (key for keys in self._keys.values() for key in keys)
        return next((key for key in known if value_digest(key) == digest), None)

    def _connection(self, name: str, server: SlurmServer, keys: Keys) -> SlurmCluster:
        return connection(name, server, keys, self._may_write, self._deadline_seconds)

    async def _read_copy(self, handle: SecretHandle) -> bytes:
        """A key that was in use before; empty when there is none any more, and nobody waits for it."""
        try:
            values = await read_secret(self._client, ObjectKey(handle.namespace, handle.name))
            return bytes_of(values.get(handle.key, b""))
        except (KubeError, ValueError) as error:
            log.warning("cannot read a previous signing key", secret=str(handle), error=str(error))
            return b""

    async def _read_key(self, handle: SecretHandle, known: Sequence[bytes]) -> bytes:
        """The signing key. Asked for until it is there: everything waits for it.

        A Secret that went in this moment had a key that was used before, if one was.
        """
        while True:
            try:
                values = await read_secret(self._client, ObjectKey(handle.namespace, handle.name))
                if handle.key in values:
                    value = values[handle.key]
                    return bytes_of(value) if handle.form == "base64url" else value
            except NotFound:
                if known:
                    return known[0]
            except (KubeError, ValueError) as error:
                log.warning("cannot read a signing key", secret=str(handle), error=str(error))
            await asyncio.sleep(RETRY_SECONDS)

    def _hear(self, key: ObjectKey, changes: Changes) -> None:
        self._heard.add(key)
        if isinstance(self.latest(key), Snapshot):
            self._first_words.came(key)
        self._tell(key, changes)

    def _tell(self, key: ObjectKey, changes: Changes) -> None:
        for callback in self._callbacks:
            callback(key, changes)


def connection(
    name: str,
    server: SlurmServer,
    keys: Keys,
    may_write: Callable[[], bool],
    deadline_s: float = DEADLINE_SECONDS,
) -> SlurmCluster:
    """The way to one Slurm cluster. One that is only watched is never written to, whoever asks for it."""
    if server.is_only_watched:
        token = ReadyToken(keys().decode(errors="replace"))
        return SlurmCluster(
            name,
            server.urls,
            token,
            may_write=lambda: False,
            deadline_s=deadline_s,
            authorities=server.authorities,
        )
    return SlurmCluster(name, server.urls, keys, may_write=may_write, deadline_s=deadline_s, user=server.user)


def _seen_at(facts: Snapshot | Unreachable) -> datetime:
    return facts.asked_at if isinstance(facts, Snapshot) else facts.since
