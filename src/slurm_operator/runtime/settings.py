"""How one manager runs. Flags and environment variables become this; so does the optional settings file."""

from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import yaml

from slurm_operator.api import registry
from slurm_operator.api.registry import DEFAULT_GROUPS


class SettingsProblem(Exception):  # noqa: N818 - a problem is the user's to fix, not an error of ours
    """Something in the settings that cannot be: which, where, and what would do."""


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
    client_timeout_seconds: float = 20.0
    client_retry_interval_seconds: float = 1.0
    client_max_retries: int = 0
    propagated_node_conditions: tuple[str, ...] = ()
    record: Path | None = None
    groups: tuple[str, ...] = DEFAULT_GROUPS  # The API groups that are on.
    left_out: tuple[str, ...] = ()  # Resources of them that are not reconciled.

    def workers_of(self, reconciler: str) -> int:
        return self.workers.get(reconciler, self.default_workers)


_FILE_KEYS: dict[str, tuple[str, type[int] | type[float]]] = {
    "controller-workers": ("default_workers", int),
    "controller-requeue-after": ("requeue_after_seconds", float),
    "client-timeout": ("client_timeout_seconds", float),
    "client-retry-interval": ("client_retry_interval_seconds", float),
    "client-max-retries": ("client_max_retries", int),
}


# A list of the API groups that are on.
_APIS_KEY = "apis"


def with_file(settings: Settings, path: Path) -> Settings:
    """The settings with those of the file put over them."""
    try:
        content = yaml.safe_load(path.read_text()) or {}
    except (OSError, yaml.YAMLError) as error:
        raise SettingsProblem(f"Cannot read the settings file {path}: {error}") from error
    if not isinstance(content, dict):
        raise SettingsProblem(f"{path} must be a mapping of keys to values.")
    unknown = sorted(set(content) - {*_FILE_KEYS, _APIS_KEY})
    if unknown:
        known = ", ".join((*_FILE_KEYS, _APIS_KEY))
        raise SettingsProblem(f"{path}: unknown key {unknown[0]!r}. Known keys: {known}.")
    changes: dict[str, Any] = {
        _FILE_KEYS[key][0]: _number(path, key, value) for key, value in content.items() if key != _APIS_KEY
    }
    if _APIS_KEY in content:
        changes["groups"] = _groups(path, content[_APIS_KEY])
    return replace(settings, **changes)


def _groups(path: Path, value: Any) -> tuple[str, ...]:
    if not (isinstance(value, list) and value and all(isinstance(name, str) for name in value)):
        raise SettingsProblem(f"{path}: {_APIS_KEY} is {value!r}; it must be a list of API groups.")
    try:
        return registry.ALL.on(value).groups
    except ValueError as error:
        raise SettingsProblem(f"{path}: {_APIS_KEY}: {error}") from error


def _number(path: Path, key: str, value: Any) -> int | float:
    _, type_ = _FILE_KEYS[key]
    try:
        number = type_(str(value).removesuffix("s"))
    except ValueError:
        number = type_(-1)
    if number < 0 or (number == 0 and key != "client-max-retries"):
        unit = "seconds, such as 30 or 30s" if type_ is float else "a whole number"
        raise SettingsProblem(f"{path}: {key} is {value!r}; it must be {unit}.")
    return number


assert {name for name, _ in _FILE_KEYS.values()} <= {entry.name for entry in fields(Settings)}
