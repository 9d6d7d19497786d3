"""Why a pod does not run: the scheduler, the kubelet, the volume and the machine, in their own words."""

import re
from collections.abc import Iterable

from slurm_operator.api.edited import edited_object
from slurm_operator.api.shared import belonging, names
from slurm_operator.insight.clusters import DAEMONS
from slurm_operator.insight.explain.chain import Case, Finding, Link, Remedy
from slurm_operator.manifests import kinds
from slurm_operator.manifests.events import WARNING, Event
from slurm_operator.manifests.meta import Child
from slurm_operator.manifests.objects import ContainerStatus, KubeNode, Pod
from slurm_operator.manifests.platform import StorageClass
from slurm_operator.manifests.pod_troubles import troubles
from slurm_operator.reconcilers.nodeset.report.killing_probes import has_liveness_probe
from slurm_operator.reconcilers.nodeset.worker.unresponsive import UNRESPONSIVE_AFTER
from slurm_operator.safety.gate import slurmd_of

# How a daemon says that it asked for a name and got no answer.
_NO_NAME = re.compile(
    r"name or service not known|temporary failure in name resolution|unable to resolve|resolve.* fail|"
    r"getaddrinfo|no such host|nodename nor servname",
    re.IGNORECASE,
)
_VOLUME = re.compile(r"PersistentVolumeClaim|persistentvolumeclaim|storageclass", re.IGNORECASE)
_IMAGE = {"ErrImagePull", "ImagePullBackOff", "InvalidImageName"}
_MISSING = {"CreateContainerConfigError", "CreateContainerError"}


def why_not(pod: Pod, case: Case) -> Finding | None:
    """What keeps this pod from being ready; None when it is, or is only young."""
    told = troubles([pod])
    lost = _lost_machine(pod, case)
    if lost is not None and not pod.is_ready:
        return lost.after(
            Link(subject=pod_label(pod), says="is not ready: its Kubernetes node does not answer.")
        )
    if not told:
        return _ended_before(pod, case) or _silent(pod, case)
    says = told[0].removeprefix(f"pod {pod.metadata.name} ")
    link = Link(subject=pod_label(pod), says=f"{says.rstrip('.')}.")
    if says.startswith("cannot be scheduled"):
        return _unscheduled(pod, says, case).after(link)
    container = next((one for one in _containers(pod) if one.state.waiting is not None), None)
    waiting = container.state.waiting if container is not None else None
    if container is not None and waiting is not None:
        return _not_started(pod, container, waiting.reason, says, case).after(link)
    return Finding(remedy=_described(pod, "See what its events say.", case)).after(link)


def _ended_before(pod: Pod, case: Case) -> Finding | None:
    """A container runs, but has ended before and is not ready: what it said last is most likely why."""
    for one in _containers(pod):
        ended = one.last_state.terminated
        if one.ready or ended is None or not ended.message.strip():
            continue
        words = ended.message.strip().splitlines()[-1].rstrip(".")
        says = f"has a container {one.name} that ended and is not ready again; its last words: {words}."
        return _not_started(pod, one, "", says, case).after(Link(subject=pod_label(pod), says=says))
    return None


def _silent(pod: Pod, case: Case) -> Finding | None:
    """slurmd runs and does not answer its kubelet. The operator drains it, and nothing kills it."""
    slurmd = slurmd_of(pod) if is_worker(pod) else None
    ready = pod.status.condition("ContainersReady") or pod.status.condition("Ready")
    since = ready.last_transition_time if ready is not None and ready.status == "False" else None
    if slurmd is None or slurmd.ready or slurmd.state.running is None or since is None:
        return None
    if case.picture.now - since < UNRESPONSIVE_AFTER:
        return None
    kills = (
        "Its liveness probe may kill it, and its jobs."
        if has_liveness_probe(pod)
        else "Nothing kills it: its jobs go on."
    )
    says = f"has a slurmd that runs and has not been ready since {since:%Y-%m-%d %H:%M:%S} UTC. {kills}"
    advice = (
        "See what slurmd waits for: a full disk, a file system that hangs, a log that nobody reads, or "
        "jobs that leave it no CPU. When it answers again, it takes jobs again. The last command replaces "
        "the worker when its jobs are done."
    )
    link = Link(subject=pod_label(pod), says=says)
    return Finding(chain=(link,), remedy=Remedy(advice=advice, commands=look_at_slurmd(pod, case)))


def look_at_slurmd(pod: Pod, case: Case) -> tuple[str, ...]:
    """What slurmd does, what it said, and how to have another worker."""
    name = pod.metadata.name
    return (
        case.kubectl(f"exec {name} -c slurmd -- ps -eo pid,stat,wchan:20,args"),
        case.kubectl(f"logs {name} -c logfile --tail=50"),
        case.kubectl(f"annotate pod {name} {names.POD_REPLACE}=true"),
    )


def worst(pods: Iterable[Pod], case: Case) -> Finding | None:
    """Of several pods, the one with a trouble."""
    found = (why_not(pod, case) for pod in pods if not pod.metadata.is_terminating)
    return next((one for one in found if one is not None), None)


def pod_label(pod: Pod) -> str:
    return f"Pod {pod.metadata.name}"


def _containers(pod: Pod) -> tuple[ContainerStatus, ...]:
    return (*pod.status.init_container_statuses, *pod.status.container_statuses)


def _not_started(pod: Pod, container: ContainerStatus, reason: str, says: str, case: Case) -> Finding:
    logs = case.kubectl(f"logs {pod.metadata.name} -c {container.name} --previous")
    if reason in _IMAGE:
        image = container.image or next(
            (c.image for c in pod.spec.containers if c.name == container.name), ""
        )
        field = _image_field(pod, container.name, case)
        reach = "or let its Kubernetes node reach the registry (imagePullSecrets, mirror)."
        advice = f"Correct the image {image!r} {field}, {reach}"
        return Finding(remedy=_described(pod, advice, case))
    if reason in _MISSING:
        advice = (
            "Create the Secret or ConfigMap that the kubelet misses; the container then starts automatically."
        )
        return Finding(remedy=_described(pod, advice, case))
    if _NO_NAME.search(says):
        advice = (
            "A name could not be resolved. See whether the cluster's DNS runs, and whether a NetworkPolicy "
            "keeps this pod from it."
        )
        commands = ("kubectl -n kube-system get pods -l k8s-app=kube-dns", logs)
        return Finding(
            chain=(Link(subject="DNS", says="does not resolve a name that the daemon asks for."),),
            remedy=Remedy(advice=advice, commands=commands),
        )
    advice = f"The log of {container.name} says why it ends. Fix that; it is restarted automatically."
    return Finding(remedy=Remedy(advice=advice, commands=(logs,)))


def _image_field(pod: Pod, container: str, case: Case) -> str:
    """Where a person writes the image of this container."""
    labels = pod.metadata.labels
    daemon, name = belonging.daemon_of(labels), belonging.owner_of(labels)
    type_ = next((one for one, daemons in DAEMONS.items() if daemon in daemons), None)
    about = case.picture.get(type_, pod.metadata.namespace, name) if type_ is not None else None
    if type_ is None or about is None or container != daemon:
        return "in the spec that made this pod"
    edited = edited_object(about)
    if edited is None or edited.kind != "Cluster":
        return (
            f"in spec.{daemon}.image of {type_.__name__} {name}" if edited is None else f"in {edited.where}"
        )
    inner = f"{edited.where}: {daemon}.image" if ":" in edited.field else ""
    fields = f"spec.image or spec.images.{daemon} of Cluster {edited.name}"
    return f"in {fields}" + (f", or in {inner}" if inner else "")


def _unscheduled(pod: Pod, says: str, case: Case) -> Finding:
    claim = _pending_claim(pod, says, case)
    if claim is not None:
        return _claim(claim, case)
    advice = (
        "No Kubernetes node has room for this pod and matches its rules. Ask for less in the spec, correct "
        "nodeSelector, affinity or tolerations, free a node, or add one."
    )
    nodes = "kubectl describe nodes"
    return Finding(
        remedy=Remedy(advice=advice, commands=(nodes, case.kubectl(f"describe pod {pod.metadata.name}")))
    )


def _pending_claim(pod: Pod, says: str, case: Case) -> Child | None:
    claims = case.picture.parts.get(kinds.PERSISTENT_VOLUME_CLAIM, {}).values()
    pending = [
        claim
        for claim in claims
        if claim.metadata.namespace == pod.metadata.namespace
        and (claim.body.get("status") or {}).get("phase") != "Bound"
    ]
    mine = [claim for claim in pending if claim.metadata.name.endswith(pod.metadata.name)] or pending
    return mine[0] if mine and _VOLUME.search(says) else None


def _claim(claim: Child, case: Case) -> Finding:
    name, wanted = claim.metadata.name, claim.body["spec"].get("storageClassName")
    classes = [one.metadata.name for one in case.picture.all(StorageClass)]
    complaint = _complaint(claim.metadata.uid, case)
    if wanted and classes and wanted not in classes:
        why = f"is pending: there is no StorageClass {wanted!r} (there are: {', '.join(classes)})."
        advice = (
            f"Create StorageClass {wanted!r}, or name an existing one in the spec and create the object "
            "again."
        )
    elif not wanted and not any(one.is_default for one in case.picture.all(StorageClass)):
        why = "is pending: it names no StorageClass, and none is the default."
        advice = "Mark a StorageClass as the default, or name one in the spec and create the object again."
    else:
        why = f"is pending: {complaint or 'its volume has not been made yet'}."
        advice = "See what the provisioner of its StorageClass says."
    commands = ("kubectl get storageclasses", case.kubectl(f"describe persistentvolumeclaim {name}"))
    return Finding(
        chain=(Link(subject=f"PersistentVolumeClaim {name}", says=why),),
        remedy=Remedy(advice=advice, commands=commands),
    )


def _complaint(uid: str, case: Case) -> str:
    found = [
        event for event in case.picture.all(Event) if event.regarding.uid == uid and event.type == WARNING
    ]
    found.sort(key=lambda event: event.last_seen.timestamp() if event.last_seen else 0.0)
    return found[-1].note.rstrip(".") if found else ""


def _lost_machine(pod: Pod, case: Case) -> Finding | None:
    machine = case.picture.get(KubeNode, "", pod.spec.node_name) if pod.spec.node_name else None
    return lost(machine, case) if machine is not None else None


def lost(machine: KubeNode, case: Case) -> Finding | None:
    """What is the matter with a machine whose kubelet does not answer; None when it does."""
    ready = next((one for one in machine.status.conditions if one.type == "Ready"), None)
    if ready is None or ready.status == "True":
        return None
    name = machine.metadata.name
    words = ready.message or ready.reason or "its kubelet does not answer"
    says = f"is not ready: {words.rstrip('.')}."
    advice = (
        "Bring the node back, or if it is gone for good delete its Node object: its workers are then "
        "created on other nodes. Slurm calls them DOWN after SlurmdTimeout; jobs that ran there are then "
        "requeued or lost."
    )
    return Finding(
        chain=(Link(subject=f"Node {name}", says=says),),
        remedy=Remedy(
            advice=advice, commands=(f"kubectl describe node {name}", f"kubectl delete node {name}")
        ),
    )


def _described(pod: Pod, advice: str, case: Case) -> Remedy:
    return Remedy(advice=advice, commands=(case.kubectl(f"describe pod {pod.metadata.name}"),))


def is_worker(pod: Pod) -> bool:
    return belonging.daemon_of(pod.metadata.labels) == "slurmd"
