"""Who the operator is in tests, and what it used of its rights, as the API server's own log has it."""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from slurm_operator.install import rights
from slurm_operator.local.controlplane import Plane

# Everybody in it has the operator's rights and no others. Tests give each manager a name of its own.
GROUP = "slurm-operator-managers"

# Audit logs of this run, in which the operator's requests stand.
LOGS: list[Path] = []

EVERYTHING = (*rights.CLUSTER_WIDE, *rights.IN_NAMESPACES, *rights.AT_HOME, *rights.SECURE_METRICS)

_RBAC = "rbac.authorization.k8s.io"


# Rights that no request of an ordinary run takes, and why they are given all the same.
RARE = {
    "patch": "of events: how often one has come back, seconds after it first did",
    "get": "after a JSON patch was refused, to see whether the object is another one by now",
    "update": "asked for by an admission plugin of some API servers, not by us",
}


class Use(NamedTuple):
    """One verb on one resource, such as `patch` on `pods/status`."""

    group: str
    resource: str
    verb: str


def grant(plane: Plane) -> None:
    """Let the operator's group do what an installation lets the operator do."""
    LOGS.append(plane.audit_log)
    metadata = {"name": GROUP}
    role = {"metadata": metadata, "rules": rights.rules(EVERYTHING)}
    binding = {
        "metadata": metadata,
        "roleRef": {"apiGroup": _RBAC, "kind": "ClusterRole", "name": GROUP},
        "subjects": [{"apiGroup": _RBAC, "kind": "Group", "name": GROUP}],
    }
    plane.caller.call("POST", f"/apis/{_RBAC}/v1/clusterroles", role)
    plane.caller.call("POST", f"/apis/{_RBAC}/v1/clusterrolebindings", binding)


def operator(plane: Plane, user: str) -> Path:
    """A kubeconfig for a manager: its own name, the operator's rights."""
    return plane.kubeconfig_for(user, GROUP)


def granted() -> set[Use]:
    return {
        Use(right.group, resource, verb)
        for right in EVERYTHING
        for resource in right.resources
        for verb in right.verbs
    }


def is_rare(use: Use) -> bool:
    """Whether a run may well pass without this right being used: see RARE."""
    if use.verb == "update":
        return use.resource.endswith("/finalizers")
    if use.resource == "events":
        return use.verb == "patch"
    return use.verb == "get" and use.resource not in ("secrets", "configmaps", "leases")


def requests(log: Path) -> Iterator[dict[str, Any]]:
    """What operators asked of an API server; a line that is still being written is left out."""
    if not log.exists():
        return  # The server never came up; whoever asked for it has said so.
    whole, _, _ = log.read_text().rpartition("\n")
    for line in whole.splitlines():
        entry = json.loads(line)
        if _is_operator(entry["user"]):
            yield entry


def _is_operator(user: dict[str, Any]) -> bool:
    name = user.get("username", "")
    return GROUP in user.get("groups", ()) or name == "system:serviceaccount:slurm-operator:slurm-operator"


def uses(entries: Iterable[dict[str, Any]]) -> set[Use]:
    """The rights that these requests took. An apply that made its object took `create` as well."""
    found = set()
    for entry in entries:
        about = entry.get("objectRef")
        if about is None:
            continue
        parts = [about["resource"], *([about["subresource"]] if "subresource" in about else [])]
        use = Use(about.get("apiGroup", ""), "/".join(parts), entry["verb"])
        found.add(use)
        if use.verb == "patch" and entry.get("responseStatus", {}).get("code") == 201:
            found.add(use._replace(verb="create"))
    return found


def note(file: Path) -> None:
    """Write down which rights were used in this run, for the test that looks at all runs."""
    used = set().union(*(uses(requests(log)) for log in LOGS))
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(sorted(used)))


def noted(file: Path) -> set[Use]:
    return {Use(*use) for use in json.loads(file.read_text())}


def refused(log: Path) -> list[str]:
    """What an operator was not allowed to do."""
    return sorted(
        {
            f"{entry['user']['username']}: {entry['verb']} {entry['requestURI']}"
            for entry in requests(log)
            if entry.get("annotations", {}).get("authorization.k8s.io/decision") == "forbid"
        }
    )
