"""What Slurm is told of workers before they say it themselves: their size, by limits and extraConf."""

import math
from collections.abc import Iterable
from decimal import Decimal

from slurm_operator.api.shared.worker_parts import Records
from slurm_operator.api.slinky.nodeset import NodeSet
from slurm_operator.manifests.compare.differences import quantity
from slurm_operator.slurm.conf.lines import pair_text
from slurm_operator.slurm.conf.merge import worker_conf, worker_pairs
from slurm_operator.slurm.hostlist import compress

# Items that say how many CPUs a node has; with one of them the limits say nothing more about that.
SHAPE = {
    "cpus",
    "procs",
    "boards",
    "sockets",
    "socketsperboard",
    "corespersocket",
    "threadspercore",
}


def own_conf(nodeset: NodeSet, topology: str = "") -> str:
    """What a worker says of itself. A record that is made before it has the same size as it."""
    extra = nodeset.spec.extra_conf
    if nodeset.spec.records is Records.REGISTERED:
        return worker_conf(nodeset.slurm_name, extra, topology)
    size = " ".join(f"{key}={value}" for key, value in _size(nodeset).items())
    return worker_conf(nodeset.slurm_name, f"{extra} {size}", topology)


def record_conf(nodeset: NodeSet, topology: str = "") -> str:
    """What a record says that is made before its worker, behind the name."""
    said = [
        pair_text(pair) for pair in worker_pairs(own_conf(nodeset, topology)) if pair.key.lower() != "state"
    ]
    return " ".join([*said, "State=CLOUD"])


def node_line(nodeset: NodeSet, slurm_nodes: Iterable[str]) -> str:
    """The line of slurm.conf for these workers."""
    return f"NodeName={compress(slurm_nodes)} {record_conf(nodeset)}"


def _size(nodeset: NodeSet) -> dict[str, str]:
    """CPUs and memory by the limits, as far as extraConf does not say them. Left out, Slurm would take 1."""
    said = {pair.key.lower() for pair in worker_pairs(nodeset.spec.extra_conf)}
    cpus, memory = limits(nodeset)
    shape = {"CPUs": cpus} if said.isdisjoint(SHAPE) else {}
    found = {**shape, **({} if "realmemory" in said else {"RealMemory": memory})}
    return {key: value for key, value in found.items() if value != "0"}


def limits(nodeset: NodeSet) -> tuple[str, str]:
    """CPUs and mebibytes that the container, else the pod, is limited to; 0 is no limit.

    Half a CPU is one, as everywhere in Kubernetes: rounded down it would be none, and that is no limit.
    """
    own = (nodeset.spec.slurmd.get("resources") or {}).get("limits") or {}
    pods = (nodeset.spec.template.spec.get("resources") or {}).get("limits") or {}
    cpus = amount(own.get("cpu") or pods.get("cpu") or 0)
    memory = amount(own.get("memory") or pods.get("memory") or 0)
    return str(math.ceil(cpus)), str(int(memory / 2**20))


def amount(quantity_: str | int | float) -> Decimal:
    """A Kubernetes quantity as a number; 0 for what is none."""
    number = quantity(quantity_)
    return number if isinstance(number, Decimal) else Decimal(0)
