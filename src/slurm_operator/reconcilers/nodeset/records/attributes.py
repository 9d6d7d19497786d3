"""What Kubernetes knows about a worker, told to Slurm: features, its place in the network, its pod."""

from collections.abc import Iterator

from slurm_operator import wire
from slurm_operator.api.shared import names
from slurm_operator.api.shared.worker_parts import Pruning
from slurm_operator.api.slinky.nodeset import NodeSet
from slurm_operator.conditions import Reason
from slurm_operator.plan.actions import Action, WriteSlurm
from slurm_operator.plan.plan import Lane, lane
from slurm_operator.reconcilers.nodeset import identity
from slurm_operator.reconcilers.nodeset.annotations import marked
from slurm_operator.reconcilers.nodeset.observe import Seen
from slurm_operator.reconcilers.nodeset.records import comment
from slurm_operator.reconcilers.nodeset.records.created_records import place_write
from slurm_operator.reconcilers.nodeset.workers import Worker
from slurm_operator.slurm.conf.merge import says_topology
from slurm_operator.slurm.features import are_same, has_kube_features, with_kube_features
from slurm_operator.slurm.node import SlurmNode
from slurm_operator.slurm.snapshot import Snapshot
from slurm_operator.slurm.topology import TopologyError, places
from slurm_operator.slurm.topology import are_same as are_same_places
from slurm_operator.slurm.writes import UpdateNodes


def traits(worker: Worker, seen: Seen) -> list[Lane]:
    """One lane each, so that an unknown switch does not keep features back. Nothing on old answers."""
    record = worker.record
    is_current = isinstance(seen.slurm, Snapshot) and seen.slurm.is_current(worker.slurm_node)
    if record is None or not is_current or worker.is_terminating:
        return []
    found = (
        ("features", [[*_features(worker, record, seen)]]),
        ("topology", [*_topology(worker, record, seen)]),
        ("comment", [[*_comment(worker, record, seen)]]),
    )
    return [
        lane(f"traits of {worker.slurm_node}: {trait}", *stages) for trait, stages in found if any(stages)
    ]


def _features(worker: Worker, record: SlurmNode, seen: Seen) -> Iterator[Action]:
    """Those of the machine's annotation, each with our prefix; the others are not ours to change."""
    if worker.kube_node is None:
        return
    annotation = worker.kube_node.metadata.annotations.get(names.FEATURES)
    if annotation is None and not has_kube_features((*record.features, *record.active_features)):
        return
    wanted = with_kube_features(record.features, annotation)
    active = with_kube_features(record.active_features, annotation)
    if not are_same(record.features, wanted) or not are_same(record.active_features, active):
        write = UpdateNodes(nodes=(record.name,), features=wanted, active_features=active)
        yield _write(seen, write, Reason.FEATURES, f"{record.name} has the features {', '.join(wanted)}")


def wanted_place(worker: Worker) -> str:
    """Where the machine's annotation puts this worker; empty when it says nothing, or nobody asks it."""
    kube_node = worker.kube_node
    said = kube_node.metadata.annotations.get(names.TOPOLOGY, "") if kube_node is not None else ""
    return said if said and not says_topology(worker.nodeset.spec.extra_conf) else ""


def place_problem(worker: Worker) -> str | None:
    """Why the annotation cannot be followed."""
    wanted = wanted_place(worker)
    if not wanted:
        return None
    try:
        places(wanted)
    except TopologyError as error:
        assert worker.kube_node is not None
        return f"annotation {names.TOPOLOGY} of Node {worker.kube_node.metadata.name}: {error}"
    return None


def _topology(worker: Worker, record: SlurmNode, seen: Seen) -> Iterator[list[Action]]:
    """Moves the node in Slurm, then notes that on the pod.

    Where Slurm's topology is flat it takes any place and shows none, so the note is how we know that it was
    told. A switch that Slurm does not know is refused; its words stand in the status until one of both is
    corrected.
    """
    wanted = wanted_place(worker)
    if not wanted and record.name in seen.places:
        if record.topology != seen.places[record.name]:
            yield [place_write((record.name,), seen.places[record.name], seen)]
        return
    if not wanted:
        yield from _taken_out(worker, record, seen)
    if not wanted or place_problem(worker) is not None:
        return
    is_noted = worker.pod.metadata.annotations.get(names.TOPOLOGY) == wanted
    if is_noted and (not record.topology or is_at(record.topology, wanted)):
        return
    message = f"moving {record.name} to {wanted} in Slurm's topology, as the annotation of its Node says"
    # Told once for each change of the annotation: a record keeps every switch that it was once given.
    is_there = is_at(record.topology, wanted) if is_noted else are_same_places(record.topology, wanted)
    if not is_there:
        yield [_write(seen, UpdateNodes(nodes=(record.name,), topology=wanted), Reason.TOPOLOGY, message)]
    yield [
        *marked(
            worker, Reason.TOPOLOGY, f"{record.name} is at {wanted}", annotations={names.TOPOLOGY: wanted}
        )
    ]


def _taken_out(worker: Worker, record: SlurmNode, seen: Seen) -> Iterator[list[Action]]:
    """The machine's annotation is gone: so is the place that we told Slurm, if the node is still there."""
    noted = worker.pod.metadata.annotations.get(names.TOPOLOGY, "")
    is_given = names.TOPOLOGY in seen.nodeset.spec.template.metadata.annotations
    if not noted or is_given or worker.kube_node is None or says_topology(seen.nodeset.spec.extra_conf):
        return
    if is_at(record.topology, noted):
        told = {place.topology for place in places(noted)}
        others = [place for place in record.topology.split(",") if place.partition(":")[0] not in told]
        message = f"{record.name} has no place in Slurm's topology: the annotation of its Node is gone"
        write = UpdateNodes(nodes=(record.name,), topology=",".join(others))
        yield [_write(seen, write, Reason.TOPOLOGY, message)]
    yield [
        *marked(worker, Reason.TOPOLOGY, f"{record.name} has no place", annotations={names.TOPOLOGY: None})
    ]


def is_at(topology: str, wanted: str) -> bool:
    """Whether Slurm has the node at these places; it writes the switches above them too."""
    try:
        found = {place.topology: place for place in places(topology)}
        return all(
            place.topology in found and found[place.topology].units[-len(place.units) :] == place.units
            for place in places(wanted)
        )
    except TopologyError:
        return False


def _comment(worker: Worker, record: SlurmNode, seen: Seen) -> Iterator[Action]:
    """Which pod this Slurm node is, for people and tools. Never over what somebody else wrote."""
    if not _is_told_apart(seen.nodeset) or not worker.pod.is_ready:
        return
    info, before = comment.pod_info(worker, seen.nodeset), comment.read(record.comment)
    if (not record.comment or before is not None) and before != info:
        said = wire.encode(info).decode()
        write = UpdateNodes(nodes=(record.name,), comment=said, comment_over=record.comment)
        yield _write(seen, write, Reason.COMMENT, f"{record.name} says that it is Pod {worker.name}")


def _is_told_apart(nodeset: NodeSet) -> bool:
    """Somebody asked for it, or for the removal of records called after machines: only it tells whose."""
    spec = nodeset.spec
    is_pruned = spec.prune_slurm_node_records is Pruning.NODE_NOT_FOUND and identity.is_by_machine(nodeset)
    return spec.pod_info_in_comment or is_pruned


def _write(seen: Seen, write: UpdateNodes, reason: Reason, message: str) -> WriteSlurm:
    return WriteSlurm(controller=seen.controller_key, write=write, reason=reason, message=message)
