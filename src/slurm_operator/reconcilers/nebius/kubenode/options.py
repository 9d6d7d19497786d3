"""What node controllers are told by flags."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final

from slurm_operator.api.nebius import node_conditions
from slurm_operator.reconcilers.nebius.shared.brake import Limit

_LIMIT: Final = Limit()


@dataclass(frozen=True)
class NodeOptions:
    """Everything that deletes a Kubernetes node, or has it replaced, is off unless asked for."""

    follows_slurm: bool = True  # Drains of Slurm nodes lead to conditions, and conditions to drains.
    follows_conditions: bool = True  # Conditions of Kubernetes nodes lead to others.
    follows_storage: bool = True  # Workers whose local storage is nearly full are drained.
    maintenance_condition: str = node_conditions.MAINTENANCE_SCHEDULED
    ignored_labels: Mapping[str, str] = field(default_factory=dict)
    replaces: bool = False
    deletes_drained: bool = False
    deletes_not_ready: bool = False
    not_ready_timeout: timedelta = timedelta(minutes=15)
    storage_threshold: float = 85.0  # Percent of a worker's limit; above it is drained,
    storage_resume_threshold: float = 80.0  # and below it is lifted again.
    brake: Limit = _LIMIT


DEFAULTS: Final = NodeOptions()
