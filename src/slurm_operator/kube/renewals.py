"""Whether somebody else renews a Lease of a name, in any namespace that we may read.

Judged as an Elector judges: a renewal counts from when it is seen, by our own clock. So a Lease that is first
seen may have been left behind long ago; that is known when its time has passed without a renewal.
"""

from collections.abc import Callable, Mapping, Sequence

import structlog

from slurm_operator import wire
from slurm_operator.api.shared.meta import Meta, ObjectKey, key_of
from slurm_operator.kube.client import Client
from slurm_operator.kube.errors import Forbidden
from slurm_operator.kube.lease import LeaseSpec, clock_that_never_stops
from slurm_operator.kube.request import Selection
from slurm_operator.manifests.kinds import LEASE

log = structlog.get_logger(__name__)

# For a Lease that does not say how long it lasts.
USUAL_SECONDS = 15

EVERYWHERE = ""

# Where we may not look, it is tried again after so long.
REFUSED_SECONDS = 60.0


class Lease(wire.CamelRecord):
    metadata: Meta
    spec: LeaseSpec = LeaseSpec()


class Holder(wire.Record):
    """Who has a Lease, and whether we have seen it renewed."""

    lease: ObjectKey
    identity: str
    is_renewing: bool


class _Seen(wire.Record):
    spec: LeaseSpec
    at: float
    is_renewed: bool = False

    def lasts_until(self) -> float:
        return self.at + (self.spec.lease_duration_seconds or USUAL_SECONDS)


class Renewals:
    """What was seen of such Leases, but for our own and those whose holders begin with `spared`."""

    def __init__(
        self,
        ours: ObjectKey | None = None,
        clock: Callable[[], float] = clock_that_never_stops,
        *,
        spared: str = "",
    ) -> None:
        self._ours = ours
        self._spared = spared
        self._clock = clock
        self._seen: dict[ObjectKey, _Seen] = {}

    def note(self, found: Mapping[ObjectKey, LeaseSpec]) -> Holder | None:
        """Who has one now, or may have. One that was given back is nobody's; a deleted one is not renewed."""
        now = self._clock()
        held = {key: spec for key, spec in found.items() if key != self._ours and self._counts(spec)}
        self._seen = {key: _noted(self._seen.get(key), spec, now) for key, spec in held.items()} | {
            key: seen
            for key, seen in self._seen.items()
            if key not in found and seen.is_renewed and now < seen.lasts_until()
        }
        active = [(key, seen) for key, seen in self._seen.items() if now < seen.lasts_until()]
        if not active:
            return None
        key, seen = min(active, key=lambda one: (not one[1].is_renewed, one[0]))
        return Holder(lease=key, identity=seen.spec.holder_identity or "", is_renewing=seen.is_renewed)

    def _counts(self, spec: LeaseSpec) -> bool:
        is_spared = bool(self._spared) and (spec.holder_identity or "").startswith(self._spared)
        return bool(spec.holder_identity) and not is_spared


def _noted(before: _Seen | None, spec: LeaseSpec, now: float) -> _Seen:
    if before is not None and before.spec == spec:
        return before
    return _Seen(spec=spec, at=now, is_renewed=before is not None)


class LeaseFinder:
    """Finds the Leases of one name: everywhere, or where we may look."""

    def __init__(
        self,
        client: Client,
        name: str,
        namespaces: Sequence[str],
        clock: Callable[[], float] = clock_that_never_stops,
    ) -> None:
        self._client = client
        self._name = name
        self._places = [EVERYWHERE, *sorted({*namespaces} - {EVERYWHERE})]
        self._clock = clock
        self._refused_at: dict[str, float] = {}

    async def find(self) -> dict[ObjectKey, LeaseSpec]:
        """By where they are. Raises KubeError when that cannot be told."""
        found: dict[ObjectKey, LeaseSpec] = {}
        for place in self._places:
            if self._is_refused(place):
                continue
            try:
                found |= await self._in(place)
            except Forbidden as error:
                if place not in self._refused_at:
                    log.warning("may not look for this Lease here", lease=self._name, why=str(error))
                self._refused_at[place] = self._clock()
            else:
                if place == EVERYWHERE:
                    return found
        return found

    def _is_refused(self, place: str) -> bool:
        """Whether we may not look there, as far as we know: rights may come a moment after us."""
        return self._clock() < self._refused_at.get(place, -REFUSED_SECONDS) + REFUSED_SECONDS

    async def _in(self, namespace: str) -> dict[ObjectKey, LeaseSpec]:
        wanted = Selection(kind=LEASE, namespace=namespace, field_selector=f"metadata.name={self._name}")
        found = [_decode(item) async for page in self._client.list_pages(wanted) for item in page.items]
        return {key_of(lease): lease.spec for lease in found}


_decode = wire.decoder(Lease)
