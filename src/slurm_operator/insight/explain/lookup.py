"""`KIND/NAME`, whatever kind it is."""

from collections.abc import Iterable
from typing import Any

from slurm_operator.api.registry import name_of
from slurm_operator.api.schema.kind import Kind
from slurm_operator.api.shared import names
from slurm_operator.api.shared.meta import HasMeta, ObjectKey, key_of
from slurm_operator.api.slinky.nodeset import NodeSet
from slurm_operator.insight.evaluation import Verdict, kinds_named, typed_name
from slurm_operator.insight.explain import jobs, slurm
from slurm_operator.insight.explain.chain import Case, Explanation, Finding, Link, NotThere, Remedy, explained
from slurm_operator.insight.explain.ending_namespace import ending
from slurm_operator.insight.explain.job_ids import read_id
from slurm_operator.insight.explain.objects import judged, meanwhile, why
from slurm_operator.insight.explain.pods import is_worker, lost, pod_label, why_not
from slurm_operator.insight.typed_names import did_you_mean, of_kubernetes
from slurm_operator.manifests.objects import KubeNode, Pod
from slurm_operator.manifests.pod_troubles import troubles
from slurm_operator.plan.reconciler import Reconciler
from slurm_operator.reconcilers.nodeset import identity
from slurm_operator.reconcilers.nodeset.worker.left_behind import LEFT_BEHIND
from slurm_operator.reconcilers.shared.parts import is_owned
from slurm_operator.reconcilers.shared.strays import is_stray

# Of Kubernetes and of Slurm, beside our own kinds.
_OTHERS = ("node", "pod", "job")


def known_words(kinds: Iterable[Kind]) -> tuple[str, ...]:
    """What can stand before the slash when there are these kinds of ours."""
    return (*(name_of(kind).lower() for kind in kinds), *_OTHERS)


def explain(kind: str, name: str, case: Case) -> Explanation:
    """Raises NotThere, with what there is instead."""
    match of_kubernetes(kind):
        case "pod":
            return _pod(name, case)
        case "node":
            return _node(name, case)
        case "job":
            return _job(name, case)
        case _:
            return _object(kind, name, case)


def _object(kind: str, name: str, case: Case) -> Explanation:
    meant = kinds_named(kind, case.reconcilers)
    if not meant:
        words = known_words(reconciler.kind for reconciler in case.reconcilers)
        question = did_you_mean(kind, words)
        raise NotThere(f"There is nothing to explain about a {kind!r}.{question} Kinds: {', '.join(words)}.")
    there = [one for reconciler in meant if (one := _verdict(reconciler, name, case)) is not None]
    # What another one of them was made into is explained with that one.
    found = [one for one in there if not any(is_owned(one.about, other.about.metadata) for other in there)]
    if not found:
        raise _no_such(meant[0], name, case)
    if len(found) > 1:
        each = " or ".join(f"{typed_name(one.reconciler.kind)}/{name}" for one in found)
        raise NotThere(
            f"Several API groups have a {kind} {name!r} in namespace {case.namespace!r}. Say {each}."
        )
    return explained(found[0].name, why(found[0], case), meanwhile(found[0], case))


def _verdict(reconciler: Reconciler[Any], name: str, case: Case) -> Verdict | None:
    thing: HasMeta | None = case.picture.get(reconciler.about, case.namespace, name)
    return judged(thing, case) if thing is not None else None


def _unseeable(what: str, right: str, case: Case) -> NotThere:
    """The reader may not look, so nobody can say whether it is there."""
    return NotThere(
        f"You may not {right} in namespace {case.namespace!r}, so {what} cannot be explained to you. "
        "The ClusterRole view has this right where the operator's roles are installed."
    )


def _slurm_unseeable(what: str, case: Case) -> NotThere | None:
    """The reader may not ask Slurm; None when that is not the trouble."""
    if not case.is_forbidden("get secrets", "get services/proxy"):
        return None
    return NotThere(
        f"You may not ask Slurm in namespace {case.namespace!r}, so {what} cannot be explained to you. "
        "That takes the right to get services/proxy, and a Secret with a token of a Slurm user: name it with "
        "--token-secret."
    )


def _no_such(reconciler: Reconciler[Any], name: str, case: Case) -> NotThere:
    if case.is_forbidden(right := f"list {reconciler.kind.plural} ({reconciler.kind.group})"):
        return _unseeable(f"{name_of(reconciler.kind)} {name}", right, case)
    there = [one.metadata.name for one in case.picture.all(reconciler.about, case.namespace)]
    what = name_of(reconciler.kind)
    return NotThere(
        f"There is no {what} {name!r} in namespace {case.namespace!r}"
        + (f"; there are: {', '.join(there)}." if there else f", and no other {what}.")
        + did_you_mean(name, there)
    )


def _pod(name: str, case: Case) -> Explanation:
    pod = case.picture.get(Pod, case.namespace, name)
    if pod is None and case.is_forbidden("list pods"):
        raise _unseeable(f"pod {name}", "list pods", case)
    if pod is None:
        raise NotThere(f"There is no pod {name!r} of a Slurm daemon in namespace {case.namespace!r}.")
    if is_worker(pod) and (ends := ending(case, (pod,))) is not None:
        link = Link(subject=pod_label(pod), says="is being deleted with its namespace.")
        return explained(pod_label(pod), ends.after(link))
    finding = _stray(pod, case) if is_stray(pod, case.picture) else why_not(pod, case)
    if finding is None and is_worker(pod) and pod.is_ready:
        finding = _in_slurm(identity.slurm_node_name(pod), case)
        finding = (
            finding.after(Link(subject=pod_label(pod), says="runs and is ready."))
            if finding is not None
            else None
        )
    if finding is None:
        state = (
            "runs and is ready."
            if pod.is_ready
            else f"is {pod.status.phase or 'new'}, and nothing speaks against it."
        )
        finding = Finding(chain=(Link(subject=pod_label(pod), says=state),))
    return explained(pod_label(pod), finding, troubles([pod])[1:])


def _stray(pod: Pod, case: Case) -> Finding | None:
    """What becomes of a worker whose NodeSet is gone, as the operator decides it."""
    owner, key = pod.metadata.owner, key_of(pod)
    reconciler = next((one for one in case.reconcilers if one.about is NodeSet), None)
    if owner is None or reconciler is None:
        return None
    seen = reconciler.observe(ObjectKey(key.namespace, owner.name), case.picture)
    waits = reconciler.decide(seen, case.picture.now).waits if seen is not None else []
    held = next((wait for wait in waits if wait.subject == identity.slurm_node_name(pod)), None)
    says = f"was made when its NodeSet {owner.name} was gone, and leaves when no job is on it"
    link = Link(subject=pod_label(pod), says=f"{says}: {held.message}." if held is not None else f"{says}.")
    if held is None or held.reason != LEFT_BEHIND:
        return Finding(chain=(link,))
    commands = (f"annotate pod {key.name} {names.ALLOW_DELETION}=true", f"delete pod {key.name}")
    advice = "See in Slurm whether a job is there. If none is, delete the pod."
    return Finding(chain=(link,), remedy=Remedy(advice=advice, commands=tuple(map(case.kubectl, commands))))


def _in_slurm(name: str, case: Case) -> Finding | None:
    for _, snapshot in slurm.clusters(case):
        if name in snapshot.nodes:
            return slurm.slurm_node(snapshot.nodes[name], snapshot, case)
    return None


def _node(name: str, case: Case) -> Explanation:
    """A Slurm node, or else a machine of Kubernetes and the workers on it."""
    finding = _in_slurm(name, case)
    if finding is not None:
        return explained(f"Slurm node {name}", finding)
    machine = case.picture.get(KubeNode, "", name)
    if machine is not None:
        return _machine(machine, case)
    pod = slurm.worker_of(name, case)
    if pod is not None:
        return _pod(pod.metadata.name, case)
    if (hidden := _slurm_unseeable(f"node {name}", case)) is not None:
        raise hidden
    known = [node for _, snapshot in slurm.clusters(case) for node in snapshot.nodes]
    raise NotThere(
        f"Neither Slurm nor Kubernetes knows a node {name!r}"
        + (f"; Slurm knows: {', '.join(sorted(known)[:20])}." if known else ", and no Slurm could be asked.")
        + did_you_mean(name, known)
    )


def _machine(machine: KubeNode, case: Case) -> Explanation:
    subject = f"Node {machine.metadata.name}"
    away = lost(machine, case)
    if away is not None:
        return explained(
            subject,
            away,
            [f"worker {pod.metadata.name} is there" for pod in slurm.workers_on(machine, case)],
        )
    for pod in slurm.workers_on(machine, case):
        finding = why_not(pod, case) or _in_slurm(identity.slurm_node_name(pod), case)
        if finding is not None and not finding.is_well:
            state = "is cordoned" if machine.spec.unschedulable else "is ready"
            return explained(
                subject,
                finding.after(Link(subject=subject, says=f"{state}, and has worker {pod.metadata.name}.")),
            )
    workers = ", ".join(pod.metadata.name for pod in slurm.workers_on(machine, case)) or "none"
    state = "is cordoned" if machine.spec.unschedulable else "is ready"
    return explained(
        subject, Finding(chain=(Link(subject=subject, says=f"{state}. Its workers: {workers}."),))
    )


def _job(name: str, case: Case) -> Explanation:
    finding = jobs.found_job(name, case)
    if finding is not None:
        return explained(f"Job {name}", finding)
    if read_id(name) is None:
        raise NotThere(f"{name!r} is no id of a job. Write it as squeue does: 4, 4_0, 4_[1-3] or 5+1.")
    seen = [snapshot for _, snapshot in slurm.clusters(case)]
    if not seen and (hidden := _slurm_unseeable(f"job {name}", case)) is not None:
        raise hidden
    if not seen and (ends := ending(case)) is not None:
        told = " ".join(f"{link.subject} {link.says}" for link in ends.chain)
        raise NotThere(f"No Slurm cluster could be asked about job {name}. {told}")
    if not seen:
        raise NotThere(f"No Slurm cluster in namespace {case.namespace!r} could be asked about job {name}.")
    raise NotThere(
        f"Slurm has no record of job {name}"
        + (
            ", and accounting has none either."
            if case.booked
            else "; it may have ended. There is no accounting to ask."
        )
    )
