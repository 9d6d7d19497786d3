"""The smaller answers of slurmrestd: reservations, partitions, pings, licences, counters, configuration."""

from collections.abc import Mapping
from typing import Any

from slurm_operator import wire
from slurm_operator.slurm.health import ControllerPing, Diagnosis, License
from slurm_operator.slurm.partition import Partition
from slurm_operator.slurm.reservation import Reservation
from slurm_operator.slurmrest.answers.envelope import Envelope
from slurm_operator.slurmrest.answers.values import (
    Number,
    Text,
    Triple,
    Words,
    count,
    host_words,
    minutes,
    moment,
    number,
    text,
    words,
)


class WireReservation(wire.Record):
    name: str
    start_time: Number = None
    end_time: Number = None
    node_list: Words = None
    partition: Text = None
    users: Words = None
    accounts: Words = None
    groups: Words = None
    flags: Words = None
    features: Text = None
    licenses: Words = None
    node_count: Number = None
    core_count: Number = None


class ReservationsReply(Envelope):
    reservations: list[WireReservation] | None = None


def reservation(found: WireReservation) -> Reservation:
    return Reservation(
        name=found.name,
        start_time=moment(found.start_time),
        end_time=moment(found.end_time),
        nodes=host_words(found.node_list),
        partition=text(found.partition),
        users=words(found.users),
        accounts=words(found.accounts),
        groups=words(found.groups),
        flags=frozenset(words(found.flags)),
        features=text(found.features),
        licenses=",".join(words(found.licenses)),
        node_count=count(found.node_count),
        core_count=count(found.core_count),
    )


class _Nodes(wire.Record):
    configured: Words = None
    total: Number = None


class _Cpus(wire.Record):
    total: Number = None


class _State(wire.Record):
    state: Words = None


class _Time(wire.Record):
    time: Number = None


class _Allowed(wire.Record):
    allowed: Text = None


class _Priority(wire.Record):
    tier: Number = None


class WirePartition(wire.Record):
    name: str
    nodes: _Nodes = _Nodes()
    cpus: _Cpus = _Cpus()
    partition: _State = _State()
    defaults: _Time = _Time()
    maximums: _Time = _Time()
    accounts: _Allowed = _Allowed()
    qos: _Allowed = _Allowed()
    priority: _Priority = _Priority()
    flags: Words = None
    node_sets: Text = None
    topology: Text = None


class PartitionsReply(Envelope):
    partitions: list[WirePartition] | None = None


def partition(found: WirePartition) -> Partition:
    return Partition(
        name=found.name,
        state=frozenset(words(found.partition.state)),
        nodes=host_words(found.nodes.configured),
        node_sets=text(found.node_sets),
        is_default=None if found.flags is None else "DEFAULT" in words(found.flags),
        total_nodes=count(found.nodes.total),
        total_cpus=count(found.cpus.total),
        max_time=minutes(found.maximums.time),
        default_time=minutes(found.defaults.time),
        priority_tier=count(found.priority.tier),
        allowed_accounts=text(found.accounts.allowed),
        allowed_qos=text(found.qos.allowed),
        topology=text(found.topology),
    )


class WirePing(wire.Record):
    hostname: Text = None
    responding: bool | None = None
    primary: bool | None = None
    mode: Text = None
    pinged: Text = None
    status: Text = None
    latency: Number = None


class PingReply(Envelope):
    pings: list[WirePing] | None = None


def controller_ping(found: WirePing) -> ControllerPing:
    """Older versions say `pinged: UP` and `mode: primary` instead of two booleans."""
    responding = found.responding if found.responding is not None else found.pinged == "UP"
    return ControllerPing(
        hostname=text(found.hostname),
        is_primary=found.primary if found.primary is not None else found.mode == "primary",
        is_responding=responding,
        status=text(found.status) or text(found.pinged),
        latency_us=count(found.latency),
    )


class WireLicense(wire.Record, rename="pascal"):
    license_name: str
    total: Number = None
    used: Number = None
    reserved: Number = None
    remote: bool = False


class LicensesReply(Envelope):
    licenses: list[WireLicense] | None = None


def license_(found: WireLicense) -> License:
    return License(
        name=found.license_name,
        total=count(found.total),
        used=count(found.used),
        reserved=count(found.reserved),
        is_remote=found.remote,
    )


class DiagReply(Envelope):
    statistics: dict[str, Any] | None = None


def diagnosis(statistics: Mapping[str, Any]) -> Diagnosis:
    return Diagnosis(counters=_counters(statistics))


def _counters(values: Mapping[str, Any], prefix: str = "") -> dict[str, float]:
    """The plain numbers; `{set, infinite, number}` counts as one, and lists (per user, per call) do not."""
    found: dict[str, float] = {}
    for name, value in values.items():
        if isinstance(value, Mapping) and "number" in value:
            value = number(wire.convert(value, Triple))
        if isinstance(value, Mapping):
            found |= _counters(value, f"{prefix}{name}.")
        elif isinstance(value, int | float) and not isinstance(value, bool):
            found[prefix + name] = value
    return found


class _Configuration(wire.Record):
    slurmctld_parameters: Words = wire.field(name="SlurmctldParameters", default=None)
    private_data: Words = wire.field(name="PrivateData", default=None)


class ConfigReply(Envelope):
    slurm_conf: _Configuration | None = None


def slurmctld_parameters(found: ConfigReply) -> tuple[str, ...]:
    return words(found.slurm_conf.slurmctld_parameters) if found.slurm_conf else ()


def private_data(found: ConfigReply) -> tuple[str, ...]:
    """What users see of their own only: jobs, nodes, accounts …"""
    named = words(found.slurm_conf.private_data) if found.slurm_conf else ()
    return tuple(word.lower() for word in named if word.lower() != "none")
