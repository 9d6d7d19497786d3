"""Children as they are read: whole when they are, or may become, ours; else only that they are there."""

import json

import pytest

from slurm_operator.api.slinky.nodeset import NodeSet
from slurm_operator.manifests.meta import decode_of_owner


def owner(api_version: str, kind: str) -> dict[str, str]:
    return {"apiVersion": api_version, "kind": kind, "name": "gpu", "uid": "1"}


@pytest.mark.parametrize(
    ("owners", "is_whole"),
    [
        pytest.param([owner("slinky.slurm.net/v1beta1", "NodeSet")], True, id="of our kind"),
        pytest.param([owner("slinky.slurm.net/v1alpha1", "NodeSet")], True, id="written in an old version"),
        pytest.param([], True, id="of nobody: its owner may be made again"),
        pytest.param([owner("apps/v1", "DaemonSet")], False, id="of somebody else"),
        pytest.param(
            [owner("testing.example.com/v1", "NodeSet")], False, id="of a namesake in another group"
        ),
        pytest.param([owner("v1", "NodeSet")], False, id="of a namesake in no group"),
    ],
)
def test_only_what_may_be_ours_is_kept_whole(owners, is_whole):
    meta = {"name": "gpu-1", "namespace": "ns", "uid": "u", "ownerReferences": owners}
    child = decode_of_owner(NodeSet.KIND)(json.dumps({"metadata": meta, "data": {"spec": {}}}).encode())

    assert child.metadata.name == "gpu-1"
    assert bool(child.body) is is_whole
