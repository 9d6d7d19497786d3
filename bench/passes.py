"""What one pass over a NodeSet costs, by how many workers it has: plain functions, no API server."""

import gc
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from bench.rig import nodeset as wanted_nodeset
from bench.rows import Row
from slurm_operator import wire
from slurm_operator.api.schema import codec
from slurm_operator.api.shared import names
from slurm_operator.api.shared.meta import ObjectKey, OwnerReference
from slurm_operator.api.slinky.controller import Controller
from slurm_operator.api.slinky.nodeset import NodeSet
from slurm_operator.kube.auth.access import Access
from slurm_operator.kube.client import Client
from slurm_operator.manifests import kinds
from slurm_operator.manifests.meta import Child, Meta
from slurm_operator.manifests.objects import (
    ContainerState,
    ContainerStateRunning,
    ContainerStatus,
    KubeNode,
    Pod,
    PodCondition,
    PodSpec,
    PodStatus,
)
from slurm_operator.operator import program
from slurm_operator.plan.plan import Outcome
from slurm_operator.reconcilers.nodeset import RECONCILER
from slurm_operator.reconcilers.nodeset.creation import revisions
from slurm_operator.reconcilers.nodeset.creation.pod import RESOURCES_DIGEST, resources_digest
from slurm_operator.runtime.settings import Settings
from slurm_operator.runtime.world.caches import Caches, CacheView
from slurm_operator.slurm.node import SlurmNode
from slurm_operator.slurm.reasons import OurReason
from slurm_operator.slurm.snapshot import Snapshot, Unreachable
from slurm_operator.slurm.states import NodeState
from slurm_operator.slurmsync.connections import SlurmClusters

SIZES = (100, 1_000, 3_000)
ROUNDS = 3
NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
KEY = ObjectKey("bench", "gpu")
HALF_WAY = "an update half way"
STATES = ("nothing to do", "all to create", "a tenth too many", "a new template", HALF_WAY)


def measure() -> list[Row]:
    rows = []
    for state in STATES:
        costs = {size: best(state, size) for size in SIZES}
        small = costs[SIZES[0]] / SIZES[0]
        for size, cost in costs.items():
            rows.append(
                Row(
                    f"a pass over {size:,} workers, {state}",
                    cost * 1000,
                    "CPU ms",
                    f"per worker with {SIZES[0]}",
                    cost / size / small,
                )
            )
    return rows


def best(state: str, size: int) -> float:
    world = World(state, size)
    return min(_once(world) for _ in range(ROUNDS))


def _once(world: "World") -> float:
    gc.collect()
    began = time.process_time()
    one_pass(world)
    return time.process_time() - began


def one_pass(world: "World") -> None:
    seen = RECONCILER.observe(KEY, world)
    assert seen is not None
    plan = RECONCILER.decide(seen, NOW)
    RECONCILER.status(seen, plan, Outcome())


class World(CacheView):
    """The World of the running operator, with caches filled by hand."""

    def __init__(self, state: str, size: int) -> None:
        client = Client(Access(server="http://127.0.0.1:1"))
        sources = program(Settings()).sources
        super().__init__(Caches(client, sources, ("",), SlurmClusters(client, lambda: True)))
        self.now = NOW
        pods = [] if state == "all to create" else [worker(number, size) for number in range(size)]
        if state == HALF_WAY:
            pods = [_older(pod) if number % 2 else pod for number, pod in enumerate(pods)]
        self._slurm = slurm(pods)
        desired = size - size // 10 if state == "a tenth too many" else size
        live = _nodeset(desired)
        for thing in (live, _controller(), *_machines(), *pods):
            self._known.records[type(thing)].put(thing)
        for child in _revisions(live, is_new=state == "a new template"):
            self._known.children[kinds.CONTROLLER_REVISION].put(child)

    def slurm(self, namespace: str, controller: str) -> Snapshot | Unreachable:
        return self._slurm


def _nodeset(replicas: int) -> NodeSet:
    made = wanted_nodeset(replicas)
    made["metadata"] = _meta("gpu", "set-uid") | {"finalizers": [names.WORKERS_FINALIZER]}
    return codec.read(NodeSet, made)


def _controller() -> Controller:
    return codec.read(Controller, {"metadata": _meta("slurm", "c-uid"), "spec": {}})


def _meta(name: str, uid: str) -> dict[str, Any]:
    return {"name": name, "namespace": "bench", "uid": uid, "resourceVersion": "1", "generation": 1}


def _machines() -> Iterator[KubeNode]:
    for number in range(40):
        yield KubeNode(metadata=Meta(name=f"fake-{number}", uid=str(number), resource_version="1"))


def _revisions(live: NodeSet, *, is_new: bool) -> Iterator[Child]:
    if is_new:
        return
    body = revisions.manifest(live, revisions.current(live, ()))
    owner = OwnerReference(
        api_version="slinky.slurm.net/v1beta1", kind="NodeSet", name="gpu", uid="set-uid", controller=True
    )
    meta = Meta(
        name=body["metadata"]["name"],
        namespace="bench",
        uid="rev",
        resource_version="1",
        labels=body["metadata"]["labels"],
        annotations=body["metadata"]["annotations"],
        owner_references=(owner,),
    )
    yield Child(metadata=meta, body=body)


def worker(number: int, size: int) -> Pod:
    live, name = _nodeset(size), f"gpu-{number}"
    owner = OwnerReference(
        api_version="slinky.slurm.net/v1beta1", kind="NodeSet", name="gpu", uid="set-uid", controller=True
    )
    labels = {
        names.APP_NAME: "slurmd",
        names.LABEL_SCALING_MODE: "StatefulSet",
        names.LABEL_REVISION: revisions.current(live, ()).hash,
        names.LABEL_POD_HOSTNAME: name,
        names.LABEL_POD_PROTECT: "true",
    }
    running = ContainerState(running=ContainerStateRunning(started_at=NOW - timedelta(hours=1)))
    conditions = [
        PodCondition(type=type_, status="True", last_transition_time=NOW)
        for type_ in ("Ready", names.POD_CONDITION_PREFIX + "Idle")
    ]
    return Pod(
        metadata=Meta(
            name=name,
            namespace="bench",
            uid=f"{number:08x}",
            resource_version="1",
            labels=labels,
            annotations={RESOURCES_DIGEST: resources_digest(live)},
            creation_timestamp=NOW - timedelta(hours=1),
            owner_references=(owner,),
        ),
        spec=PodSpec(node_name=f"fake-{number % 40}", hostname=name),
        status=PodStatus(
            phase="Running",
            pod_ip=_address(number),
            conditions=tuple(conditions),
            container_statuses=(ContainerStatus(name="slurmd", ready=True, state=running),),
        ),
    )


def _older(pod: Pod) -> Pod:
    labels = {**pod.metadata.labels, names.LABEL_REVISION: "before"}
    return wire.replace(pod, metadata=wire.replace(pod.metadata, labels=labels))


def _state(pod: Pod) -> tuple[NodeState, str]:
    """Every second one of the older revision drains."""
    is_older = pod.metadata.labels[names.LABEL_REVISION] == "before"
    if not is_older or int(pod.metadata.name.removeprefix("gpu-")) % 4 == 1:
        return NodeState.of("IDLE", "DYNAMIC_NORM"), ""
    reason = OurReason(cause="Update", text="being replaced", pod_uid=pod.metadata.uid)
    return NodeState.of("MIXED", "DRAIN", "DYNAMIC_NORM"), str(reason)


def _address(number: int) -> str:
    return f"10.0.{number // 250}.{number % 250}"


def slurm(pods: list[Pod]) -> Snapshot:
    nodes = {
        pod.metadata.name: SlurmNode(
            name=pod.metadata.name,
            state=_state(pod)[0],
            reason=_state(pod)[1],
            address=pod.status.pod_ip,
            slurmd_start_time=NOW,
            features=("gpu",),
            active_features=("gpu",),
            cpus=2,
            real_memory_mb=24103,
            version="26.05.5",
        )
        for pod in pods
    }
    return Snapshot(nodes=nodes, jobs={}, nodes_asked_at=NOW, jobs_asked_at=NOW)


if __name__ == "__main__":
    import cProfile
    import pstats

    for state in sys.argv[2:] or STATES:
        world = World(state, int(sys.argv[1]))
        print(state, _once(world), _once(world))
        with cProfile.Profile() as profile:
            one_pass(world)
        pstats.Stats(profile).sort_stats("cumulative").print_stats(45)
