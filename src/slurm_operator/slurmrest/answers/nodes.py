"""The node list of slurmrestd, any version, as SlurmNodes."""

from collections.abc import Mapping
from hashlib import blake2b

from slurm_operator import wire
from slurm_operator.slurm.node import SlurmNode, Vitals
from slurm_operator.slurmrest.answers.envelope import Envelope
from slurm_operator.slurmrest.answers.values import (
    Number,
    Text,
    Words,
    count,
    moment,
    node_state,
    number,
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
    sockets: Number = None
    cores: Number = None
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
    nodes: list[wire.Raw] | None = None


_decode_node = wire.decoder(WireNode)

# Nobody finds two nodes with the same digest, and a node takes 3 KB.
_DIGEST_BYTES = 16


class Nodes:
    """Reads nodes, of which few change from one second to the next: what is said in the very same bytes as
    last time is the very same record, which spares most of the reading, and comparing it.
    """

    def __init__(self, last: Mapping[bytes, SlurmNode] | None = None) -> None:
        self._last = last or {}
        self._now: dict[bytes, SlurmNode] = {}

    def reading(self) -> "Nodes":
        """For the next list, which takes the place of this one when it was read."""
        return Nodes(self._now)

    def one(self, entry: bytes) -> SlurmNode:
        said = blake2b(entry, digest_size=_DIGEST_BYTES).digest()
        node = self._last.get(said)
        if node is None:
            node = slurm_node(_decode_node(entry))
        self._now[said] = node
        return node


def slurm_node(found: WireNode) -> SlurmNode:
    load = number(found.cpu_load)
    after = words(found.next_state_after_reboot)
    return SlurmNode(
        name=found.name,
        state=node_state(found.state),
        address=found.address or "",
        hostname=found.hostname or "",
        port=whole(found.port),
        reason=found.reason or "",
        reason_set_by=found.reason_set_by_user or "",
        reason_changed_at=moment(found.reason_changed_at),
        comment=found.comment or "",
        extra=found.extra or "",
        instance_id=found.instance_id or "",
        instance_type=found.instance_type or "",
        features=words(found.features),
        active_features=words(found.active_features),
        partitions=words(found.partitions),
        reservation=found.reservation or "",
        topology=found.topology or "",
        gres=found.gres or "",
        gres_used=found.gres_used or "",
        cpus=count(found.cpus),
        cores=count(found.sockets) * count(found.cores),
        effective_cpus=count(found.effective_cpus),
        allocated_cpus=count(found.alloc_cpus),
        real_memory_mb=count(found.real_memory),
        allocated_memory_mb=count(found.alloc_memory),
        weight=count(found.weight),
        version=found.version or "",
        boot_time=moment(found.boot_time),
        slurmd_start_time=moment(found.slurmd_start_time),
        resume_after=moment(found.resume_after),
        next_state_after_reboot=() if after == ("INVALID",) else after,
        vitals=Vitals(
            cpu_load=None if load is None else load / 100,
            free_memory_mb=whole(found.free_mem),
            last_busy=moment(found.last_busy),
        ),
    )
