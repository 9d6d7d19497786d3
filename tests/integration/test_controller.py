"""Controllers on a real API server: its opinion of our manifests, and what the running manager makes of one."""

import json

import pytest

from support.controller_cases import CASES, manifests


@pytest.mark.parametrize("case", CASES)
def test_the_api_server_takes_every_manifest(api_server, namespace, case):
    """All but the ServiceMonitor, whose definition comes with the Prometheus operator."""
    made = [manifest for manifest in manifests(CASES[case]) if manifest["kind"] != "ServiceMonitor"]
    for manifest in made:
        manifest["metadata"]["namespace"] = namespace

    said = api_server.kubectl(
        "apply", "--server-side", "--dry-run=server", "--validate=strict", "-f", "-",
        stdin="\n---\n".join(map(json.dumps, made)),
    )  # fmt: skip

    assert said.count("serverside-applied") == len(made)
