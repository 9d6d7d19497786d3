"""Every manifest that the documentation shows is one that the API server takes."""

from collections.abc import Iterator

import pytest
import yaml
from crd_rig import Api
from crd_rig import api as api

from testing.docs import ROOT, Block, blocks
from testing.examples import EXAMPLES

# Kinds of other projects, which are not installed here.
ELSEWHERE = {"ScaledObject"}

# Pages that show a part of a spec, and the example whose part it is.
PARTS = {"docs/guides/workers.md": "nodeset"}

MANIFESTS = list(blocks("yaml"))


def manifests(block: Block) -> Iterator[dict]:
    for manifest in yaml.safe_load_all(block.text):
        if "kind" in manifest:
            yield manifest
        else:
            whole = yaml.safe_load(
                (EXAMPLES / f"{PARTS[str(block.page.relative_to(ROOT))]}.yaml").read_text()
            )
            yield {**whole, "spec": {**whole["spec"], **manifest["spec"]}}


def test_the_documentation_has_manifests() -> None:
    assert len(MANIFESTS) > 10


@pytest.mark.parametrize("block", MANIFESTS, ids=str)
def test_a_manifest_of_the_documentation_is_taken(block: Block, api: Api, namespace: str) -> None:
    for manifest in manifests(block):
        if manifest["kind"] not in ELSEWHERE:
            api.plane.kubectl(
                "create", "-n", namespace, "--dry-run=server", "--validate=strict", "-f", "-",
                stdin=yaml.safe_dump(manifest),
            )  # fmt: skip
