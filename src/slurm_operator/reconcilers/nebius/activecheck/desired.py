"""The objects of a check: its CronJob, the Job of its first run, its script, and the account of its pods."""

from collections.abc import Mapping
from typing import Any, Final

from slurm_operator.api.nebius import names
from slurm_operator.api.nebius.activecheck import ActiveCheck, CheckContainer
from slurm_operator.api.nebius.slurmcluster import SlurmCluster
from slurm_operator.api.nebius.volumes import given
from slurm_operator.api.schema import codec
from slurm_operator.api.shared.auth import Auth
from slurm_operator.api.shared.refs import SecretKey
from slurm_operator.manifests import kinds
from slurm_operator.manifests.builders import munge
from slurm_operator.manifests.merge import merged, merged_pod
from slurm_operator.manifests.meta import Manifest
from slurm_operator.reconcilers.nebius.activecheck.observe import Seen
from slurm_operator.reconcilers.nebius.shared import pods
from slurm_operator.reconcilers.nebius.shared.families import Family
from slurm_operator.reconcilers.nebius.shared.objects import Maker, labels

CONTAINER: Final = "check"
SCRIPT_KEY, SBATCH_KEY = "script.sh", "sbatch.sh"
ENTRYPOINT, SBATCH = "/opt/bin/entrypoint.sh", "/opt/bin/sbatch.sh"
_SUBMIT: Final = ["slurm-entry", "submit-check"]

# A Job has at most 63 characters for its name.
_LONGEST: Final = 63
_FIRST: Final = "-initial-run"

_EXECUTABLE: Final = 0o755

# What the pod of a check may do: note its Slurm jobs on its own Job, and start the Jobs of other checks.
_CHECKS: Final = ActiveCheck.KIND
RULES: Final[list[Manifest]] = [
    {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]},
    {"apiGroups": ["batch"], "resources": ["jobs"], "verbs": ["create", "get", "patch"]},
    {"apiGroups": ["batch"], "resources": ["cronjobs"], "verbs": ["get"]},
    {"apiGroups": [_CHECKS.group], "resources": [_CHECKS.plural], "verbs": ["get", "list"]},
]


def maker(seen: Seen) -> Maker:
    return Maker(ActiveCheck.KIND, seen.meta, seen.spec.slurm_cluster_ref_name)


def account(seen: Seen) -> list[Manifest]:
    """Of the pods of every check of the cluster, so it belongs to the cluster."""
    assert seen.cluster is not None
    cluster = seen.cluster.metadata
    made = Maker(SlurmCluster.KIND, cluster, cluster.name)
    name, role = names.check_account(cluster.name), names.check_role(cluster.name)
    subject = {"kind": "ServiceAccount", "name": name, "namespace": cluster.namespace}
    reference = {"apiGroup": kinds.ROLE.group, "kind": kinds.ROLE.kind, "name": role}
    component = names.CHECKS_COMPONENT
    return [
        made.object(kinds.SERVICE_ACCOUNT, name, component),
        made.object(kinds.ROLE, role, component) | {"rules": RULES},
        made.object(kinds.ROLE_BINDING, role, component) | {"roleRef": reference, "subjects": [subject]},
    ]


def script(seen: Seen) -> Manifest | None:
    """The ConfigMap with the script of the spec; None where a ConfigMap is named, or nothing is submitted."""
    jobs = seen.spec.slurm_job_spec
    if not seen.is_slurm or jobs is None or jobs.sbatch_script_ref_name or not jobs.sbatch_script:
        return None
    name, component = names.sbatch_script(seen.spec.name), names.CHECKS_COMPONENT
    return maker(seen).config_map(name, component, {SBATCH_KEY: jobs.sbatch_script})


def cron_job(seen: Seen, *, is_held: bool) -> Manifest:
    """`is_held`: nothing runs by the clock for now, whatever the spec says."""
    spec = seen.spec
    body: Manifest = {
        "schedule": spec.schedule,
        "suspend": spec.suspend or is_held,
        "concurrencyPolicy": "Forbid",
        "successfulJobsHistoryLimit": spec.successful_jobs_history_limit,
        "failedJobsHistoryLimit": spec.failed_jobs_history_limit,
        "jobTemplate": {"metadata": {"labels": _labels(seen)}, "spec": _job_spec(seen)},
    }
    return maker(seen).object(kinds.CRON_JOB, spec.name, names.CHECKS_COMPONENT) | {"spec": body}


def first_run(seen: Seen) -> Manifest:
    made = maker(seen).object(kinds.JOB, first_run_name(seen.spec.name), names.CHECKS_COMPONENT)
    return made | {"spec": _job_spec(seen)}


def first_run_name(check: str) -> str:
    return check[: _LONGEST - len(_FIRST)].rstrip("-") + _FIRST


def _labels(seen: Seen) -> dict[str, str]:
    return labels(seen.spec.slurm_cluster_ref_name, names.CHECKS_COMPONENT)


def _job_spec(seen: Seen) -> Manifest:
    template: Manifest = {
        "metadata": {"labels": _labels(seen), "annotations": {names.ACTIVE_CHECK: seen.name}},
        "spec": _pod(seen),
    }
    if seen.template is not None:
        theirs = seen.template.template
        pod = merged_pod(template["spec"], theirs.get("spec") or {}, required=(CONTAINER,))
        template = {"metadata": merged(theirs.get("metadata") or {}, template["metadata"]), "spec": pod}
    # Once: a check that failed has said so, and the next run is due by its schedule.
    return {"backoffLimit": 0, "template": template}


def _pod(seen: Seen) -> Manifest:
    spec, wished = seen.spec, seen.container or CheckContainer()
    uses_slurm = seen.is_slurm or seen.munge is not None
    mounts, volumes = _script_volume(seen)
    sidecars: list[Manifest] = []
    if uses_slurm:
        sidecars, slurm_mounts, slurm_volumes = _slurm(seen)
        mounts, volumes = [*mounts, *slurm_mounts], [*volumes, *slurm_volumes]
    container = {
        **_container(wished),
        "name": CONTAINER,
        **_command(seen, wished),
        "env": [*_environment(seen), *map(codec.plain, wished.env)],
        "securityContext": pods.confinement(wished.app_armor_profile, None)
        | {"capabilities": {"add": ["SYS_ADMIN"]}},
        "volumeMounts": [*mounts, *map(codec.plain, wished.volume_mounts)],
        "terminationMessagePolicy": "FallbackToLogsOnError",
    }
    munge_volumes = seen.munge.volumes if seen.munge is not None else []
    return {
        "restartPolicy": "Never",
        "activeDeadlineSeconds": spec.active_deadline_seconds,
        "serviceAccountName": names.check_account(spec.slurm_cluster_ref_name),
        "enableServiceLinks": False,
        **({"initContainers": sidecars} if sidecars else {}),
        "containers": [pods.filled(container)],
        **pods.filled({"volumes": _once([*volumes, *wished.volumes, *munge_volumes])}),
        **pods.filled(
            {
                "affinity": given(spec.affinity),
                "nodeSelector": dict(spec.node_selector),
                "tolerations": list(spec.tolerations),
                "hostUsers": spec.host_users,
                "imagePullSecrets": _pull_secrets(wished, seen.munge),
            }
        ),
    }


def _container(wished: CheckContainer) -> Manifest:
    return {
        "image": wished.image,
        "imagePullPolicy": str(wished.image_pull_policy),
        "workingDir": wished.working_dir,
        "args": list(wished.args),
    }


def _command(seen: Seen, wished: CheckContainer) -> Manifest:
    """Who wrote a command has it. Otherwise a script is run, and our image submits."""
    if wished.command:
        return {"command": list(wished.command)}
    if not seen.is_slurm:
        has_script = seen.spec.k8s_job_spec is not None and seen.spec.k8s_job_spec.script_ref_name
        return {"command": ["bash", ENTRYPOINT]} if has_script else {}
    return {"command": _SUBMIT} if seen.family is Family.OURS else {}


def _environment(seen: Seen) -> list[Manifest]:
    """What the program that submits is told."""
    jobs = seen.spec.slurm_job_spec
    if not seen.is_slurm or jobs is None:
        return []
    values = {
        "ACTIVE_CHECK_NAME": seen.spec.name,
        "EACH_WORKER_JOBS": "true" if jobs.is_for_each_worker else "false",
        "ACTIVE_CHECK_MAX_NUMBER_OF_JOBS": str(jobs.max_number_of_jobs),
    }
    fields = {"K8S_POD_NAME": "metadata.name", "K8S_POD_NAMESPACE": "metadata.namespace"}
    given_names = {str(one.get("name")) for one in (seen.container.env if seen.container else ())}
    job = {"fieldRef": {"fieldPath": "metadata.labels['batch.kubernetes.io/job-name']"}}
    return [
        *({"name": name, "value": value} for name, value in values.items()),
        *(
            {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}
            for name, path in fields.items()
            if name not in given_names
        ),
        {"name": "ACTIVE_CHECK_JOB", "valueFrom": job},
    ]


def _script_volume(seen: Seen) -> tuple[list[Manifest], list[Manifest]]:
    """Where the container finds its script. Other programs of the image stand beside it and must stay."""
    if seen.is_slurm:
        jobs = seen.spec.slurm_job_spec
        source = jobs.sbatch_script_ref_name if jobs is not None else ""
        source = source or names.sbatch_script(seen.spec.name)
        return _script_mount("sbatch-script", source, SBATCH_KEY, SBATCH)
    source = seen.spec.k8s_job_spec.script_ref_name if seen.spec.k8s_job_spec is not None else ""
    return _script_mount("script", source, SCRIPT_KEY, ENTRYPOINT) if source else ([], [])


def _script_mount(volume: str, source: str, key: str, path: str) -> tuple[list[Manifest], list[Manifest]]:
    config = {"name": source, "defaultMode": _EXECUTABLE, "items": [{"key": key, "path": key}]}
    return [pods.mount(volume, path, sub_path=key, read_only=True)], [{"name": volume, "configMap": config}]


def _slurm(seen: Seen) -> tuple[list[Manifest], list[Manifest], list[Manifest]]:
    """munged beside the container, and Slurm's files: sidecars, mounts and volumes."""
    cluster = seen.spec.slurm_cluster_ref_name
    key = SecretKey(name=names.munge_secret(cluster), key=names.MUNGE_KEY)
    wished = seen.munge or CheckContainer()
    image = wished.image or (seen.container.image if seen.container is not None else "")
    options = pods.filled({**_container(wished), "command": list(wished.command), "env": wished.env})
    sidecar = munge.sidecar(Auth(munge={**options, "image": image}), image)
    conf = "/etc/slurm" if seen.family is Family.OURS else "/mnt/slurm-configs"
    files = pods.config_map_volume("slurm-configs", names.slurm_configs(cluster))
    mounts = [munge.mount(), pods.mount("slurm-configs", conf, read_only=True)]
    return [sidecar], mounts, [*munge.volumes(key), files]


def _pull_secrets(*containers: CheckContainer | None) -> list[Manifest]:
    found = [codec.plain(one) for each in containers if each is not None for one in each.image_pull_secrets]
    return [one for index, one in enumerate(found) if one not in found[:index]]


def _once(volumes: list[Any]) -> list[Manifest]:
    """Volumes by their name; what the manifest says wins over ours."""
    named: Mapping[str, Manifest] = {str(one["name"]): codec.plain(one) for one in volumes}
    return list(named.values())
