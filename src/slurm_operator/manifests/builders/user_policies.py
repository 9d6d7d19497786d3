"""Policies that keep two powers for those who were given them: privileged pods, and tokens of administrators.

Whoever may edit a NodeSet can make a privileged pod, and so become root on a Kubernetes node; whoever may
create a Token for root administers that Slurm. These policies ask the API server for a right of their own,
with the verb `use`. They are CEL inside the API server: nothing has to run for them.

Where a manifest describes containers and pods is read from the schema of its kind, so that none is forgotten.
What was privileged before may be edited by anybody, as long as nothing changes that pods are made from.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import takewhile
from typing import Any, Final

from slurm_operator import wire
from slurm_operator.api.nebius import names as nebius_names
from slurm_operator.api.registry import Registered, Registry
from slurm_operator.api.schema.crd import crd
from slurm_operator.api.schema.kind import Kind
from slurm_operator.api.shared import names
from slurm_operator.api.slinky.cluster import Cluster
from slurm_operator.api.slinky.nodeset import NodeSet
from slurm_operator.api.slinky.token import Token
from slurm_operator.manifests.builders.deletion_policy import policy_binding
from slurm_operator.manifests.kinds import ADMISSION_POLICY
from slurm_operator.manifests.meta import Manifest

NAME: Final = "slurm-operator"

# What the right is on. There are no such objects: only roles speak of them.
PRIVILEGED: Final = "privilegedpods"
SLURM_USERS: Final = "slurmusers"
ADMINISTRATORS: Final = ("root", names.SLURM_USER)

# Kinds of the second group whose pods are root on their machine, whatever a manifest says.
_ALWAYS: Final = ("SlurmCluster", "NodeSet", "NodeConfigurator", "ActiveCheck")

# What a container may have in Kubernetes' Pod Security level `baseline`.
_HARMLESS: Final = (
    "AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD", "NET_BIND_SERVICE",
    "SETFCAP", "SETGID", "SETPCAP", "SETUID", "SYS_CHROOT",
)  # fmt: skip

# Properties by which a schema shows what it describes.
_OF_CONTAINER: Final = "volumeMounts"
_OF_POD: Final = "hostNetwork"

_ITEMS: Final = "[]"
_PROCESS: Final = "object.?spec.?isolation.orValue('auto') == 'process'"

# A path through a manifest: fields, those that are lists with `[]` behind them.
_Path = tuple[str, ...]

_ADVICE: Final = (
    "Leave out host paths, host namespaces, privileged containers and capabilities. In a Cluster set "
    "isolation: process; in a NodeSet set slurmd.securityContext to {privileged: false, capabilities: "
    "{drop: [ALL], add: [CHOWN, KILL, SETGID, SETUID]}}. An administrator gives the right by: "
    f"kubectl create rolebinding NAME --clusterrole={NAME}-privileged --user=USER -n "
)


def user_policies(
    operator: str, kinds: Registry, *, exempt: Sequence[str] = (), namespaces: Sequence[str] = ()
) -> list[Manifest]:
    """Policies and their bindings. `operator` and `exempt` make such things for others, and are not asked."""
    users = sorted({operator, *exempt})
    policies = [policy for one in kinds if (policy := _policy(one, users)) is not None]
    own = {"key": "kubernetes.io/metadata.name", "operator": "In", "values": sorted(namespaces)}
    scope = {"namespaceSelector": {"matchExpressions": [own]}} if namespaces else None
    return [
        manifest for one in policies for manifest in (one, policy_binding(one["metadata"]["name"], scope))
    ]


def roles() -> list[Manifest]:
    """Who is bound to them may use what the policies keep. They are bound to nobody."""
    return [
        _role(f"{NAME}-privileged", {"resources": [PRIVILEGED]}),
        _role(f"{NAME}-administrators", {"resources": [SLURM_USERS], "resourceNames": [*ADMINISTRATORS]}),
    ]


def _role(name: str, on: Mapping[str, Any]) -> Manifest:
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": name},
        "rules": [{"apiGroups": [names.GROUP], "verbs": ["use"], **on}],
    }


def _policy(one: Registered, users: Sequence[str]) -> Manifest | None:
    kind = one.kind
    if one.model is Token:
        return _policy_of_tokens(kind, users)
    if kind.group == nebius_names.GROUP:
        is_always = kind.kind in _ALWAYS
        return _policy_of_pods(kind, users, "true", [("spec",)]) if is_always else None
    places = list(_places(crd(one.model)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]))
    asks = " || ".join(f"({_privileged(kind, path, is_pod=is_pod)})" for path, is_pod in places)
    pods = [path for path, is_pod in places if is_pod]
    whole = [path for path, is_pod in places if is_pod or path[:-1] not in pods]
    isolation = [("spec", "isolation")] if one.model is Cluster else []
    return _policy_of_pods(kind, users, asks, [*whole, *isolation])


def _policy_of_pods(kind: Kind, users: Sequence[str], asks: str, places: Sequence[_Path]) -> Manifest:
    message = (
        f"'{kind.kind} ' + object.metadata.?name.orValue('') + ' asks for pods that can become root on their "
        f"machine, and you may not `use` {PRIVILEGED}.{names.GROUP} in namespace ' + {_NAMESPACE} + "
        f"'. {_ADVICE}' + {_NAMESPACE}"
    )
    same = [f"{_value('object', path)} == {_value('oldObject', path)}" for path in places]
    may = f"{_AUTHORIZER}.resource('{PRIVILEGED}').namespace({_NAMESPACE}).check('use').allowed()"
    return _admission_policy(
        f"{NAME}-privileged-{_short(kind)}", kind, users, f"{may} || {_unchanged(same)} || !({asks})", message
    )


def _policy_of_tokens(kind: Kind, users: Sequence[str]) -> Manifest:
    speaker, namespace = "object.spec.?username.orValue('')", _NAMESPACE
    message = (
        f"'Token ' + object.metadata.?name.orValue('') + ' is for ' + {speaker} + ', an administrator of "
        f"Slurm, and you may not `use` {SLURM_USERS}.{names.GROUP} of that name in namespace ' + {namespace} "
        "+ '. Name another username. An administrator gives the right by: kubectl create rolebinding NAME "
        f"--clusterrole={NAME}-administrators --user=USER -n ' + {namespace}"
    )
    asked = f"{_AUTHORIZER}.resource('{SLURM_USERS}').namespace({namespace}).name({speaker})"
    is_harmless = f"!({speaker} in {wire.encode([*ADMINISTRATORS]).decode()})"
    is_same = _unchanged(["object.spec == oldObject.spec"])
    expression = f"{is_harmless} || {is_same} || {asked}.check('use').allowed()"
    return _admission_policy(f"{NAME}-{kind.plural}", kind, users, expression, message)


_NAMESPACE: Final = "object.metadata.?namespace.orValue('')"
_AUTHORIZER: Final = f"authorizer.group('{names.GROUP}')"


def _unchanged(same: Sequence[str]) -> str:
    return f"(oldObject != null && {' && '.join(same)})"


def _short(kind: Kind) -> str:
    return kind.plural if kind.group == names.GROUP else f"{kind.plural}.{kind.group}"


def _admission_policy(name: str, kind: Kind, users: Sequence[str], expression: str, message: str) -> Manifest:
    exempt = f"!(request.userInfo.username in {wire.encode([*users]).decode()})"
    rule = {
        "apiGroups": [kind.group],
        "apiVersions": [kind.version],
        "operations": ["CREATE", "UPDATE"],
        "resources": [kind.plural],
    }
    return {
        "apiVersion": ADMISSION_POLICY.api_version,
        "kind": ADMISSION_POLICY.kind,
        "metadata": {"name": name},
        "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": {"matchPolicy": "Equivalent", "resourceRules": [rule]},
            "matchConditions": [{"name": "not-someone-exempt", "expression": exempt}],
            "variables": [{"name": "harmless", "expression": wire.encode([*_HARMLESS]).decode()}],
            "validations": [{"expression": expression, "messageExpression": message, "reason": "Forbidden"}],
        },
    }


def _places(schema: Mapping[str, Any], path: _Path = ()) -> Iterator[tuple[_Path, bool]]:
    """Where a manifest with this schema describes a container or, with True, a pod."""
    fields: Mapping[str, Any] = schema.get("properties") or {}
    if _OF_CONTAINER in fields or _OF_POD in fields:
        yield path, _OF_POD in fields
    for name, field in fields.items():
        if items := field.get("items"):
            yield from _places(items, (*path, f"{name}{_ITEMS}"))
        else:
            yield from _places(field, (*path, name))


def _privileged(kind: Kind, path: _Path, *, is_pod: bool) -> str:
    """Whether what stands there can become root on its machine."""
    if is_pod:
        return _exists("object", path, _pod_is_privileged)
    if (kind, path) == (NodeSet.KIND, ("spec", "slurmd")):
        # Ours is privileged and has SYS_ADMIN, where the user does not say otherwise.
        return _exists("object", path, lambda one: _container_is_privileged(one, "true", "['SYS_ADMIN']"))
    if (kind, path) == (Cluster.KIND, ("spec", f"nodeSets{_ITEMS}", "slurmd")):
        return _exists("object", path, lambda one: f"!({_PROCESS}) || {_container_is_privileged(one)}")
    return _exists("object", path, _container_is_privileged)


def _container_is_privileged(one: str, privileged: str = "false", added: str = "[]") -> str:
    security = f"{one}.?securityContext"
    return (
        f"{security}.?privileged.orValue({privileged}) || "
        f"{security}.?capabilities.?add.orValue({added}).exists(word, !(word in variables.harmless)) || "
        f"{security}.?procMount.orValue('Default') != 'Default'"
    )


def _pod_is_privileged(one: str) -> str:
    shared = " || ".join(f"{one}.?{field}.orValue(false)" for field in ("hostNetwork", "hostPID", "hostIPC"))
    return f"{shared} || {_list(f'{one}.?volumes')}.exists(volume, has(volume.hostPath))"


def _exists(of: str, path: _Path, holds: Callable[[str], str]) -> str:
    """Whether it holds for what stands at the end of the path; in lists, for any item."""
    plain = [*takewhile(lambda field: not field.endswith(_ITEMS), path)]
    there = "".join([of, *(f".?{field}" for field in plain)])
    if len(plain) == len(path):
        return holds(there)
    listed, rest = path[len(plain)].removesuffix(_ITEMS), path[len(plain) + 1 :]
    item = f"item{len(rest)}"
    inner = _exists(item, rest, holds)
    return f"{_list(f'{there}.?{listed}')}.exists({item}, {inner})"


def _value(of: str, path: _Path) -> str:
    """What stands at the end of the path; in lists, that of all items."""
    plain = [*takewhile(lambda field: not field.endswith(_ITEMS), path)]
    there = "".join([of, *(f".?{field}" for field in plain)])
    if len(plain) == len(path):
        return f"{there}.orValue(null)"
    listed, rest = path[len(plain)].removesuffix(_ITEMS), path[len(plain) + 1 :]
    item = f"item{len(rest)}"
    return f"{_list(f'{there}.?{listed}')}.map({item}, {_value(item, rest)})"


def _list(optional: str) -> str:
    """A list that may be missing, or null."""
    return f"({optional}.orValue([]) in [dyn(null)] ? [] : {optional}.orValue([]))"
