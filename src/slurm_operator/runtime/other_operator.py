"""Another operator that acts on one of our API groups: while it does, we observe, change nothing, and say so.

It is known by the Lease by which its managers elect their leader. Whatever belongs to that group is held from
the start of the process until the first look has shown that nobody renews one.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final

import structlog

from slurm_operator import wire
from slurm_operator.api.schema import codec
from slurm_operator.api.schema.kind import Kind
from slurm_operator.api.shared.meta import ObjectKey
from slurm_operator.conditions import Reason
from slurm_operator.kube.client import Client
from slurm_operator.kube.errors import KubeError
from slurm_operator.kube.renewals import Holder, LeaseFinder, Renewals
from slurm_operator.manifests.meta import Manifest
from slurm_operator.plan.conditions import Condition, settled, true
from slurm_operator.runtime.world.caches import Caches

log = structlog.get_logger(__name__)

# As often as Kubernetes' own managers renew a Lease.
LOOK_SECONDS: Final = 2.0

# A status that was refused is not written again before.
REFUSED_SECONDS: Final = 60.0

OBSERVING: Final = "Observing"
REASON: Final = Reason.ANOTHER_OPERATOR_ACTS

# Nobody else writes by this name, so the condition is added and removed beside whatever others say.
FIELD_MANAGER: Final = "slurm-operator-observing"


@dataclass(frozen=True)
class Rival:
    """How the other operator of a group is called and known, and the kind whose objects say that it acts."""

    group: str
    name: str
    lease: str
    kind: Kind
    about: type[Any]


class OtherOperator:
    """Looks for it, holds what it acts on, and says so. `wake` is called when that changes."""

    def __init__(
        self,
        client: Client,
        known: Caches,
        rival: Rival,
        *,
        namespaces: Sequence[str] = (),
        ours: ObjectKey | None = None,
        spared: str = "",
        wake: Callable[[str], None] = lambda group: None,
    ) -> None:
        self._client = client
        self._known = known
        self._rival = rival
        self._finder = LeaseFinder(client, rival.lease, namespaces)
        self._renewals = Renewals(ours, spared=spared)
        self._wake = wake
        self._told: Holder | None = None
        self._refused_until = 0.0
        self._hold(held=True)

    async def run(self) -> None:
        while True:
            await self.look()
            await asyncio.sleep(LOOK_SECONDS)

    async def look(self) -> None:
        """Once. While nobody can tell, what was known before stands."""
        try:
            holder = self._renewals.note(await self._finder.find())
        except (KubeError, wire.DecodeError) as error:
            log.info("whether another operator acts cannot be seen", lease=self._rival.lease, why=str(error))
            return
        self._say(holder)
        self._hold(held=holder is not None)
        await self._tell(holder)

    def _hold(self, *, held: bool) -> None:
        scope, group = self._known.scope, self._rival.group
        if (group in scope.held) is not held:
            changed = scope.held | {group} if held else scope.held - {group}
            self._known.scope = replace(scope, held=changed)
            self._wake(group)

    def _say(self, holder: Holder | None) -> None:
        """One line when it begins to act, and one when it has stopped."""
        before, rival = self._told, self._rival
        acts = holder is not None and holder.is_renewing
        acted = before is not None and before.is_renewing
        if acts and not acted and holder is not None:
            log.warning(
                f"{rival.name} acts on {rival.group}: its objects are observed, and nothing is changed",
                lease=str(holder.lease),
                holder=holder.identity,
            )
        elif holder is not None and before is None:
            log.info(f"waiting to see whether {rival.name} is running", lease=str(holder.lease))
        elif holder is None and before is not None:
            log.info(f"{rival.name} does not act any more: its objects are ours from now on")
        self._told = holder

    async def _tell(self, holder: Holder | None) -> None:
        """Give every object the condition that it should have, or none."""
        if asyncio.get_running_loop().time() < self._refused_until:
            return
        wanted = condition(self._rival, holder)
        for thing in list(self._known.records[self._rival.about].values()):
            if not says(thing, wanted):
                try:
                    written = await self._client.apply_status(
                        self._rival.kind, observing(self._rival.kind, thing, wanted), manager=FIELD_MANAGER
                    )
                except KubeError as error:
                    self._refused_until = asyncio.get_running_loop().time() + REFUSED_SECONDS
                    log.warning("status not written", key=thing.metadata.name, error=str(error))
                    return
                self._known.note_written(self._rival.kind, written)


def condition(rival: Rival, holder: Holder | None) -> Condition | None:
    """What its objects say while the other operator is seen to act."""
    if holder is None or not holder.is_renewing:
        return None
    message = (
        f"{rival.name} acts on this object: {holder.identity} renews Lease {holder.lease}. slurm-operator "
        f"changes nothing here until that stops; to hand over, scale {rival.name}'s manager to 0."
    )
    return true(OBSERVING, REASON, message)


def says(thing: Any, wanted: Condition | None) -> bool:
    """Whether an object has just this condition, or none where none is wanted."""
    live = next((one for one in thing.status.conditions if one.type == OBSERVING), None)
    if live is None or wanted is None:
        return live is wanted
    return (live.status, live.reason, live.message) == (wanted.status, wanted.reason, wanted.message)


def observing(kind: Kind, thing: Any, wanted: Condition | None) -> Manifest:
    """A status with just this condition, or with none."""
    meta, now = thing.metadata, datetime.now(UTC)
    new = [] if wanted is None else [wanted]
    conditions = settled(new, thing.status.conditions, generation=meta.generation, now=now)
    # An empty list takes ours away. Without it nothing would be left of a status that is ours alone, and the
    # schema takes no null for it.
    status = {"conditions": codec.plain(conditions)}
    metadata = {"name": meta.name, "namespace": meta.namespace, "uid": meta.uid}
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata, "status": status}
