"""The objects of a NodeConfigurator: its DaemonSet, and the account of the rebooter."""

from typing import Any, Final

from slurm_operator.api.nebius import names
from slurm_operator.api.nebius.node_conditions import DRAIN_TAINT
from slurm_operator.api.nebius.nodeconfigurator import ContainerSettings, NodeConfigurator
from slurm_operator.api.nebius.volumes import given
from slurm_operator.api.schema import codec
from slurm_operator.api.shared.images import default_image
from slurm_operator.manifests import kinds
from slurm_operator.manifests.meta import Manifest
from slurm_operator.reconcilers.nebius.nodeconfigurator.observe import Program, Seen
from slurm_operator.reconcilers.nebius.shared.objects import Maker, labels, match_labels
from slurm_operator.reconcilers.nebius.shared.pods import filled

COMPONENT: Final = "node-configurator"
REBOOTER: Final = "rebooter"
_COMMAND: Final = "/usr/bin/rebooter"
_MAX_UNAVAILABLE: Final = "20%"

# The rebooter lives on a Kubernetes node that it has drained.
_OWN_TOLERATION: Final = {"key": DRAIN_TAINT, "operator": "Exists", "effect": "NoExecute"}

_NOBODY: Final = 65534
_AS_ROOT: Final[Manifest] = {
    "privileged": True,
    "runAsUser": 0,
    "runAsGroup": 0,
    "readOnlyRootFilesystem": True,
}
_AS_NOBODY: Final[Manifest] = {
    "runAsUser": _NOBODY, "runAsGroup": _NOBODY, "runAsNonRoot": True, "readOnlyRootFilesystem": True,
    "allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]},
}  # fmt: skip

# What older releases run where nothing else is said: they set one sysctl, and sleep.
_SLEEPER: Final = "node-sysctl-sleep"
_SLEEP: Final = ["sleep", "infinity"]
_SYSCTL: Final = "/proc/sys/kernel/unprivileged_userns_clone"
_SET_SYSCTL: Final = ["sh", "-c", f"[ ! -e {_SYSCTL} ] || echo 1 > {_SYSCTL}"]

# The list of Kubernetes nodes that are out of service. What concerns nodes and pods everywhere is in a
# ClusterRole that the installation brings: nobody who makes NodeConfigurators is given such rights by us.
RULES: Final[list[Manifest]] = [
    {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["create", "get", "update"]},
]


def desired(seen: Seen) -> list[Manifest]:
    made = _maker(seen)
    account = (
        made.account(names.rebooter_account(seen.name), COMPONENT, RULES) if seen.has_own_account else []
    )
    return [*account, daemon_set(seen)]


def _maker(seen: Seen) -> Maker:
    return Maker(NodeConfigurator.KIND, seen.meta, seen.name)


def daemon_set(seen: Seen) -> Manifest:
    own = {**labels(seen.name, COMPONENT), names.NODE_CONFIGURATOR: "true"}
    selector = _selector(seen)
    body: Manifest = {
        "selector": {"matchLabels": selector},
        "updateStrategy": {
            "type": "RollingUpdate",
            "rollingUpdate": {"maxUnavailable": _MAX_UNAVAILABLE},
        },
        "template": {"metadata": {"labels": {**own, **selector}}, "spec": _pod(seen)},
    }
    made = _maker(seen).object(kinds.DAEMON_SET, names.node_configurator(seen.name), COMPONENT)
    made["metadata"]["labels"] = own
    return made | {"spec": body}


def _selector(seen: Seen) -> dict[str, str]:
    """That of a DaemonSet which there is stays: it cannot change."""
    there = seen.daemon_set
    found = (there.body["spec"].get("selector") or {}).get("matchLabels") if there is not None else None
    return dict(found) if found else match_labels(seen.name, COMPONENT)


def _pod(seen: Seen) -> Manifest:
    spec, settings = seen.spec, seen.settings
    is_rebooter, is_older = seen.program is Program.REBOOTER, seen.program is Program.OLDER
    account = names.rebooter_account(seen.name) if seen.has_own_account else settings.service_account_name
    init_containers = [codec.plain(one) for one in spec.init_containers]
    if is_older and not init_containers:
        init_containers = [_sysctl(settings)]
    fields = {
        "hostNetwork": spec.host_network and not is_older,
        "hostIPC": spec.host_ipc,
        "hostPID": is_rebooter,
        # With those of the whole node there is nothing left to be shared; Kubernetes refuses both at once.
        "shareProcessNamespace": spec.share_process_namespace and not is_rebooter,
        "serviceAccountName": account,
        "priorityClassName": settings.priority_class_name,
        "nodeSelector": dict(settings.node_selector),
        "affinity": given(settings.affinity),
        "tolerations": [*settings.tolerations, *([_OWN_TOLERATION] if is_rebooter else [])],
        "hostUsers": settings.host_users,
        "initContainers": init_containers,
        "containers": [_rebooter(seen) if is_rebooter else _custom(seen)],
    }
    # False is what Kubernetes takes for granted, but for the last one.
    is_said = {name: value for name, value in fields.items() if value is not False or name == "hostUsers"}
    return filled(is_said)


def _rebooter(seen: Seen) -> Manifest:
    settings = seen.spec.rebooter
    arguments = ["-log-level", str(settings.log_level)]
    if settings.log_format:
        arguments += ["-log-format", settings.log_format]
    node = {"name": "REBOOTER_NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}
    method = {"name": "REBOOTER_EVICTION_METHOD", "value": str(settings.eviction_method)}
    return _container(
        settings,
        name=settings.name or REBOOTER,
        command=settings.command or [_COMMAND],
        args=arguments,
        env=[node, method, *map(codec.plain, settings.env)],
        resources=_few(settings.resources),
        securityContext=_AS_ROOT,
    )


def _custom(seen: Seen) -> Manifest:
    settings, is_older = seen.settings, seen.program is Program.OLDER
    return _container(
        settings,
        name=settings.name or (_SLEEPER if is_older else COMPONENT),
        command=settings.command or (_SLEEP if is_older else []),
        env=[codec.plain(one) for one in settings.env],
        resources=given(settings.resources),
        securityContext=_AS_NOBODY,
    )


def _container(settings: ContainerSettings, **more: Any) -> Manifest:
    return filled(
        {
            **_image(settings),
            "livenessProbe": given(settings.liveness_probe),
            "readinessProbe": given(settings.readiness_probe),
            **more,
        }
    )


def has_image(settings: ContainerSettings) -> bool:
    """Typed Go clients write an image without a name for none."""
    return settings.image is not None and settings.image.repository != ""


def _image(settings: ContainerSettings) -> Manifest:
    """The operator's own where the rebooter has none: it is a program of that image."""
    if settings.image is None or not has_image(settings):
        return {"image": default_image(REBOOTER)}
    return {"image": settings.image.reference, "imagePullPolicy": str(settings.image.pull_policy)}


def _sysctl(settings: ContainerSettings) -> Manifest:
    return {
        "name": "node-sysctl",
        **_image(settings),
        "command": _SET_SYSCTL,
        "securityContext": {"privileged": True, "runAsUser": 0},
    }


def _few(resources: Manifest) -> Manifest:
    """A rebooter has no limit of CPU: it must not be slow when the node is busy."""
    whole: Manifest = given(resources)
    kept = {"requests": ("cpu", "memory"), "limits": ("memory",)}
    found = {
        part: {name: amount for name, amount in (whole.get(part) or {}).items() if name in those}
        for part, those in kept.items()
    }
    return filled(found)
