"""StatefulSets, Deployments and pods as their controllers and kubelets would keep them."""

from collections.abc import Iterator
from datetime import datetime

from slurm_operator import wire
from slurm_operator.api.schema.kind import Kind
from slurm_operator.api.shared import belonging, names
from slurm_operator.api.shared.meta import ObjectKey
from slurm_operator.insight.world_snapshot import Picture
from slurm_operator.manifests import kinds
from slurm_operator.manifests.digests import digest
from slurm_operator.manifests.meta import Child, Manifest
from slurm_operator.manifests.objects import (
    ContainerState,
    ContainerStateRunning,
    ContainerStateTerminated,
    ContainerStatus,
    KubeNode,
    Pod,
    PodCondition,
    PodStatus,
)
from slurm_operator.reconcilers.controller.annotations import REHEARSAL_APP
from slurm_operator.reconcilers.controller.daemon.trial_scripts import GOOD

WORKLOADS = (kinds.STATEFUL_SET, kinds.DEPLOYMENT)
CHILD_KINDS = (
    *WORKLOADS,
    kinds.CONFIG_MAP,
    kinds.CONTROLLER_REVISION,
    kinds.DISRUPTION_BUDGET,
    kinds.PERSISTENT_VOLUME_CLAIM,
    kinds.SERVICE,
)
READY = "Ready"


def revision(child: Child) -> str:
    """What the newest pods are called after."""
    known = (child.body.get("status") or {}).get("updateRevision", "")
    return str(known) or new_revision(child.body)


def new_revision(body: Manifest) -> str:
    return digest(body["spec"]["template"])[:10]


def is_rolling(child: Child) -> bool:
    """Whether its controller replaces outdated pods."""
    strategy = child.body["spec"].get("updateStrategy") or {}
    return bool(strategy.get("type", "RollingUpdate") == "RollingUpdate")


def pods_of(kind: Kind, child: Child, picture: Picture) -> list[Pod]:
    labels = child.body["spec"]["selector"]["matchLabels"].items()
    mine = [
        pod for pod in picture.all(Pod, child.metadata.namespace) if labels <= pod.metadata.labels.items()
    ]
    return [pod for pod in mine if _is_named_after(child.metadata.name, pod)]


def pods_named_after(key: ObjectKey, picture: Picture) -> list[Pod]:
    """Of a workload that is gone."""
    pods = picture.all(Pod, key.namespace)
    return [pod for pod in pods if _is_of_a_workload(pod) and _is_named_after(key.name, pod)]


def missing_pods(kind: Kind, child: Child, picture: Picture) -> Iterator[Manifest]:
    spec, there = child.body["spec"], pods_of(kind, child, picture)
    taken = {pod.metadata.name for pod in there}
    for index in range(spec.get("replicas", 1)):
        if kind == kinds.STATEFUL_SET and f"{child.metadata.name}-{index}" not in taken:
            yield _pod(kind, child, f"{child.metadata.name}-{index}")
    if kind == kinds.DEPLOYMENT:
        for index in range(spec.get("replicas", 1) - len(there)):
            yield _pod(kind, child, f"{child.metadata.name}-{digest(spec['template'])[:8]}-{index}")


def surplus_pods(kind: Kind, child: Child, picture: Picture) -> list[Pod]:
    """The youngest of a Deployment, the last of a StatefulSet."""
    wanted, there = child.body["spec"].get("replicas", 1), pods_of(kind, child, picture)
    if kind == kinds.STATEFUL_SET:
        return [pod for pod in there if _index(pod) >= wanted]
    return sorted(there, key=lambda pod: pod.metadata.name)[wanted:]


def _pod(kind: Kind, child: Child, name: str) -> Manifest:
    template = child.body["spec"]["template"]
    metadata = template.get("metadata") or {}
    is_set = kind == kinds.STATEFUL_SET
    owner = {
        "apiVersion": kind.api_version,
        "kind": kind.kind if is_set else kinds.REPLICA_SET.kind,
        "name": child.metadata.name,
        "uid": child.metadata.uid if is_set else f"{child.metadata.uid}-set",
        "controller": True,
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": child.metadata.namespace,
            "labels": {**(metadata.get("labels") or {}), names.LABEL_REVISION: revision(child)},
            "annotations": metadata.get("annotations") or {},
            "ownerReferences": [owner],
        },
        "spec": {**template["spec"], "hostname": name},
    }


def status(child: Child, wanted: int, ready: int, newest: str) -> Manifest:
    counts = dict.fromkeys(("replicas", "updatedReplicas"), wanted)
    counts |= dict.fromkeys(("readyReplicas", "availableReplicas"), ready)
    return {
        **(child.body.get("status") or {}),
        **counts,
        "observedGeneration": child.metadata.generation,
        "updateRevision": newest,
        "currentRevision": newest,
    }


def running(pod: Pod, picture: Picture) -> Pod:
    """The pod with all its containers up; a rehearsal or a check says that all is well."""
    now = picture.now.replace(microsecond=0)
    if belonging.daemon_of(pod.metadata.labels) == REHEARSAL_APP:
        return wire.replace(pod, status=_ended(pod, now))
    node = pod.spec.node_name or _place(pod, picture)
    started = ContainerState(running=ContainerStateRunning(started_at=now))
    statuses = tuple(
        ContainerStatus(name=one.name, ready=True, started=True, image=one.image, state=started)
        for one in pod.spec.containers
    )
    ready = PodCondition(type=READY, status="True", last_transition_time=now)
    done = ContainerState(terminated=ContainerStateTerminated(exit_code=0, finished_at=now))
    checked = (ContainerStatus(name="check-database", state=done),)
    return wire.replace(
        pod,
        spec=wire.replace(pod.spec, node_name=node),
        status=PodStatus(
            phase="Running",
            pod_ip=f"planned:{pod.metadata.uid}",
            conditions=(ready,),
            container_statuses=statuses,
            init_container_statuses=checked if belonging.daemon_of(pod.metadata.labels) == "slurmdbd" else (),
        ),
    )


def _ended(pod: Pod, now: datetime) -> PodStatus:
    state = ContainerState(terminated=ContainerStateTerminated(exit_code=0, message=GOOD, finished_at=now))
    return PodStatus(phase="Succeeded", container_statuses=(ContainerStatus(name="slurmctld", state=state),))


def _place(pod: Pod, picture: Picture) -> str:
    """A machine without a pod of the same owner, if there is one; whether it would fit nobody knows here."""
    owner = pod.metadata.owner
    taken = {
        other.spec.node_name
        for other in picture.all(Pod)
        if owner is not None and other.metadata.owner is not None and other.metadata.owner.uid == owner.uid
    }
    free = [one.metadata.name for one in picture.all(KubeNode) if not one.spec.unschedulable]
    return next((name for name in free if name not in taken), free[0] if free else "")


def pinned_to(spec: Manifest) -> str:
    """The one machine that a pod may run on; empty when the scheduler chooses."""
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    for term in required.get("nodeSelectorTerms") or ():
        for rule in term.get("matchFields") or ():
            if rule.get("key") == "metadata.name" and rule.get("values"):
                return str(rule["values"][0])
    return str(spec.get("nodeName", ""))


def _is_named_after(workload: str, pod: Pod) -> bool:
    return pod.metadata.name.startswith(f"{workload}-")


def _is_of_a_workload(pod: Pod) -> bool:
    owner = pod.metadata.owner
    return owner is not None and (owner.is_a(kinds.STATEFUL_SET) or owner.is_a(kinds.REPLICA_SET))


def _index(pod: Pod) -> int:
    number = pod.metadata.name.rpartition("-")[2]
    return int(number) if number.isdecimal() else 0
