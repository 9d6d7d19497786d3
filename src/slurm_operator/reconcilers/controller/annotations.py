"""Names of what only this reconciler makes, and of the notes it leaves on objects."""

from typing import Final

from slurm_operator.api.shared import belonging
from slurm_operator.conditions import Reason
from slurm_operator.manifests.meta import Child

REHEARSAL_APP: Final = "slurm-rehearsal"

# Volumes of a slurmctld pod.
ETC_VOLUME: Final = "slurm-etc"
STATE: Final = "statesave"

# A word of ours in SlurmctldParameters. slurmctld passes over it and reports it, so it tells which files are
# the ones that it has read.
DIGEST_WORD: Final = "config_digest="

# On slurmctld pods: "<digest> <time>" of the files that were sent last. Writing it also makes the kubelet
# look at the pod, so that the files arrive in a second instead of a minute.
FILES_SENT: Final = "slinky.slurm.net/config-sent"
# "<digest> <how often> <time>" of the last reconfigure that was asked for.
RECONFIGURE_ASKED: Final = "slinky.slurm.net/config-asked"

# "<since>": the version of the key ring that slurmctld was told to read, and did not refuse.
RING_READ: Final = "slinky.slurm.net/key-ring-read"

# On the ConfigMap: when its files were last changed. A slurmctld that started later has read them.
WRITTEN_AT: Final = "slinky.slurm.net/config-written-at"
# On the ConfigMap: a configuration that passed the rehearsal, but that slurmctld then did not take.
REFUSED_DIGEST: Final = "slinky.slurm.net/config-refused"
REFUSED_REASON: Final = "slinky.slurm.net/config-refused-reason"

# The reason of the write that remembers a configuration which works.
CONFIG_KEPT: Final = Reason.CONFIG_KEPT

# What a Service is for: all clients, whose Service alone Prometheus scrapes, or one slurmctld of several.
SERVICE_ROLE: Final = "controller.slinky.slurm.net/service"
MEMBER: Final = "member"


def rehearsal(controller: str, digest: str) -> str:
    """The pod that tries out a configuration, and the ConfigMap with its files."""
    return f"{controller}-rehearsal-{digest}"


def is_rehearsal(child: Child) -> bool:
    return belonging.daemon_of(child.metadata.labels) == REHEARSAL_APP
