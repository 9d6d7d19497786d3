"""The parts that a SlurmCluster becomes: slurmctld, slurmdbd, two slurmrestds and the login pods."""

from typing import Any

from slurm_operator.api.nebius import names
from slurm_operator.api.nebius.containers import NodeContainer
from slurm_operator.api.nebius.slurm_nodes import MetricFamily, SlurmNodeController
from slurm_operator.api.nebius.slurmcluster import SlurmCluster
from slurm_operator.api.nebius.volumes import NodeVolume, NodeVolumeMount, given
from slurm_operator.api.shared import names as shared_names
from slurm_operator.api.shared.images import cluster_domain
from slurm_operator.api.slinky.controller import Controller
from slurm_operator.api.slinky.loginset import LoginSet
from slurm_operator.api.slinky.restapi import RestApi
from slurm_operator.manifests.digests import digest
from slurm_operator.manifests.meta import Manifest
from slurm_operator.manifests.objects import ConfigMap
from slurm_operator.reconcilers.nebius.shared import mount_points, pods, profile, texts
from slurm_operator.reconcilers.nebius.shared.config_source import shared_source
from slurm_operator.reconcilers.nebius.shared.families import Family
from slurm_operator.reconcilers.nebius.shared.objects import Maker, children
from slurm_operator.reconcilers.nebius.shared.places import (
    SHARED_ROOT,
    SHARED_ROOT_VARIABLE,
    below,
    slurm_conf_mount,
)
from slurm_operator.reconcilers.nebius.slurmcluster import partitions, power, slurm_lines, topology
from slurm_operator.reconcilers.nebius.slurmcluster.observe import Seen

# As which user Soperator runs slurmctld and slurmdbd, and whom their volumes belong to.
SLURM_USER: Manifest = {"name": "root", "uid": 0, "gid": 0}
_STATE = "statesave"


def maker(seen: Seen) -> Maker:
    return Maker(SlurmCluster.KIND, seen.meta, seen.name)


def auth(seen: Seen) -> Manifest:
    munge = seen.spec.slurm_nodes.controller.munge
    return {
        "type": "munge",
        "mungeKeyRef": {"name": names.munge_secret(seen.name), "key": names.MUNGE_KEY},
        "munge": pods.container(munge),
    }


def jwt_key(seen: Seen) -> Manifest:
    return {"name": names.rest_jwt_secret(seen.name), "key": names.REST_JWT_KEY}


def controller(seen: Seen) -> Manifest:
    wished = seen.spec.slurm_nodes.controller
    port = wished.slurmctld.port
    state, state_volumes = _state(seen, wished.volumes.spool)
    spec: Manifest = {
        "clusterName": seen.name,
        "auth": auth(seen),
        "slurmUser": SLURM_USER,
        "jwtKeyRef": jwt_key(seen),
        **({"accountingRef": {"name": seen.name}} if seen.spec.slurm_nodes.accounting.enabled else {}),
        "slurmctld": {**_slurmctld(seen), "volumeMounts": _controller_mounts(seen)},
        "template": _controller_template(seen, wished, state_volumes),
        "persistence": state,
        "configFileRefs": [
            {"name": names.more_configs(seen.name)},
            *([{"name": names.topology_config(seen.name)}] if topology.plugin(seen) is not None else []),
        ],
        "extraConf": extra_conf(seen),
        "metrics": _metrics(wished),
        **({"service": {"port": port}} if port not in (None, 0, shared_names.SLURMCTLD_PORT) else {}),
        "children": children(
            seen.name,
            "controller",
            {
                "service": names.controller_service(seen.name),
                "workload": names.controller(seen.name),
                "config": names.slurm_configs(seen.name),
                "workers": names.nodeset_service(seen.name),
            },
            {names.CONTROLLER_TYPE: "main", names.SCONFIG_WATCHED: "true"},
        ),
    }
    return maker(seen).part(Controller.KIND, seen.name, "controller", spec)


def extra_conf(seen: Seen) -> str:
    """Lines for slurm.conf: Soperator's, the partitions, then the user's, which win."""
    port = seen.spec.slurm_nodes.controller.slurmctld.port
    theirs = seen.spec.custom_slurm_config.strip()
    lines = [
        *([f"SlurmctldPort={port}"] if port not in (None, 0, shared_names.SLURMCTLD_PORT) else []),
        *slurm_lines.lines(
            seen.spec,
            seen.family,
            workers=sum(one.spec.replicas for one in seen.nodesets if one.spec is not None),
            has_gpus=any(one.spec.gpu.enabled for one in seen.nodesets if one.spec is not None),
            power=power.of(seen),
        ),
        partitions.BEGIN,
        *partitions.lines(seen),
        partitions.END,
    ]
    return "".join(f"{line}\n" for line in lines) + (f"{theirs}\n" if theirs else "")


def _state(seen: Seen, wished: NodeVolume) -> tuple[Manifest, list[Manifest]]:
    """Where slurmctld keeps its state, and volumes that say so where a claim cannot."""
    if not wished.volume_source_name:
        # Jobs are in the volume that slurmctld first started on; that may have been Soperator's.
        there = seen.controller
        kept = there.spec.persistence.existing_claim if there is not None else seen.soperator_state
        if kept:
            return {"enabled": True, "existingClaim": kept}, []
        return {"enabled": True, **given(wished.volume_claim_template_spec)}, []
    source = given(seen.spec.sources.get(wished.volume_source_name, {}))
    claim = (source.get("persistentVolumeClaim") or {}).get("claimName")
    if claim:
        return {"enabled": True, "existingClaim": claim}, []
    return {"enabled": False}, [pods.volume(_STATE, wished, seen.spec.sources)]


def _controller_mounts(seen: Seen) -> list[Manifest]:
    volumes = seen.spec.slurm_nodes.controller.volumes
    _, custom = pods.custom_mounts(volumes.custom_mounts, seen.spec.sources)
    sssd = pods.SSSD_MOUNTS if pods.present(seen.spec.slurm_nodes.controller.sssd) is not None else ()
    return [pods.JAIL_MOUNT, _limits_mount(), *power.mounts(seen), *sssd, *custom]


def _slurmctld(seen: Seen) -> Manifest:
    """Its users are those of the root, as soon as there is one."""
    container = pods.container(seen.spec.slurm_nodes.controller.slurmctld)
    if seen.family is not Family.OURS:
        return container
    return {**container, "env": [{"name": "SHARED_ROOT", "value": SHARED_ROOT}, *container.get("env", ())]}


def _limits_mount() -> Manifest:
    path = "/etc/security/limits.conf"
    return pods.mount("security-limits", path, sub_path=texts.LIMITS_CONF, read_only=True)


def _controller_template(seen: Seen, wished: SlurmNodeController, state: list[Manifest]) -> Manifest:
    custom, _ = pods.custom_mounts(wished.volumes.custom_mounts, seen.spec.sources)
    beside, sssd = _sssd(seen, wished.sssd, wished)
    return {
        "metadata": {"annotations": {names.CONFIG_HASH: digest(wished.slurmctld.security_limits_config)}},
        "spec": {
            **pods.place(seen.spec.filters.get(wished.k8s_node_filter_name)),
            **_pod_fields(wished, wished.slurmctld, wished.munge, wished.sssd),
            **pods.filled({"serviceAccountName": wished.service_account_name or power.account(seen)}),
            "initContainers": [*wished.custom_init_containers, *power.sidecars(seen)],
            # Not before slurmctld, which would not start while sssd cannot.
            **pods.filled({"containers": beside}),
            "volumes": [
                pods.volume(names.JAIL, wished.volumes.jail, seen.spec.sources),
                pods.config_map_volume("security-limits", names.controller_limits(seen.name)),
                *state,
                *power.volumes(seen),
                *sssd,
                *custom,
            ],
        },
    }


def _pod_fields(wished: Any, *containers: NodeContainer | None) -> Manifest:
    return pods.filled(
        {
            "priorityClassName": wished.priority_class,
            "hostUsers": wished.host_users,
            "imagePullSecrets": pods.pull_secrets(*containers),
        }
    )


def _sssd(seen: Seen, container: NodeContainer | None, wished: Any) -> tuple[list[Manifest], list[Manifest]]:
    """sssd beside a daemon, and the volumes for both."""
    if pods.present(container) is None or container is None:
        return [], []
    conf = wished.sssd_conf_secret_ref_name or names.sssd_secret(seen.name)
    image = pods.container(container, is_run_by_us=False)
    if seen.family is Family.OURS and not container.command:
        image["command"] = list(pods.SSSD_COMMAND)
    container_, volumes = pods.sssd_container(
        image, conf, wished.sssd_debug_level, wished.sssd_ldap_ca_config_map_ref_name
    )
    return [container_], volumes


def _metrics(wished: SlurmNodeController) -> Manifest:
    monitor = wished.open_metrics.service_monitor
    families = monitor.endpoints or list(MetricFamily)
    return {
        "enabled": wished.open_metrics.enabled,
        "serviceMonitor": {
            "enabled": wished.open_metrics.enabled,
            "interval": monitor.interval,
            "scrapeTimeout": monitor.scrape_timeout,
            "endpoints": [{"path": f"/metrics/{family}"} for family in families],
        },
    }


def operator_rest(seen: Seen) -> Manifest:
    """The slurmrestd by which the operator sees jobs, whether or not users have one.

    It has the operator's own image: what others start with is not known, and every job depends on this pod.
    """
    wished, rest = seen.spec.slurm_nodes.controller, seen.spec.slurm_nodes.rest
    called = names.operator_rest(seen.name)
    spec: Manifest = {
        "controllerRef": {"name": seen.name},
        "replicas": 1,
        "template": {
            "spec": {
                **pods.place(seen.spec.filters.get(wished.k8s_node_filter_name)),
                **pods.filled({"imagePullSecrets": pods.pull_secrets(rest.rest, wished.slurmctld)}),
            }
        },
        "children": children(seen.name, "operator-rest", {"service": called, "workload": called}),
    }
    return maker(seen).part(RestApi.KIND, called, "operator-rest", spec)


def operator_rest_url(seen: Seen) -> str:
    host = f"{names.operator_rest(seen.name)}.{seen.meta.namespace}.svc"
    return f"http://{host}:{shared_names.SLURMRESTD_PORT}"


def rest(seen: Seen) -> Manifest:
    """The user's slurmrestd."""
    wished = seen.spec.slurm_nodes.rest
    container = pods.container(wished.rest) if wished.rest is not None else {}
    settings = {
        "SLURMRESTD_THREAD_COUNT": str(wished.thread_count),
        "SLURMRESTD_MAX_CONNECTIONS": str(wished.max_connections),
    }
    env = [
        *({"name": name, "value": value} for name, value in settings.items()),
        *container.get("env", ()),
    ]
    port = wished.rest.port if wished.rest is not None else None
    # Soperator's entry point reads the variables, slurmrestd itself the arguments; the last one counts.
    args = ["-t", str(wished.thread_count), "--max-connections", str(wished.max_connections)]
    spec: Manifest = {
        "controllerRef": {"name": seen.name},
        "replicas": 0 if seen.is_down else wished.size,
        "slurmrestd": {**container, "args": args, "env": env},
        "template": {
            "spec": {
                **pods.place(seen.spec.filters.get(wished.k8s_node_filter_name)),
                **_pod_fields(wished, wished.rest),
                **pods.filled({"initContainers": wished.custom_init_containers}),
            }
        },
        **({"service": {"port": port}} if port not in (None, 0, shared_names.SLURMRESTD_PORT) else {}),
        "children": children(
            seen.name, "rest", {"service": names.rest_service(seen.name), "workload": names.rest(seen.name)}
        ),
    }
    return maker(seen).part(RestApi.KIND, seen.name, "rest", spec)


def login(seen: Seen, replicas: int) -> Manifest:
    wished = seen.spec.slurm_nodes.login
    is_ours = seen.family is Family.OURS
    spec: Manifest = {
        "controllerRef": {"name": seen.name},
        "replicas": replicas,
        "ordered": True,
        "configSource": config_source(seen),
        "login": {**_sshd(seen), "volumeMounts": _login_mounts(seen)},
        "template": _login_template(seen),
        "rootSshAuthorizedKeys": texts.authorized_keys(wished.ssh_root_public_keys),
        "sshHostKeysRef": {"name": host_keys_secret(seen)},
        "service": _login_service(seen),
        **(
            {"sssdConfRef": {"name": sssd_secret(seen), "key": names.SSSD_CONF}}
            if is_ours and pods.present(wished.sssd) is not None
            else {}
        ),
        "children": children(
            seen.name,
            "login",
            {
                "service": names.login_service(seen.name),
                "headlessService": names.login_headless_service(seen.name),
                "workload": names.login(seen.name),
            },
        ),
    }
    return maker(seen).part(LoginSet.KIND, names.login(seen.name), "login", spec)


def config_source(seen: Seen) -> str:
    """Files in the root where somebody writes them there; slurmctld hands them out otherwise."""
    has_writer = seen.spec.s_config_controller is not None
    return shared_source(seen.login, has_writer=has_writer, has_files=seen.has_files)


def host_keys_secret(seen: Seen) -> str:
    return seen.spec.secrets.sshd_keys_name or names.sshd_keys_secret(seen.name)


def sssd_secret(seen: Seen) -> str:
    return seen.spec.slurm_nodes.login.sssd_conf_secret_ref_name or names.sssd_secret(seen.name)


def _sshd(seen: Seen) -> Manifest:
    wished = seen.spec.slurm_nodes.login.sshd
    has_gpus = any(one.spec.gpu.enabled for one in seen.nodesets if one.spec is not None)
    env: list[Manifest] = [{"name": "SLURM_CLUSTER_WITH_GPU", "value": str(has_gpus).lower()}]
    if seen.family is Family.OURS:
        env.append({"name": SHARED_ROOT_VARIABLE, "value": SHARED_ROOT})
    container = pods.container(wished, is_run_by_us=False)
    confined = pods.confinement(_login_app_armor(seen), wished.proc_mount)
    security = {**container["securityContext"], **confined, "privileged": True}
    ports = (
        [{"name": "login", "containerPort": wished.port, "protocol": "TCP"}]
        if wished.port not in (None, 0, shared_names.SSH_PORT)
        else []
    )
    return {
        **container,
        "env": [*env, *container.get("env", ())],
        "securityContext": security,
        **({"ports": ports} if ports else {}),
    }


def _login_app_armor(seen: Seen) -> str:
    there = seen.login.spec.login.get("securityContext") if seen.login is not None else None
    wished = seen.spec.slurm_nodes.login.sshd.app_armor_profile
    return profile.app_armor(seen.cluster, wished, there, is_loaded=profile.is_loaded(seen.profile))


def _sub_mounts(seen: Seen) -> list[NodeVolumeMount]:
    """Those whose directory is in the root."""
    wished = seen.spec.slurm_nodes.login.volumes.jail_sub_mounts
    there = seen.login.spec.login.get("volumeMounts") or () if seen.login is not None else ()
    names_ = mount_points.mounted(wished, seen.mount_points, (one["name"] for one in there))
    return [one for one in wished if one.name in names_]


def _login_mounts(seen: Seen) -> list[Manifest]:
    wished, sources = seen.spec.slurm_nodes.login, seen.spec.sources
    start = below(seen.family)
    _, sub = pods.custom_mounts(_sub_mounts(seen), sources, below=start)
    _, custom = pods.custom_mounts(wished.volumes.custom_mounts, sources)
    isolation = (
        [
            pods.mount(
                "user-isolation",
                f"/etc/soperator/{texts.USER_ISOLATION}",
                sub_path=texts.USER_ISOLATION,
                read_only=True,
            )
        ]
        if wished.user_isolation.enabled
        else []
    )
    sssd = (
        pods.SSSD_MOUNTS if pods.present(wished.sssd) is not None and seen.family is Family.SOPERATOR else ()
    )
    return [
        pods.JAIL_MOUNT,
        *(_login_ca(seen)[0] if seen.family is Family.OURS else ()),
        *slurm_conf_mount(seen.family, config_source(seen)),
        _limits_mount(),
        pods.mount("sshd-keys", "/etc/ssh/sshd_keys", read_only=True),
        pods.mount(
            "ssh-root-keys", "/root/.ssh/authorized_keys", sub_path=texts.AUTHORIZED_KEYS, read_only=True
        ),
        pods.mount("in-memory", f"{start}/mnt/memory"),
        pods.mount("tmp-disk", "/tmp"),  # noqa: S108
        pods.mount("ssh-configs", "/mnt/ssh-configs", read_only=True),
        *isolation,
        *sssd,
        *sub,
        *custom,
    ]


def _login_ca(seen: Seen) -> tuple[list[Manifest], list[Manifest]]:
    """Certificates for sssd, which runs inside the login container of our images."""
    wished = seen.spec.slurm_nodes.login
    is_wanted = pods.present(wished.sssd) is not None
    return pods.ldap_ca(wished.sssd_ldap_ca_config_map_ref_name if is_wanted else "")


def _login_template(seen: Seen) -> Manifest:
    wished, sources = seen.spec.slurm_nodes.login, seen.spec.sources
    sub, _ = pods.custom_mounts(_sub_mounts(seen), sources)
    custom, _ = pods.custom_mounts(wished.volumes.custom_mounts, sources)
    is_theirs = seen.family is Family.SOPERATOR
    beside, sssd = _sssd(seen, wished.sssd, wished) if is_theirs else ([], _login_ca(seen)[1])
    sidecars = [{**one, "restartPolicy": "Always"} for one in beside]
    munge = {"name": "munge", **pods.container(wished.munge)}
    domain = f"{seen.meta.namespace}.svc.{cluster_domain()}"
    config = sshd_config_map(seen)
    return {
        "metadata": {"annotations": {names.CONFIG_HASH: _login_digest(seen)}},
        "spec": {
            **pods.place(seen.spec.filters.get(wished.k8s_node_filter_name)),
            **_pod_fields(wished, wished.sshd, wished.munge, wished.sssd),
            "dnsConfig": {"searches": [f"{names.login_headless_service(seen.name)}.{domain}"]},
            "initContainers": [*wished.custom_init_containers, munge, *sidecars],
            "volumes": [
                pods.volume(names.JAIL, wished.volumes.jail, sources),
                # In the place of the engine's own: sshd reads what Soperator's users know.
                {
                    "name": "ssh-config",
                    "projected": {
                        "defaultMode": 0o600,
                        "sources": [
                            {
                                "configMap": {
                                    "name": config,
                                    "items": [{"key": texts.SSHD_CONFIG, "path": texts.SSHD_CONFIG}],
                                }
                            }
                        ],
                    },
                },
                pods.config_map_volume("ssh-configs", config),
                pods.config_map_volume("security-limits", names.login_limits(seen.name)),
                pods.host_keys_volume("sshd-keys", host_keys_secret(seen)),
                {
                    "name": "ssh-root-keys",
                    "configMap": {"name": names.ssh_root_keys(seen.name), "defaultMode": 0o600},
                },
                pods.memory_volume("in-memory", wished.sshd.resources.get("memory")),
                {"name": "tmp-disk", "emptyDir": {}},
                *(
                    [pods.config_map_volume("user-isolation", names.user_isolation(seen.name))]
                    if wished.user_isolation.enabled
                    else []
                ),
                *sssd,
                *sub,
                *custom,
            ],
        },
    }


def sshd_config_map(seen: Seen) -> str:
    return seen.spec.slurm_nodes.login.sshd_config_map_ref_name or names.ssh_configs(seen.name)


def _login_digest(seen: Seen) -> str:
    """Changes when login pods have to start again: sshd reads these once."""
    wished = seen.spec.slurm_nodes.login
    given_config = dict(seen.sshd_config.data) if isinstance(seen.sshd_config, ConfigMap) else {}
    config = given_config if wished.sshd_config_map_ref_name else texts.sshd_config(wished)
    isolation = texts.user_isolation(wished) if wished.user_isolation.enabled else ""
    return digest([config, wished.ssh_root_public_keys, wished.sshd.security_limits_config, isolation])


def _login_service(seen: Seen) -> Manifest:
    wished = seen.spec.slurm_nodes.login
    port = wished.sshd.port
    is_node_port = wished.sshd_service_type == "NodePort"
    fields = {
        "type": wished.sshd_service_type,
        "loadBalancerIP": wished.sshd_service_load_balancer_ip,
        "loadBalancerSourceRanges": wished.sshd_service_load_balancer_source_ranges,
    }
    return {
        "metadata": pods.filled({"annotations": wished.sshd_service_annotations}),
        "spec": pods.filled(fields),
        **pods.filled(
            {
                "port": port if port != shared_names.SSH_PORT else None,
                "nodePort": wished.sshd_service_node_port,
            }
            if is_node_port
            else {"port": port if port != shared_names.SSH_PORT else None}
        ),
    }
