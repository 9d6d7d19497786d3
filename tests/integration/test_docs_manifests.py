"""Every manifest that the documentation shows is one that the API server takes."""

from collections.abc import Iterator

import pytest
import yaml
from crd_rig import example
from kinds_rig import ns, serving_kinds

from slurm_operator.api import registry
from testing.control_plane import Plane
from testing.docs import ROOT, Block, blocks
from testing.slurmclusters import manifest

__all__ = ["ns"]

# Kinds of other projects, which are not installed here.
ELSEWHERE = {"ScaledObject"}

# Pages that show a part of a spec, and the manifest whose part it is.
PARTS = {
    "docs/guides/ephemeral-nodes.md": manifest("NodeSet", "gpu"),
    "docs/guides/login-and-identity.md": example("loginset"),
    "docs/guides/monitoring.md": manifest("SlurmCluster", "smallest"),
    "docs/guides/workers.md": example("nodeset"),
}

MANIFESTS = list(blocks("yaml"))


def manifests(block: Block) -> Iterator[dict]:
    for shown in yaml.safe_load_all(block.text):
        whole = shown if "kind" in shown else merged(PARTS[str(block.page.relative_to(ROOT))], shown)
        # Wherever it is for: here it goes to the namespace of the test.
        yield {
            **whole,
            "metadata": {key: value for key, value in whole["metadata"].items() if key != "namespace"},
        }


def merged(whole: dict, part: dict) -> dict:
    """`whole` with what `part` says instead."""
    both = {
        key: merged(whole[key], value)
        if isinstance(value, dict) and isinstance(whole.get(key), dict)
        else value
        for key, value in part.items()
    }
    return {**whole, **both}


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plane]:
    """One with the kinds of both APIs."""
    with serving_kinds(tmp_path_factory.mktemp("docs"), kinds=registry.ALL) as plane:
        yield plane


def test_the_documentation_has_manifests() -> None:
    assert len(MANIFESTS) > 10


@pytest.mark.parametrize("block", MANIFESTS, ids=str)
def test_a_manifest_of_the_documentation_is_taken(plane: Plane, ns: str, block: Block) -> None:
    for shown in manifests(block):
        if shown["kind"] not in ELSEWHERE:
            plane.kubectl(
                "create", "-n", ns, "--dry-run=server", "--validate=strict", "-f", "-",
                stdin=yaml.safe_dump(shown),
            )  # fmt: skip
