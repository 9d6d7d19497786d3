"""The kinds of the second API group, `slurm.nebius.ai`: a Slurm cluster around one shared root directory."""

from slurm_operator.api.nebius.activecheck import ActiveCheck
from slurm_operator.api.nebius.jailedconfig import JailedConfig
from slurm_operator.api.nebius.nodeconfigurator import NodeConfigurator
from slurm_operator.api.nebius.nodeset import NodeSet
from slurm_operator.api.nebius.powerstate import NodeSetPowerState
from slurm_operator.api.nebius.slurmcluster import SlurmCluster
from slurm_operator.api.schema.crd import Resource

# Every kind of this group, in the order in which people meet them.
KINDS: tuple[type[Resource], ...] = (
    SlurmCluster,
    NodeSet,
    NodeSetPowerState,
    NodeConfigurator,
    JailedConfig,
    ActiveCheck,
)

__all__ = [
    "KINDS",
    "ActiveCheck",
    "JailedConfig",
    "NodeConfigurator",
    "NodeSet",
    "NodeSetPowerState",
    "SlurmCluster",
]
