"""Which questions the API server asks the webhook, as its configurations.

With the webhook away nothing is held up: what matters stands in the CRDs, and reconcilers ask the same.
"""

from collections.abc import Callable, Sequence
from typing import Final, Literal

from slurm_operator.api import registry
from slurm_operator.api.nebius.names import GUARD_LABEL
from slurm_operator.api.registry import Registry
from slurm_operator.api.schema.kind import Kind
from slurm_operator.api.slinky.nodeset import NodeSet
from slurm_operator.manifests.kinds import MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS
from slurm_operator.manifests.meta import Manifest

NAME: Final = "slurm-operator-webhook"
DOMAIN: Final = "slinky.slurm.net"
SECRET_PATH: Final = "/validate--v1-secret"  # noqa: S105 - a path, named by the Slinky operator
BINDING_PATH: Final = "/mutate--v1-binding"

_SYSTEM: Final = ("kube-node-lease", "kube-public", "kube-system")

FailurePolicy = Literal["Ignore", "Fail"]

# From a path to how the API server gets there: `service` below, or a URL.
ClientConfig = Callable[[str], Manifest]


def path_of(kind: Kind, version: str = "") -> str:
    """Where questions about a kind are sent."""
    return f"/validate-{kind.group.replace('.', '-')}-{version or kind.version}-{kind.kind.lower()}"


def service(namespace: str, name: str = NAME, port: int = 443) -> ClientConfig:
    """Through the Service in front of the webhook."""
    return lambda path: {"service": {"namespace": namespace, "name": name, "path": path, "port": port}}


def validating(
    client: ClientConfig,
    *,
    kinds: Registry = registry.DEFAULT,
    name: str = NAME,
    failure_policy: FailurePolicy = "Ignore",
    namespaces: Sequence[str] = (),
    guards_secrets: bool = False,
    timeout_seconds: int = 10,
) -> Manifest:
    """Questions about our own kinds; about guarded Secrets only on request, and never about any other."""
    webhooks = [
        _webhook(
            f"{one.kind.kind.lower()}.{one.group}",
            client(path_of(one.kind)),
            _rule_of(one.kind, "CREATE", "UPDATE", scale=one.kind == NodeSet.KIND),
            failure_policy,
        )
        for one in kinds
    ]
    if guards_secrets:
        rule = _rule("", "v1", "secrets", "CREATE", "UPDATE", "DELETE")
        guard = _webhook(f"secret.{DOMAIN}", client(SECRET_PATH), rule, failure_policy)
        webhooks.append({**guard, "objectSelector": {"matchLabels": {GUARD_LABEL: "true"}}})
    scoped = [
        {**one, "namespaceSelector": _within(namespaces), "timeoutSeconds": timeout_seconds}
        for one in webhooks
    ]
    return {
        "apiVersion": VALIDATING_WEBHOOKS.api_version,
        "kind": VALIDATING_WEBHOOKS.kind,
        "metadata": {"name": name},
        "webhooks": scoped,
    }


def mutating(
    client: ClientConfig, *, name: str = NAME, namespaces: Sequence[str] = (), timeout_seconds: int = 10
) -> Manifest:
    """The helper that tells workers their topology when they are bound; they are bound without it, too."""
    rule = _rule("", "v1", "pods/binding", "CREATE")
    helper = _webhook(f"podsbinding.{DOMAIN}", client(BINDING_PATH), rule, "Ignore")
    return {
        "apiVersion": MUTATING_WEBHOOKS.api_version,
        "kind": MUTATING_WEBHOOKS.kind,
        "metadata": {"name": name},
        "webhooks": [{**helper, "namespaceSelector": _within(namespaces), "timeoutSeconds": timeout_seconds}],
    }


def _webhook(name: str, client: Manifest, rule: Manifest, failure_policy: FailurePolicy) -> Manifest:
    return {
        "name": name,
        "clientConfig": client,
        "rules": [rule],
        "failurePolicy": failure_policy,
        "matchPolicy": "Equivalent",
        "sideEffects": "None",
        "admissionReviewVersions": ["v1", "v1beta1"],
    }


def _rule(group: str, version: str, resource: str, *operations: str) -> Manifest:
    return {
        "apiGroups": [group],
        "apiVersions": [version],
        "operations": list(operations),
        "resources": [resource],
        "scope": "Namespaced",
    }


def _rule_of(kind: Kind, *operations: str, scale: bool = False) -> Manifest:
    """With `scale` also about `kubectl scale`, which writes a part without naming its owner."""
    rule = _rule(kind.group, kind.version, kind.plural, *operations)
    if scale:
        rule = rule | {"resources": [kind.plural, f"{kind.plural}/scale"]}
    return rule if kind.namespaced else rule | {"scope": "Cluster"}


def _within(namespaces: Sequence[str]) -> Manifest:
    """In these namespaces; without any, in all but Kubernetes' own."""
    operator, values = ("In", sorted(namespaces)) if namespaces else ("NotIn", list(_SYSTEM))
    term = {"key": "kubernetes.io/metadata.name", "operator": operator, "values": values}
    return {"matchExpressions": [term]}
