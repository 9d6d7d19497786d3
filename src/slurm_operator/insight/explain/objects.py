"""Why one of our objects is not ready: its reconciler's verdict, and behind it the next one's."""

from datetime import timedelta

from slurm_operator.api import nebius
from slurm_operator.api.edited import edited_object
from slurm_operator.api.registry import name_of
from slurm_operator.api.shared.conditions import DEGRADED, PROGRESSING, READY, Condition, Truth
from slurm_operator.api.shared.meta import HasMeta, key_of
from slurm_operator.api.slinky.accounting import Accounting
from slurm_operator.api.slinky.cluster import Cluster
from slurm_operator.api.slinky.controller import Controller
from slurm_operator.api.slinky.loginset import LoginSet
from slurm_operator.api.slinky.nodeset import NodeSet
from slurm_operator.api.slinky.restapi import RestApi
from slurm_operator.insight.evaluation import Verdict, reported, verdict
from slurm_operator.insight.explain import underway
from slurm_operator.insight.explain.chain import Case, Finding, Link, Remedy
from slurm_operator.insight.explain.ending_namespace import ending
from slurm_operator.insight.explain.pods import worst
from slurm_operator.insight.explain.remedies import remedy
from slurm_operator.insight.explain.slurm import slurm_node
from slurm_operator.insight.slurm.unusable import Unusable, all_unusable, counted_unusable, nodes_of
from slurm_operator.manifests.objects import Pod
from slurm_operator.plan.world import OWNER
from slurm_operator.reconcilers.cluster import causes
from slurm_operator.reconcilers.nebius.nodeset.decide import WAITING_FOR_FILES, WAITING_FOR_ROOT
from slurm_operator.reconcilers.nebius.slurmcluster import conditions as slurmcluster_conditions
from slurm_operator.reconcilers.nebius.slurmcluster import populate
from slurm_operator.reconcilers.nodeset import identity
from slurm_operator.reconcilers.shared.children import seen_pods
from slurm_operator.reconcilers.shared.composed import Part
from slurm_operator.reconcilers.shared.composed import state as state_of
from slurm_operator.slurm.snapshot import Snapshot

# What only the operator knows, because it tried: it stands in the conditions that it wrote.
TRIED = {"WriteFailed", "ActionFailed", "SigningFailed"}

# A running operator needs seconds for its first word about an object.
LOOKED_AT_WITHIN = timedelta(minutes=1)

# There is nothing of the name that the spec has.
_NAMED = {"AccountingNotFound", "ClusterNotFound", "ControllerNotFound"}

# A part that waits for another one has the same trouble as that one.
_OF_THE_CONTROLLER = {
    "ConfigNotYetWritten",
    "ControllerNotFound",
    "KeyNotYetGenerated",
    "SlurmUnreachable",
    "UnknownToSlurm",
}

# Why a daemon is not there stands in what its pods lack.
_OF_ITS_PODS = {"DatabaseStarting", "PodsNotReady", "Starting"}

# A change of the Controller that waits until it costs nothing. Its workers may be waiting for it.
_HELD_BACK = {"JobsAtStake", "PlacesInUse", "PlacesUnseen", "RestartPostponed"}

# So many characters at the end of two messages are no coincidence.
_SAME = 40

# Objects that the operator makes into others.
COMPOSED = Cluster | nebius.SlurmCluster | nebius.NodeSet

APPS = {Controller: "slurmctld", RestApi: "slurmrestd", LoginSet: "login", Accounting: "slurmdbd"}


def judged(thing: HasMeta, case: Case) -> Verdict | None:
    """What the operator thinks of this object now."""
    for reconciler in case.reconcilers:
        if reconciler.about is type(thing):
            evaluate = verdict if case.is_whole else reported
            return evaluate(reconciler, key_of(thing), case.picture)
    return None


def telling(found: Verdict) -> Condition | None:
    """The condition that says what is wrong; None when nothing is."""
    written = found.reported(DEGRADED)
    if written is not None and written.status is Truth.TRUE and written.reason in TRIED:
        return written
    degraded, ready = found.condition(DEGRADED), found.condition(READY)
    if degraded is not None and degraded.status is Truth.TRUE:
        return degraded
    return ready if ready is not None and ready.status is not Truth.TRUE else None


def why(found: Verdict, case: Case) -> Finding:
    """From what this object says to the root of it. Without a remedy nothing has to be done."""
    condition = telling(found)
    ends = ending(case)
    if ends is not None:
        return ends.after(Link(subject=found.name, says="is being deleted with its namespace."))
    if _is_overlooked(found, case):
        return _overlooked(found, case)
    if condition is None:
        return _without_nodes(found, case) or _underway(found, case)
    link = Link(subject=found.name, says=_says(found, condition))
    deeper = _deeper(found, condition, case)
    if deeper is not None and not deeper.is_well:
        return _with_held_change(deeper.after(_shortened(link, found, condition, deeper)), found, case)
    if deeper is None and condition.type == READY and found.is_true(PROGRESSING) and _comes(found, condition):
        return Finding(chain=(link, *_behind(found, case)))
    way = remedy(condition.reason, condition.message, found.about, name_of(found.reconciler.kind))
    own = Finding(chain=(link,), remedy=_unless_unseen(found, way, case))
    return _with_held_change(own, found, case)


def held_changes(found: Verdict, case: Case) -> list[str]:
    """Changes of a NodeSet's Controller that wait for jobs, each with the jobs that it waits for."""
    if not isinstance(found.about, NodeSet):
        return []
    controller = case.picture.get(Controller, case.namespace, found.about.spec.controller)
    theirs = judged(controller, case) if controller is not None else None
    waits = theirs.plan.waits if theirs is not None else []
    return [wait.message for wait in waits if wait.reason in _HELD_BACK]


def _with_held_change(finding: Finding, found: Verdict, case: Case) -> Finding:
    """The same, with a change that waits for jobs beside the cause: it may be the one that would help."""
    held = held_changes(found, case)
    if not held or finding.remedy is None:
        return finding
    controller = found.about.spec.controller
    links = [
        Link(subject=f"Controller {controller}", says=f"holds back a change of its configuration. {message}")
        for message in held
    ]
    advice = (
        "If the change that is held back is the correction, wait for the jobs named above, or ask their "
        f"owners to end or requeue them: then it is made at once. Otherwise: {finding.remedy.advice}"
    )
    commands = ("squeue --states=all", *finding.remedy.commands)
    return Finding(chain=(*finding.chain, *links), remedy=Remedy(advice=advice, commands=commands))


def _is_overlooked(found: Verdict, case: Case) -> bool:
    """Without a word from the operator about this spec, though it has had the time, or none runs."""
    if found.reported(READY) is not None:
        return case.is_operator_away and _is_outdated(found)
    made = found.about.metadata.creation_timestamp
    return case.is_operator_away or (made is not None and case.picture.now - made > LOOKED_AT_WITHIN)


def _is_outdated(found: Verdict) -> bool:
    """The spec has changed since the operator last wrote its status."""
    status = getattr(found.about, "status", None)
    observed: int | None = getattr(status, "observed_generation", None)
    return observed is not None and observed < found.about.metadata.generation


def _overlooked(found: Verdict, case: Case) -> Finding:
    says = (
        "has never been looked at by the operator: it has no conditions."
        if found.reported(READY) is None
        else "has changed since the operator last looked at it."
    )
    advice = (
        "No operator runs that you can see: start it. Until then Slurm and its jobs go on, and no change "
        "is made."
        if case.is_operator_away
        else "See whether the operator runs, watches this namespace, and may read what it needs; its log "
        "says so."
    )
    commands = (
        "kubectl get pods -A -l app.kubernetes.io/name=slurm-operator",
        f"kubectl slurm doctor -n {found.key.namespace}",
    )
    return Finding(
        chain=(Link(subject=found.name, says=says),), remedy=Remedy(advice=advice, commands=commands)
    )


def _says(found: Verdict, condition: Condition) -> str:
    return f"{_state(found)} {condition.reason}: {condition.message}"


def _state(found: Verdict) -> str:
    return "is ready, but" if found.is_true(READY) else "is not ready:"


def _shortened(link: Link, found: Verdict, condition: Condition, deeper: Finding) -> Link:
    """Without the words that its cause says again."""
    last = condition.message.rstrip(". ")[-_SAME:]
    if any(last in one.says for one in deeper.chain):
        return Link(subject=link.subject, says=f"{_state(found)} {condition.reason}.")
    return link


def _without_nodes(found: Verdict, case: Case) -> Finding | None:
    """Everything is ready, but no job could start: all of its nodes are drained or down."""
    about = found.seen.own if isinstance(found.about, nebius.NodeSet) else found.about
    unusable = _unusable(about, case)
    if unusable is None:
        return None
    link = Link(subject=found.name, says=f"is ready, but {unusable.says}.")
    if not unusable.nodes:
        advice = "See which nodes, and why."
        return Finding(chain=(link,), remedy=Remedy(advice=advice, commands=(case.kubectl_slurm("status"),)))
    controller = about.spec.controller if isinstance(about, NodeSet) else found.key.name
    slurm = case.picture.slurm(case.namespace, controller)
    assert isinstance(slurm, Snapshot), "only Slurm itself says which nodes"
    return slurm_node(unusable.nodes[0], slurm, case, alike=unusable.nodes).after(link)


def _unusable(about: object, case: Case) -> Unusable | None:
    if isinstance(about, Cluster) and not about.spec.is_adopted:
        slurm = case.picture.slurm(case.namespace, about.metadata.name)
        return all_unusable(slurm.nodes.values()) if isinstance(slurm, Snapshot) else counted_unusable(about)
    if isinstance(about, nebius.SlurmCluster):
        slurm = case.picture.slurm(case.namespace, about.metadata.name)
        return all_unusable(slurm.nodes.values()) if isinstance(slurm, Snapshot) else None
    if isinstance(about, NodeSet):
        slurm = case.picture.slurm(case.namespace, about.spec.controller)
        if not isinstance(slurm, Snapshot):
            return counted_unusable(about)
        return all_unusable(nodes_of(about, case.picture.all(Pod, case.namespace), slurm))
    return None


def _underway(found: Verdict, case: Case) -> Finding:
    """Nothing is wrong; at most something is under way."""
    progressing, ready = found.condition(PROGRESSING), found.condition(READY)
    if ready is None:
        return Finding(chain=(Link(subject=found.name, says="has not been looked at by the operator yet."),))
    said = ready.message
    if progressing is not None and progressing.status is Truth.TRUE:
        says = f"is progressing: {progressing.reason}: {progressing.message}"
        return Finding(chain=(Link(subject=found.name, says=says), *_behind(found, case)))
    return Finding(chain=(Link(subject=found.name, says=f"is healthy. {said}".strip()),))


def _behind(found: Verdict, case: Case) -> list[Link]:
    """What holds up a change: of what has parts in the part that is changing, else in the object itself."""
    if not isinstance(found.about, COMPOSED):
        return underway.chain(found, case)
    verdicts = (judged(part, case) for part in _parts(found))
    for one in verdicts:
        said = one.condition(PROGRESSING) if one is not None else None
        if one is not None and said is not None and said.status is Truth.TRUE:
            says = f"is progressing: {said.reason}: {said.message}"
            return [Link(subject=one.name, says=says), *underway.chain(one, case)]
    return underway.chain(found, case)


def _comes(found: Verdict, condition: Condition) -> bool:
    """Whether it only has to wait for what it lacks. A name that somebody wrote may have been mistyped."""
    if condition.reason in _NAMED and found.about.metadata.owner is None:
        return False
    degraded = found.condition(DEGRADED)
    return degraded is None or degraded.status is not Truth.TRUE


def _deeper(found: Verdict, condition: Condition, case: Case) -> Finding | None:
    """The cause of this object's trouble in another one; None when it is its own."""
    about = found.about
    if condition.reason in TRIED:
        return None
    if isinstance(about, nebius.SlurmCluster | nebius.NodeSet) and _is_its_own(found, condition):
        return _of_its_root(found, condition, case)
    if isinstance(about, COMPOSED):
        return _of_part(found, case)
    if isinstance(about, NodeSet):
        return _of_nodeset(about, condition, case)
    if condition.reason == "AccountingNotReady" and isinstance(about, Controller):
        return _of(case.picture.get(Accounting, case.namespace, about.spec.accounting), case)
    if condition.reason in _OF_THE_CONTROLLER and isinstance(about, RestApi):
        return _of(case.picture.get(Controller, case.namespace, about.spec.controller_ref.name), case)
    if condition.reason in _OF_THE_CONTROLLER and isinstance(about, LoginSet):
        return _of_controller(about.spec.controller_ref.name, case)
    if condition.reason in _OF_ITS_PODS and type(about) in APPS:
        return worst(_pods(about, case), case)
    return None


def _of(thing: HasMeta | None, case: Case) -> Finding | None:
    found = judged(thing, case) if thing is not None else None
    return why(found, case) if found is not None else None


def _parts(found: Verdict) -> list[Part]:
    """What this object was made into, the one that can be the cause of another's trouble first."""
    match found.about:
        case Cluster():
            parts = causes.parts(found.seen)
        case nebius.SlurmCluster():
            parts = slurmcluster_conditions.parts(found.seen)
        case _:
            parts = [found.seen.own] if found.seen.own is not None else []
    return [part for part in parts if not part.metadata.is_terminating]


def _is_its_own(found: Verdict, condition: Condition) -> bool:
    """Whether the object itself waits for this, and no part of it."""
    return any(
        (wait.reason, wait.message) == (condition.reason, condition.message) for wait in found.plan.waits
    )


def _of_its_root(found: Verdict, condition: Condition, case: Case) -> Finding | None:
    """Why there is no root yet: a pod of the Job that populates it, or what its SlurmCluster says."""
    if isinstance(found.about, nebius.SlurmCluster):
        return worst(found.seen.root.pods, case) if condition.reason == populate.POPULATING else None
    if condition.reason not in (WAITING_FOR_ROOT, WAITING_FOR_FILES):
        return None
    finding = _of(found.seen.cluster, case)
    return finding if finding is not None and not finding.is_well else None


def _of_part(found: Verdict, case: Case) -> Finding | None:
    """The part that the object itself names as the cause, or the first one that has a trouble."""
    states = sorted(
        ((state_of(part), part) for part in _parts(found)),
        key=lambda it: (it[0].is_ready, not it[0].is_degraded),
    )
    for state, part in states:
        finding = _of(part, case) if not state.is_ready or state.is_degraded else None
        if finding is not None and not finding.is_well:
            return finding
    return None


def _of_controller(name: str, case: Case) -> Finding | None:
    """slurmctld first, then the slurmrestds in front of it."""
    finding = _of(case.picture.get(Controller, case.namespace, name), case)
    if finding is not None and not finding.is_well:
        return finding
    for restapi in case.picture.all(RestApi, case.namespace):
        if restapi.spec.controller_ref.name == name:
            finding = _of(restapi, case)
            if finding is not None and not finding.is_well:
                return finding
    return None


def _of_nodeset(nodeset: NodeSet, condition: Condition, case: Case) -> Finding | None:
    pods = case.picture.find(Pod, OWNER, nodeset.metadata.uid)
    if condition.reason == "SlurmUnreachable":  # What ails a worker, such as DNS, may ail slurmrestd too.
        return _of_controller(nodeset.spec.controller, case) or worst(pods, case)
    if condition.reason == "Mismatch":
        return _of_mismatch(nodeset, condition, case)
    found = worst(pods, case)
    if found is not None:
        return found
    return _of_controller(nodeset.spec.controller, case) if condition.reason == "Unavailable" else None


def _of_mismatch(nodeset: NodeSet, condition: Condition, case: Case) -> Finding:
    """A worker that is not in Slurm what its pod promises."""
    name = condition.message.partition(":")[0]
    pods = case.picture.find(Pod, OWNER, nodeset.metadata.uid)
    pod = next((one for one in pods if identity.slurm_node_name(one) == name), None)
    logs = case.kubectl(f"logs {pod.metadata.name if pod is not None else name} -c slurmd")
    slurm = case.picture.slurm(case.namespace, nodeset.spec.controller)
    node = slurm.nodes.get(name) if isinstance(slurm, Snapshot) else None
    if node is None:
        advice = (
            "The log of slurmd says why it does not register: look for a name, an address or a key that it "
            "complains about."
        )
        says = "runs in a ready pod, but slurmctld does not know it."
        return _mismatched(name, says, Remedy(advice=advice, commands=(logs,)))
    if "newer than" in condition.message:
        advice = "Update the Controller first: slurmctld must be at least as new as its slurmds."
        return _mismatched(
            name,
            _differs(condition),
            Remedy(advice=advice, commands=(case.kubectl("get controllers"),)),
        )
    if node.state.is_down:
        advice = "When what is wrong with the node is fixed, put it back in service."
        back = f"scontrol update nodename={name} state=resume"
        return _mismatched(name, _differs(condition), Remedy(advice=advice, commands=(back,)))
    finding = slurm_node(node, slurm, case) if isinstance(slurm, Snapshot) and node.state.is_invalid else None
    if finding is not None:
        return finding
    advice = (
        "Make both say the same: correct extraConf or the container's limits of the NodeSet, or fix the "
        "device that slurmd does not find."
    )
    edited = edited_object(nodeset)
    target = f"{edited.kind.lower()} {edited.name}" if edited else f"nodeset {nodeset.metadata.name}"
    commands = (case.kubectl(f"edit {target}"), logs)
    advice = f"{advice} {edited.advice}" if edited else advice
    return _mismatched(name, _differs(condition), Remedy(advice=advice, commands=commands))


def _differs(condition: Condition) -> str:
    """What of it is not as the pod promises; that it is out of service is a whole sentence already."""
    told = condition.message.partition(": ")[2]
    return told.removeprefix("it ") if told.startswith("it ") else f"differs: {told}"


def _mismatched(name: str, says: str, way: Remedy) -> Finding:
    return Finding(chain=(Link(subject=f"Slurm node {name}", says=says),), remedy=way)


def _pods(about: HasMeta, case: Case) -> list[Pod]:
    app = APPS.get(type(about), "")
    pods = seen_pods(case.picture, case.namespace, app, about.metadata.name)
    if isinstance(about, Accounting):
        pods = [*seen_pods(case.picture, case.namespace, "mariadb", about.metadata.name), *pods]
    return pods


def _unless_unseen(found: Verdict, way: Remedy, case: Case) -> Remedy:
    """What only we cannot see, for want of rights, may be no trouble at all: the operator's word counts."""
    ready = found.reported(READY)
    if found.is_true(READY) or ready is None or ready.status is not Truth.TRUE:
        return way
    return Remedy(
        advice=f"{way.advice} The operator itself says Ready since {_since(ready)}; what is told above "
        "may only be what you cannot see.",
        commands=way.commands,
    )


def _since(condition: Condition) -> str:
    since = condition.last_transition_time
    return f"{since:%Y-%m-%d %H:%M:%S} UTC" if since is not None else "an unknown time"


def meanwhile(found: Verdict, case: Case) -> list[str]:
    """What the operator does next, or deliberately does not do yet."""
    waits = [f"{wait.subject}: {wait.message}" for wait in found.plan.waits]
    progressing = found.condition(PROGRESSING)
    if not case.is_whole and progressing is not None and progressing.status is Truth.TRUE:
        waits = [f"{progressing.reason}: {progressing.message}"]
    held = [f"a change of the Controller is held back: {message}" for message in held_changes(found, case)]
    return list(dict.fromkeys([*waits, *held]))
