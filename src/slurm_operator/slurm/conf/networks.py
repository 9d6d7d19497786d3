"""Which places the network topologies of a configuration have, and which of them a node could not have.

Seen on 26.05.5: slurmctld ends, at a start and at a reconfigure, when a record it made or was told to make
names a place that it cannot find. A tree adds switches below one that it knows; blocks and rings add none.
A flat topology takes any place.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

from slurm_operator.slurm.conf import topology_yaml
from slurm_operator.slurm.conf.includes import load
from slurm_operator.slurm.conf.topology_yaml import TopologyYamlError
from slurm_operator.slurm.hostlist import HostlistError, expand
from slurm_operator.slurm.topology import Place, TopologyError, places

SLURM_CONF = "slurm.conf"
TOPOLOGY_CONF = "topology.conf"
TOPOLOGY_YAML = "topology.yaml"

# What a topology is called that topology.conf describes.
DEFAULT = "default"

_FLAT = "flat"
_TREE = "tree"
# What each plugin of slurm.conf calls its units, in topology.conf and in topology.yaml.
_UNITS = {"tree": "SwitchName", "block": "BlockName", "ring": "RingName"}
_WORDS = {"tree": "switch", "block": "block", "ring": "ring", "torus3d": "torus"}


@dataclass(frozen=True, slots=True)
class Network:
    """One topology: its type, and the names of its switches, blocks, rings or toruses."""

    type: str
    units: frozenset[str] = frozenset()


def networks(texts: Mapping[str, str]) -> Mapping[str, Network]:
    """The topologies by name. Without topology.yaml, slurm.conf says what topology.conf describes."""
    return _networks(tuple(texts.items()))


def missing(known: Mapping[str, Network], topology: str) -> list[str]:
    """What a node at these places names and the topologies lack, such as `switch leaf1`.

    A topology of a type that we do not know is believed to have everything: slurmctld itself is asked.
    """
    try:
        named = places(topology)
    except TopologyError:
        return []
    return [lack for place in named if (lack := _lack(known, place))]


def lost(known: Mapping[str, Network], before: Mapping[str, Network]) -> list[str]:
    """What a node could name before, and what the topologies lack of it now."""
    return [lack for topology, network in sorted(before.items()) for lack in _lost(known, topology, network)]


def _lost(known: Mapping[str, Network], topology: str, before: Network) -> Iterator[str]:
    if before.type not in _WORDS:
        now = known.get(topology)
        if now is None or now.type in _WORDS:
            yield f"places that topology {topology} took while it was {before.type}"
        return
    for unit in sorted(before.units):
        if lack := _lack(known, Place(topology, (unit,))):
            yield lack


def _lack(known: Mapping[str, Network], place: Place) -> str:
    network = known.get(place.topology)
    if network is None:
        return f"topology {place.topology}"
    word = _WORDS.get(network.type)
    if word is None:
        return ""
    needed = place.units[:1] if network.type == _TREE else place.units
    return next((f"{word} {unit}" for unit in needed if unit not in network.units), "")


@lru_cache(maxsize=128)  # The same few files in every pass.
def _networks(texts: tuple[tuple[str, str], ...]) -> Mapping[str, Network]:
    files = dict(texts)
    if TOPOLOGY_YAML in files:
        return dict(_of_yaml(files[TOPOLOGY_YAML]))
    plugin = (load(files, SLURM_CONF).last("TopologyPlugin") or "") if SLURM_CONF in files else ""
    type_ = plugin.lower().removeprefix("topology/") or _FLAT
    key = _UNITS.get(type_)
    lines = load(files, TOPOLOGY_CONF).all(key) if key and TOPOLOGY_CONF in files else ()
    return {DEFAULT: Network(type_, frozenset(name for line in lines for name in _names(line.value)))}


def _of_yaml(text: str) -> Iterator[tuple[str, Network]]:
    try:
        for topology in topology_yaml.parse(text):
            type_ = topology.types[0] if topology.types else _FLAT
            yield topology.topology, Network(type_, frozenset(topology_yaml.unit_names(topology)))
    except TopologyYamlError:
        return  # It is refused where files are checked.


def _names(expression: str) -> list[str]:
    try:
        return expand(expression)
    except HostlistError:
        return [expression]
