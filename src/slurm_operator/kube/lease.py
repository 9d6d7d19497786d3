"""Leader election: one of several managers acts, by a Lease, on a connection of its own.

Safety rests on our own clock alone. Others count from when they *see* a renewal, which is after we asked for
it; so for the length of the lease from the moment we asked, nobody else can hold it. We stop earlier.
"""

import asyncio
import random
import time
from collections.abc import Callable
from datetime import UTC, datetime
from enum import Enum

import structlog

from slurm_operator import wire
from slurm_operator.api.shared.meta import ObjectKey
from slurm_operator.kube import errors
from slurm_operator.kube.client import Client
from slurm_operator.kube.request import on_object
from slurm_operator.kube.transport import Pool
from slurm_operator.manifests.kinds import LEASE
from slurm_operator.manifests.meta import Manifest

_NEVER = float("-inf")

# A renewal that was under way when we were told to stop comes in between once; more often is somebody else.
_RELEASE_TRIES = 3

log = structlog.get_logger(__name__)


class LeaseSpec(wire.CamelRecord):
    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    acquire_time: str | None = None
    renew_time: str | None = None
    lease_transitions: int | None = None


class _Try(Enum):
    OURS = "ours"
    THEIRS = "theirs"
    NO_ANSWER = "no answer"


def clock_that_never_stops() -> float:
    """Seconds that also pass while the process is stopped or the whole machine is suspended."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


class Elector:
    """Takes and holds a Lease. `is_leader` is what the client's `may_write` should ask.

    `identity` must be unlike that of any other process, also of an earlier one on this machine.
    """

    def __init__(
        self,
        client: Client,
        key: ObjectKey,
        identity: str,
        *,
        duration_seconds: int = 15,
        renew_deadline_seconds: float = 10.0,
        retry_seconds: float = 2.0,
        clock: Callable[[], float] = clock_that_never_stops,
    ) -> None:
        if not retry_seconds < renew_deadline_seconds < duration_seconds:
            raise ValueError("a lease needs retry < renew deadline < duration")
        self.identity = identity
        self._client = client
        self._key = key
        self._duration = duration_seconds
        self._renew_deadline = renew_deadline_seconds
        self._retry = retry_seconds
        self._clock = clock
        self._asked_at = _NEVER  # When we asked for the renewal that is in force.
        self._lease: Manifest | None = None  # As we last saw it; None is not there, or not known for certain.
        self._uid = ""
        self._spec = LeaseSpec()
        self._changed_at = _NEVER  # When we first saw this spec.

    @property
    def is_leader(self) -> bool:
        """True only while nobody else can hold the lease; also right after the process was stopped."""
        return self._clock() < self._asked_at + self._renew_deadline

    @property
    def holder(self) -> str:
        """Who holds the lease as far as we have seen; empty when nobody does."""
        return self._spec.holder_identity or ""

    @property
    def uid(self) -> str:
        """Of the Lease as we last saw it; empty before."""
        return self._uid

    async def acquire(self) -> None:
        """Returns when the lease is ours."""
        log.info("waiting for the lease", lease=str(self._key), identity=self.identity)
        while True:
            if await self._try() is _Try.OURS:
                break
            await asyncio.sleep(self._retry * random.uniform(1.0, 1.2))  # noqa: S311  No secret in it.
        log.info("leading", lease=str(self._key), identity=self.identity)

    async def hold(self) -> None:
        """Renew; returns when the lease is lost. What has run out is not renewed: others may have acted."""
        # Not since now: whoever took it may have had a lot to do before it could be held.
        await asyncio.sleep(max(0.0, self._asked_at + self._retry - self._clock()))
        while self.is_leader:
            if await self._try() is _Try.THEIRS:
                self._asked_at = _NEVER
            else:
                await asyncio.sleep(self._retry)
        log.warning("the lease is lost", lease=str(self._key), holder=self.holder)

    async def release(self) -> None:
        """Give it back, so that another takes over at once. We are no leader from the first moment on."""
        was_leader, self._asked_at = self.is_leader, _NEVER
        if not was_leader:
            return
        try:
            await self._give_back()
        except (errors.KubeError, wire.DecodeError) as error:
            log.info("the lease was not given back and will run out", lease=str(self._key), why=str(error))

    async def _give_back(self) -> None:
        """A renewal that was cut off may be carried out before this or after it: look, and write again."""
        for tries_left in reversed(range(_RELEASE_TRIES)):
            if self._lease is None:
                await self._look()
            if self.holder != self.identity:
                return
            try:
                await self._write(
                    wire.replace(self._spec, holder_identity="", lease_duration_seconds=1, renew_time=_now())
                )
            except errors.Conflict:
                self._lease = None
                if not tries_left:
                    raise
            else:
                return

    async def _try(self) -> _Try:
        """Take the lease or renew it, once."""
        try:
            if self._lease is None or not self.is_leader:
                await self._look()
            if not self._is_free():
                return _Try.THEIRS
            asked_at = self._clock()
            await self._write(self._claim())
        except (errors.KubeError, wire.DecodeError) as error:
            # A conflict, or a write that may have happened or not: look before the next one.
            log.info("could not take the lease in this try", lease=str(self._key), why=str(error))
            self._lease = None
            return _Try.NO_ANSWER
        self._asked_at = asked_at
        return _Try.OURS

    def _is_free(self) -> bool:
        if self.holder in ("", self.identity):
            return True
        lasts = self._spec.lease_duration_seconds or self._duration
        return self._clock() >= self._changed_at + lasts

    def _claim(self) -> LeaseSpec:
        now, is_renewal = _now(), self.holder == self.identity
        transitions = self._spec.lease_transitions or 0
        return LeaseSpec(
            holder_identity=self.identity,
            lease_duration_seconds=self._duration,
            acquire_time=self._spec.acquire_time if is_renewal else now,
            renew_time=now,
            lease_transitions=transitions if is_renewal or self._lease is None else transitions + 1,
        )

    async def _look(self) -> None:
        try:
            self._note(await self._send("get", "GET", self._key))
        except errors.NotFound:
            self._lease, self._spec = None, LeaseSpec()

    async def _write(self, spec: LeaseSpec) -> None:
        """Only over the version that we know; somebody faster means Conflict."""
        fields = wire.plain(spec)
        if self._lease is None:
            metadata = {"namespace": self._key.namespace, "name": self._key.name}
            new = {"apiVersion": LEASE.api_version, "kind": LEASE.kind, "metadata": metadata, "spec": fields}
            self._note(await self._send("create", "POST", ObjectKey(self._key.namespace, ""), new))
        else:
            changed = self._lease | {"spec": self._lease.get("spec", {}) | fields}
            self._note(await self._send("update", "PUT", self._key, changed))

    async def _send(self, verb: str, method: str, key: ObjectKey, body: Manifest | None = None) -> Manifest:
        answer = await self._client.send(
            on_object(verb, method, LEASE, key, body=body),
            pool=Pool.LEASE,
            deadline_seconds=self._renew_deadline / 2,
        )
        lease: Manifest = wire.decode_any(answer)
        return lease

    def _note(self, lease: Manifest) -> None:
        spec = wire.convert(lease.get("spec", {}), LeaseSpec)
        if spec != self._spec:
            self._spec, self._changed_at = spec, self._clock()
        self._lease = lease
        self._uid = str(lease["metadata"].get("uid", ""))


def _now() -> str:
    """Kubernetes' MicroTime. For people: no decision here looks at anybody's wall clock."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
