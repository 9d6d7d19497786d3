"""How one manager runs. Flags and environment variables become this; so does the optional settings file."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Final

from slurm_operator.api.nebius.names import TIER_PREFIX
from slurm_operator.api.registry import DEFAULT_GROUPS
from slurm_operator.reconcilers.nebius.kubenode.options import NodeOptions
from slurm_operator.runtime import settings_file
from slurm_operator.runtime.kubelets import KubeletSettings
from slurm_operator.runtime.problems import SettingsProblem as SettingsProblem


@dataclass(frozen=True)
class Address:
    """Where to listen. Port 0 means: do not."""

    host: str
    port: int

    @classmethod
    def parse(cls, text: str) -> "Address":
        """`:8080`, `127.0.0.1:8080`, `[::1]:8080`, a bare port, or `0` for off."""
        host, colon, port = text.rpartition(":")
        if not (port.isdigit() and int(port) < 65536) or (not colon and host):
            raise SettingsProblem(
                f"{text!r} is not an address to listen on. Use :8080, 127.0.0.1:8080, or 0 for off."
            )
        return cls(host.strip("[]") or "0.0.0.0", int(port))

    @property
    def is_off(self) -> bool:
        return self.port == 0


@dataclass(frozen=True)
class Settings:
    namespaces: tuple[str, ...] = ()
    kubeconfig: Path | None = None
    context: str = ""
    health: Address = Address("0.0.0.0", 8081)
    metrics: Address = Address("0.0.0.0", 8080)
    metrics_secure: bool = False
    leader_elect: bool = False
    leader_elect_id: str = "slurm-operator"
    leader_elect_namespace: str = ""
    lease_seconds: int = 15
    renew_deadline_seconds: float = 10.0
    retry_seconds: float = 2.0
    profile: Address = Address("localhost", 0)
    workers: dict[str, int] = field(default_factory=dict)
    default_workers: int = 4
    requeue_after_seconds: float | None = None
    client_timeout_seconds: float | None = None  # None: each client has its own.
    client_retry_interval_seconds: float = 1.0
    client_max_retries: int = 0
    propagated_node_conditions: tuple[str, ...] = ()
    tier_prefix: str = TIER_PREFIX  # Of labels of Kubernetes nodes that say where they are.
    image_pull_policy: str = ""  # Of containers that name none; empty is what Kubernetes gives them.
    default_annotations: Mapping[str, str] = field(default_factory=dict)  # On what we create.
    record: Path | None = None
    groups: tuple[str, ...] = DEFAULT_GROUPS  # The API groups that are on.
    left_out: tuple[str, ...] = ()  # Resources of them that are not reconciled.
    is_beside_manager: bool = False  # A manager of ours acts on the others: it is nobody to wait for.
    nodes: NodeOptions | None = None  # What is done about Kubernetes nodes with workers; None is nothing.
    kubelets: KubeletSettings | None = None  # How they are asked for the storage of workers; None is not.

    def workers_of(self, reconciler: str) -> int:
        return self.workers.get(reconciler, self.default_workers)


# The keys of the settings file that a manager reads. The others are for the webhook.
FILE_KEYS: Final = {
    "controller-workers": "default_workers",
    "controller-requeue-after": "requeue_after_seconds",
    "client-timeout": "client_timeout_seconds",
    "client-retry-interval": "client_retry_interval_seconds",
    "client-max-retries": "client_max_retries",
    "builder-image-pull-policy": "image_pull_policy",
    "builder-default-annotations": "default_annotations",
    "apis": "groups",
}


def with_file(settings: Settings, path: Path, given: Collection[str] = ()) -> Settings:
    """The settings with those of the file. What is `given`, by a flag or by the environment, stays.

    Raises SettingsProblem.
    """
    content = settings_file.read(path)
    changes = {FILE_KEYS[key]: value for key, value in content.items() if key in FILE_KEYS}
    return replace(settings, **{name: value for name, value in changes.items() if name not in given})


assert set(FILE_KEYS) <= set(settings_file.KEYS)
assert set(FILE_KEYS.values()) <= {entry.name for entry in fields(Settings)}
