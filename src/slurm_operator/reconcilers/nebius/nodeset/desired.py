"""The part that a NodeSet becomes: numbered workers of the engine on the shared root."""

from collections.abc import Iterator, Sequence
from typing import Final

from slurm_operator.api.nebius import names
from slurm_operator.api.nebius.amounts import amount_in
from slurm_operator.api.nebius.nodeset import NodeSet, Sidecar, UpdateStrategy
from slurm_operator.api.nebius.older_worker import CgroupVersion
from slurm_operator.api.nebius.powerstate import NodeSetPowerState
from slurm_operator.api.nebius.volumes import WorkerVolumeMount, given
from slurm_operator.api.shared import names as shared_names
from slurm_operator.api.shared.images import cluster_domain
from slurm_operator.api.shared.worker_parts import Records
from slurm_operator.api.slinky.nodeset import NodeSet as WorkerPart
from slurm_operator.manifests import kinds
from slurm_operator.manifests.builders.sshd import LOCAL_USERS_SSSD_CONF
from slurm_operator.manifests.digests import digest
from slurm_operator.manifests.meta import Manifest
from slurm_operator.manifests.objects import ConfigMap
from slurm_operator.reconcilers.nebius.nodeset.observe import Seen
from slurm_operator.reconcilers.nebius.shared import pods, takeover, texts
from slurm_operator.reconcilers.nebius.shared.families import Family
from slurm_operator.reconcilers.nebius.shared.objects import Maker, children, match_labels
from slurm_operator.reconcilers.nebius.shared.places import (
    SHARED_ROOT,
    SHARED_ROOT_VARIABLE,
    below,
    slurm_conf_mount,
)
from slurm_operator.reconcilers.nebius.shared.root import WORKER
from slurm_operator.reconcilers.nebius.shared.user_namespaces import can_be_mounted

_OUTPUTS: Final = "/var/log/soperator-outputs"
_JOURNAL: Final = "/var/log/journal"
_WORKER_INIT: Final = "/opt/bin/slurm/worker_init.py"
_DELAY: Final = 'sleep "$(shuf -i "0-$WORKER_INIT_RANDOM_DELAY_SECONDS" -n 1)"'
_LISTED: Final = 10_000  # Longer lists are refused.
_SYSTEM_TOKENS: Final = ("feature=", "features=", "state=")


def maker(seen: Seen) -> Maker:
    return Maker(NodeSet.KIND, seen.meta, seen.nodeset.cluster)


def limits_map(seen: Seen) -> Manifest:
    name = names.nodeset_limits(seen.nodeset.cluster, seen.name)
    data = {texts.LIMITS_CONF: texts.worker_limits(seen.spec.slurmd.security.limits_config)}
    return maker(seen).config_map(name, WORKER, data)


def sssd_secret(seen: Seen) -> Manifest | None:
    """sssd.conf for users of the root, where sssd is wanted and nobody brings one."""
    if seen.spec.sssd is None or seen.spec.sssd_conf_secret_ref_name:
        return None
    name = names.nodeset_sssd_secret(seen.nodeset.cluster, seen.name)
    manifest = maker(seen).object(kinds.SECRET, name, WORKER)
    return manifest | {"type": "Opaque", "stringData": {names.SSSD_CONF: LOCAL_USERS_SSSD_CONF}}


def selector(seen: Seen) -> str:
    """Finds the worker pods; for autoscalers."""
    wanted = {**match_labels(seen.nodeset.cluster, WORKER), names.NODESET: seen.name}
    return ",".join(f"{key}={value}" for key, value in sorted(wanted.items()))


def first_active(seen: Seen) -> int:
    """How many ephemeral workers run before Slurm has asked for any."""
    return min(seen.spec.initial_number_ephemeral_nodes, seen.spec.replicas)


def power_state(seen: Seen) -> Manifest:
    """Which ephemeral workers run at first. Whoever runs already goes on: Slurm says when it may stop."""
    there = seen.own.spec.numbers if seen.own is not None else ()
    spec = {"nodeSetRef": seen.name, "activeNodes": sorted({*range(first_active(seen)), *there})}
    return maker(seen).part(NodeSetPowerState.KIND, seen.name, WORKER, spec)


def part(seen: Seen, replicas: int, running: Sequence[int]) -> Manifest:
    """The workers that are `running`, out of so many that Slurm knows."""
    spec, cluster = seen.spec, seen.nodeset.cluster
    is_aware = spec.update_strategy is UpdateStrategy.SLURM_AWARE
    labels = {
        names.NODESET: seen.name,
        names.WORKER: "true",
        shared_names.UPDATES_FOLLOWED: str(is_aware).lower(),
    }
    claims = [*_claims(seen)]
    retention = spec.slurmd.volumes.persistent_volume_claim_retention_policy
    body: Manifest = {
        "controllerRef": {"name": cluster},
        "replicas": replicas,
        **({"ordinals": [*running]} if seen.is_ephemeral else _numbers(replicas)),
        "records": str(records(seen)),
        "configSource": "files" if seen.reads_files else "configless",
        "slurmd": _slurmd(seen),
        "template": _template(seen),
        **pods.filled({"extraConf": extra_conf(seen)}),
        "supervisor": {"configMapRef": {"name": seen.supervisord}},
        # Several workers may share a Kubernetes node: what they ask for decides that.
        "oversubscribeNode": True,
        "updateStrategy": {
            "type": "RollingUpdate",
            "rollingUpdate": {"maxUnavailable": spec.max_unavailable},
        },
        **pods.filled({"volumeClaimTemplates": claims}),
        "persistentVolumeClaimRetentionPolicy": {
            "whenDeleted": str(retention.when_deleted),
            "whenScaled": str(retention.when_scaled),
        },
        "children": children(
            cluster, WORKER, {"service": names.one_nodeset_service(cluster, seen.name)}, labels
        ),
    }
    return _noted(seen, maker(seen).part(WorkerPart.KIND, seen.name, WORKER, body))


def _noted(seen: Seen, manifest: Manifest) -> Manifest:
    """With what workers of Soperator's count as made from, while there are any: they stay while it is so."""
    if not seen.handover.has_taken_over:
        return manifest
    notes = {shared_names.KEEPS_TAKEN_OVER: takeover.made_from(seen.nodeset)}
    return manifest | {"metadata": {**manifest["metadata"], "annotations": notes}}


def _numbers(replicas: int) -> Manifest:
    """The lowest numbers stay, as in a StatefulSet: lines of gres.conf and partitions name nodes by them.

    A part would let whoever is idle go otherwise.
    """
    return {"ordinals": list(range(replicas))} if replicas <= _LISTED else {}


def records(seen: Seen) -> Records:
    """Created by REST where the image starts slurmd with -Z; lines of slurm.conf elsewhere.

    What a part once has it keeps: a line and a record of its own exclude each other.
    """
    wanted = Records.CREATED if seen.family is Family.OURS else Records.STATIC
    there = seen.own.spec.records if seen.own is not None else wanted
    return there if Records.STATIC in (there, wanted) else wanted


def extra_conf(seen: Seen) -> str:
    """What Slurm is told about each node, beside what its limits say."""
    static = [word for word in seen.spec.node_config.static.split() if not _is_ours(word)]
    features = [f"Feature={','.join(seen.spec.features)}"] if seen.spec.features else []
    resume = (
        ["AutoResume=Off"]
        if not seen.spec.node_config.auto_resume and seen.family is Family.SOPERATOR
        else []
    )
    return " ".join([*features, *resume, *static])


def _is_ours(word: str) -> bool:
    return word.lower().startswith(_SYSTEM_TOKENS)


def _slurmd(seen: Seen) -> Manifest:
    wished = seen.spec.slurmd
    security = pods.confinement(wished.security.app_armor_profile, wished.security.proc_mount)
    return {
        "image": wished.image.reference,
        "imagePullPolicy": str(wished.image.pull_policy),
        "resources": pods.resources(wished.resources, limits_cpu=True),
        # Checks the root before it becomes supervisord; that of Soperator's images is their own.
        **({"command": ["slurm-entry", "worker"]} if seen.family is Family.OURS else {}),
        "env": _environment(seen),
        **_arguments(seen),
        **pods.filled({"readinessProbe": given(wished.readiness_probe)}),
        "securityContext": {"seccompProfile": {"type": "Unconfined"}, **security},
        "volumeMounts": _mounts(seen),
    }


def _arguments(seen: Seen) -> Manifest:
    """Our images take slurmd's arguments; Soperator's read the variable."""
    if seen.family is Family.SOPERATOR or not seen.spec.extra:
        return {}
    return {"args": ["--extra", in_double_quotes(seen.spec.extra)]}


def in_double_quotes(text: str) -> str:
    """One word for a shell, in which it fills in variables and nothing else."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("`", "\\`")
    return f'"{escaped}"'


def _environment(seen: Seen) -> list[Manifest]:
    spec = seen.spec
    values = {
        "SLURM_CLUSTER_WITH_GPU": _word(spec.gpu.enabled),
        "NODESET_GPU_ENABLED": _word(spec.gpu.enabled),
        "SOPERATOR_DOCKER_ENABLED": "false",
        names.RESERVED_SLURMD_ENV[0]: str(_real_memory(seen) << 20),
        "SLURM_NODE_EXTRA": spec.extra,
        "CGROUP_V2": "true" if seen.of.cgroup_version is CgroupVersion.V2 else "",
        "NVIDIA_GDRCOPY": "enabled" if spec.gpu.nvidia.gdr_copy_enabled else "",
        SHARED_ROOT_VARIABLE: SHARED_ROOT if seen.family is Family.OURS else "",
    }
    return [
        {"name": "INSTANCE_ID", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
        *({"name": name, "value": value} for name, value in values.items() if value),
        *spec.slurmd.custom_env,
    ]


def _real_memory(seen: Seen) -> int:
    """In mebibytes, rounded down."""
    return int((amount_in(seen.spec.slurmd.resources, "memory") or 0) / (1 << 20))


def _word(is_so: bool) -> str:
    return "true" if is_so else "false"


def _every_mount(seen: Seen) -> tuple[WorkerVolumeMount, ...]:
    volumes = seen.spec.slurmd.volumes
    return (*volumes.jail_sub_mounts, *volumes.custom_volume_mounts)


def _claims(seen: Seen) -> Iterator[Manifest]:
    """A claim that each worker has of its own, for each mount without a source."""
    for one in _every_mount(seen):
        if not given(one.volume_source):
            yield {"metadata": {"name": one.name}, "spec": given(one.volume_claim_template_spec)}


def _mounts(seen: Seen) -> list[Manifest]:
    volumes, start = seen.spec.slurmd.volumes, below(seen.family)
    is_theirs = seen.family is Family.SOPERATOR
    conf = "files" if seen.reads_files else "configless"
    return [
        pods.mount("worker-spool", "/var/spool/slurmd"),
        pods.JAIL_MOUNT,
        *slurm_conf_mount(seen.family, conf),
        pods.mount(
            "security-limits", "/etc/security/limits.conf", sub_path=texts.LIMITS_CONF, read_only=True
        ),
        pods.mount("sshd-keys", "/etc/ssh/sshd_keys", read_only=True),
        pods.mount(
            "ssh-root-keys", "/root/.ssh/authorized_keys", sub_path=texts.AUTHORIZED_KEYS, read_only=True
        ),
        pods.mount("in-memory", f"{start}/mnt/memory"),
        pods.mount("tmp-disk", "/tmp"),  # noqa: S108
        pods.mount("hostlog-journal", f"{start}/var/hostlog/journal", read_only=True),
        pods.mount("soperator-outputs", f"{start}/opt/soperator-outputs/local"),
        pods.mount("dev-shm", "/dev/shm"),  # noqa: S108
        pods.mount("sysctl", "/etc/sysctl.conf", sub_path=texts.SYSCTL_CONF, read_only=True),
        pods.mount("ssh-configs-worker", "/mnt/ssh-configs", read_only=True),
        *(_their_mounts(seen) if is_theirs else ()),
        *(_sssd_mounts(seen)),
        *(pods.mounted(one, below=start) for one in volumes.jail_sub_mounts),
        *(pods.mounted(one) for one in volumes.custom_volume_mounts),
    ]


def _their_mounts(seen: Seen) -> Iterator[Manifest]:
    yield {**pods.mount("boot", "/boot", read_only=True), "mountPropagation": "HostToContainer"}
    if seen.spec.gpu.enabled:
        for name, path in _GPU_PATHS:
            yield pods.mount(name, path)
        for name, path in _GPU_PATHS[1:]:
            yield pods.mount(f"{name}-jail", f"{names.UPPER}{path}")


_GPU_PATHS: Final = (
    ("nvidia", "/run/nvidia"),
    ("nvidia-imex-cli", "/usr/bin/nvidia-imex-ctl"),
    ("nvidia-imex-config", "/etc/nvidia-imex"),
)


def _sssd_mounts(seen: Seen) -> Iterator[Manifest]:
    if seen.spec.sssd is None:
        return
    yield pods.mount("sssd-conf", "/etc/sssd", read_only=True)
    if seen.family is Family.SOPERATOR:
        yield pods.mount("sssd-socket", "/var/lib/sss/pipes")
    else:
        yield from pods.ldap_ca(seen.spec.sssd_ldap_ca_config_map_ref_name)[0]


def _volumes(seen: Seen) -> Iterator[Manifest]:
    spec, cluster = seen.spec, seen.nodeset.cluster
    volumes = spec.slurmd.volumes
    host_keys = seen.of.secrets.sshd_keys_name or names.sshd_keys_secret(cluster)
    yield {"name": "worker-spool", **(given(volumes.spool) or {"emptyDir": {}})}
    yield {"name": names.JAIL, **given(volumes.jail)}
    yield pods.config_map_volume("security-limits", names.nodeset_limits(cluster, seen.name))
    yield pods.host_keys_volume("sshd-keys", host_keys)
    yield {"name": "ssh-root-keys", "configMap": {"name": names.ssh_root_keys(cluster), "defaultMode": 0o600}}
    yield pods.memory_volume("in-memory", spec.slurmd.resources.get("memory"))
    yield {"name": "tmp-disk", "emptyDir": {}}
    yield {"name": "hostlog-journal", "hostPath": {"path": _JOURNAL}}
    yield {"name": "soperator-outputs", "hostPath": {"path": _OUTPUTS, "type": "DirectoryOrCreate"}}
    yield pods.memory_volume("dev-shm", volumes.shared_memory_size)
    yield pods.config_map_volume("sysctl", names.sysctl(cluster))
    yield pods.config_map_volume("ssh-configs-worker", seen.sshd)
    if seen.family is Family.SOPERATOR:
        yield from _their_volumes(seen)
    for one in _every_mount(seen):
        if (made := pods.worker_volume(one)) is not None:
            yield made


def _their_volumes(seen: Seen) -> Iterator[Manifest]:
    yield {"name": "boot", "hostPath": {"path": "/boot"}}
    if seen.spec.gpu.enabled:
        for name, path in _GPU_PATHS:
            yield {"name": name, "hostPath": {"path": path}}
        for name, path in _GPU_PATHS[1:]:
            yield {"name": f"{name}-jail", "hostPath": {"path": path}}


def _template(seen: Seen) -> Manifest:
    spec = seen.spec
    sidecars, sssd = _sssd(seen)
    domain = f"{seen.meta.namespace}.svc.{cluster_domain()}"
    hosts = (names.nodeset_service(seen.nodeset.cluster), names.login_headless_service(seen.nodeset.cluster))
    return {
        "metadata": {
            "annotations": {
                shared_names.DEFAULT_CONTAINER: "slurmd",
                **spec.worker_annotations,
                names.CONFIG_HASH: _config_digest(seen),
            }
        },
        "spec": {
            **pods.filled(
                {
                    "nodeSelector": spec.node_selector,
                    "affinity": given(spec.affinity),
                    "tolerations": spec.tolerations,
                    "priorityClassName": spec.priority_class,
                    "imagePullSecrets": spec.image_pull_secrets,
                    "hostUsers": host_users(seen),
                }
            ),
            "dnsConfig": {"searches": [f"{host}.{domain}" for host in hosts]},
            "initContainers": [
                *spec.custom_init_containers,
                {"name": "munge", **_sidecar(spec.munge)},
                *sidecars,
                *_worker_init(seen),
            ],
            "volumes": [*_volumes(seen), *sssd],
        },
    }


def host_users(seen: Seen) -> bool | None:
    """None leaves it out: where a Kubernetes node has no user namespaces no pod would start.

    What workers have they keep: another answer would replace all of them. Those that could not start because
    the root cannot be mounted in a namespace have nothing to lose.
    """
    if seen.spec.enable_host_user_namespace:
        return True
    if seen.is_namespace_refused or not can_be_mounted(given(seen.spec.slurmd.volumes.jail)):
        return None
    if seen.own is not None:
        said = seen.own.spec.template.spec.get("hostUsers")
        return False if said is False else None
    return False if seen.has_user_namespaces else None


def _config_digest(seen: Seen) -> str:
    """Changes when workers have to start again: supervisord and sshd read these once.

    A file that is not there, or that cannot be read, says nothing about the workers that run: they keep the
    digest that they were made with. Another one would replace all of them.
    """
    if not seen.knows_files and (kept := _digest_there(seen)):
        return kept
    texts_ = [found.data for found in seen.config_maps.values() if isinstance(found, ConfigMap)]
    return digest([*texts_, seen.spec.slurmd.security.limits_config])


def _digest_there(seen: Seen) -> str:
    """The digest that the part has; empty without one."""
    if seen.own is None:
        return ""
    return seen.own.spec.template.metadata.annotations.get(names.CONFIG_HASH, "")


def _sidecar(wished: Sidecar) -> Manifest:
    return pods.filled(
        {
            "image": wished.image.reference,
            "imagePullPolicy": str(wished.image.pull_policy),
            "resources": pods.resources(wished.resources),
            "livenessProbe": given(wished.liveness_probe),
            "readinessProbe": given(wished.readiness_probe),
            "securityContext": pods.confinement(
                wished.security.app_armor_profile, wished.security.proc_mount
            ),
        }
    )


def _sssd(seen: Seen) -> tuple[list[Manifest], list[Manifest]]:
    """sssd beside slurmd; our image runs it itself where it finds its file."""
    spec = seen.spec
    if spec.sssd is None:
        return [], []
    conf = spec.sssd_conf_secret_ref_name or names.nodeset_sssd_secret(seen.nodeset.cluster, seen.name)
    if seen.family is Family.OURS:
        _, ca = pods.ldap_ca(spec.sssd_ldap_ca_config_map_ref_name)
        return [], [pods.secret_volume("sssd-conf", conf, mode=0o600), *ca]
    container, volumes = pods.sssd_container(
        _sidecar(spec.sssd), conf, spec.sssd_debug_level, spec.sssd_ldap_ca_config_map_ref_name
    )
    return [{**container, "restartPolicy": "Always"}], volumes


def _worker_init(seen: Seen) -> Iterator[Manifest]:
    """Waits for slurmctld, in Soperator's images; ours wait in slurmd's own container."""
    spec, is_theirs = seen.spec, seen.family is Family.SOPERATOR
    delay = str(spec.worker_init_random_delay_seconds) if spec.worker_init_random_delay_seconds else ""
    if not is_theirs and not delay:
        return
    values = {
        "K8S_SERVICE_NAME": names.nodeset_service(seen.nodeset.cluster),
        "CONTROLLER_MAX_ATTEMPTS": "60",
        "CONTROLLER_POLL_INTERVAL": "5",
        "WORKER_INIT_RANDOM_DELAY_SECONDS": delay,
        "NODESET_GPU_ENABLED": "true" if spec.gpu.enabled else "",
    }
    fields = (
        ("K8S_NODE_NAME", "spec.nodeName"),
        ("K8S_POD_NAME", "metadata.name"),
        ("K8S_POD_NAMESPACE", "metadata.namespace"),
    )
    command = ["python3", _WORKER_INIT, "wait-controller"] if is_theirs else ["sh", "-c", _DELAY]
    mounts = [pods.JAIL_MOUNT, pods.mount("munge-socket", "/run/munge")] if is_theirs else []
    yield {
        "name": "worker-init",
        "image": spec.slurmd.image.reference,
        "imagePullPolicy": str(spec.slurmd.image.pull_policy),
        "command": command,
        "env": [
            *({"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}} for name, path in fields),
            *({"name": name, "value": value} for name, value in values.items() if value),
        ],
        **({"volumeMounts": mounts} if mounts else {}),
    }
