"""The Secrets of Tokens on a real API server. What becomes of a Token there is in test_manager.py."""

import pytest
from kinds_rig import ns, refusals

from testing.golden import golden_manifests

__all__ = ["ns"]

GOLDEN = golden_manifests("token")


@pytest.mark.parametrize("name", GOLDEN)
def test_the_api_server_takes_every_golden_manifest(plane, ns, name):
    assert refusals(plane, ns, GOLDEN[name]) == []
