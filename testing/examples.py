"""The manifests in docs/examples, so that tests show what readers copy."""

from pathlib import Path
from typing import Any

import yaml

EXAMPLES = Path(__file__).parents[1] / "docs" / "examples"


def example_lines(name: str) -> list[str]:
    """The lines of an example, without comments."""
    text = (EXAMPLES / f"{name}.yaml").read_text()
    return [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]


def example(name: str) -> dict[str, Any]:
    """The spec of an example."""
    spec = yaml.safe_load((EXAMPLES / f"{name}.yaml").read_text())["spec"]
    assert isinstance(spec, dict)
    return spec
