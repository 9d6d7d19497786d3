"""What containers of ours cannot do, unless somebody wants it to: nothing that their daemon needs.

Laid under what the user wrote, after both were merged: a container that somebody made privileged, or gave a
capability, is left able to use it. The pod has a note of it, so that pods of earlier versions can be found.
"""

from collections.abc import Collection, Mapping
from typing import Any, Final

from slurm_operator.api.shared import names
from slurm_operator.manifests.meta import Manifest

SECCOMP: Final[Manifest] = {"type": "RuntimeDefault"}

# Whoever has one of these can have all the others; Kubernetes refuses to forbid it to gain more.
_ALL_POWERFUL: Final = {"SYS_ADMIN", "CAP_SYS_ADMIN", "ALL"}

_LISTS: Final = ("initContainers", "containers")


def confined(pod: Manifest, confinable: Collection[str], *, without_root: Collection[str] = ()) -> Manifest:
    """The pod, with these containers confined. Those of `without_root` need no capability, even as root."""
    shared = pod.get("securityContext") or {}
    return pod | {
        field: [
            _confined(container, shared, is_bare=container["name"] in without_root)
            if container["name"] in confinable
            else container
            for container in pod[field]
        ]
        for field in _LISTS
        if field in pod
    }


def noted(template: Manifest) -> Manifest:
    """The template of a pod whose containers are confined, with the note that says so."""
    metadata = template["metadata"]
    annotations = {**metadata["annotations"], names.POD_SECURITY: names.POD_SECURITY_NOW}
    return template | {"metadata": {**metadata, "annotations": annotations}}


def _confined(container: Manifest, shared: Mapping[str, Any], *, is_bare: bool) -> Manifest:
    given = container.get("securityContext") or {}
    if given.get("privileged"):
        return container
    capabilities = given.get("capabilities") or {}
    ours: Manifest = {}
    if "seccompProfile" not in given and "seccompProfile" not in shared:
        ours["seccompProfile"] = SECCOMP
    if "allowPrivilegeEscalation" not in given and not _ALL_POWERFUL & {*(capabilities.get("add") or ())}:
        ours["allowPrivilegeEscalation"] = False
    # Root without capabilities cannot read the files of others, which some images count on.
    is_root = not given.get("runAsUser", shared.get("runAsUser"))
    if "drop" not in capabilities and (is_bare or not is_root):
        ours["capabilities"] = {**capabilities, "drop": ["ALL"]}
    return container | {"securityContext": {**given, **ours}}
