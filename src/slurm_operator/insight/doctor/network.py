"""Whether NetworkPolicies let Slurm's daemons reach each other, as far as their rules tell."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from slurm_operator.api.shared import belonging, names
from slurm_operator.insight.doctor.facts import Facts
from slurm_operator.insight.doctor.finding import Finding, listed, note, ok, unread, warn
from slurm_operator.manifests.meta import Manifest
from slurm_operator.manifests.objects import Pod, Unread


class Flow(NamedTuple):
    """Who opens connections to whom, where."""

    source: str
    target: str
    port: int
    name: str  # As the container calls the port.


# Between pods of one namespace. Jobs use more: srun and MPI listen on ports that nobody knows beforehand.
FLOWS: Final = (
    Flow("slurmd", "slurmctld", names.SLURMCTLD_PORT, "slurmctld"),
    Flow("login", "slurmctld", names.SLURMCTLD_PORT, "slurmctld"),
    Flow("slurmrestd", "slurmctld", names.SLURMCTLD_PORT, "slurmctld"),
    Flow("slurmctld", "slurmd", names.SLURMD_PORT, "slurmd"),
    Flow("slurmd", "slurmd", names.SLURMD_PORT, "slurmd"),
    Flow("slurmctld", "slurmdbd", names.SLURMDBD_PORT, "slurmdbd"),
    Flow("slurmrestd", "slurmdbd", names.SLURMDBD_PORT, "slurmdbd"),
    Flow("slurmdbd", "mariadb", names.DATABASE_PORT, "mariadb"),
)


def policies(facts: Facts) -> Iterator[Finding]:
    """What is cut off is named. Whom rules about addresses or namespaces let in cannot be told from here."""
    if isinstance(facts.network_policies, Unread):
        yield unread("Network", facts.network_policies)
        return
    if isinstance(facts.pods, Unread):
        return
    there = {belonging.daemon_of(pod.metadata.labels): pod for pod in facts.pods}
    cut = [
        f"{flow.source} to {flow.target} on port {flow.port}"
        for flow in FLOWS
        if flow.source in there
        and flow.target in there
        and not _may_pass(facts.network_policies, there[flow.source], there[flow.target], flow)
    ]
    if cut:
        yield warn(
            "Network",
            f"NetworkPolicies of this namespace do not let through: {listed(cut)}.",
            "Let pods of the namespace reach each other, as the chart's networkPolicies do.",
        )
    elif not facts.pods:
        return
    elif any(_selects(one, pod) for one in facts.network_policies for pod in there.values()):
        yield ok("Network", "NetworkPolicies narrow who reaches the daemons, and let them reach each other.")
    else:
        yield note(
            "Network",
            "No NetworkPolicy is about Slurm's daemons: every pod of the cluster reaches their ports.",
            "Set networkPolicies.enabled in the chart slurm, or apply what it renders then.",
        )


def _may_pass(policies: Sequence[Manifest], source: Pod, target: Pod, flow: Flow) -> bool:
    """Unless every policy about the target says no, and none about the source keeps it in."""
    coming = [one for one in policies if _selects(one, target) and _is_about(one, "Ingress")]
    going = [one for one in policies if _selects(one, source) and _is_about(one, "Egress")]
    return _lets(coming, "ingress", "from", source, flow) and _lets(going, "egress", "to", target, flow)


def _lets(policies: Sequence[Manifest], rules: str, peers: str, other: Pod, flow: Flow) -> bool:
    found = [rule for one in policies for rule in one["spec"].get(rules) or ()]
    passing = (rule for rule in found if _has_port(rule, flow) and _has_peer(rule.get(peers) or (), other))
    return not policies or any(True for _ in passing)


def _is_about(policy: Manifest, way: str) -> bool:
    spec = policy["spec"]
    usual = ["Ingress", *(["Egress"] if "egress" in spec else [])]
    return way in (spec.get("policyTypes") or usual)


def _selects(policy: Manifest, pod: Pod) -> bool:
    return _matches(policy["spec"].get("podSelector") or {}, pod.metadata.labels)


def _has_peer(peers: Sequence[Manifest], other: Pod) -> bool:
    """No peers are all. One by address or in chosen namespaces may be this pod: nobody can tell from here."""
    return not peers or any(
        "ipBlock" in peer
        or "namespaceSelector" in peer
        or _matches(peer["podSelector"], other.metadata.labels)
        for peer in peers
    )


def _has_port(rule: Manifest, flow: Flow) -> bool:
    return not rule.get("ports") or any(_is_port(one, flow) for one in rule["ports"])


def _is_port(port: Manifest, flow: Flow) -> bool:
    if port.get("protocol", "TCP") != "TCP":
        return False
    match port.get("port"):
        case int() as first:
            return bool(first <= flow.port <= port.get("endPort", first))
        case name:
            return name in (None, flow.name)


def _matches(selector: Manifest, labels: Mapping[str, str]) -> bool:
    wanted = selector.get("matchLabels") or {}
    rules = selector.get("matchExpressions") or ()
    return all(labels.get(key) == value for key, value in wanted.items()) and all(
        _holds(rule, labels) for rule in rules
    )


def _holds(rule: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    value, values = labels.get(rule["key"]), rule.get("values") or ()
    match rule["operator"]:
        case "In":
            return value in values
        case "NotIn":
            return value not in values
        case "Exists":
            return value is not None
        case _:
            return value is None
