"""The pod of one worker: our slurmd, the user's wishes over it."""

from collections.abc import Mapping
from dataclasses import dataclass

from slurm_operator.api.shared import names
from slurm_operator.api.shared.auth import with_munge
from slurm_operator.api.shared.config_source import ConfigSource
from slurm_operator.api.shared.images import default_image
from slurm_operator.api.shared.worker_parts import Records, ScalingMode
from slurm_operator.api.slinky.controller import Controller
from slurm_operator.api.slinky.key_secrets import munge_key, slurm_key
from slurm_operator.api.slinky.nodeset import NodeSet
from slurm_operator.manifests.builders import hardening, key_ring, logs, munge, parts
from slurm_operator.manifests.builders.dns import controller_address, worker_domain
from slurm_operator.manifests.builders.owners import owner_reference
from slurm_operator.manifests.builders.shell import one_word
from slurm_operator.manifests.digests import digest
from slurm_operator.manifests.merge import merged_pod
from slurm_operator.manifests.meta import Manifest
from slurm_operator.reconcilers.nodeset import identity
from slurm_operator.reconcilers.nodeset.creation import host_network, supervisor
from slurm_operator.reconcilers.nodeset.creation.placement import DAEMON_TOLERATED, TOLERATED
from slurm_operator.reconcilers.nodeset.creation.prestop_script import LEAVE
from slurm_operator.reconcilers.nodeset.creation.revisions import Revision
from slurm_operator.reconcilers.nodeset.creation.volumes import mounted
from slurm_operator.reconcilers.nodeset.report import killing_probes
from slurm_operator.reconcilers.shared.node_lines import limits, own_conf

# What a worker tells Slurm about its resources. When it changes, the record in Slurm has to go with the pod.
RESOURCES_DIGEST = "nodeset.slinky.slurm.net/resources-digest"

# What a worker with a line in slurm.conf is called, for slurmd -N.
NODE_NAME = "SLURM_NODE_NAME"

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
        self._given = identity.owner(nodeset).pod_metadata(nodeset.spec.template, "slurmd")
        self._owners = [owner_reference(nodeset.KIND, nodeset.metadata)]
        ring = (
            {} if controller.spec.external else {names.KEY_RING: key_ring.name_of(slurm_key(controller).name)}
        )
        self._notes = {
            RESOURCES_DIGEST: resources_digest(nodeset),
            names.POD_SECURITY: names.POD_SECURITY_NOW,
            **ring,
            **(notes or {}),
        }
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
    auth = with_munge(controller.spec.auth)
    base = {
        "hostname": slot.hostname,
        "subdomain": controller.child_names.workers,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": nodeset.spec.termination_grace_period_seconds,
        "tolerations": list(DAEMON_TOLERATED if slot.is_daemon else TOLERATED),
        "dnsConfig": {"searches": [worker_domain(controller)]},
        "containers": [slurmd(nodeset, controller, slot)],
        "initContainers": [
            *([munge.sidecar(auth, image(nodeset))] if auth is not None else []),
            logs.sidecar("slurmd.log", image(nodeset), nodeset.spec.logfile),
        ],
        "volumes": volumes(nodeset, controller),
    }
    wishes = nodeset.spec.template.spec | {"hostname": slot.hostname}
    whole = merged_pod(
        {"automountServiceAccountToken": False, **base}, wishes, ("slurmd", "logfile", munge.NAME)
    )
    whole.pop("nodeName", None)  # The scheduler places workers, so that priorities and preemption work.
    # Jobs run in the container of slurmd, with sudo and containers of their own: that one stays as it is.
    confined = hardening.confined(whole, (logs.NAME, munge.NAME), without_root=(logs.NAME,))
    return host_network.adapted(killing_probes.without_empty(confined), is_daemon=slot.is_daemon)


def slurmd(nodeset: NodeSet, controller: Controller, slot: Slot) -> Manifest:
    spec = nodeset.spec
    ports = [{"name": "slurmd", "containerPort": names.SLURMD_PORT, "protocol": "TCP"}]
    mounts = [
        {"name": "slurm-etc", "mountPath": key_ring.directory(spec.config_source), "readOnly": True},
        logs.mount(),
    ]
    if with_munge(controller.spec.auth) is not None:
        mounts.append(munge.mount())
    if spec.ssh.enabled:
        ports.append({"name": "ssh", "containerPort": names.SSH_PORT, "protocol": "TCP"})
        mounts += _ssh_mounts(nodeset)
    base = {
        "name": "slurmd",
        "image": image(nodeset),
        "args": arguments(nodeset, controller, slot),
        "env": [*environment(nodeset), *_key_environment(nodeset, controller)],
        "ports": ports,
        # No other probe: when one of those fails, the kubelet kills slurmd, and every job with it.
        "readinessProbe": parts.slurm_probe(
            image(nodeset), "/readyz", "slurmd", period_seconds=1, failures=3
        ),
        "securityContext": {
            "privileged": True,
            "capabilities": {"add": ["BPF", "NET_ADMIN", "SYS_ADMIN", "SYS_NICE"]},
        },
        "lifecycle": {"preStop": {"exec": {"command": ["/bin/sh", "-c", LEAVE]}}},
        "volumeMounts": mounts,
    }
    whole = parts.container(base, spec.slurmd)
    return whole if spec.supervisor is None else supervisor.supervised(whole)


def arguments(nodeset: NodeSet, controller: Controller, slot: Slot) -> list[str]:
    """How slurmd is started.

    With -b it registers as one that has just booted: slurmctld passes over the registration of a node that it
    takes for switched off, if its machine was up before.
    """
    is_configless = nodeset.spec.config_source is ConfigSource.CONFIGLESS
    server = ["--conf-server", controller_address(controller)] if is_configless else []
    conf = ["--conf", one_word(own_conf(nodeset, slot.topology))]
    match nodeset.spec.records:
        case Records.STATIC:
            return ["-N", f"$({NODE_NAME})", "-b", *server]
        case Records.CREATED:
            return ["-Z", "-b", *server, *conf]
        case Records.REGISTERED:
            return ["-Z", *server, *conf]


def _key_environment(nodeset: NodeSet, controller: Controller) -> list[Manifest]:
    if with_munge(controller.spec.auth) is not None:
        return []
    return key_ring.environment(nodeset.spec.config_source, has_ring=not controller.spec.external)


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
        *(_node_name() if nodeset.spec.records is Records.STATIC else []),
        {"name": "SLINKY_TOPOLOGY", "valueFrom": topology},
        *adopt,
    ]


def _node_name() -> list[Manifest]:
    label = f"metadata.labels['{names.LABEL_POD_HOSTNAME}']"
    return [{"name": NODE_NAME, "valueFrom": {"fieldRef": {"fieldPath": label}}}]


def resources_digest(nodeset: NodeSet) -> str:
    """Changes when a worker would register with other resources than before."""
    return digest([nodeset.spec.extra_conf.split(), limits(nodeset), nodeset.spec.slurmd.get("resources")])


def volumes(nodeset: NodeSet, controller: Controller) -> list[Manifest]:
    made = [*_key_volumes(controller), logs.volume()]
    if nodeset.spec.supervisor is not None:
        made.append(supervisor.volume(nodeset.spec.supervisor))
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


def _key_volumes(controller: Controller) -> list[Manifest]:
    """/etc/slurm with the Slurm keys; none with munge: slurmd with one uses auth/slurm (seen in 26.05)."""
    if with_munge(controller.spec.auth) is not None:
        return [parts.memory_volume("slurm-etc"), *munge.volumes(munge_key(controller))]
    key = slurm_key(controller)
    ring = [] if controller.spec.external else [key_ring.file(key.name)]
    given = parts.secret_file(key.name, key.key, names.SLURM_KEY_FILE)
    return [parts.projected("slurm-etc", 0o600, given, *ring)]


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
        terms = [_beside_none(label) for label in _worker_labels(nodeset)]
        apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
        spec = parts.with_affinity(spec, apart)
    if not slot.kube_node:
        return spec
    rule = {"key": "metadata.name", "operator": "In", "values": [slot.kube_node]}
    required = {"nodeSelectorTerms": [{"matchFields": [rule]}]}
    affinity = spec.get("affinity") or {}
    preferred = affinity.get("nodeAffinity") or {}
    here = {**preferred, "requiredDuringSchedulingIgnoredDuringExecution": required}
    return {**spec, "affinity": {**affinity, "nodeAffinity": here}}


def _worker_labels(nodeset: NodeSet) -> list[str]:
    """By which labels other workers are known; where this one has a name of its own, others may have, too."""
    is_renamed = names.LABEL_PART in identity.owner(nodeset).selector
    return [names.APP_NAME, names.LABEL_PART] if is_renamed else [names.APP_NAME]


def _beside_none(label: str) -> Manifest:
    selector = {"matchExpressions": [{"key": label, "operator": "In", "values": ["slurmd"]}]}
    return {"labelSelector": selector, "topologyKey": "kubernetes.io/hostname"}
