"""Objects of a SlurmCluster that no part covers: ConfigMaps, Secrets, and the writer of files in the root."""

from slurm_operator.api.nebius import names
from slurm_operator.api.nebius.jailedconfig import JailedConfig
from slurm_operator.api.nebius.slurmcluster import Maintenance
from slurm_operator.api.schema import durations
from slurm_operator.api.shared.meta import key_of
from slurm_operator.manifests import kinds
from slurm_operator.manifests.builders.sshd import LOCAL_USERS_SSSD_CONF
from slurm_operator.manifests.builders.workloads import with_input
from slurm_operator.manifests.meta import Manifest
from slurm_operator.manifests.objects import ConfigMap, Secret
from slurm_operator.plan.actions import GenerateSecret, PatchObject
from slurm_operator.reconcilers.nebius.shared import mount_points, pods, texts
from slurm_operator.reconcilers.nebius.shared.families import Family, kept_family
from slurm_operator.reconcilers.nebius.shared.objects import match_labels
from slurm_operator.reconcilers.nebius.shared.profile import policy
from slurm_operator.reconcilers.nebius.slurmcluster import config_files
from slurm_operator.reconcilers.nebius.slurmcluster.observe import Seen
from slurm_operator.reconcilers.nebius.slurmcluster.parts import host_keys_secret, maker, operator_rest_url
from slurm_operator.reconcilers.nebius.slurmcluster.slurm_lines import power_of_two
from slurm_operator.slurm.conf.networks import TOPOLOGY_CONF

SCONFIG = "sconfigcontroller"
_MUNGE_BYTES = 1024
_JWT_BYTES = 32
_RSA_BITS = 2048
_OWNER = 1001  # Whom Soperator gives /etc/slurm in the root to where nobody says.

_MAKE_DIRECTORY = 'mkdir -p "$JAIL_CONFIG_PATH" && chown "$JAIL_UID:$JAIL_GID" "$JAIL_CONFIG_PATH"'

# slurmd of our images is started by their entry point, which checks the root first.
_SLURMD = {Family.OURS: "slurm-entry slurmd", Family.SOPERATOR: "/opt/bin/slurm/slurmd_entrypoint.sh"}


def config_files_map(seen: Seen) -> Manifest:
    """The files beside slurm.conf, for the engine to test and to deliver."""
    nodesets = [
        (f"{one.metadata.name}-[0-{power_of_two(one.spec.replicas) - 1}]", one)
        for one in seen.nodesets
        if one.spec is not None
    ]
    data = config_files.files(seen.spec, nodesets, seen.family)
    return maker(seen).config_map(names.more_configs(seen.name), "controller", data)


def controller_maps(seen: Seen) -> list[Manifest]:
    limits = texts.limits(seen.spec.slurm_nodes.controller.slurmctld.security_limits_config)
    return [
        maker(seen).config_map(names.controller_limits(seen.name), "controller", {texts.LIMITS_CONF: limits}),
        config_files_map(seen),
    ]


def login_maps(seen: Seen) -> list[Manifest]:
    wished, made = seen.spec.slurm_nodes.login, maker(seen)
    found = [
        made.config_map(
            names.ssh_root_keys(seen.name),
            "login",
            {texts.AUTHORIZED_KEYS: texts.authorized_keys(wished.ssh_root_public_keys)},
        ),
        made.config_map(
            names.login_limits(seen.name),
            "login",
            {texts.LIMITS_CONF: texts.limits(wished.sshd.security_limits_config)},
        ),
        made.config_map(
            names.user_isolation(seen.name), "login", {texts.USER_ISOLATION: texts.user_isolation(wished)}
        ),
    ]
    if wished.sshd_config_map_ref_name:
        return found
    config = {texts.SSHD_CONFIG: texts.sshd_config(wished)}
    return [made.config_map(names.ssh_configs(seen.name), "login", config), *found]


def worker_maps(seen: Seen) -> list[Manifest]:
    """What workers of every NodeSet share, unless the NodeSet brings its own."""
    made = maker(seen)
    return [
        made.config_map(names.sysctl(seen.name), "worker", {texts.SYSCTL_CONF: texts.SYSCTL}),
        made.config_map(
            names.supervisord(seen.name),
            "worker",
            {texts.SUPERVISORD_CONF: texts.supervisord_conf(_SLURMD[seen.family])},
        ),
        made.config_map(
            names.worker_ssh_configs(seen.name),
            "worker",
            {texts.SSHD_CONFIG: texts.sshd_config(seen.spec.slurm_nodes.login)},
        ),
    ]


def generated_keys(seen: Seen) -> list[GenerateSecret]:
    """Keys that are not there. Made once; nothing owns them, so nothing takes them along when it goes."""
    wanted = [
        _generated(seen, names.munge_secret(seen.name), "common", names.MUNGE_KEY, _MUNGE_BYTES),
        _generated(seen, names.rest_jwt_secret(seen.name), "common", names.REST_JWT_KEY, _JWT_BYTES),
    ]
    if not seen.spec.secrets.sshd_keys_name:
        wanted.append(_generated(seen, host_keys_secret(seen), "worker", "", _RSA_BITS))
    return [one for one in wanted if seen.secrets.get(one.manifest["metadata"]["name"]) is None]


def _generated(seen: Seen, name: str, component: str, entry: str, size: int) -> GenerateSecret:
    manifest = maker(seen).object(kinds.SECRET, name, component, is_owned=False) | {"type": "Opaque"}
    if name == names.munge_secret(seen.name):
        manifest["metadata"]["annotations"] = {names.IMAGES: str(seen.family)}
    return GenerateSecret(
        manifest=manifest,
        recipe="random" if entry else "ssh-host-keys",
        entry=entry,
        size=size,
        reason="KeyGenerated",
        message=f"made keys in Secret {name}; they stay when the SlurmCluster is deleted",
    )


def family_note(seen: Seen) -> PatchObject | None:
    """Notes whose images the root is used with; another choice counts only when the root is overwritten."""
    keys, wanted = seen.keys, str(seen.family_of_images)
    if not isinstance(keys, Secret) or keys.metadata.annotations.get(names.IMAGES) == wanted:
        return None
    is_chosen = kept_family(keys) is not None
    is_new_root = seen.root.mode is Maintenance.OVERWRITE_POPULATE_JAIL and not seen.root.in_use
    if is_chosen and not is_new_root:
        return None
    annotations = {**keys.metadata.annotations, names.IMAGES: wanted}
    return PatchObject(
        kind=kinds.SECRET,
        key=key_of(keys),
        uid=keys.metadata.uid,
        operations=(
            {"op": "test", "path": "/metadata/resourceVersion", "value": keys.metadata.resource_version},
            {"op": "add", "path": "/metadata/annotations", "value": annotations},
        ),
        reason="ImagesChosen",
        message=f"the shared root of SlurmCluster {seen.name} is used with the images of {wanted}",
        is_housekeeping=True,
    )


def sssd_secret(seen: Seen) -> Manifest | None:
    """sssd.conf for users of the root, where sssd is wanted and nobody brings one."""
    nodes = seen.spec.slurm_nodes
    wanted = [
        one
        for one in (nodes.controller, nodes.login)
        if pods.present(one.sssd) is not None and not one.sssd_conf_secret_ref_name
    ]
    if not wanted:
        return None
    manifest = maker(seen).object(kinds.SECRET, names.sssd_secret(seen.name), "login")
    return manifest | {"type": "Opaque", "stringData": {names.SSSD_CONF: LOCAL_USERS_SSSD_CONF}}


def jailed_config(seen: Seen, tested: ConfigMap) -> Manifest:
    """Delivers the files that slurmctld is known to run with, and no others, into the root."""
    keys = sorted({*tested.data, *tested.binary_data} - {TOPOLOGY_CONF})
    return _jailed(seen, names.slurm_configs(seen.name), tested, keys, ["Reconfigure"])


def jailed_topology(seen: Seen, tested: ConfigMap) -> Manifest | None:
    """The same for topology.conf, in the same group: Slurm reads it with the others."""
    if TOPOLOGY_CONF not in tested.data:
        return None
    return _jailed(seen, names.topology_config(seen.name), tested, [TOPOLOGY_CONF], [])


def _jailed(seen: Seen, name: str, tested: ConfigMap, keys: list[str], actions: list[str]) -> Manifest:
    manifest = maker(seen).part(
        JailedConfig.KIND,
        name,
        "controller",
        {
            "configMap": {"name": tested.metadata.name},
            "items": [{"key": key, "path": f"/etc/slurm/{key}"} for key in keys],
            **({"updateActions": actions} if actions else {}),
        },
    )
    metadata = manifest["metadata"]
    return manifest | {
        "metadata": {**metadata, "labels": {**metadata["labels"], names.JAILED_AGGREGATION: "common"}}
    }


def mount_points_map(seen: Seen) -> Manifest:
    return maker(seen).config_map(
        names.mount_points(seen.name), SCONFIG, {mount_points.KEY: mount_points.TEXT}
    )


def jailed_mount_points(seen: Seen, paths: list[str]) -> Manifest:
    """Makes these directories by a file in each, in a group of its own: Slurm's files do not wait."""
    items = [{"key": mount_points.KEY, "path": f"{path}/{mount_points.FILE}"} for path in paths]
    spec = {"configMap": {"name": names.mount_points(seen.name)}, "items": items}
    return maker(seen).part(JailedConfig.KIND, names.mount_points(seen.name), SCONFIG, spec)


def profile(seen: Seen) -> Manifest:
    """The AppArmor profile of login pods and workers."""
    name = names.profile(seen.name, seen.meta.namespace)
    return maker(seen).object(kinds.APP_ARMOR_PROFILE, name, "common") | {"spec": {"policy": policy(name)}}


def writer(seen: Seen, replicas: int) -> Manifest | None:
    """The Deployment of the sconfigcontroller; None where there is none, or it has no image."""
    wished = seen.spec.s_config_controller
    if wished is None or wished.container is None or not wished.container.is_given:
        return None
    manifest = maker(seen).object(kinds.DEPLOYMENT, names.sconfigcontroller(seen.name), SCONFIG)
    template = {"metadata": {"labels": match_labels(seen.name, SCONFIG)}, "spec": _writer_pod(seen)}
    body = {
        "replicas": replicas,
        "revisionHistoryLimit": 0,
        "strategy": {"type": "RollingUpdate"},
        "selector": {"matchLabels": match_labels(seen.name, SCONFIG)},
        "template": template,
    }
    annotated = {**manifest["metadata"], "annotations": {}}
    return with_input(manifest | {"metadata": annotated, "spec": body}, template)


def writer_account(seen: Seen) -> list[Manifest]:
    """Whom the writer is to the API server; none where the manifest names an account."""
    wished = seen.spec.s_config_controller
    if wished is None or wished.service_account_name:
        return []
    return maker(seen).account(names.sconfigcontroller(seen.name), SCONFIG, writer_rules(seen.name))


def writer_rules(cluster: str) -> list[Manifest]:
    """What the writer of files may do."""
    group, plural = JailedConfig.KIND.group, JailedConfig.KIND.plural
    key = names.rest_jwt_secret(cluster)
    return [
        {"apiGroups": [group], "resources": [plural], "verbs": ["get", "list", "watch"]},
        {"apiGroups": [group], "resources": [f"{plural}/status"], "verbs": ["patch"]},
        {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list", "watch"]},
        {"apiGroups": [""], "resources": ["secrets"], "resourceNames": [key], "verbs": ["get"]},
        {"apiGroups": [kinds.LEASE.group], "resources": ["leases"], "verbs": ["create", "get", "update"]},
    ]


def _writer_pod(seen: Seen) -> Manifest:
    wished = seen.spec.s_config_controller
    assert wished is not None and wished.container is not None  # noqa: PT018
    container = pods.container(wished.container, is_run_by_us=False)
    is_theirs = seen.family is Family.SOPERATOR
    command = ["/usr/bin/sconfigcontroller"] if is_theirs else ["slurm-operator", "sconfigcontroller"]
    given_user = _writer_user(seen)
    node = wished.node
    jail = pods.volume(names.JAIL, seen.spec.slurm_nodes.controller.volumes.jail, seen.spec.sources)
    return {
        "serviceAccountName": wished.service_account_name or names.sconfigcontroller(seen.name),
        "enableServiceLinks": False,
        **({"initContainers": [_init_directory(seen)]} if given_user.get("runAsUser") else {}),
        "containers": [
            {
                "command": command,
                **container,
                "name": "sconfigctrl",
                "args": [*_writer_flags(seen), *container.get("args", ())],
                "ports": [{"name": "https", "containerPort": 8443, "protocol": "TCP"}],
                "securityContext": {**container["securityContext"], **given_user},
                "volumeMounts": [pods.JAIL_MOUNT],
            }
        ],
        "volumes": [jail],
        **(pods.place(seen.spec.filters.get(node.k8s_node_filter_name)) if node is not None else {}),
        **pods.filled(
            {
                "priorityClassName": node.priority_class if node is not None else "",
                "hostUsers": node.host_users if node is not None else None,
                "imagePullSecrets": pods.pull_secrets(wished.container),
            }
        ),
    }


def _writer_user(seen: Seen) -> Manifest:
    """Whom the writer runs as: whom the manifest says, else root, whom /etc/slurm in the root belongs to.

    Anybody else might be somebody's account in the root, and would be able to change Slurm's files.
    """
    wished = seen.spec.s_config_controller
    assert wished is not None
    user = {"runAsUser": wished.run_as_uid, "runAsGroup": wished.run_as_gid}
    given = {name: id_ for name, id_ in user.items() if id_ is not None}
    return given or ({"runAsUser": 0, "runAsGroup": 0} if seen.family is Family.OURS else {})


def _init_directory(seen: Seen) -> Manifest:
    """Gives /etc/slurm in the root to whom the writer runs as, with the tools of the image that made it."""
    wished = seen.spec.s_config_controller
    assert wished is not None
    uid = wished.run_as_uid if wished.run_as_uid is not None else _OWNER
    gid = wished.run_as_gid if wished.run_as_gid is not None else _OWNER
    values = {"JAIL_CONFIG_PATH": f"{names.ROOT}/etc/slurm", "JAIL_UID": str(uid), "JAIL_GID": str(gid)}
    return {
        "name": "init-dir",
        "image": seen.spec.populate_jail.image,
        "imagePullPolicy": str(seen.spec.populate_jail.image_pull_policy),
        "command": ["sh", "-c", _MAKE_DIRECTORY],
        "env": [{"name": name, "value": value} for name, value in values.items()],
        "securityContext": {"runAsUser": 0},
        "volumeMounts": [pods.JAIL_MOUNT],
    }


def _writer_flags(seen: Seen) -> list[str]:
    wished = seen.spec.s_config_controller
    assert wished is not None
    return [
        f"--cluster-namespace={seen.meta.namespace}",
        f"--cluster-name={seen.name}",
        f"--jail-path={names.ROOT}",
        f"--slurmapiserver={operator_rest_url(seen)}",
        "--metrics-bind-address=:8443",
        "--metrics-secure=true",
        "--leader-elect=true",
        f"--reconfigure-poll-interval={durations.text(wished.reconfigure_poll_interval)}",
        f"--reconfigure-wait-timeout={durations.text(wished.reconfigure_wait_timeout)}",
    ]
