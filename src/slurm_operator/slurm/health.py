"""How slurmctld itself is doing, and the licences it hands out."""

from collections.abc import Mapping

from slurm_operator import wire


class ControllerPing(wire.Record):
    """One slurmctld, primary or standby, and whether it answered."""

    hostname: str
    is_primary: bool
    is_responding: bool
    status: str = ""
    latency_us: int = 0


class Diagnosis(wire.Record):
    """slurmctld's own counters, by Slurm's names; only plain numbers, nested ones with a dot."""

    counters: Mapping[str, float]

    @property
    def is_database_behind(self) -> bool:
        """Records for slurmdbd pile up: it is away, or too slow."""
        return self.counters.get("dbd_agent_queue_size", 0) > 0


class License(wire.Record):
    name: str
    total: int = 0
    used: int = 0
    reserved: int = 0
    is_remote: bool = False
