"""Where topology.conf puts each node, as a record would have to say it."""

from collections.abc import Mapping
from functools import lru_cache

from slurm_operator.slurm.conf.includes import load
from slurm_operator.slurm.conf.lines import Setting
from slurm_operator.slurm.conf.networks import DEFAULT, TOPOLOGY_CONF, TOPOLOGY_YAML, networks
from slurm_operator.slurm.hostlist import HostlistError, expand
from slurm_operator.slurm.topology import Place

_SEVERAL = "Switches"


def node_places(texts: Mapping[str, str]) -> Mapping[str, str]:
    """Places by the names of nodes; none where slurmctld does not read a tree or blocks from topology.conf.

    A place is the whole path from the root down. slurmctld knows it as long as it knows the root, whatever
    becomes of the switches below (seen on 26.05.5).
    """
    network = networks(texts).get(DEFAULT)
    if TOPOLOGY_YAML in texts or TOPOLOGY_CONF not in texts or network is None:
        return {}
    return _placed(texts[TOPOLOGY_CONF]) if network.type in ("tree", "block") else {}


@lru_cache(maxsize=64)
def _placed(text: str) -> Mapping[str, str]:
    return {name: str(Place(DEFAULT, path)) for name, path in paths(text).items()}


@lru_cache(maxsize=64)  # The same few files in every pass.
def paths(text: str) -> Mapping[str, tuple[str, ...]]:
    """The switches above each node from the top down, or its block."""
    conf = load({TOPOLOGY_CONF: text}, TOPOLOGY_CONF)
    switches, blocks = conf.all("SwitchName"), conf.all("BlockName")
    above = {child: line.value for line in switches for child in _names(line, _SEVERAL)}
    found = {name: _path(line.value, above) for line in switches for name in _names(line, "Nodes")}
    return found | {name: (line.value,) for line in blocks for name in _names(line, "Nodes")}


def _path(unit: str, above: Mapping[str, str]) -> tuple[str, ...]:
    """From the top down to `unit`; a circle is left where it closes."""
    path = [unit]
    while (parent := above.get(path[-1])) is not None and parent not in path:
        path.append(parent)
    return tuple(reversed(path))


def _names(line: Setting, option: str) -> list[str]:
    try:
        return expand(line.option(option) or "")
    except HostlistError:
        return []
