"""The exporter's container and how Prometheus reads it, whoever asks for one."""

from collections.abc import Mapping
from typing import Final

from slurm_operator.manifests.builders import parts
from slurm_operator.manifests.meta import Manifest
from slurm_operator.manifests.secrets import SecretHandle

APP: Final = "slurm-exporter"
COMMAND: Final = ("slurm-operator", "exporter")
_KEY_FOLDER: Final = "/etc/slurm-exporter"
_KEY_FILE: Final = "jwt.key"
KEY_PATH: Final = f"{_KEY_FOLDER}/{_KEY_FILE}"
PORTS: Final = {"metrics": 8080, "monitoring": 8081}
_UID: Final = 65532

# Nobody: all it needs is the key.
POD_SECURITY: Final[Manifest] = {
    "runAsNonRoot": True,
    "runAsUser": _UID,
    "runAsGroup": _UID,
    "fsGroup": _UID,
    "seccompProfile": {"type": "RuntimeDefault"},
}
CONFINED: Final[Manifest] = {
    "allowPrivilegeEscalation": False,
    "readOnlyRootFilesystem": True,
    "capabilities": {"drop": ["ALL"]},
}
KEY_MOUNT: Final[Manifest] = {"name": "key", "mountPath": _KEY_FOLDER, "readOnly": True}


def key_volume(key: SecretHandle) -> Manifest:
    return parts.projected("key", 0o400, parts.secret_file(key.name, key.key, _KEY_FILE))


def serving() -> Manifest:
    """The fields of a container that hold for every exporter: ports, resources and probes."""
    return {
        "ports": [{"name": name, "containerPort": port, "protocol": "TCP"} for name, port in PORTS.items()],
        "resources": {"requests": {"cpu": "20m", "memory": "96Mi"}, "limits": {"memory": "1Gi"}},
        "readinessProbe": parts.http_probe("/health", "metrics", period_seconds=5, failures=3),
        "livenessProbe": parts.http_probe("/health", "metrics", period_seconds=10, failures=6),
    }


def endpoints(interval: str, timeout: str, more: Mapping[str, object] | None = None) -> list[Manifest]:
    """Both pages, for a ServiceMonitor or a PodMonitor: Slurm's, and the exporter's own."""
    times = {"interval": interval, "scrapeTimeout": timeout}
    said = {key: value for key, value in times.items() if value}
    # Labels of the page win over those of the target: `namespace` and `pod` there are a worker's.
    return [{"path": "/metrics", "port": port, "honorLabels": True, **said, **(more or {})} for port in PORTS]
