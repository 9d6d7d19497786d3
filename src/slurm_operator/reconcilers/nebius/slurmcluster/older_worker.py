"""`slurmNodes.worker` of older releases, read as a NodeSet called `worker`: its pods keep their names."""

from collections.abc import Iterator
from typing import Any

from slurm_operator.api.nebius import names
from slurm_operator.api.nebius.containers import ProcMount
from slurm_operator.api.nebius.nodeset import NodeSet
from slurm_operator.api.nebius.older_worker import OlderWorker, OlderWorkerContainer
from slurm_operator.api.nebius.slurmcluster import SlurmCluster, SlurmClusterSpec
from slurm_operator.api.nebius.volumes import NodeVolume, NodeVolumeMount, given
from slurm_operator.manifests.meta import Manifest
from slurm_operator.reconcilers.nebius.shared import pods
from slurm_operator.reconcilers.nebius.shared.families import repository, tag
from slurm_operator.reconcilers.nebius.shared.objects import Maker
from slurm_operator.slurm import hostlist


def nodeset(cluster: SlurmCluster) -> Manifest | None:
    """The NodeSet, with just what the manifest says; None where it has no such workers."""
    spec = cluster.spec
    worker = spec.slurm_nodes.worker if spec is not None else None
    if spec is None or worker is None:
        return None
    maker = Maker(SlurmCluster.KIND, cluster.metadata, cluster.metadata.name)
    return maker.part(
        NodeSet.KIND, names.OLDER_WORKERS, "nodeset", _spec(cluster.metadata.name, spec, worker)
    )


def _spec(cluster: str, spec: SlurmClusterSpec, worker: OlderWorker) -> Manifest:
    every, _ = features(spec, worker)
    config = pods.filled({"features": every, "dynamic": worker.slurm_node_extra})
    gpu = {
        "enabled": spec.older_workers_have_gpus,
        "nvidia": {"gdrCopyEnabled": worker.enable_gdr_copy},
    }
    return {
        "clusterName": cluster,
        "replicas": worker.size,
        "maxUnavailable": worker.max_unavailable,
        # What old pods really did, whatever `hostUsers` said.
        "enableHostUserNamespace": worker.host_users is not False,
        "slurmd": {
            **_container(worker.slurmd, has_limits=True),
            **pods.filled(
                {
                    "port": worker.slurmd.port,
                    "customEnv": worker.slurmd.custom_env,
                    "readinessProbe": given(worker.slurmd.readiness_probe),
                }
            ),
            "volumes": _volumes(spec, worker),
        },
        "munge": _container(worker.munge),
        "gpu": gpu,
        **({"nodeConfig": config} if config else {}),
        **pods.place(spec.filters.get(worker.k8s_node_filter_name)),
        **pods.filled(
            {
                "configMapRefSupervisord": worker.supervisord_config_map_ref_name,
                "configMapRefSshd": worker.sshd_config_map_ref_name,
                "priorityClass": worker.priority_class,
                "workerAnnotations": worker.worker_annotations,
                "customInitContainers": worker.custom_init_containers,
                "imagePullSecrets": pods.pull_secrets(worker.slurmd, worker.munge),
            }
        ),
    }


def features(spec: SlurmClusterSpec, worker: OlderWorker) -> tuple[list[str], list[str]]:
    """Features that all workers have, and those that only some of them were meant to have."""
    all_nodes = {f"{names.OLDER_WORKERS}-{ordinal}" for ordinal in range(worker.size)}
    every: list[str] = []
    some: list[str] = []
    for feature in spec.worker_features:
        (every if all_nodes <= _expanded(feature.hostlist_expr) else some).append(feature.name)
    return list(dict.fromkeys(every)), list(dict.fromkeys(some))


def _expanded(expression: str) -> set[str]:
    try:
        return set(hostlist.expand(expression))
    except ValueError:
        return set()  # Older releases passed over what they could not read, too.


def nodeset_lines(spec: SlurmClusterSpec) -> Iterator[str]:
    """Lines of slurm.conf for features that raw partition lines name."""
    for feature in spec.worker_features:
        if feature.nodeset_name:
            yield f"NodeSet={feature.nodeset_name} Feature={feature.name}"


def _container(wished: OlderWorkerContainer, *, has_limits: bool = False) -> Manifest:
    is_digest = "@" in wished.image
    image = {
        "repository": wished.image if is_digest else repository(wished.image),
        "pullPolicy": str(wished.image_pull_policy),
        **pods.filled({"tag": tag(wished.image)}),
    }
    security: dict[str, Any] = {"appArmorProfile": wished.app_armor_profile}
    if has_limits:
        security["procMount"] = str(wished.proc_mount or ProcMount.UNMASKED)
        security |= pods.filled({"limitsConfig": wished.security_limits_config})
    return {
        "image": image,
        "resources": {name: str(amount) for name, amount in wished.resources.items()},
        "security": security,
    }


def _volumes(spec: SlurmClusterSpec, worker: OlderWorker) -> Manifest:
    volumes = worker.volumes
    return {
        "spool": _source(spec, volumes.spool),
        "jail": _source(spec, volumes.jail),
        "sharedMemorySize": str(volumes.shared_memory_size),
        "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Delete", "whenScaled": "Retain"},
        **pods.filled(
            {
                "jailSubMounts": [_mount(spec, one) for one in volumes.jail_sub_mounts],
                "customVolumeMounts": [_mount(spec, one) for one in volumes.custom_mounts],
            }
        ),
    }


def _source(spec: SlurmClusterSpec, volume: NodeVolume) -> Manifest:
    found = pods.volume("", volume, spec.sources)
    return {key: value for key, value in found.items() if key != "name"}


def _mount(spec: SlurmClusterSpec, mount: NodeVolumeMount) -> Manifest:
    where = pods.mounted(mount)
    if mount.volume_source_name:
        return {**where, "volumeSource": _source(spec, mount)}
    return {**where, "volumeClaimTemplateSpec": given(mount.volume_claim_template_spec)}
