"""NodeSetPowerStates as power-manager reads and writes them."""

from dataclasses import dataclass

from slurm_operator.agents.power.calls import Change
from slurm_operator.api.nebius.nodeset import NodeSet
from slurm_operator.api.nebius.powerstate import NodeSetPowerState
from slurm_operator.api.schema import codec
from slurm_operator.api.shared.meta import ObjectKey
from slurm_operator.kube.client import Client
from slurm_operator.kube.errors import Conflict, NotFound

_READ_NODESET = codec.decoder(NodeSet)
_READ_STATE = codec.decoder(NodeSetPowerState)


@dataclass(frozen=True)
class Skipped:
    """Nothing is to be done for these nodes, and why."""

    why: str


class States:
    """Those of one namespace."""

    def __init__(self, client: Client, namespace: str) -> None:
        self._client = client
        self._namespace = namespace

    async def switch(self, nodeset: str, change: Change) -> list[int] | Skipped:
        """The active numbers afterwards. Raises KubeError when that cannot be done now.

        Others write there too, so a write names the version that it was made from, and is made again.
        """
        if (skipped := await self._skipped(nodeset)) is not None:
            return skipped
        while True:
            state = await self._state(nodeset)
            active = state.spec.active_nodes if state.spec is not None else []
            wanted = change.applied(active)
            if wanted == sorted(set(active)):
                return wanted
            patch = {
                "metadata": {"resourceVersion": state.metadata.resource_version},
                "spec": {"activeNodes": wanted},
            }
            try:
                await self._client.merge_patch(NodeSetPowerState.KIND, self._key(nodeset), patch)
            except Conflict:
                continue
            return wanted

    async def active(self, nodeset: str) -> list[int] | Skipped:
        if (skipped := await self._skipped(nodeset)) is not None:
            return skipped
        state = await self._state(nodeset)
        return list(state.spec.active_nodes) if state.spec is not None else []

    async def _state(self, nodeset: str) -> NodeSetPowerState:
        return await self._client.read(NodeSetPowerState.KIND, self._key(nodeset), _READ_STATE)

    async def _skipped(self, nodeset: str) -> Skipped | None:
        try:
            found = await self._client.read(NodeSet.KIND, self._key(nodeset), _READ_NODESET)
        except NotFound:
            return Skipped(f"there is no NodeSet {nodeset!r} in namespace {self._namespace!r}")
        is_ephemeral = found.spec is not None and found.spec.ephemeral_nodes
        return None if is_ephemeral else Skipped(f"NodeSet {nodeset!r} has no ephemeral nodes")

    def _key(self, nodeset: str) -> ObjectKey:
        return ObjectKey(self._namespace, nodeset)
