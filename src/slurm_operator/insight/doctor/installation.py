"""Whether the operator is installed completely, and whether both it and you may do what is needed."""

from collections.abc import Iterator, Sequence
from functools import cache

from slurm_operator.api.schema.crd import Resource, crd
from slurm_operator.api.schema.kind import Kind
from slurm_operator.insight.doctor.crds import RELEASE, RELEASE_NAMESPACE
from slurm_operator.insight.doctor.facts import Facts, Operator, Right
from slurm_operator.insight.doctor.finding import Finding, Level, fail, listed, note, ok, unread, warn
from slurm_operator.manifests.compare.differences import changes
from slurm_operator.manifests.meta import Child, Manifest, Meta
from slurm_operator.manifests.objects import Unread
from slurm_operator.runtime.report.protection import REMEDY

# Without these the operator works, and leaves something out.
_SPARE = ("events", "podmonitors", "servicemonitors")


def rights(facts: Facts) -> Iterator[Finding]:
    who = facts.user if isinstance(facts.user, str) else "You"
    if isinstance(facts.missing_rights, Unread):
        yield unread("Your rights", facts.missing_rights)
    elif facts.missing_rights:
        yield warn(
            "Your rights",
            f"{who} may not {_grouped(facts.missing_rights)}.",
            "Ask an administrator for a Role with these; until then commands show less.",
        )
    else:
        yield ok("Your rights", f"{who} may do all that `kubectl slurm` needs.")


def definitions(facts: Facts) -> Iterator[Finding]:
    if isinstance(facts.crds, Unread):
        yield unread("CRDs", facts.crds)
        return
    apply = _apply(facts.crds)
    missing = [one.name for one in facts.ours if crd_name(one.kind) not in facts.crds]
    if len(missing) == len(facts.ours):
        yield fail(
            "CRDs",
            "None of our kinds is installed.",
            f"Run {apply}.",
        )
        return
    if missing:
        yield warn(
            "CRDs",
            f"Not installed: {listed(missing)}. What needs them does not work.",
            f"Run {apply}.",
        )
    other = [one.name for one in facts.ours if _is_other(one.model, facts.crds.get(crd_name(one.kind)))]
    if other:
        yield warn(
            "CRDs",
            f"Of another version than this program: {listed(other)}. New fields are refused.",
            f"Run {apply}. It changes no object. Until then statuses are written without what is missing.",
        )
    elif not missing:
        yield ok("CRDs", f"All {len(facts.ours)} kinds are installed, in this program's version.")


def _apply(crds: dict[str, Manifest]) -> str:
    """The command that works: Helm owns the fields of what it installed, and they have to be taken over."""
    notes = [one["metadata"].get("annotations") or {} for one in crds.values()]
    releases = sorted({note[RELEASE] for note in notes if RELEASE in note})
    if not releases:
        return "`slurm-operator crds | kubectl apply --server-side -f -`"
    forced = "`slurm-operator crds | kubectl apply --server-side --force-conflicts -f -`"
    if releases != ["slurm-operator-crds"]:
        return forced
    place = next(note.get(RELEASE_NAMESPACE, "") for note in notes if RELEASE in note)
    where = f" -n {place}" if place else ""
    upgrade = f"helm upgrade slurm-operator-crds charts/slurm-operator-crds{where}"
    return f"`{upgrade} --server-side=true --force-conflicts`, or {forced}"


def operators(facts: Facts) -> Iterator[Finding]:
    if isinstance(facts.operators, Unread):
        yield unread("Operator", facts.operators)
        return
    if not facts.operators:
        yield fail(
            "Operator",
            "No operator runs here.",
            "`slurm-operator manifests --image IMAGE | kubectl apply --server-side -f -`, or use the charts.",
        )
    for operator in facts.operators:
        yield from _operator(operator)
    if len(facts.operators) > 1:
        names = [f"{one.namespace}/{one.name}" for one in facts.operators]
        yield warn(
            "Operator",
            f"Several are installed: {listed(names)}. They undo each other's work.",
            "Keep one, or give each its own namespaces (--namespaces).",
        )


def _operator(operator: Operator) -> Iterator[Finding]:
    name = f"{operator.namespace}/{operator.name}"
    if operator.ready < 1:
        yield fail(
            "Operator",
            f"{name} has {operator.ready} of {operator.wanted} pods ready.",
            f"See `kubectl logs -n {operator.namespace} deployment/{operator.name}`.",
        )
    else:
        yield ok("Operator", f"{name}, {operator.image}, {operator.ready} of {operator.wanted} ready.")
    if isinstance(operator.missing, Unread):
        yield note(
            "Operator's rights",
            f"Not looked at: {operator.missing.why}",
            "With the right to create subjectaccessreviews.authorization.k8s.io this is checked.",
        )
    elif operator.missing:
        is_spare = all(right.resource in _SPARE for right in operator.missing)
        yield Finding(
            check="Operator's rights",
            level=Level.WARN if is_spare else Level.FAIL,
            message=f"ServiceAccount {operator.account} may not {_grouped(operator.missing)}.",
            remedy="Apply the Roles of this version again: "
            "`slurm-operator manifests --no-crds --image IMAGE`.",
        )
    else:
        yield ok("Operator's rights", f"ServiceAccount {operator.account} may do all it needs.")


def metrics(facts: Facts) -> Iterator[Finding]:
    if isinstance(facts.operators, Unread):
        return
    plain = [f"{one.namespace}/{one.name}" for one in facts.operators if one.has_plain_metrics]
    if plain:
        yield note(
            "Metrics",
            f"Every pod can read those of {listed(plain)}: they are served over HTTP and to anybody.",
            "Set operator.metricsSecure=true (--metrics-secure=true). Prometheus then needs a token.",
        )


def webhooks(facts: Facts) -> Iterator[Finding]:
    if isinstance(facts.webhooks, Unread):
        yield unread("Webhook", facts.webhooks)
        return
    if not facts.webhooks:
        yield ok("Webhook", "None is installed; rules in the CRDs and the operator do its work.")
    for webhook in facts.webhooks:
        if not webhook.trouble:
            yield ok("Webhook", f"{webhook.configuration} answers.")
            continue
        effect = "our kinds cannot be changed" if webhook.is_blocking else "its checks are left out"
        yield Finding(
            check="Webhook",
            level=Level.FAIL if webhook.is_blocking else Level.WARN,
            message=f"{webhook.configuration}: {webhook.trouble}; {effect}.",
            remedy=f"See the pods behind Service {webhook.service}, or delete the configuration.",
        )


def protection(facts: Facts) -> Iterator[Finding]:
    if isinstance(facts.is_protected, Unread):
        yield unread("Protection", facts.is_protected)
    elif facts.is_protected:
        yield ok("Protection", "A policy keeps workers with jobs from being deleted by hand.")
    else:
        yield warn(
            "Protection",
            "No policy protects workers: `kubectl delete pod` ends the jobs on them.",
            REMEDY,
        )


def monitoring(facts: Facts) -> Iterator[Finding]:
    if isinstance(facts.has_monitoring, Unread):
        yield unread("ServiceMonitor", facts.has_monitoring)
    elif facts.has_monitoring:
        yield ok("ServiceMonitor", "The kind exists; metrics can be collected automatically.")
    else:
        yield note(
            "ServiceMonitor",
            "This Kubernetes has no kind ServiceMonitor: metrics are not collected automatically.",
            "Install the Prometheus operator, or point a Prometheus at the Services.",
        )


def _grouped(missing: Sequence[Right]) -> str:
    """All of them, each verb and place once: `list pods, events; get secrets (in namespace slurm)`."""
    places: dict[str, dict[str, list[str]]] = {}
    for right in missing:
        places.setdefault(right.place, {}).setdefault(right.verb, []).append(right.what)
    return "; ".join(
        "; ".join(f"{verb} {', '.join(what)}" for verb, what in verbs.items()) + f" ({place})"
        for place, verbs in places.items()
    )


def _is_other(kind: type[Resource], live: Manifest | None) -> bool:
    """Whether an installed definition says something else than ours."""
    wanted = _wanted(kind)
    if live is None or live["spec"] == wanted:
        return False
    return bool(changes({"spec": wanted}, Child(metadata=Meta(), body={"spec": live["spec"]})))


@cache
def _wanted(kind: type[Resource]) -> Manifest:
    spec: Manifest = crd(kind)["spec"]
    return spec


def crd_name(kind: Kind) -> str:
    return f"{kind.plural}.{kind.group}"
