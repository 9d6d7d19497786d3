"""What the operator may do: exactly the verbs it uses, by where it needs them.

Tests read the API server's audit log: whatever is used here is granted, and what is granted is used.
"""

from collections.abc import Iterator
from typing import Any, Final

from slurm_operator import wire
from slurm_operator.api.nebius import names as nebius_names
from slurm_operator.api.registry import Registered, Registry, Use
from slurm_operator.api.shared import names

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


# What the operator does with our own kinds.
_USES: Final = {
    Use.MAKE: (*KEEP, "get"),
    Use.HOLD: ("get", "list", "patch", "watch"),
    Use.READ: READ,
}

# Of objects that belong to no namespace. All are only looked at: machines for cordons and taints, namespaces
# for their Pod Security level, storage classes for whether there is a default one, policies for whether one
# protects workers.
_LOOKED_AT: Final = (
    Right(group="", resources=("namespaces", "nodes"), verbs=READ),
    Right(group="storage.k8s.io", resources=("storageclasses",), verbs=READ),
    Right(
        group="admissionregistration.k8s.io",
        resources=("validatingadmissionpolicies", "validatingadmissionpolicybindings"),
        verbs=("list",),
    ),
)

# Conditions of Kubernetes nodes with workers. `get` is for after a patch that was refused, as below.
_NODE_CONDITIONS: Final = (
    Right(group="", resources=("nodes",), verbs=("get",)),
    Right(group="", resources=("nodes/status",), verbs=("patch",)),
    # How much local storage workers use: kubelets ask the API server whether they may tell.
    Right(group="", resources=("nodes/stats",), verbs=("get",)),
)

# In every namespace with Slurm clusters. `get` is for named reads, and after a patch that was refused: the
# server does not say whether it was because the object is another one by now.
_AROUND: Final = (
    Right(group="", resources=("configmaps", "secrets"), verbs=(*KEEP, "get")),
    Right(group="", resources=("services",), verbs=KEEP),
    # Claims are never deleted by us: those that may go are given an owner.
    Right(group="", resources=("persistentvolumeclaims",), verbs=("create", "get", "list", "patch", "watch")),
    Right(group="", resources=("pods",), verbs=(*KEEP, "get")),
    Right(group="", resources=("pods/status",), verbs=("patch",)),
    Right(group="apps", resources=("statefulsets",), verbs=KEEP),
    # Most go with their owner, by Kubernetes' own hand; an exporter that is switched off goes before.
    Right(group="apps", resources=("deployments",), verbs=KEEP),
    # Those of the operator before us are read by name: many of them in one namespace one by one.
    Right(group="apps", resources=("controllerrevisions",), verbs=(*KEEP, "get")),
    Right(group="events.k8s.io", resources=("events",), verbs=("create", "list", "patch", "watch")),
    Right(group="monitoring.coreos.com", resources=("servicemonitors",), verbs=KEEP),
    Right(group="policy", resources=("poddisruptionbudgets",), verbs=("create", "list", "patch", "watch")),
)


# To see whether another operator acts on the second API group; wherever we may look.
_OTHER_LEASE: Final = Right(
    group="coordination.k8s.io",
    resources=("leases",),
    verbs=("list",),
    named=(nebius_names.SOPERATOR_LEASE,),
)


# To see whether another installation is at work that the annotation on a Controller names, wherever that is.
_OTHER_INSTALLATIONS: Final = Right(group="coordination.k8s.io", resources=("leases",), verbs=("get",))


# Jobs that populate shared roots, and those of checks. `get` is for the account of the pods of checks: nobody
# can give a right that they do not have.
_JOBS: Final = Right(group="batch", resources=("cronjobs", "jobs"), verbs=(*KEEP, "get"))
# What the pods of checks are made from, where a check names one.
_TEMPLATES: Final = Right(group="", resources=("podtemplates",), verbs=READ)
# What runs on every Kubernetes node, databases that the MariaDB operator makes, and how Prometheus finds the
# exporter.
_OF_CLUSTERS: Final = (
    Right(group="apps", resources=("daemonsets",), verbs=KEEP),
    Right(group="k8s.mariadb.com", resources=("grants", "mariadbs"), verbs=KEEP),
    Right(group="monitoring.coreos.com", resources=("podmonitors",), verbs=KEEP),
    # Whether Soperator's workloads are still there. One whose workers are taken over is deleted without them.
    Right(group="apps.kruise.io", resources=("statefulsets",), verbs=("delete", *READ)),
)


# For the accounts of the writer of files in shared roots, and of Soperator's exporter.
_GIVE: Final = ("create", "list", "patch", "watch")
_ACCOUNTS: Final = (
    Right(group="", resources=("serviceaccounts",), verbs=_GIVE),
    Right(group="rbac.authorization.k8s.io", resources=("rolebindings", "roles"), verbs=_GIVE),
    # Nobody can give a right that they do not have, and the operator uses Leases in its own namespace only.
    Right(group="coordination.k8s.io", resources=("leases",), verbs=("create", "get", "update")),
)


def _other_operator(kinds: Registry) -> tuple[Right, ...]:
    return (_OTHER_LEASE,) if nebius_names.GROUP in kinds.groups else ()


def cluster_wide(kinds: Registry) -> tuple[Right, ...]:
    """With those of our kinds that belong to no namespace."""
    ours = [one for one in kinds if not one.kind.namespaced]
    rights = (right for group in kinds.groups for right in _of_ours(group, ours))
    nebius = _NODE_CONDITIONS if nebius_names.GROUP in kinds.groups else ()
    return (*_LOOKED_AT, _OTHER_INSTALLATIONS, *rights, *nebius, *_other_operator(kinds))


def in_namespaces(kinds: Registry) -> tuple[Right, ...]:
    """With those of our kinds that belong to one."""
    ours = [one for one in kinds if one.kind.namespaced]
    rights = (right for group in kinds.groups for right in _of_ours(group, ours))
    nebius = (_JOBS, _TEMPLATES, *_OF_CLUSTERS, *_ACCOUNTS) if nebius_names.GROUP in kinds.groups else ()
    return (*_AROUND, *rights, *nebius, *_other_operator(kinds))


def _of_ours(group: str, kinds: list[Registered]) -> Iterator[Right]:
    ours = [one for one in kinds if one.group == group]
    for use, verbs in _USES.items():
        if resources := tuple(one.plural for one in ours if one.use is use):
            yield Right(group=group, resources=resources, verbs=verbs)
    if told := [one for one in ours if one.reconciler or one.use is not Use.READ]:
        yield Right(group=group, resources=tuple(f"{one.plural}/status" for one in told), verbs=("patch",))
        # Asked for by an admission plugin of some API servers when an object names its owner.
        finalizers = tuple(f"{one.plural}/finalizers" for one in told)
        yield Right(group=group, resources=finalizers, verbs=("update",))


# Kubernetes' own roles for people, and what they may do with our kinds. What `edit` may do, `admin` may too.
PEOPLE: Final = ("view", "edit", "admin")
_VERBS_OF: Final = {
    "view": ("get", "list", "watch"),
    "edit": ("create", "delete", "deletecollection", "patch", "update"),
}


def of_people(kinds: Registry, role: str) -> tuple[Right, ...]:
    """What Kubernetes' own `view` or `edit` gets. Kinds without a namespace are for administrators."""
    found = ((group, tuple(_with_scale(kinds, group))) for group in kinds.groups)
    return tuple(
        Right(group=group, resources=resources, verbs=_VERBS_OF[role])
        for group, resources in found
        if resources
    )


def _with_scale(kinds: Registry, group: str) -> Iterator[str]:
    for one in kinds:
        if one.group != group or not one.kind.namespaced:
            continue
        yield one.plural
        if one.model.CRD.has_scale:
            yield f"{one.plural}/scale"


def aggregated(role: str) -> dict[str, str]:
    """The labels by which Kubernetes adds rules to its own roles."""
    wider = PEOPLE[PEOPLE.index(role) :]
    return {f"rbac.authorization.k8s.io/aggregate-to-{name}": "true" for name in wider}


# What the rebooter does with its node, and with the pods there. Its installation gives them to nobody.
REBOOTER: Final = (
    Right(group="", resources=("nodes",), verbs=("get", "list", "patch", "watch")),
    Right(group="", resources=("nodes/status",), verbs=("patch",)),
    Right(group="", resources=("pods",), verbs=("list",)),
    Right(group="", resources=("pods/eviction",), verbs=("create",)),
)

# In the operator's own namespace.
AT_HOME: Final = (
    Right(group="coordination.k8s.io", resources=("leases",), verbs=("create", "get", "update")),
)


def at_home(kinds: Registry) -> tuple[Right, ...]:
    return (*AT_HOME, *_other_operator(kinds))


# To ask whether a reader of the metrics may read them; only with --metrics-secure.
SECURE_METRICS: Final = (
    Right(group="authentication.k8s.io", resources=("tokenreviews",), verbs=("create",)),
    Right(group="authorization.k8s.io", resources=("subjectaccessreviews",), verbs=("create",)),
)


# To see whether a step runs in a worker that Slurm has forgotten; optional, for it lets the operator run commands
# in pods. `create` is for servers from 1.35 on, which ask for it whatever the method.
FORGOTTEN_WORKERS: Final = (Right(group="", resources=("pods/exec",), verbs=("create", "get")),)


# What the webhook looks up before it answers: files and volumes that a manifest names, and others like it.
WEBHOOK_LOOKUPS: Final = (
    Right(group="", resources=("configmaps", "persistentvolumeclaims"), verbs=("get",)),
    Right(group=names.GROUP, resources=("controllers", "nodesets"), verbs=("list",)),
)

# To tell workers the topology of their machine when they are placed; only with pods/binding.
WEBHOOK_BINDING: Final = (Right(group="", resources=("nodes", "pods"), verbs=("get",)),)

# To release a guarded Secret when its SlurmCluster is gone; only with guarded Secrets.
WEBHOOK_GUARD: Final = (Right(group=nebius_names.GROUP, resources=("slurmclusters",), verbs=("get",)),)


def webhook_lookups(kinds: Registry) -> tuple[Right, ...]:
    """What it looks up for those that are on; Secrets are guarded with the second group."""
    return (*WEBHOOK_LOOKUPS, *(WEBHOOK_GUARD if nebius_names.GROUP in kinds.groups else ()))


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
