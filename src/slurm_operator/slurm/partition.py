"""Partitions: which nodes a job may ask for, and how."""

from datetime import timedelta

from slurm_operator import wire


class Partition(wire.Record):
    """One partition as slurmctld last described it."""

    name: str
    state: frozenset[str] = frozenset()
    nodes: tuple[str, ...] = ()
    node_sets: str = ""
    is_default: bool | None = None  # None: older API versions do not say.
    total_nodes: int = 0
    total_cpus: int = 0
    max_time: timedelta | None = None
    default_time: timedelta | None = None
    priority_tier: int = 0
    allowed_accounts: str = ""
    allowed_qos: str = ""
    topology: str = ""

    @property
    def takes_jobs(self) -> bool:
        """Jobs may be submitted to it and start. Running ones go on in every state."""
        return "UP" in self.state
