"""The comment on a Slurm node that says which pod it is. Others write comments too: those are not ours."""

from typing import Any

from slurm_operator import wire
from slurm_operator.api.slinky.nodeset import NodeSet
from slurm_operator.reconcilers.nodeset.workers import Worker
from slurm_operator.slurm.wire_words import COMMENT_KEYS


def pod_info(worker: Worker, nodeset: NodeSet) -> dict[str, str]:
    """What the comment on the Slurm node of this worker says."""
    meta = nodeset.metadata
    return {
        "namespace": meta.namespace,
        "podName": worker.name,
        "node": worker.pod.spec.node_name,
        "nodeSetName": meta.name,
        "nodeSetUID": meta.uid,
    }


def read(comment: str) -> dict[str, Any] | None:
    """What a comment of ours says; None when somebody else wrote it, or nobody."""
    if not comment.startswith("{"):
        return None
    try:
        info = wire.decode_any(comment)
    except wire.DecodeError:
        return None
    return info if isinstance(info, dict) and info.keys() >= COMMENT_KEYS else None


def names_set(info: dict[str, Any], nodeset: NodeSet) -> bool:
    """Whether it is about a worker of a NodeSet of this name."""
    meta = nodeset.metadata
    return bool(info["namespace"] == meta.namespace and info["nodeSetName"] == meta.name)


def names_this_set(info: dict[str, Any], nodeset: NodeSet) -> bool:
    """Whether it is about a worker of this very NodeSet, and not of an earlier one, or one elsewhere."""
    return names_set(info, nodeset) and info.get("nodeSetUID") == nodeset.metadata.uid
