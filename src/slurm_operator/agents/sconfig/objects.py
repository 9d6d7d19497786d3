"""JailedConfigs as the API server has them, read into what the decisions are about."""

import base64
import binascii
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final

from slurm_operator import wire
from slurm_operator.agents.sconfig import groups
from slurm_operator.agents.sconfig.groups import UpdateAction
from slurm_operator.api.schema.kind import Kind
from slurm_operator.api.shared.conditions import Condition, Truth
from slurm_operator.api.shared.meta import Meta
from slurm_operator.manifests.objects import ConfigMap

KIND: Final = Kind(
    group="slurm.nebius.ai", version="v1alpha1", kind="JailedConfig", plural="jailedconfigs", namespaced=True
)

INSTANCE_LABEL: Final = "app.kubernetes.io/instance"
AGGREGATION_LABEL: Final = "slurm.nebius.ai/jailed-aggregation"

_OWNER_KIND: Final = "SlurmCluster"
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class WireCondition(wire.CamelRecord):
    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: datetime | None = None
    observed_generation: int | None = None


class _Reference(wire.CamelRecord):
    name: str = ""


class _Item(wire.CamelRecord):
    key: str
    path: str
    mode: int | None = None


class _Spec(wire.CamelRecord):
    config_map: _Reference = _Reference()
    items: tuple[_Item, ...] | None = None
    default_mode: int | None = None
    update_actions: tuple[str, ...] | None = None


class _Status(wire.CamelRecord):
    conditions: tuple[WireCondition, ...] | None = None


class JailedConfig(wire.CamelRecord):
    metadata: Meta
    spec: _Spec = _Spec()
    status: _Status | None = None

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """Those that have one of the three statuses; what somebody else wrote there is passed over."""
        found = self.status.conditions if self.status is not None else None
        return tuple(_condition(each) for each in found or () if each.status in _TRUTHS)


decode = wire.decoder(JailedConfig)

_TRUTHS: Final = {truth.value: truth for truth in Truth}


def _condition(found: WireCondition) -> Condition:
    return Condition(
        type=found.type,
        status=_TRUTHS[found.status],
        reason=found.reason,
        message=found.message,
        last_transition_time=found.last_transition_time,
        observed_generation=found.observed_generation,
    )


def jailed_config(found: JailedConfig, conditions: tuple[Condition, ...]) -> groups.JailedConfig:
    """What the decisions look at; the conditions may be newer than those of the object."""
    owner = found.metadata.owner
    return groups.JailedConfig(
        name=found.metadata.name,
        created_at=found.metadata.creation_timestamp or _EPOCH,
        config_map=found.spec.config_map.name,
        items=tuple(groups.Item(item.key, item.path, item.mode) for item in found.spec.items or ()),
        default_mode=found.spec.default_mode,
        actions=tuple(action for action in UpdateAction if action in (found.spec.update_actions or ())),
        aggregation=found.metadata.labels.get(AGGREGATION_LABEL, ""),
        is_managed=owner is not None and owner.kind == _OWNER_KIND,
        conditions=conditions,
    )


def content(found: ConfigMap) -> Mapping[str, bytes]:
    """What a ConfigMap holds, by key. The API server takes no key in both of its maps, and no bad base64."""
    binary = {key: _decoded(value) for key, value in found.binary_data.items()}
    return binary | {key: value.encode() for key, value in found.data.items()}


def _decoded(value: str) -> bytes:
    try:
        return base64.b64decode(value)
    except (binascii.Error, ValueError):
        return b""
