"""Why a Slurm node takes no jobs, and why a job does not run."""

from collections.abc import Iterator
from datetime import datetime, timedelta

from slurm_operator.api.shared.meta import ObjectKey
from slurm_operator.insight.drain.decide import is_by
from slurm_operator.insight.explain.chain import Case, Finding, Link, Remedy
from slurm_operator.insight.explain.pods import is_worker, look_at_slurmd, lost, why_not
from slurm_operator.insight.text.output import counted
from slurm_operator.manifests.objects import KubeNode, Pod
from slurm_operator.reconcilers.nodeset import identity
from slurm_operator.safety.gate import jobs_text
from slurm_operator.slurm.hostlist import compress
from slurm_operator.slurm.jobs.job import SlurmJob
from slurm_operator.slurm.node import SlurmNode
from slurm_operator.slurm.reasons import OurReason
from slurm_operator.slurm.snapshot import Snapshot

# After this a job that should be over has processes that nobody can end.
LONG_COMPLETING = timedelta(minutes=5)

# Accounts that speak for nobody in particular.
_NOBODY = ("root", "slurm")

_LIFT = {
    "NodeCordon": "Its Kubernetes node is cordoned: `kubectl uncordon {machine}` lifts this drain.",
    "NodeTaint": "Its Kubernetes node is about to be removed, or has a taint that this worker does not "
    "tolerate. If it is removed, nothing has to be done; else take the taint off, or tolerate it in the "
    "NodeSet's template.",
    "Unresponsive": "Its slurmd runs and does not answer its readiness probe; this drain is lifted when it "
    "does. See what slurmd waits for: a full disk, a file system that hangs, a log that nobody reads, or "
    "jobs that leave it no CPU. The last command replaces the worker when its jobs are done.",
    "PodCordon": "Take the annotation nodeset.slinky.slurm.net/pod-cordon off the pod, and it is lifted.",
}


def clusters(case: Case) -> Iterator[tuple[ObjectKey, Snapshot]]:
    """Every Slurm cluster of the namespace that can be seen."""
    for key, facts in sorted(case.picture.slurms.items()):
        if key.namespace == case.namespace and isinstance(facts, Snapshot):
            yield key, facts


def worker_of(name: str, case: Case) -> Pod | None:
    pods = case.picture.all(Pod, case.namespace)
    return next((pod for pod in pods if is_worker(pod) and identity.slurm_node_name(pod) == name), None)


def slurm_node(node: SlurmNode, snapshot: Snapshot, case: Case, alike: tuple[SlurmNode, ...] = ()) -> Finding:
    """Why this node takes no jobs; a finding without a remedy when it does, or when that is meant so.

    `alike` are all nodes that have the same cause: what helps is said for all of them.
    """
    subject, pod = f"Slurm node {node.name}", worker_of(node.name, case)
    if node.state.is_down or node.state.is_unresponsive:
        return _down(node, pod, case)
    if node.state.is_invalid:
        advice = (
            "Declare what the worker really has: correct extraConf or the container's limits of its NodeSet."
        )
        says = f"is {node.state}: it registered with other resources than its record has ({node.reason})."
        return _root(subject, says, advice, case.kubectl("get nodesets"), case)
    if node.is_drained_by_us:
        return _our_drain(node, snapshot, pod, case)
    if node.is_drained_by_others:
        return _others_drain(node, alike or (node,), case)
    stuck = [job for job in snapshot.jobs_on(node.name) if is_stuck(job, case.picture.now)]
    if stuck:
        return job_on_node(stuck[0], snapshot, case).after(Link(subject=subject, says=f"is {node.state}."))
    return Finding(chain=(Link(subject=subject, says=_at_work(node, snapshot)),))


def _others_drain(node: SlurmNode, alike: tuple[SlurmNode, ...], case: Case) -> Finding:
    by, given = node.reason_by
    who, why = by or "somebody", given or "without a reason"
    since = f" since {node.reason_changed_at:%Y-%m-%d %H:%M} UTC" if node.reason_changed_at else ""
    drained = "has been drained" if since else "was drained"
    says = f"{drained} by {who}{since}: {why}. The operator never lifts a drain that is not its own."
    is_mine = bool(case.user) and is_by(case.user, node.reason)
    asked = "Find out who drained it and why" if who in _NOBODY else f"Ask {who}"
    advice = (
        "You drained it; when the reason is gone, lift the drain."
        if is_mine
        else f"{asked}; when the reason is gone, lift the drain."
    )
    nodes = compress(one.name for one in alike)
    # Without --force, undrain lifts only what the same person drained with this command.
    command = f"undrain {nodes}" if is_mine else f"undrain {nodes} --force"
    return _root(f"Slurm node {node.name}", says, advice, case.kubectl_slurm(command), case)


def _at_work(node: SlurmNode, snapshot: Snapshot) -> str:
    jobs = snapshot.jobs_on(node.name)
    return f"is {node.state}" + (f", with {jobs_text(jobs)}." if jobs else " and takes jobs.")


def _down(node: SlurmNode, pod: Pod | None, case: Case) -> Finding:
    subject = f"Slurm node {node.name}"
    said = f": {node.reason}" if node.reason else ""
    link = Link(subject=subject, says=f"is {node.state}{said}. slurmctld does not hear from its slurmd.")
    if pod is None:
        advice = "Its worker is gone. The operator removes the record when no job names it any more."
        return _root(subject, link.says, advice, case.kubectl_slurm(f"explain node/{node.name}"), case)
    deeper = why_not(pod, case)
    machine = case.picture.get(KubeNode, "", pod.spec.node_name) if pod.spec.node_name else None
    if deeper is None and machine is not None:
        deeper = lost(machine, case)
    if deeper is not None:
        return deeper.after(link)
    advice = "Its pod runs: see in the log of slurmd why slurmctld does not hear from it."
    return _root(subject, link.says, advice, case.kubectl(f"logs {pod.metadata.name} -c slurmd"), case)


def _our_drain(node: SlurmNode, snapshot: Snapshot, pod: Pod | None, case: Case) -> Finding:
    ours = OurReason.read(node.reason)
    cause, text = (ours.cause, ours.text) if ours is not None else ("", node.reason)
    jobs = snapshot.jobs_on(node.name)
    machine = pod.spec.node_name if pod is not None else ""
    link = Link(subject=f"Slurm node {node.name}", says=f"was drained by the operator: {text} ({cause}).")
    waits = Link(
        subject=f"Slurm node {node.name}",
        says=f"still has {jobs_text(jobs)}{_until(jobs, case.picture.now)}.",
    )
    budget = Link(
        subject=f"Pod {pod.metadata.name}" if pod is not None else "its pod",
        says="cannot be evicted meanwhile: a PodDisruptionBudget protects workers with jobs, until the "
        "last one has ended.",
    )
    chain = (
        (link, waits, *([budget] if cause == "NodeCordon" and pod is not None else [])) if jobs else (link,)
    )
    advice = _LIFT.get(cause, "Nothing has to be done: the worker is removed when its last job has ended.")
    commands = (f"squeue -w {node.name}",) if jobs else ()
    if cause == "NodeCordon":
        commands = (*commands, f"kubectl uncordon {machine}")
    if cause == "Unresponsive" and pod is not None:
        commands = (*commands, *look_at_slurmd(pod, case))
    return Finding(chain=chain, remedy=Remedy(advice=advice.format(machine=machine), commands=commands))


def _until(jobs: list[SlurmJob], now: datetime) -> str:
    ends = [job.deadline for job in jobs]
    known = [end for end in ends if end is not None]
    if len(known) < len(ends):
        return ", which may run forever"
    return f", until {max(known):%Y-%m-%d %H:%M} UTC at the latest" if known and max(known) > now else ""


def job(found: SlurmJob, snapshot: Snapshot, case: Case) -> Finding:
    """Why this job, which has started, is where it is."""
    subject = f"Job {found.job_id}"
    if is_stuck(found, case.picture.now):
        return job_on_node(found, snapshot, case)
    if found.state.is_suspended:
        advice = f"Whoever suspended it can resume it: scontrol resume {found.job_id}."
        return _root(
            subject, f"of {_owner(found)} is suspended.", advice, f"scontrol resume {found.job_id}", case
        )
    where = f" on {', '.join(found.own_nodes)}" if found.own_nodes else ""
    end = f", until {found.deadline:%Y-%m-%d %H:%M} UTC at the latest" if found.deadline is not None else ""
    return Finding(chain=(Link(subject=subject, says=f"of {_owner(found)} is {found.state}{where}{end}."),))


def node_in_the_way(found: SlurmJob, reason: str, snapshot: Snapshot, case: Case) -> Finding | None:
    """The node that the job insists on, if that is what it waits for."""
    if not reason.startswith(("ReqNodeNotAvail", "NodeDown")):
        return None
    for name in found.required_nodes:
        node = snapshot.nodes.get(name)
        finding = slurm_node(node, snapshot, case) if node is not None else None
        if finding is not None and not finding.is_well:
            return finding
    return None


def why_busy(found: SlurmJob, reason: str, snapshot: Snapshot) -> Iterator[Link]:
    """What stands before a job that only has to wait for its turn, or what nobody can give it."""
    nodes = [
        node for node in snapshot.nodes.values() if set(found.partition.split(",")) & set(node.partitions)
    ]
    free = sum(1 for node in nodes if node.state.is_available and node.state.is_idle)
    away = sum(1 for node in nodes if not node.state.is_available)
    if reason.startswith(("Resources", "Priority")):
        running = [one for one in snapshot.jobs_in(found.partition) if one.state.is_running]
        ends = sorted(one.deadline for one in running if one.deadline is not None)
        soonest = f" The next one ends at {ends[0]:%H:%M} UTC at the latest." if ends else ""
        ahead = sum(
            1
            for one in snapshot.jobs_in(found.partition)
            if one.state.is_pending and one.job_id != found.job_id
        )
        there = f"has {counted(len(nodes), 'node')}: {free} idle, {away} out of service"
        queue = f"{counted(len(running), 'job')} running, {ahead} more pending besides this one"
        yield Link(subject=f"Partition {found.partition}", says=f"{there}; {queue}.{soonest}")
    elif reason.startswith(("BadConstraints", "PartitionConfig", "PartitionNodeLimit")):
        largest = max((node.cpus for node in nodes), default=0)
        wants = [
            counted(found.node_count, "node") if found.node_count else "",
            counted(found.cpus, "CPU") if found.cpus else "",
        ]
        wants += [f"features {found.features}" if found.features else "", found.gres]
        yield Link(
            subject=f"Job {found.job_id}",
            says=f"asks for {', '.join(filter(None, wants))}; partition {found.partition} has "
            f"{counted(len(nodes), 'node')}, the largest with {counted(largest, 'CPU')}.",
        )


def is_stuck(found: SlurmJob, now: datetime) -> bool:
    """It should be over for a while, and something of it is still there."""
    ended = found.end_time
    return found.state.is_completing and ended is not None and now - ended > LONG_COMPLETING


def job_on_node(found: SlurmJob, snapshot: Snapshot, case: Case) -> Finding:
    """A job that does not finish completing: which node holds it."""
    holding = [
        name
        for name in found.own_nodes
        if name in snapshot.nodes and "COMPLETING" in snapshot.nodes[name].state
    ]
    names_ = holding or list(found.own_nodes)
    since = f" since {found.end_time:%H:%M} UTC" if found.end_time is not None else ""
    link = Link(subject=f"Job {found.job_id}", says=f"of {_owner(found)} has been {found.state}{since}.")
    where = Link(
        subject=f"Slurm node {names_[0]}" if names_ else "its node",
        says="still has processes of it, or an epilog that does not end: a process that waits for a disk or "
        "a network file system cannot be killed.",
    )
    advice = (
        "See which process it is, and what it waits for. The worker is not removed while Slurm counts a job "
        "there; when the process has ended, the job completes."
    )
    pod = worker_of(names_[0], case) if names_ else None
    commands = (
        [case.kubectl(f"exec {pod.metadata.name} -c slurmd -- ps -eo pid,stat,wchan:20,args")] if pod else []
    )
    return Finding(
        chain=(link, where),
        remedy=Remedy(advice=advice, commands=(*commands, f"scontrol show job {found.job_id}")),
    )


def _owner(found: SlurmJob) -> str:
    return found.user or str(found.user_id)


def _root(subject: str, says: str, advice: str, command: str, case: Case) -> Finding:
    return Finding(
        chain=(Link(subject=subject, says=says),), remedy=Remedy(advice=advice, commands=(command,))
    )


def workers_on(machine: KubeNode, case: Case) -> list[Pod]:
    pods = case.picture.all(Pod, case.namespace)
    return [pod for pod in pods if is_worker(pod) and pod.spec.node_name == machine.metadata.name]
