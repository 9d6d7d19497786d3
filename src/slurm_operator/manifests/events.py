"""What Kubernetes' own controllers complain about, where it stands nowhere but in an event."""

from datetime import datetime

from slurm_operator import wire
from slurm_operator.manifests.meta import Meta

# A workload could not make its pods: a quota, Pod Security, or an admission webhook said no.
FAILED_CREATE = "FailedCreate"

# The type of an event that complains; others only tell.
WARNING = "Warning"


class Regarding(wire.CamelRecord):
    kind: str = ""
    name: str = ""
    uid: str = ""


class Series(wire.CamelRecord):
    last_observed_time: datetime | None = None


class Event(wire.CamelRecord):
    """One complaint, and when it was last heard."""

    metadata: Meta
    regarding: Regarding = Regarding()
    reason: str = ""
    note: str = ""
    type: str = ""
    event_time: datetime | None = None
    series: Series | None = None
    deprecated_last_timestamp: datetime | None = None

    @property
    def last_seen(self) -> datetime | None:
        again = self.series.last_observed_time if self.series is not None else None
        return again or self.deprecated_last_timestamp or self.event_time or self.metadata.creation_timestamp
