"""The node list of slurmrestd, any version, as SlurmNodes."""

from slurm_operator import wire
from slurm_operator.slurm.node import SlurmNode, Vitals
from slurm_operator.slurmrest.envelope import Envelope
from slurm_operator.slurmrest.values import (
    Number,
    Text,
    Words,
    count,
    moment,
    node_state,
    number,
    text,
    whole,
    words,
)


class WireNode(wire.Record):
    """The fields we read; the others are passed over without being built."""

    name: str
    state: Words = None
    address: Text = None
    hostname: Text = None
    port: Number = None
    reason: Text = None
    reason_set_by_user: Text = None
    reason_changed_at: Number = None
    comment: Text = None
    extra: Text = None
    instance_id: Text = None
    instance_type: Text = None
    features: Words = None
    active_features: Words = None
    partitions: Words = None
    reservation: Text = None
    topology: Text = None
    gres: Text = None
    gres_used: Text = None
    cpus: Number = None
    effective_cpus: Number = None
    alloc_cpus: Number = None
    real_memory: Number = None
    alloc_memory: Number = None
    weight: Number = None
    version: Text = None
    boot_time: Number = None
    slurmd_start_time: Number = None
    resume_after: Number = None
    next_state_after_reboot: Words = None
    cpu_load: Number = None
    free_mem: Number = None
    last_busy: Number = None


class NodesReply(Envelope):
    nodes: list[WireNode] | None = None


def slurm_node(found: WireNode) -> SlurmNode:
    load = number(found.cpu_load)
    return SlurmNode(
        name=found.name,
        state=node_state(found.state),
        address=text(found.address),
        hostname=text(found.hostname),
        port=whole(found.port),
        reason=text(found.reason),
        reason_set_by=text(found.reason_set_by_user),
        reason_changed_at=moment(found.reason_changed_at),
        comment=text(found.comment),
        extra=text(found.extra),
        instance_id=text(found.instance_id),
        instance_type=text(found.instance_type),
        features=words(found.features),
        active_features=words(found.active_features),
        partitions=words(found.partitions),
        reservation=text(found.reservation),
        topology=text(found.topology),
        gres=text(found.gres),
        gres_used=text(found.gres_used),
        cpus=count(found.cpus),
        effective_cpus=count(found.effective_cpus),
        allocated_cpus=count(found.alloc_cpus),
        real_memory_mb=count(found.real_memory),
        allocated_memory_mb=count(found.alloc_memory),
        weight=count(found.weight),
        version=text(found.version),
        boot_time=moment(found.boot_time),
        slurmd_start_time=moment(found.slurmd_start_time),
        resume_after=moment(found.resume_after),
        next_state_after_reboot=tuple(w for w in words(found.next_state_after_reboot) if w != "INVALID"),
        vitals=Vitals(
            cpu_load=None if load is None else load / 100,
            free_memory_mb=whole(found.free_mem),
            last_busy=moment(found.last_busy),
        ),
    )
