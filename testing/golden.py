"""Expected manifests, in files that a review can read. SLURM_OPERATOR_GOLDEN=write writes them again."""

import os
from pathlib import Path
from typing import Any

import yaml

from slurm_operator import wire

GOLDEN = Path(__file__).parents[1] / "tests" / "unit" / "reconcilers" / "golden"


class _Dumper(yaml.SafeDumper):
    """Without aliases, and texts of several lines as people write them."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.Node:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Dumper.add_representer(str, _text)


def as_yaml(manifests: list[dict[str, Any]]) -> str:
    plain = [wire.plain(manifest) for manifest in manifests]
    return yaml.dump_all(
        plain, Dumper=_Dumper, sort_keys=True, explicit_start=True, width=110, allow_unicode=True
    )


def assert_golden(kind: str, name: str, manifests: list[dict[str, Any]]) -> None:
    """These are the manifests in `golden/KIND/NAME.yaml`, byte for byte."""
    path = GOLDEN / kind / f"{name}.yaml"
    text = as_yaml(manifests)
    if os.environ.get("SLURM_OPERATOR_GOLDEN") == "write":
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    assert text == path.read_text(), (
        f"run again with SLURM_OPERATOR_GOLDEN=write and look at what changed in {path}"
    )


def golden_manifests(kind: str) -> dict[str, list[dict[str, Any]]]:
    """Everything in `golden/KIND`, by the name of the file."""
    return {
        path.stem: list(yaml.safe_load_all(path.read_text()))
        for path in sorted((GOLDEN / kind).glob("*.yaml"))
    }
