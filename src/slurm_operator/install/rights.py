"""What the operator may do: exactly the verbs it uses, by where it needs them.

Tests read the API server's audit log: whatever is used here is granted, and what is granted is used.
"""

from typing import Any, Final

from slurm_operator import wire
from slurm_operator.api import KINDS, Cluster, Token, names

READ: Final = ("list", "watch")
# Server-side apply is `patch`, and `create` as well where the object is not there yet.
KEEP: Final = ("create", "delete", "list", "patch", "watch")


class Right(wire.Record):
    """Verbs on resources of one API group."""

    group: str
    resources: tuple[str, ...]
    verbs: tuple[str, ...]
    named: tuple[str, ...] = ()  # Only objects of these names.

    @property
    def rule(self) -> dict[str, Any]:
        """As it stands in a Role."""
        rule: dict[str, Any] = {
            "apiGroups": [self.group],
            "resources": sorted(self.resources),
            "verbs": sorted(self.verbs),
        }
        return rule | ({"resourceNames": list(self.named)} if self.named else {})


_OURS: Final = tuple(kind.KIND.plural for kind in KINDS)
_PARTS: Final = tuple(kind.KIND.plural for kind in KINDS if kind not in (Cluster, Token))

# Of objects that belong to no namespace. All are only looked at: machines for cordons and taints, namespaces
# for their Pod Security level, storage classes for whether there is a default one, policies for whether one
# protects workers.
CLUSTER_WIDE: Final = (
    Right(group="", resources=("namespaces", "nodes"), verbs=READ),
    Right(group="storage.k8s.io", resources=("storageclasses",), verbs=READ),
    Right(
        group="admissionregistration.k8s.io",
        resources=("validatingadmissionpolicies", "validatingadmissionpolicybindings"),
        verbs=("list",),
    ),
)

# In every namespace with Slurm clusters. `get` is for named reads, and after a patch that was refused: the
# server does not say whether it was because the object is another one by now.
IN_NAMESPACES: Final = (
    Right(group="", resources=("configmaps", "secrets"), verbs=(*KEEP, "get")),
    Right(group="", resources=("services",), verbs=KEEP),
    # Claims are never deleted by us: those that may go are given an owner.
    Right(group="", resources=("persistentvolumeclaims",), verbs=("create", "get", "list", "patch", "watch")),
    Right(group="", resources=("pods",), verbs=(*KEEP, "get")),
    Right(group="", resources=("pods/status",), verbs=("patch",)),
    Right(group="apps", resources=("statefulsets",), verbs=KEEP),
    # They go with their owner, by Kubernetes' own hand.
    Right(group="apps", resources=("deployments",), verbs=("create", "list", "patch", "watch")),
    # Those of the operator before us are read by name: many of them in one namespace one by one.
    Right(group="apps", resources=("controllerrevisions",), verbs=(*KEEP, "get")),
    Right(group="events.k8s.io", resources=("events",), verbs=("create", "list", "patch", "watch")),
    Right(group="monitoring.coreos.com", resources=("servicemonitors",), verbs=KEEP),
    Right(group="policy", resources=("poddisruptionbudgets",), verbs=("create", "list", "patch", "watch")),
    # What a Cluster is made of; Clusters and Tokens are made by people only.
    Right(group=names.GROUP, resources=_PARTS, verbs=(*KEEP, "get")),
    Right(group=names.GROUP, resources=(Cluster.KIND.plural,), verbs=("get", "list", "patch", "watch")),
    Right(group=names.GROUP, resources=(Token.KIND.plural,), verbs=READ),
    Right(group=names.GROUP, resources=tuple(f"{plural}/status" for plural in _OURS), verbs=("patch",)),
    # Asked for by an admission plugin of some API servers when an object names its owner.
    Right(group=names.GROUP, resources=tuple(f"{plural}/finalizers" for plural in _OURS), verbs=("update",)),
)

# In the operator's own namespace.
AT_HOME: Final = (
    Right(group="coordination.k8s.io", resources=("leases",), verbs=("create", "get", "update")),
)

# To ask whether a reader of the metrics may read them; only with --metrics-secure.
SECURE_METRICS: Final = (
    Right(group="authentication.k8s.io", resources=("tokenreviews",), verbs=("create",)),
    Right(group="authorization.k8s.io", resources=("subjectaccessreviews",), verbs=("create",)),
)


# What the webhook looks up before it answers: files and volumes that a manifest names, and others like it.
WEBHOOK_LOOKUPS: Final = (
    Right(group="", resources=("configmaps", "persistentvolumeclaims"), verbs=("get",)),
    Right(group=names.GROUP, resources=("controllers", "nodesets"), verbs=("list",)),
)

# To tell workers the topology of their machine when they are placed; only with pods/binding.
WEBHOOK_BINDING: Final = (Right(group="", resources=("nodes", "pods"), verbs=("get",)),)

# To let go of a guarded Secret when its SlurmCluster is gone; only with guarded Secrets.
WEBHOOK_GUARD: Final = (Right(group="slurm.nebius.ai", resources=("slurmclusters",), verbs=("get",)),)


def webhook_certificates(secret: str) -> tuple[Right, ...]:
    """To keep certificates of its own, at home."""
    return (
        Right(group="", resources=("secrets",), verbs=("create",)),
        Right(group="", resources=("secrets",), verbs=("get", "update"), named=(secret,)),
    )


def webhook_configurations(name: str) -> tuple[Right, ...]:
    """To say whom the API server may believe."""
    kinds = ("mutatingwebhookconfigurations", "validatingwebhookconfigurations")
    group = "admissionregistration.k8s.io"
    return (Right(group=group, resources=kinds, verbs=("get", "patch"), named=(name,)),)


def rules(rights: tuple[Right, ...]) -> list[dict[str, Any]]:
    """The `rules` of a Role."""
    return [right.rule for right in rights]
