"""What the rebooter reads from the API server and writes there: its Node, pods, and the shared list."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

import structlog

from slurm_operator import wire
from slurm_operator.agents.rebooter import budget, node
from slurm_operator.agents.rebooter.budget import HOLDERS, Holder, Slots
from slurm_operator.agents.rebooter.decide import ChangeNode, SetCondition
from slurm_operator.agents.rebooter.node import MEMO, REBOOTS, Node
from slurm_operator.agents.rebooter.pods import Pod
from slurm_operator.api.shared import names
from slurm_operator.api.shared.meta import Meta, ObjectKey
from slurm_operator.kube.client import Client
from slurm_operator.kube.errors import ApiError, BudgetRefused, Conflict, NotFound
from slurm_operator.kube.request import Selection
from slurm_operator.manifests.kinds import KUBE_NODE, LEASE, POD
from slurm_operator.manifests.meta import Manifest

log = structlog.get_logger(__name__)

_CORDON_REASON: Final = "taken out of service by the rebooter, as conditions of the Node ask for"


class _JustMeta(wire.CamelRecord):
    metadata: Meta


_read_meta = wire.decoder(_JustMeta)
_read_pod = wire.decoder(Pod)


@dataclass(frozen=True)
class Api:
    """Every write to the Node names the version that it was decided about."""

    client: Client
    lease: ObjectKey
    max_nodes: int

    # ---- Pods

    async def pods_on(self, node_name: str) -> tuple[Pod, ...]:
        return await self._pods(Selection(kind=POD, field_selector=f"spec.nodeName={node_name}"))

    async def pods_in(self, namespace: str) -> tuple[Pod, ...]:
        return await self._pods(Selection(kind=POD, namespace=namespace))

    async def _pods(self, selection: Selection) -> tuple[Pod, ...]:
        pages = [page async for page in self.client.list_pages(selection)]
        return tuple(_read_pod(bytes(item)) for page in pages for item in page.items)

    async def evict(self, pod: Pod) -> str:
        """Why it was refused; empty when it was not, or the pod is gone."""
        meta = pod.metadata
        try:
            await self.client.evict(ObjectKey(meta.namespace, meta.name), uid=meta.uid)
        except (NotFound, Conflict):
            return ""
        except BudgetRefused as refused:
            return " ".join([refused.message, *(cause.message for cause in refused.causes)])
        except ApiError as refused:
            return refused.message
        return ""

    # ---- The Node

    async def change(self, seen: Node, step: ChangeNode, now: datetime, window: timedelta) -> Manifest:
        memo = step.memo
        annotations: dict[str, str | None] = {}
        spec: dict[str, Any] = {}
        has_reason = names.NODE_CORDON_REASON in seen.metadata.annotations
        if step.cordon and not has_reason:
            memo = wire.replace(memo, explained=True)
            annotations[names.NODE_CORDON_REASON] = _CORDON_REASON
        if step.cordon is False and seen.memo.explained:
            annotations[names.NODE_CORDON_REASON] = None
        if step.cordon is not None:
            spec["unschedulable"] = step.cordon or None
        if step.taint is not None:
            spec["taints"] = (node.taints_with(seen) if step.taint else node.taints_without(seen)) or None
        if step.counts_reboot:
            annotations[REBOOTS] = node.reboots_annotation(seen, now, window)
        annotations[MEMO] = node.memo_annotation(memo)
        return await self._patch(seen, {"annotations": annotations}, {"spec": spec} if spec else {})

    async def tell(self, seen: Node, step: SetCondition, now: datetime) -> Manifest:
        told = node.with_condition(seen, step.type, step.status, step.reason, step.message, now)
        return await self._patch(seen, {}, {"status": {"conditions": told}}, subresource="status")

    async def _patch(
        self, seen: Node, metadata: dict[str, Any], body: dict[str, Any], *, subresource: str = ""
    ) -> Manifest:
        guard = {"uid": seen.metadata.uid, "resourceVersion": seen.metadata.resource_version}
        key = ObjectKey("", seen.name)
        patch = {"metadata": {**guard, **metadata}, **body}
        return await self.client.merge_patch(KUBE_NODE, key, patch, subresource=subresource)

    # ---- Who is out of service

    async def slots(self, own: str) -> tuple[Slots, Manifest | None]:
        """The list, and the Lease that it stands on. Of a full one, nodes that are gone do not count."""
        try:
            lease = await self.client.get(LEASE, self.lease)
        except NotFound:
            return Slots({}, self.max_nodes), None
        slots = Slots(budget.read(lease["metadata"].get("annotations") or {}), self.max_nodes)
        if own in slots.holders or slots.is_free_for(own):
            return slots, lease
        gone = [name for name in slots.others(own) if await self._is_gone(name, slots.holders[name])]
        there = {name: holder for name, holder in slots.holders.items() if name not in gone}
        return Slots(there, self.max_nodes), lease

    async def _is_gone(self, name: str, holder: Holder) -> bool:
        try:
            found = await self.client.read(KUBE_NODE, ObjectKey("", name), _read_meta)
        except NotFound:
            return True
        return found.metadata.uid != holder.uid

    async def claim(self, seen: Node, slots: Slots, lease: Manifest | None, now: datetime) -> None:
        """Raises Conflict when somebody was faster."""
        at = now.strftime("%Y-%m-%dT%H:%M:%SZ")
        held = {**slots.holders, seen.name: Holder(uid=seen.metadata.uid, since=at)}
        await self._write(held, lease)

    async def release(self, own: str, slots: Slots, lease: Manifest | None) -> None:
        await self._write({name: one for name, one in slots.holders.items() if name != own}, lease)

    async def _write(self, holders: budget.Holders, lease: Manifest | None) -> None:
        note = {HOLDERS: budget.annotation_text(holders)}
        if lease is None:
            metadata = {"namespace": self.lease.namespace, "name": self.lease.name, "annotations": note}
            await self.client.create(LEASE, {"metadata": metadata, "spec": {}})
            return
        before = lease["metadata"]
        annotations = {**(before.get("annotations") or {}), **note}
        await self.client.replace(LEASE, {**lease, "metadata": {**before, "annotations": annotations}})
