"""Reservations: nodes set aside for a time."""

from datetime import datetime

from slurm_operator import wire


class Reservation(wire.Record):
    """One reservation as slurmctld last described it. Slurm adds flags of its own, such as SPEC_NODES."""

    name: str
    start_time: datetime | None = None
    end_time: datetime | None = None
    nodes: tuple[str, ...] = ()
    partition: str = ""
    users: tuple[str, ...] = ()
    accounts: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    flags: frozenset[str] = frozenset()
    features: str = ""
    licenses: str = ""
    node_count: int = 0
    core_count: int = 0

    def is_active(self, now: datetime) -> bool:
        """Whether it holds its nodes now. Without an end it never stops."""
        started = self.start_time is not None and self.start_time <= now
        return started and (self.end_time is None or now < self.end_time)
