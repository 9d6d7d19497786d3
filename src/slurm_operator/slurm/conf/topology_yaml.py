"""topology.yaml: several network topologies of one cluster, as topology.yaml(5) describes them."""

import re
from collections.abc import Iterable, Iterator

import yaml

from slurm_operator import wire
from slurm_operator.slurm.conf.problems import Fault, LineProblem
from slurm_operator.slurm.hostlist import HostlistError, expand
from slurm_operator.slurm.topology import MAX_SWITCH_CHARACTERS


class _Part(wire.Record, omit_defaults=True):
    """Written without what is left at its default."""


class Switch(_Part):
    """A switch with either other switches or nodes below it, as hostlists."""

    switch: str
    children: str | None = None
    nodes: str | None = None


class Tree(_Part):
    switches: tuple[Switch, ...] = ()


class Block(_Part):
    block: str
    nodes: str | None = None


class Blocks(_Part):
    """Blocks of nodes, and how many nodes a group of them has at each level: 4, 16, ..."""

    block_sizes: tuple[int, ...] = ()
    blocks: tuple[Block, ...] = ()


class Ring(_Part):
    ring: str
    nodes: str | None = None


class Rings(_Part):
    rings: tuple[Ring, ...] = ()


class Cells(_Part):
    x: int = 0
    y: int = 0
    z: int = 0


class Region(_Part):
    anchor: Cells
    dims: Cells
    nodes: str | None = None


class Placement(_Part):
    dims: Cells
    anchor_seed: Cells | None = None
    anchor_spacing: Cells | None = None


class Torus(_Part):
    name: str
    dims: Cells
    nodes: str | None = None
    regions: tuple[Region, ...] = ()
    placements: tuple[Placement, ...] = ()


class Toruses(_Part):
    toruses: tuple[Torus, ...] = ()


class Flat(_Part):
    alpha_step_rank: bool = False


class Topology(_Part):
    """One topology, of exactly one type."""

    topology: str
    cluster_default: bool = False
    tree: Tree | None = None
    block: Blocks | None = None
    ring: Rings | None = None
    torus3d: Toruses | None = None
    flat: bool | Flat | None = None

    @property
    def types(self) -> list[str]:
        found = {
            "tree": self.tree,
            "block": self.block,
            "ring": self.ring,
            "torus3d": self.torus3d,
            "flat": self.flat,
        }
        return [name for name, body in found.items() if body is not None and body is not False]


class TopologyYamlError(ValueError):
    """Not a topology.yaml. Carries the line."""

    def __init__(self, line: int, reason: str) -> None:
        super().__init__(reason)
        self.line = line


def parse(text: str) -> list[Topology]:
    """The topologies in order. Raises TopologyYamlError at the first thing that cannot be read."""
    try:
        if any(isinstance(event, yaml.AliasEvent) for event in yaml.parse(text, Loader=yaml.SafeLoader)):
            raise TopologyYamlError(1, "aliases are not taken here")
        return wire.convert(yaml.safe_load(text), list[Topology])
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise TopologyYamlError(line, f"no YAML: {error.problem}") from error
    except yaml.YAMLError as error:
        raise TopologyYamlError(1, f"no YAML: {error}") from error
    except wire.DecodeError as error:
        raise TopologyYamlError(_line_of(text, str(error)), str(error)) from error


def render(topologies: Iterable[Topology]) -> str:
    """The file; `parse` gives the same topologies back."""
    return yaml.safe_dump([wire.plain(topology) for topology in topologies], sort_keys=False, width=100)


def problems(text: str, file: str = "topology.yaml") -> Iterator[LineProblem]:
    """What is wrong with the file. Of what cannot be read, only the first."""
    try:
        topologies = parse(text)
    except TopologyYamlError as error:
        yield LineProblem(file, error.line, str(error))
        return
    for path in _strangers(yaml.safe_load(text), topologies, "$"):
        reason = f"Slurm passes over {path.rpartition('.')[2]}: there is no such field"
        yield LineProblem(file, _line_of(text, f"`{path}`"), reason, Fault.IGNORED)
    lines = [node.start_mark.line + 1 for node in yaml.compose(text, Loader=yaml.SafeLoader).value]
    names: set[str] = set()
    for line, topology in zip(lines, topologies, strict=True):
        reasons = [*_complaints(topology), *(["its name is taken"] if topology.topology in names else [])]
        names.add(topology.topology)
        for reason in reasons:
            yield LineProblem(file, line, f"topology {topology.topology}: {reason}", Fault.BAD_VALUE)


def unit_names(topology: Topology) -> list[str]:
    """The names of its switches, blocks, rings or toruses."""
    return _units(topology)[0]


def _complaints(topology: Topology) -> Iterator[str]:
    if len(topology.types) != 1:
        has = ", ".join(topology.types) or "none"
        yield f"must have exactly one of tree, block, ring, torus3d and flat, and has {has}"
    units, hostlists = _units(topology)
    for name in sorted({unit for unit in units if units.count(unit) > 1}):
        yield f"{name} is there twice"
    for name in units:
        if topology.tree and len(name) > MAX_SWITCH_CHARACTERS:
            yield f"the switch {name} has more than {MAX_SWITCH_CHARACTERS} characters"
    for hostlist in hostlists:
        try:
            expand(hostlist)
        except HostlistError as error:
            yield str(error)


def _units(topology: Topology) -> tuple[list[str], list[str]]:
    """The names of switches, blocks, rings or toruses, and every hostlist."""
    switches = topology.tree.switches if topology.tree else ()
    blocks = topology.block.blocks if topology.block else ()
    rings = topology.ring.rings if topology.ring else ()
    toruses = topology.torus3d.toruses if topology.torus3d else ()
    names = [
        *(switch.switch for switch in switches),
        *(block.block for block in blocks),
        *(ring.ring for ring in rings),
        *(torus.name for torus in toruses),
    ]
    hostlists = [
        *(switch.children for switch in switches),
        *(switch.nodes for switch in switches),
        *(block.nodes for block in blocks),
        *(ring.nodes for ring in rings),
        *(torus.nodes for torus in toruses),
        *(region.nodes for torus in toruses for region in torus.regions),
    ]
    return names, [hostlist for hostlist in hostlists if hostlist]


def _strangers(raw: object, read: object, path: str) -> Iterator[str]:
    """Where fields stand that none of our records has."""
    if isinstance(raw, dict) and isinstance(read, _Part):
        for name, value in raw.items():
            if name in read.__struct_fields__:
                yield from _strangers(value, getattr(read, name), f"{path}.{name}")
            else:
                yield f"{path}.{name}"
    elif isinstance(raw, list) and isinstance(read, list | tuple):
        for at, (one, other) in enumerate(zip(raw, read, strict=True)):
            yield from _strangers(one, other, f"{path}[{at}]")


def _line_of(text: str, message: str) -> int:
    """The line that a message of the decoder speaks of: `... - at `$[0].tree.switches[1]``."""
    node = yaml.compose(text, Loader=yaml.SafeLoader)
    line = node.start_mark.line + 1 if node else 1
    path = re.search(r"`\$(.*?)`", message)
    for name, index in re.findall(r"\.(\w+)|\[(\d+)\]", path[1] if path else ""):
        if isinstance(node, yaml.SequenceNode) and index:
            node = node.value[int(index)]
        elif isinstance(node, yaml.MappingNode) and name:
            node = next((value for key, value in node.value if key.value == name), None)
        if node is None:
            break
        line = node.start_mark.line + 1
    return line
