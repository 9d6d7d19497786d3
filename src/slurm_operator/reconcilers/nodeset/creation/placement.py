"""Where a worker may run: the rules of the scheduler that decide which nodes a daemon belongs on."""

from collections.abc import Mapping, Sequence
from typing import Any

from slurm_operator.api.shared import names
from slurm_operator.api.shared.affinity import REQUIRED, is_number
from slurm_operator.api.slinky.nodeset import NodeSet
from slurm_operator.manifests.objects import KubeNode, Taint

# Every worker tolerates these: a silent or busy machine is no reason to end the jobs on it.
TOLERATED = (
    {"key": names.WORKER_TOLERATION, "operator": "Equal", "effect": "NoExecute"},
    {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"},
    {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute"},
)
# A daemon stays where it is when its node is cordoned or under pressure, as DaemonSets do.
DAEMON_TOLERATED = (
    *TOLERATED,
    {"key": "node.kubernetes.io/disk-pressure", "operator": "Exists", "effect": "NoSchedule"},
    {"key": "node.kubernetes.io/memory-pressure", "operator": "Exists", "effect": "NoSchedule"},
    {"key": "node.kubernetes.io/pid-pressure", "operator": "Exists", "effect": "NoSchedule"},
    {"key": "node.kubernetes.io/unschedulable", "operator": "Exists", "effect": "NoSchedule"},
)


# What a cordon is to the scheduler, also in the moment before the taint is there.
CORDON = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")

# Kubernetes sets and removes taints of this prefix on its own, as a Kubernetes node changes state.
PASSING = "node.kubernetes.io/"


def should_run(kube_node: KubeNode, nodeset: NodeSet) -> bool:
    """A new worker may be placed there; on a cordoned machine only if the template itself says so."""
    taints = _keeping_away(kube_node)
    is_closed = kube_node.spec.unschedulable and not _is_tolerated(CORDON, _given(nodeset))
    return is_selected(kube_node, nodeset) and not is_closed and tolerates(taints, nodeset)


def fits(kube_node: KubeNode, nodeset: NodeSet) -> bool:
    """A worker that has to run there would be scheduled, at the latest when what is passing has passed."""
    lasting = [taint for taint in _keeping_away(kube_node) if not taint.key.startswith(PASSING)]
    return is_selected(kube_node, nodeset) and tolerates(lasting, nodeset)


def _keeping_away(kube_node: KubeNode) -> list[Taint]:
    return [taint for taint in kube_node.spec.taints if taint.effect in ("NoSchedule", "NoExecute")]


def should_continue(kube_node: KubeNode, nodeset: NodeSet) -> bool:
    """A worker that is there may stay, unless it is no longer selected or a NoExecute taint says so."""
    taints = [taint for taint in kube_node.spec.taints if taint.effect == "NoExecute"]
    return is_selected(kube_node, nodeset) and tolerates(taints, nodeset)


def is_selected(kube_node: KubeNode, nodeset: NodeSet) -> bool:
    """Whether the template's selector and required affinity choose this node."""
    labels = kube_node.metadata.labels
    selector = nodeset.spec.template.spec.get("nodeSelector") or {}
    if any(labels.get(key) != value for key, value in selector.items()):
        return False
    terms = _terms(nodeset)
    return terms is None or any(_term_matches(_fields(term), kube_node) for term in _items(terms))


def names_machines(nodeset: NodeSet) -> bool:
    """The template itself says by name which machines it is for."""
    return any(_fields(term).get("matchFields") for term in _items(_terms(nodeset)))


def _terms(nodeset: NodeSet) -> Any:
    affinity = _fields(_fields(nodeset.spec.template.spec.get("affinity")).get("nodeAffinity"))
    return _fields(affinity.get(REQUIRED)).get("nodeSelectorTerms")


def tolerates(taints: Sequence[Taint], nodeset: NodeSet) -> bool:
    tolerations = [*DAEMON_TOLERATED, *_given(nodeset)]
    return all(_is_tolerated(taint, tolerations) for taint in taints)


def _given(nodeset: NodeSet) -> Sequence[Mapping[str, Any]]:
    return nodeset.spec.template.spec.get("tolerations") or ()


def _is_tolerated(taint: Taint, tolerations: Sequence[Mapping[str, Any]]) -> bool:
    return any(_tolerates(toleration, taint) for toleration in tolerations)


def _tolerates(toleration: Mapping[str, Any], taint: Taint) -> bool:
    """For good: a pod that tolerates NoExecute for some seconds has to go then, and jobs take longer."""
    if toleration.get("effect") not in (None, "", taint.effect):
        return False
    if taint.effect == "NoExecute" and toleration.get("tolerationSeconds") is not None:
        return False
    key = toleration.get("key") or ""
    if toleration.get("operator") == "Exists":
        return key in ("", taint.key)
    return key == taint.key and (toleration.get("value") or "") == taint.value


def _term_matches(term: Mapping[str, Any], kube_node: KubeNode) -> bool:
    expressions, fields = _items(term.get("matchExpressions")), _items(term.get("matchFields"))
    if not expressions and not fields:
        return False  # An empty term selects nothing.
    names_ = {"metadata.name": kube_node.metadata.name}
    return all(_holds(_fields(rule), kube_node.metadata.labels) for rule in expressions) and all(
        _holds(_fields(rule), names_) for rule in fields
    )


def _fields(anything: Any) -> Mapping[str, Any]:
    """No schema looks into affinities, so there may be anything. What is none of them has no fields."""
    return anything if isinstance(anything, Mapping) else {}


def _items(anything: Any) -> Sequence[Any]:
    return anything if isinstance(anything, list) else ()


def _holds(rule: Mapping[str, Any], facts: Mapping[str, str]) -> bool:
    """Whether it is so. A rule that cannot be read never holds; the NodeSet says so (`api.affinity`)."""
    key, values = rule.get("key"), [str(value) for value in _items(rule.get("values"))]
    if not isinstance(key, str):
        return False
    there = facts.get(key)
    match rule.get("operator"):
        case "In":
            return there in values
        case "NotIn":
            return there not in values
        case "Exists":
            return there is not None
        case "DoesNotExist":
            return there is None
        case "Gt" | "Lt" as operator if values and is_number(there) and is_number(values[0]):
            above, below = (there, values[0]) if operator == "Gt" else (values[0], there)
            return int(above or 0) > int(below or 0)
        case _:
            return False
