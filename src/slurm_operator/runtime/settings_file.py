"""The settings file: one YAML file, or a directory with one file for each key, as a mounted ConfigMap is."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import yaml

from slurm_operator.api import registry
from slurm_operator.api.schema import durations
from slurm_operator.runtime.problems import SettingsProblem

PULL_POLICIES: Final = ("Always", "IfNotPresent", "Never")

# Names the file where no flag does.
CONFIG_VARIABLE: Final = "SLURM_OPERATOR_CONFIG"


class _Unfit(ValueError):  # noqa: N818 - it tells what would do
    """What the value has to be."""


def read(path: Path) -> dict[str, Any]:
    """What the file says, by key. Raises SettingsProblem with the file, the key and what it must be."""
    try:
        content = _directory(path) if path.is_dir() else yaml.safe_load(path.read_text()) or {}
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise SettingsProblem(f"Cannot read the settings file {path}: {error}") from error
    if not isinstance(content, dict):
        raise SettingsProblem(f"{path} must be a mapping of keys to values.")
    unknown = sorted(str(key) for key in content if key not in KEYS)
    if unknown:
        raise SettingsProblem(f"{path}: unknown key {unknown[0]!r}. Known keys: {', '.join(KEYS)}.")
    return {key: _value(path, key, value) for key, value in content.items() if not _is_empty(value)}


def _directory(path: Path) -> dict[str, str]:
    """Each file is a key. Kubernetes keeps the content of a ConfigMap beside them, under names with a dot."""
    return {
        entry.name: (path / entry.name).read_text().strip()
        for entry in sorted(os.scandir(path), key=lambda entry: entry.name)
        if not entry.name.startswith(".")
    }


def _is_empty(value: Any) -> bool:
    """A key without a value says nothing."""
    return value is None or value == ""


def _value(path: Path, key: str, value: Any) -> Any:
    try:
        return KEYS[key](value)
    except _Unfit as unfit:
        raise SettingsProblem(f"{path}: {key} is {value!r}; it must be {unfit}.") from unfit


def _seconds(value: Any) -> float:
    text = str(value)
    try:
        seconds = float(text) if _is_number(text) else durations.parse(text).total_seconds()
    except ValueError:
        seconds = 0.0
    if seconds <= 0 or isinstance(value, bool):
        raise _Unfit("seconds, such as 30, or a duration, such as 30s, 1m or 500ms")
    return seconds


def _is_number(text: str) -> bool:
    return text.replace(".", "", 1).isdecimal()


def _whole(lowest: int, highest: int | None = None) -> Callable[[Any], int]:
    span = f"a whole number from {lowest}" + (f" to {highest}" if highest is not None else " on")

    def read_number(value: Any) -> int:
        text = str(value)
        if not text.isdecimal() or int(text) < lowest or (highest is not None and int(text) > highest):
            raise _Unfit(span)
        return int(text)

    return read_number


def _policy(value: Any) -> str:
    if value not in PULL_POLICIES:
        raise _Unfit(f"one of {', '.join(PULL_POLICIES)}")
    return str(value)


def _annotations(value: Any) -> Mapping[str, str]:
    """A map, or a text that is one as YAML: a value of a ConfigMap cannot be a map."""
    try:
        content = yaml.safe_load(value) if isinstance(value, str) else value
    except yaml.YAMLError as error:
        raise _Unfit(f"a YAML map of names to texts ({error})") from error
    if not isinstance(content, dict) or not all(isinstance(key, str) for key in content):
        raise _Unfit("a YAML map of names to texts")
    return {key: _text(key, text) for key, text in sorted(content.items())}


def _text(key: str, value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if not isinstance(value, str | int | float):
        raise _Unfit(f"a YAML map of names to texts, and {key} is none")
    return str(value)


def _file(value: Any) -> Path:
    if not isinstance(value, str):
        raise _Unfit("the path of a file")
    return Path(value)


def _groups(value: Any) -> tuple[str, ...]:
    """A list, also as a text of YAML."""
    content = yaml.safe_load(value) if isinstance(value, str) and value.startswith("[") else value
    if not (isinstance(content, list) and content and all(isinstance(name, str) for name in content)):
        raise _Unfit("a list of API groups")
    try:
        return registry.ALL.on(content).groups
    except ValueError as error:
        raise _Unfit(f"a list of API groups. {error}".removesuffix(".")) from error


KEYS: Final[dict[str, Callable[[Any], Any]]] = {
    "controller-workers": _whole(1),
    "controller-requeue-after": _seconds,
    "client-timeout": _seconds,
    "client-retry-interval": _seconds,
    "client-max-retries": _whole(0),
    "builder-image-pull-policy": _policy,
    "builder-default-annotations": _annotations,
    "webhook-port": _whole(1, 65535),
    "webhook-tls-file": _file,
    "apis": _groups,
}
