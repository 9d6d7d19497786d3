"""Whether another installation is at work, by its Lease.

Judged by our own clock: a renewal counts from when it is seen. An installation that is stopped for a moment,
to be upgraded say, is not gone; one whose Lease nobody has renewed for a minute is.
"""

from collections.abc import Callable
from enum import Enum
from typing import Final, Self

from slurm_operator import wire
from slurm_operator.api.shared.meta import ObjectKey
from slurm_operator.kube.client import Client
from slurm_operator.kube.errors import Forbidden, KubeError, NotFound
from slurm_operator.kube.lease import clock_that_never_stops
from slurm_operator.kube.renewals import Lease
from slurm_operator.manifests.kinds import LEASE

SILENT_SECONDS: Final = 60.0

# What our identities in Leases begin with. Others are made of a host name and a uuid, which have no slash.
IDENTITY: Final = "slurm-operator/"

_decode = wire.decoder(Lease)


class Installation(wire.Record):
    """One installation of the operator: its Lease, which all its managers share."""

    lease: ObjectKey
    uid: str

    def __str__(self) -> str:
        return f"{self.lease.namespace}/{self.lease.name}/{self.uid}"

    @classmethod
    def parse(cls, text: str) -> Self | None:
        """None for what is no installation."""
        match text.split("/"):
            case [namespace, name, uid] if namespace and name and uid:
                return cls(lease=ObjectKey(namespace, name), uid=uid)
        return None


class Presence(Enum):
    ALIVE = "alive"
    GONE = "gone"  # There is no such Lease any more, or nobody has renewed it for long.
    NOT_ALLOWED = "not allowed to look"
    UNKNOWN = "no answer"


class LeaseWatch:
    """Looks at Leases of others, and remembers since when each has been as it is."""

    def __init__(self, client: Client, clock: Callable[[], float] = clock_that_never_stops) -> None:
        self._client = client
        self._clock = clock
        self._seen: dict[ObjectKey, tuple[Lease, float]] = {}

    async def read(self, key: ObjectKey) -> Lease | Presence:
        """The Lease as it is; GONE where there is none. Raises nothing: what cannot be told is a Presence."""
        try:
            lease = await self._client.read(LEASE, key, _decode)
        except NotFound:
            self._seen.pop(key, None)
            return Presence.GONE
        except Forbidden:
            return Presence.NOT_ALLOWED
        except (KubeError, wire.DecodeError):
            return Presence.UNKNOWN
        before = self._seen.get(key)
        if before is None or (before[0].spec, before[0].metadata.uid) != (lease.spec, lease.metadata.uid):
            self._seen[key] = (lease, self._clock())
        return lease

    def is_silent(self, key: ObjectKey) -> bool:
        """Whether nobody has renewed it for so long that nobody is there. One that was just found may be."""
        seen = self._seen.get(key)
        return seen is not None and self._clock() >= seen[1] + SILENT_SECONDS

    async def presence(self, of: Installation) -> Presence:
        found = await self.read(of.lease)
        if isinstance(found, Presence):
            return found
        if found.metadata.uid != of.uid or self.is_silent(of.lease):
            return Presence.GONE
        return Presence.ALIVE
