"""What Slurm is told about the network: whether, of whom, and how often."""

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Final

from slurm_operator.api.nebius import names
from slurm_operator.api.nebius.nodeset import NodeSet
from slurm_operator.api.nebius.slurmcluster import SlurmCluster
from slurm_operator.conditions import Reason
from slurm_operator.listing import first_few
from slurm_operator.manifests import kinds
from slurm_operator.manifests.meta import Child, Manifest
from slurm_operator.manifests.moments import moment
from slurm_operator.manifests.objects import ConfigMap, Pod
from slurm_operator.plan.conditions import Condition, false, true
from slurm_operator.plan.step import Step, step
from slurm_operator.reconcilers.nebius.shared.objects import Maker
from slurm_operator.reconcilers.nebius.slurmcluster.network import (
    Plugin,
    Stand,
    kept_units,
    known_paths,
    tier_path,
    topology_conf,
)
from slurm_operator.reconcilers.nebius.slurmcluster.observe import Seen
from slurm_operator.reconcilers.shared.children import missing_among
from slurm_operator.slurm.conf.lines import parse
from slurm_operator.slurm.conf.networks import TOPOLOGY_CONF
from slurm_operator.slurm.conf.node_places import paths
from slurm_operator.slurm.hostlist import HostlistError, expand
from slurm_operator.slurm.snapshot import Snapshot
from slurm_operator.slurm.topology import is_readable, places

TOPOLOGY_KNOWN: Final = "TopologyKnown"
LABELS_MISSING: Final = Reason.LABELS_MISSING

# Each new file makes slurmctld read its configuration again. So workers that start one after the other are
# told together.
PAUSE: Final = timedelta(minutes=1)

_TOLD: Final = 5


def plugin(seen: Seen) -> Plugin | None:
    """The topology that labels describe; None where Slurm is to use another, or none."""
    wished = seen.spec.slurm_config.topology_plugin
    return next((one for one in Plugin if one == wished), None)


def next_step(seen: Seen, now: datetime) -> Step:
    """Writes the file that the engine tests and brings to slurmctld."""
    kind = plugin(seen)
    if kind is None:
        return Step()
    before, wanted = _before(seen), text(seen, kind)
    written = moment(_notes(seen).get(names.TOPOLOGY_WRITTEN, ""))
    if before == wanted:
        return step(missing_among([_manifest(seen, wanted, written or now)], seen.children))
    has_same_workers = paths(before).keys() == paths(wanted).keys()
    if has_same_workers and written is not None and timedelta(0) <= now - written < PAUSE:
        return Step(look_again=written + PAUSE - now)
    return step(missing_among([_manifest(seen, wanted, now)], seen.children))


def _manifest(seen: Seen, conf: str, written: datetime) -> Manifest:
    maker = Maker(SlurmCluster.KIND, seen.meta, seen.name)
    made = maker.config_map(names.topology_config(seen.name), "controller", {TOPOLOGY_CONF: conf})
    notes = {names.TOPOLOGY_WRITTEN: written.isoformat()}
    return made | {"metadata": {**made["metadata"], "annotations": notes}}


def text(seen: Seen, kind: Plugin) -> str:
    """topology.conf of every worker that there may be."""
    every, before = [*stands(seen, kind)], _before(seen)
    conf = topology_conf(kind, every, seen.spec.block_size)
    kept = kept_units(before, conf, _named_first(seen))
    return topology_conf(kind, every, seen.spec.block_size, kept) if kept else conf


def stands(seen: Seen, kind: Plugin) -> Iterator[Stand]:
    """Every worker, powered down ones too, and nodes that the user's own lines name."""
    known = known_paths(_before(seen), kind)
    told: set[str] = set()
    for nodeset in seen.nodesets:
        if nodeset.spec is None:
            continue
        fabric, there = nodeset.spec.topology.fabric, _pods(seen, nodeset)
        for worker in _workers(seen, nodeset, nodeset.spec.replicas):
            told.add(worker)
            path = _labelled(seen, there.get(worker), kind) or known.get(worker, ())
            yield Stand(worker, fabric, path if nodeset.spec.gpu.enabled else ())
    yield from (Stand(name) for name in _own_lines(seen) if name not in told)


def _pods(seen: Seen, nodeset: NodeSet) -> Mapping[str, Pod]:
    return seen.worker_pods.get(nodeset.metadata.name, {})


def _workers(seen: Seen, nodeset: NodeSet, replicas: int) -> list[str]:
    """Those that are wanted, that Slurm knows, and that have not left yet."""
    name, part = nodeset.metadata.name, seen.workers.get(nodeset.metadata.name)
    numbers = {*range(replicas), *(part.spec.known_numbers if part is not None else ())}
    return sorted({*(f"{name}-{number}" for number in numbers), *_pods(seen, nodeset)})


def _labelled(seen: Seen, pod: Pod | None, kind: Plugin) -> tuple[str, ...]:
    labels = seen.node_labels.get(pod.spec.node_name, {}) if pod is not None else {}
    return tier_path(labels, seen.tier_prefix, kind)


def _own_lines(seen: Seen) -> list[str]:
    """A node that no switch has runs no job."""
    found: list[str] = []
    for line in parse(seen.spec.custom_slurm_config, "").all("NodeName"):
        try:
            found += expand(line.value)
        except HostlistError:
            continue  # It is refused where files are checked.
    return sorted({*found} - {"DEFAULT"})


def _named_first(seen: Seen) -> set[str] | None:
    """Roots and blocks that records name; None while nobody can tell."""
    if not isinstance(seen.slurm, Snapshot):
        return None
    topologies = (one.topology for one in seen.slurm.nodes.values() if one.state.is_dynamic)
    return {place.units[0] for one in topologies if is_readable(one) for place in places(one)}


def _child(seen: Seen) -> Child | None:
    return seen.children.get((kinds.CONFIG_MAP, names.topology_config(seen.name)))


def _before(seen: Seen) -> str:
    """The file as it was written last; where somebody deleted it, as slurmctld runs with it."""
    found = _child(seen)
    if found is not None:
        return str((found.body.get("data") or {}).get(TOPOLOGY_CONF, ""))
    return seen.tested.data.get(TOPOLOGY_CONF, "") if isinstance(seen.tested, ConfigMap) else ""


def _notes(seen: Seen) -> dict[str, str]:
    found = _child(seen)
    return dict(found.metadata.annotations) if found is not None else {}


def topology_known(seen: Seen) -> Iterator[Condition]:
    """Whether labels say where workers with GPUs are; said only where Slurm is to know."""
    kind = plugin(seen)
    if kind is None:
        return
    kept, unknown = _unlabelled(seen, kind)
    if not kept and not unknown:
        yield true(TOPOLOGY_KNOWN, Reason.LABELLED)
        return
    every = {**kept, **unknown}
    wanted = f"{seen.tier_prefix}/tier-0" if kind is Plugin.BLOCK else f"{seen.tier_prefix}/tier-1 and up"
    message = f"Kubernetes nodes without labels {wanted}: {first_few(sorted({*every.values()}), _TOLD)}."
    if kept:
        message += f" Workers that stay where they were before: {first_few(sorted(kept), _TOLD)}."
    if unknown:
        message += f" Workers that Slurm has no place for: {first_few(sorted(unknown), _TOLD)}."
    yield false(TOPOLOGY_KNOWN, LABELS_MISSING, message)


def _unlabelled(seen: Seen, kind: Plugin) -> tuple[dict[str, str], dict[str, str]]:
    """Workers with GPUs on Kubernetes nodes whose labels say nothing: with an earlier place, and without."""
    known = known_paths(_before(seen), kind)
    found = {
        worker: pod.spec.node_name
        for nodeset in seen.nodesets
        if nodeset.spec is not None and nodeset.spec.gpu.enabled
        for worker, pod in _pods(seen, nodeset).items()
        if pod.spec.node_name and not _labelled(seen, pod, kind)
    }
    return (
        {worker: node for worker, node in found.items() if worker in known},
        {worker: node for worker, node in found.items() if worker not in known},
    )
