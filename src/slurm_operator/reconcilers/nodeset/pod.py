"""The pod of one worker: our slurmd, the user's wishes over it."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal

from slurm_operator.api import names
from slurm_operator.api.controller import Controller
from slurm_operator.api.images import default_image
from slurm_operator.api.nodeset import NodeSet
from slurm_operator.api.shared_keys import slurm_key
from slurm_operator.api.workers import ScalingMode
from slurm_operator.manifests import key_ring, logs, parts
from slurm_operator.manifests.compare import quantity
from slurm_operator.manifests.digests import digest
from slurm_operator.manifests.dns import controller_address, worker_domain
from slurm_operator.manifests.merge import merged_pod
from slurm_operator.manifests.meta import Manifest
from slurm_operator.manifests.owners import owner_reference
from slurm_operator.manifests.shell import one_word
from slurm_operator.reconcilers.nodeset import host_network, identity, probes
from slurm_operator.reconcilers.nodeset.leave import LEAVE
from slurm_operator.reconcilers.nodeset.placement import DAEMON_TOLERATED, TOLERATED
from slurm_operator.reconcilers.nodeset.revisions import Revision
from slurm_operator.reconcilers.nodeset.volumes import mounted
from slurm_operator.slurm.conf.merge import worker_conf

# What a worker tells Slurm about its resources. When it changes, the record in Slurm has to go with the pod.
RESOURCES_DIGEST = "nodeset.slinky.slurm.net/resources-digest"

# ssh lets in whom Slurm puts into a job of theirs, and nobody when that fails.
ADOPT_OPTIONS = "action_adopt_failure=deny action_generic_failure=deny"


@dataclass(frozen=True)
class Slot:
    """A place to fill: which worker, and where it has to run if that is fixed."""

    pod_name: str
    hostname: str
    ordinal: int | None = None
    kube_node: str = ""
    topology: str = ""

    @property
    def is_daemon(self) -> bool:
        return self.ordinal is None

    def slurm_node(self, nodeset: NodeSet) -> str:
        """What Slurm will call it; empty as long as that hangs on where it is put."""
        is_by_number = self.is_daemon or not identity.is_by_machine(nodeset)
        return self.hostname if is_by_number else self.kube_node

    def whose(self, nodeset: NodeSet) -> str:
        """What its volume claims are called after."""
        return identity.padded(self.ordinal, nodeset) if self.ordinal is not None else self.hostname


class WorkerPods:
    """The pods of one NodeSet, each whole, with `notes` among its annotations. Same facts in, same bytes out.

    What they have in common is made once and shared: a thousand new workers are a thousand names, not a
    thousand merges.
    """

    def __init__(
        self,
        nodeset: NodeSet,
        controller: Controller,
        revision: Revision,
        notes: Mapping[str, str] | None = None,
    ) -> None:
        self._nodeset, self._controller, self._revision = nodeset, controller, revision
        owner = parts.Owner(nodeset.KIND, nodeset.metadata, "slurmd", "worker")
        self._given = owner.pod_metadata(nodeset.spec.template, "slurmd")
        self._owners = [owner_reference(nodeset.KIND, nodeset.metadata)]
        ring = (
            {} if controller.spec.external else {names.KEY_RING: key_ring.name_of(slurm_key(controller).name)}
        )
        self._notes = {RESOURCES_DIGEST: resources_digest(nodeset), **ring, **(notes or {})}
        self._specs: dict[tuple[bool, str], Manifest] = {}

    def pod(self, slot: Slot) -> Manifest:
        spec = {**self._common(slot), "hostname": slot.hostname}
        placed = _placed(spec, self._nodeset, slot)
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": self._metadata(slot),
            "spec": mounted(placed, self._nodeset, slot.whose(self._nodeset)),
        }

    def _common(self, slot: Slot) -> Manifest:
        key = (slot.is_daemon, slot.topology)
        if key not in self._specs:
            self._specs[key] = _spec(self._nodeset, self._controller, slot)
        return self._specs[key]

    def _metadata(self, slot: Slot) -> Manifest:
        nodeset = self._nodeset
        mode = ScalingMode.DAEMON_SET if slot.is_daemon else ScalingMode.STATEFUL_SET
        ours = {
            names.LABEL_CLUSTER: nodeset.spec.controller,
            names.LABEL_POD_NAME: slot.pod_name,
            names.LABEL_POD_HOSTNAME: slot.hostname,
            names.LABEL_SCALING_MODE: str(mode),
            names.LABEL_REVISION: self._revision.hash,
            names.LABEL_HASH: self._revision.theirs,
        }
        if slot.ordinal is not None:
            ours[names.LABEL_POD_INDEX] = identity.padded(slot.ordinal, nodeset)
        if nodeset.spec.workload_disruption_protection:
            ours[names.LABEL_POD_PROTECT] = "true"
        place = {names.TOPOLOGY: slot.topology} if slot.topology else {}
        return {
            "name": slot.pod_name,
            "namespace": nodeset.metadata.namespace,
            "labels": {**self._given["labels"], **ours},
            "annotations": {**self._given["annotations"], **self._notes, **place},
            "ownerReferences": self._owners,
        }


def _spec(nodeset: NodeSet, controller: Controller, slot: Slot) -> Manifest:
    """What all workers have that are told the same: everything but their name and place."""
    base = {
        "hostname": slot.hostname,
        "subdomain": names.worker_service(controller.metadata.name),
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": nodeset.spec.termination_grace_period_seconds,
        "tolerations": list(DAEMON_TOLERATED if slot.is_daemon else TOLERATED),
        "dnsConfig": {"searches": [worker_domain(controller.metadata.name, controller.metadata.namespace)]},
        "containers": [slurmd(nodeset, controller, slot)],
        "initContainers": [logs.sidecar("slurmd.log", image(nodeset), nodeset.spec.logfile)],
        "volumes": volumes(nodeset, controller),
    }
    wishes = nodeset.spec.template.spec | {"hostname": slot.hostname}
    whole = merged_pod({"automountServiceAccountToken": False, **base}, wishes, ("slurmd", "logfile"))
    whole.pop("nodeName", None)  # The scheduler places workers, so that priorities and preemption work.
    return host_network.adapted(probes.without_empty(whole), is_daemon=slot.is_daemon)


def slurmd(nodeset: NodeSet, controller: Controller, slot: Slot) -> Manifest:
    spec = nodeset.spec
    conf = worker_conf(nodeset.slurm_name, spec.extra_conf, slot.topology)
    ports = [{"name": "slurmd", "containerPort": names.SLURMD_PORT, "protocol": "TCP"}]
    mounts = [
        {"name": "slurm-etc", "mountPath": "/etc/slurm", "readOnly": True},
        logs.mount(),
    ]
    if spec.ssh.enabled:
        ports.append({"name": "ssh", "containerPort": names.SSH_PORT, "protocol": "TCP"})
        mounts += _ssh_mounts(nodeset)
    base = {
        "name": "slurmd",
        "image": image(nodeset),
        "args": ["-Z", "--conf-server", controller_address(controller), "--conf", one_word(conf)],
        "env": [*environment(nodeset), *([] if controller.spec.external else [key_ring.ENVIRONMENT])],
        "ports": ports,
        # No other probe: when one of those fails, the kubelet kills slurmd, and every job with it.
        "readinessProbe": parts.http_probe("/readyz", "slurmd", period_seconds=1, failures=3),
        "securityContext": {
            "privileged": True,
            "capabilities": {"add": ["BPF", "NET_ADMIN", "SYS_ADMIN", "SYS_NICE"]},
        },
        "lifecycle": {"preStop": {"exec": {"command": ["/bin/sh", "-c", LEAVE]}}},
        "volumeMounts": mounts,
    }
    return parts.container(base, spec.slurmd)


def image(nodeset: NodeSet) -> str:
    given = nodeset.spec.slurmd.get("image")
    return str(given) if given else default_image("slurmd")


def environment(nodeset: NodeSet) -> list[Manifest]:
    topology = {"fieldRef": {"fieldPath": f"metadata.annotations['{names.TOPOLOGY}']"}}
    cpus, memory = limits(nodeset)
    adopt = [{"name": "PAM_SLURM_ADOPT_OPTIONS", "value": ADOPT_OPTIONS}] if nodeset.spec.ssh.enabled else []
    return [
        {"name": "POD_CPUS", "value": cpus},
        {"name": "POD_MEMORY", "value": memory},
        {"name": "POD_UID", "valueFrom": {"fieldRef": {"fieldPath": "metadata.uid"}}},
        {"name": "POD_TOPOLOGY", "valueFrom": topology},
        {"name": "SLINKY_TOPOLOGY", "valueFrom": topology},
        *adopt,
    ]


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


def resources_digest(nodeset: NodeSet) -> str:
    """Changes when a worker would register with other resources than before."""
    return digest([nodeset.spec.extra_conf.split(), limits(nodeset), nodeset.spec.slurmd.get("resources")])


def volumes(nodeset: NodeSet, controller: Controller) -> list[Manifest]:
    key = slurm_key(controller)
    ring = [] if controller.spec.external else [key_ring.file(key.name)]
    made = [
        parts.projected(
            "slurm-etc", 0o600, parts.secret_file(key.name, key.key, names.SLURM_KEY_FILE), *ring
        ),
        logs.volume(),
    ]
    if nodeset.spec.ssh.enabled:
        config = names.ssh_config(nodeset.metadata.name)
        made.append(
            parts.projected("ssh-config", 0o600, parts.config_map_file(config, "sshd_config", "sshd_config"))
        )
        sssd = nodeset.spec.ssh.sssd_conf_ref
        if sssd is not None:
            made.append(
                parts.projected("sssd-conf", 0o600, parts.secret_file(sssd.name, sssd.key, "sssd.conf"))
            )
    return made


def _ssh_mounts(nodeset: NodeSet) -> list[Manifest]:
    mounts = [
        {
            "name": "ssh-config",
            "mountPath": "/etc/ssh/sshd_config",
            "subPath": "sshd_config",
            "readOnly": True,
        }
    ]
    if nodeset.spec.ssh.sssd_conf_ref is not None:
        mounts.append(
            {
                "name": "sssd-conf",
                "mountPath": "/etc/sssd/sssd.conf",
                "subPath": "sssd.conf",
                "readOnly": True,
            }
        )
    return mounts


def _placed(spec: Manifest, nodeset: NodeSet, slot: Slot) -> Manifest:
    """One worker per machine, and on one machine only where the slot says so."""
    if not nodeset.spec.oversubscribe_node:
        selector = {"matchExpressions": [{"key": names.APP_NAME, "operator": "In", "values": ["slurmd"]}]}
        term = {"labelSelector": selector, "topologyKey": "kubernetes.io/hostname"}
        apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
        spec = parts.with_affinity(spec, apart)
    if not slot.kube_node:
        return spec
    rule = {"key": "metadata.name", "operator": "In", "values": [slot.kube_node]}
    required = {"nodeSelectorTerms": [{"matchFields": [rule]}]}
    affinity = spec.get("affinity") or {}
    preferred = affinity.get("nodeAffinity") or {}
    here = {**preferred, "requiredDuringSchedulingIgnoredDuringExecution": required}
    return {**spec, "affinity": {**affinity, "nodeAffinity": here}}
