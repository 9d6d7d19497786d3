"""`KIND/NAME`, whatever kind it is."""

from slurm_operator.api.meta import HasMeta
from slurm_operator.kubectl import explain_slurm
from slurm_operator.kubectl.explain import Case, Explanation, Finding, Link, NotThere, explained
from slurm_operator.kubectl.explain_objects import judged, meanwhile, why
from slurm_operator.kubectl.explain_pods import is_worker, lost, named, why_not
from slurm_operator.kubectl.verdict import kind_named
from slurm_operator.manifests.objects import KubeNode, Pod
from slurm_operator.manifests.troubles import troubles
from slurm_operator.reconcilers.nodeset import identity
from slurm_operator.slurm.snapshot import Snapshot

KINDS = (
    "cluster",
    "controller",
    "accounting",
    "restapi",
    "loginset",
    "nodeset",
    "token",
    "node",
    "pod",
    "job",
)


def explain(kind: str, name: str, case: Case) -> Explanation:
    """Raises NotThere, with what there is instead."""
    match kind.lower().removesuffix("s"):
        case "pod":
            return _pod(name, case)
        case "node":
            return _node(name, case)
        case "job":
            return _job(name, case)
        case _:
            return _object(kind, name, case)


def _object(kind: str, name: str, case: Case) -> Explanation:
    reconciler = kind_named(kind, case.reconcilers)
    if reconciler is None:
        raise NotThere(f"There is nothing to explain about a {kind!r}. Kinds: {', '.join(KINDS)}.")
    thing: HasMeta | None = case.picture.get(reconciler.about, case.namespace, name)
    found = judged(thing, case) if thing is not None else None
    if found is None:
        there = [one.metadata.name for one in case.picture.all(reconciler.about, case.namespace)]
        what = reconciler.kind.kind
        raise NotThere(
            f"There is no {what} {name!r} in namespace {case.namespace!r}"
            + (f"; there are: {', '.join(there)}." if there else f", and no other {what}.")
        )
    return explained(found.name, why(found, case), meanwhile(found, case))


def _pod(name: str, case: Case) -> Explanation:
    pod = case.picture.get(Pod, case.namespace, name)
    if pod is None:
        raise NotThere(f"There is no pod {name!r} of a Slurm daemon in namespace {case.namespace!r}.")
    finding = why_not(pod, case)
    if finding is None and is_worker(pod) and pod.is_ready:
        finding = _in_slurm(identity.slurm_node_name(pod), case)
        finding = (
            finding.after(Link(subject=named(pod), says="runs and is ready."))
            if finding is not None
            else None
        )
    if finding is None:
        state = (
            "runs and is ready."
            if pod.is_ready
            else f"is {pod.status.phase or 'new'}, and nothing speaks against it."
        )
        finding = Finding(chain=(Link(subject=named(pod), says=state),))
    return explained(named(pod), finding, troubles([pod])[1:])


def _in_slurm(name: str, case: Case) -> Finding | None:
    for _, snapshot in explain_slurm.clusters(case):
        if name in snapshot.nodes:
            return explain_slurm.slurm_node(snapshot.nodes[name], snapshot, case)
    return None


def _node(name: str, case: Case) -> Explanation:
    """A Slurm node, or else a machine of Kubernetes and the workers on it."""
    finding = _in_slurm(name, case)
    if finding is not None:
        return explained(f"Slurm node {name}", finding)
    machine = case.picture.get(KubeNode, "", name)
    if machine is not None:
        return _machine(machine, case)
    pod = explain_slurm.worker_of(name, case)
    if pod is not None:
        return _pod(pod.metadata.name, case)
    known = [node for _, snapshot in explain_slurm.clusters(case) for node in snapshot.nodes]
    raise NotThere(
        f"Neither Slurm nor Kubernetes knows a node {name!r}"
        + (f"; Slurm knows: {', '.join(sorted(known)[:20])}." if known else ", and no Slurm could be asked.")
    )


def _machine(machine: KubeNode, case: Case) -> Explanation:
    subject = f"Node {machine.metadata.name}"
    away = lost(machine, case)
    if away is not None:
        return explained(
            subject,
            away,
            [f"worker {pod.metadata.name} is there" for pod in explain_slurm.workers_on(machine, case)],
        )
    for pod in explain_slurm.workers_on(machine, case):
        finding = why_not(pod, case) or _in_slurm(identity.slurm_node_name(pod), case)
        if finding is not None and not finding.is_well:
            state = "is cordoned" if machine.spec.unschedulable else "is ready"
            return explained(
                subject,
                finding.after(Link(subject=subject, says=f"{state}, and has worker {pod.metadata.name}.")),
            )
    workers = ", ".join(pod.metadata.name for pod in explain_slurm.workers_on(machine, case)) or "none"
    state = "is cordoned" if machine.spec.unschedulable else "is ready"
    return explained(
        subject, Finding(chain=(Link(subject=subject, says=f"{state}. Its workers: {workers}."),))
    )


def _job(name: str, case: Case) -> Explanation:
    for _, snapshot in explain_slurm.clusters(case):
        found = snapshot.jobs.get(int(name)) if name.isdecimal() else None
        if found is not None:
            return explained(f"Job {name}", explain_slurm.job(found, snapshot, case))
    seen: list[Snapshot] = [snapshot for _, snapshot in explain_slurm.clusters(case)]
    if not seen:
        raise NotThere(f"No Slurm cluster in namespace {case.namespace!r} could be asked about job {name}.")
    raise NotThere(f"There is no unfinished job {name}. What became of it says: sacct -j {name}")
