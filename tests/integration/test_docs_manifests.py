"""Every manifest that the documentation shows is one that the API server takes."""

import pytest
import yaml
from crd_rig import Api
from crd_rig import api as api

from support.docs import Block, blocks

# Kinds of other projects, which are not installed here.
ELSEWHERE = {"ScaledObject"}

MANIFESTS = [block for block in blocks("yaml") if "\nkind:" in block.text]


def test_the_documentation_has_manifests() -> None:
    assert len(MANIFESTS) > 10


@pytest.mark.parametrize("block", MANIFESTS, ids=str)
def test_a_manifest_of_the_documentation_is_taken(block: Block, api: Api, namespace: str) -> None:
    for manifest in yaml.safe_load_all(block.text):
        if manifest["kind"] not in ELSEWHERE:
            api.plane.kubectl(
                "create", "-n", namespace, "--dry-run=server", "--validate=strict", "-f", "-",
                stdin=yaml.safe_dump(manifest),
            )  # fmt: skip
