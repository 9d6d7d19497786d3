"""Names by which Soperator's processes and cloud providers tell each other about Kubernetes nodes."""

from typing import Final

# Conditions of Kubernetes nodes. By the first two a node is asked to be emptied or rebooted; the
# rebooter on it answers in their reasons.
DRAIN: Final = "SlurmNodeDrain"
REBOOT: Final = "SlurmNodeReboot"
DEGRADED: Final = "SoperatorChecksNodeDegraded"
MAINTENANCE: Final = "SoperatorChecksNodeMaintenance"
HARDWARE_SUSPECTED: Final = "HardwareIssuesSuspected"
# Set by the cloud provider; another name can be configured.
MAINTENANCE_SCHEDULED: Final = "NebiusMaintenanceScheduled"

# Ours: more workers would be taken out of service than the brake allows.
BRAKED: Final = "SlurmNodeBraked"

# Reasons of `SlurmNodeDrain`, in the order in which they follow each other
NEED_DRAIN: Final = "NodeNeedDrain"
DRAINING: Final = "NodeDraining"
DRAINED: Final = "NodeDrained"
UNDRAINED: Final = "NodeUndrained"
# Reasons of `SlurmNodeReboot`
NEED_REBOOT: Final = "NodeNeedReboot"
REBOOTING: Final = "NodeRebooting"
REBOOTED: Final = "NodeRebooted"
# The reason of `HardwareIssuesSuspected`
HEALTH_CHECK_FAILED: Final = "GPUHealthCheckFailedSoperator"

# The reason of conditions that were taken back: nobody asks for it any more
CANCELLED: Final = "NodeRequestCancelled"
# Reasons of `SlurmNodeBraked`
BRAKE_ON: Final = "BrakeOn"
BRAKE_OFF: Final = "BrakeOff"

# The taint of a Kubernetes node that the rebooter empties
DRAIN_TAINT: Final = "node.kubernetes.io/NoExecute"
