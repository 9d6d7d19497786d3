"""The hash that the Slinky operator gives to a spec. Workers carry it, so that it finds them up to date.

It hashes a patch of the spec as its typed client writes it, the way Kubernetes hashes ControllerRevisions. A
hash that it was seen to give is among the tests, with others that Go wrote.
"""

from typing import Any

from slurm_operator.api.schema import codec
from slurm_operator.api.slinky.nodeset import NodeSet, NodeSetSpec
from slurm_operator.manifests.compare.go_pods import go_json, typed
from slurm_operator.manifests.meta import Manifest

_LETTERS = "bcdfghjklmnpqrstvwxz2456789"  # Without vowels, so that no hash is a word.
_REPLACES = {"$patch": "replace"}


def their_hash(nodeset: NodeSet) -> str:
    """What stands in the label `controller.kubernetes.io/hash` of its workers."""
    counted = go_json(patch(nodeset.spec)) + str(nodeset.status.collision_count or 0).encode()
    return "".join(_LETTERS[ord(digit) % len(_LETTERS)] for digit in str(_fnv(counted)))


def patch(spec: NodeSetSpec) -> Manifest:
    """What it stores in a ControllerRevision."""
    metadata: dict[str, Any] = codec.plain(spec.template.metadata)
    template = {
        "metadata": {key: value for key, value in metadata.items() if value},
        "spec": typed(spec.template.spec, "PodSpec"),
    }
    kept: Manifest = {
        "template": template | _REPLACES,
        "slurmd": typed(spec.slurmd, "Container") | _REPLACES,
        "ordinalPadding": spec.ordinal_padding,
        "oversubscribeNode": spec.oversubscribe_node,
    }
    logfile = typed(spec.logfile, "Container")
    if logfile != typed(None, "Container"):
        kept["logfile"] = logfile | _REPLACES
    if spec.extra_conf:
        kept["extraConf"] = spec.extra_conf
    if ssh := _ssh(spec):
        kept["ssh"] = ssh | _REPLACES
    return {"spec": kept}


def _ssh(spec: NodeSetSpec) -> Manifest:
    """Nothing when nothing is said about it."""
    said: dict[str, Any] = codec.plain(spec.ssh)
    found: Manifest = {"enabled": spec.ssh.enabled}
    if said.get("extraSshdConfig"):
        found["extraSshdConfig"] = said["extraSshdConfig"]
    if said.get("sssdConfRef"):
        found["sssdConfRef"] = typed(said["sssdConfRef"], "SecretKeySelector")
    return found if found != {"enabled": False} else {}


def _fnv(data: bytes) -> int:
    """FNV-1 of 32 bits."""
    found = 2166136261
    for byte in data:
        found = (found * 16777619 & 0xFFFFFFFF) ^ byte
    return found
