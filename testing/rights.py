"""Who operator and webhook are in tests, and what they used of their rights, as the API server's own log has it."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from slurm_operator.api import registry
from slurm_operator.api.registry import Registry
from slurm_operator.install import rights
from slurm_operator.install.admission import CERTIFICATES, WEBHOOK
from slurm_operator.manifests.builders.protection import service_account
from testing.audit import entries
from testing.control_plane import Plane

_RBAC = "rbac.authorization.k8s.io"
_HOME = "slurm-operator"


class Account(NamedTuple):
    """One program, under its service account in whole clusters and as a group of users elsewhere."""

    name: str
    rights: tuple[rights.Right, ...]

    @property
    def group(self) -> str:
        """Everybody in it has the rights of the program and no others. Tests give each process a name of its own."""
        return f"{self.name}s"

    def made(self, entry: dict[str, Any]) -> bool:
        """Whether a line of the log is about a request of this program."""
        user = entry["user"]
        is_pod = user.get("username", "") == service_account(_HOME, self.name)
        return is_pod or self.group in user.get("groups", ())


CLUSTER_WIDE = rights.cluster_wide(registry.DEFAULT)
IN_NAMESPACES = rights.in_namespaces(registry.DEFAULT)


def operator_of(kinds: Registry) -> Account:
    """The operator with these kinds on."""
    everywhere = (*rights.cluster_wide(kinds), *rights.in_namespaces(kinds))
    return Account(_HOME, (*everywhere, *rights.at_home(kinds), *rights.SECURE_METRICS))


OPERATOR = operator_of(registry.DEFAULT)
WEBHOOK_ACCOUNT = Account(
    WEBHOOK,
    (
        *rights.WEBHOOK_LOOKUPS,
        *rights.WEBHOOK_BINDING,
        *rights.WEBHOOK_GUARD,
        *rights.webhook_certificates(CERTIFICATES),
        *rights.webhook_configurations(WEBHOOK),
    ),
)
ACCOUNTS = (OPERATOR, WEBHOOK_ACCOUNT)

# Audit logs of this run, in which requests of operators and webhooks stand.
LOGS: list[Path] = []


# Rights of the operator that no request of an ordinary run takes, and why they are given all the same.
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


def grant(plane: Plane, kinds: Registry = registry.DEFAULT) -> None:
    """Let the groups of operators and webhooks do what an installation with these kinds lets them do."""
    if kinds is registry.DEFAULT:
        LOGS.append(plane.audit_log)
    for account in (operator_of(kinds), WEBHOOK_ACCOUNT):
        metadata = {"name": account.group}
        role = {"metadata": metadata, "rules": rights.rules(account.rights)}
        binding = {
            "metadata": metadata,
            "roleRef": {"apiGroup": _RBAC, "kind": "ClusterRole", "name": account.group},
            "subjects": [{"apiGroup": _RBAC, "kind": "Group", "name": account.group}],
        }
        plane.caller.call("POST", f"/apis/{_RBAC}/v1/clusterroles", role)
        plane.caller.call("POST", f"/apis/{_RBAC}/v1/clusterrolebindings", binding)


def operator(plane: Plane, user: str) -> Path:
    """A kubeconfig for a manager: its own name, the operator's rights."""
    return plane.kubeconfig_for(user, OPERATOR.group)


def webhook(plane: Plane, user: str) -> Path:
    """A kubeconfig for a webhook: its own name, the webhook's rights."""
    return plane.kubeconfig_for(user, WEBHOOK_ACCOUNT.group)


def granted(account: Account) -> set[Use]:
    return {
        Use(right.group, resource, verb)
        for right in account.rights
        for resource in right.resources
        for verb in right.verbs
    }


def is_rare(account: Account, use: Use) -> bool:
    """Whether a run may well pass without this right being used: see RARE."""
    if account is not OPERATOR:
        return False
    if use.verb == "update":
        return use.resource.endswith("/finalizers")
    if use.resource == "events":
        return use.verb == "patch"
    return use.verb == "get" and use.resource not in ("secrets", "configmaps", "leases")


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
    used: dict[str, set[Use]] = {account.name: set() for account in ACCOUNTS}
    for log in LOGS:
        for account in ACCOUNTS:
            used[account.name] |= uses(filter(account.made, entries(log)))
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps({name: sorted(found) for name, found in used.items()}))


def noted(file: Path, account: Account) -> set[Use]:
    return {Use(*use) for use in json.loads(file.read_text())[account.name]}


def refused(log: Path) -> list[str]:
    """What an operator or a webhook was not allowed to do."""
    return sorted(
        {
            f"{entry['user']['username']}: {entry['verb']} {entry['requestURI']}"
            for entry in entries(log)
            if any(account.made(entry) for account in ACCOUNTS)
            and entry.get("annotations", {}).get("authorization.k8s.io/decision") == "forbid"
        }
    )
