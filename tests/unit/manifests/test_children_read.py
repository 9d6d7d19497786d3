"""Children as they are read: whole when they are, or may become, ours; else only that they are there."""

import json

import pytest

from slurm_operator.manifests.meta import decode_of_owner


@pytest.mark.parametrize(
    ("owners", "is_whole"),
    [
        pytest.param(
            [{"apiVersion": "v1", "kind": "NodeSet", "name": "gpu", "uid": "1"}], True, id="of our kind"
        ),
        pytest.param([], True, id="of nobody: its owner may be made anew"),
        pytest.param(
            [{"apiVersion": "v1", "kind": "DaemonSet", "name": "web", "uid": "1"}],
            False,
            id="of somebody else",
        ),
    ],
)
def test_only_what_may_be_ours_is_kept_whole(owners, is_whole):
    meta = {"name": "gpu-1", "namespace": "ns", "uid": "u", "ownerReferences": owners}
    child = decode_of_owner("NodeSet")(json.dumps({"metadata": meta, "data": {"spec": {}}}).encode())

    assert child.metadata.name == "gpu-1"
    assert bool(child.body) is is_whole
