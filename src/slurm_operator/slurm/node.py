"""A Slurm node as slurmctld last described it."""

from datetime import datetime

from slurm_operator import wire
from slurm_operator.slurm.reasons import (
    author,
    is_node_controllers_drain,
    is_our_reason,
    is_slurms_own_drain,
    is_slurms_own_reason,
)
from slurm_operator.slurm.states import NodeState


class Vitals(wire.Record):
    """What moves all the time and decides nothing: a change here wakes nobody."""

    cpu_load: float | None = None
    free_memory_mb: int | None = None
    last_busy: datetime | None = None


class SlurmNode(wire.Record):
    """One node of the full node list. Answers about single nodes show old allocations and never get here."""

    name: str
    state: NodeState
    address: str = ""
    hostname: str = ""
    port: int | None = None
    reason: str = ""
    reason_set_by: str = ""
    reason_changed_at: datetime | None = None
    comment: str = ""
    extra: str = ""
    instance_id: str = ""
    instance_type: str = ""
    features: tuple[str, ...] = ()
    active_features: tuple[str, ...] = ()
    partitions: tuple[str, ...] = ()
    reservation: str = ""
    topology: str = ""
    gres: str = ""
    gres_used: str = ""
    cpus: int = 0
    cores: int = 0  # of all its sockets
    effective_cpus: int = 0
    allocated_cpus: int = 0
    real_memory_mb: int = 0
    allocated_memory_mb: int = 0
    weight: int = 1
    version: str = ""
    boot_time: datetime | None = None
    slurmd_start_time: datetime | None = None
    resume_after: datetime | None = None
    next_state_after_reboot: tuple[str, ...] = ()
    vitals: Vitals = Vitals()

    @property
    def cpus_per_core(self) -> int:
        """How many CPUs come and go together: Slurm hands out whole cores."""
        return max(1, self.cpus // self.cores) if self.cores else 1

    @property
    def is_drained_by_us(self) -> bool:
        return self.state.is_drain and is_our_reason(self.reason)

    @property
    def is_drained_by_others(self) -> bool:
        """A human, a health check or slurmctld itself wants it drained; with or without a reason."""
        return self.state.is_drain and not is_our_reason(self.reason)

    @property
    def reason_by(self) -> tuple[str, str]:
        """Who gave its reason, and why: the person, where the reason names one."""
        return author(self.reason, self.reason_set_by)

    @property
    def is_marked_by_slurm(self) -> bool:
        """slurmctld or slurmd wrote the reason, with or without a drain."""
        return is_slurms_own_reason(self.reason, self.reason_set_by)

    @property
    def is_drained_by_slurm(self) -> bool:
        """slurmctld or slurmd drained it, for something about the slurmd that runs there."""
        return self.state.is_drain and is_slurms_own_drain(self.reason, self.reason_set_by)

    @property
    def is_drained_by_people(self) -> bool:
        """Whoever else it was, their word stays with the node, also when its worker goes."""
        is_about_its_place = is_node_controllers_drain(self.reason, self.reason_set_by)
        return self.is_drained_by_others and not self.is_drained_by_slurm and not is_about_its_place

    def differs_from(self, other: "SlurmNode") -> bool:
        """Whether anything but load, free memory and the time of the last job changed."""
        if self is other or self == other:
            return False
        return wire.replace(self, vitals=other.vitals) != other
