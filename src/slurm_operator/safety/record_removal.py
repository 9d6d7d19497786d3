"""Which of Slurm's records of nodes may be removed."""

from slurm_operator.slurm.snapshot import Snapshot, Unreachable


def may_delete_record(slurm_node: str, slurm: Snapshot | Unreachable, own_reservation: str = "") -> bool:
    """Never a record that a job, also a pending one, or a reservation names, or that a human drained."""
    record = slurm.nodes.get(slurm_node) if isinstance(slurm, Snapshot) else None
    if record is None or not isinstance(slurm, Snapshot):
        return False
    reserved = [found for found in slurm.reservations_naming(slurm_node) if found.name != own_reservation]
    named = slurm.jobs_naming(slurm_node) or reserved
    return not named and not record.is_drained_by_people and record.state.is_dynamic
