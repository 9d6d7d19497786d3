"""Why a job waits, which resource it lacks, and how one that is over has ended."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from math import ceil

from slurm_operator.api.edited import edited_object
from slurm_operator.api.slinky.nodeset import NodeSet
from slurm_operator.insight.explain import slurm
from slurm_operator.insight.explain.chain import Case, Finding, Link, Remedy
from slurm_operator.insight.explain.job_ids import meant, read_id, written_id
from slurm_operator.insight.slurm.unusable import is_out
from slurm_operator.insight.text.output import counted
from slurm_operator.slurm.accounting import AccountedJob
from slurm_operator.slurm.hostlist import compress
from slurm_operator.slurm.jobs.detail import JobDetail
from slurm_operator.slurm.jobs.job import SlurmJob
from slurm_operator.slurm.jobs.waiting_reasons import meaning
from slurm_operator.slurm.node import SlurmNode
from slurm_operator.slurm.snapshot import Snapshot
from slurm_operator.slurm.states import JobState
from slurm_operator.slurm.tres import MIB, TresError, gres, gres_counts, tres

_HELD = "JobHeldUser"

# How a job can end, in words.
_ENDS: Mapping[str, str] = {
    "COMPLETED": "completed",
    "CANCELLED": "was cancelled",
    "FAILED": "failed",
    "TIMEOUT": "ran into its time limit",
    "NODE_FAIL": "ended because a node failed",
    "PREEMPTED": "was preempted by another job",
    "BOOT_FAIL": "ended because its node did not boot",
    "DEADLINE": "could not finish before its deadline",
    "OUT_OF_MEMORY": "ran out of memory",
}


def found_job(name: str, case: Case) -> Finding | None:
    """What there is to say about a job, whichever way its id is written; None when nobody knows it."""
    wanted = read_id(name)
    if wanted is None:
        return None
    for key, snapshot in slurm.clusters(case):
        known = case.jobs.get(key) or tuple(JobDetail(job=job) for job in snapshot.jobs.values())
        jobs = meant(wanted, known)
        if jobs:
            whole = [] if wanted.task is not None or wanted.part is not None else _of_array(jobs)
            finding = _explained(jobs[0], snapshot, case)
            return Finding(
                chain=(*finding.chain, *whole), remedy=finding.remedy, needs_nothing=finding.needs_nothing
            )
    for key, booked in sorted(case.booked.items()):
        tasks = [job for job in booked if wanted.task is None or job.array_task_id in (None, wanted.task)]
        if key.namespace == case.namespace and tasks:
            return _booked(tasks[-1], name)
    return None


def _of_array(jobs: Sequence[JobDetail]) -> list[Link]:
    """How the others of the same array or heterogeneous job are, if there are any."""
    if len(jobs) < 2:
        return []
    states = Counter(str(one.job.state.base or one.job.state).lower() for one in jobs)
    told = ", ".join(f"{number} {state}" for state, number in states.most_common())
    first = jobs[0].job
    base = first.het_job_id or first.array_job_id or first.job_id
    return [Link(subject=f"Job {base}", says=f"has {len(jobs)} records in Slurm: {told}.")]


def _explained(found: JobDetail, snapshot: Snapshot, case: Case) -> Finding:
    job = found.job
    if job.state.is_finished:
        says = _ended(job.state, found.return_code, found.signal, job.end_time)
        where = f" It ran on {compress(job.nodes)}." if job.nodes else ""
        link = Link(subject=f"Job {written_id(found)}", says=f"of {_owner(job)} {says}{where}")
        return Finding(chain=(link,))
    if job.state.is_pending and not slurm.is_stuck(job, case.picture.now):
        return _pending(found, snapshot, case)
    return slurm.job(job, snapshot, case)


def _booked(job: AccountedJob, name: str) -> Finding:
    """From accounting, when slurmctld has forgotten the job."""
    says = _ended(job.state, job.return_code, "", job.end_time)
    where = f" It ran on {compress(job.nodes)}." if job.nodes else ""
    source = "That is what accounting says; slurmctld has forgotten the job."
    told = f"of {job.user or 'somebody'} {says}{where} {source}"
    return Finding(chain=(Link(subject=f"Job {name}", says=told),))


def _ended(state: JobState, code: int | None, signal: str, at: datetime | None) -> str:
    how = _ENDS.get(state.base or "", f"is {state}")
    when = f" at {at:%Y-%m-%d %H:%M:%S} UTC" if at is not None else ""
    by = f", by signal {signal}" if signal else f", with exit code {code}" if code else ""
    return f"{how}{when}{by}."


def _pending(found: JobDetail, snapshot: Snapshot, case: Case) -> Finding:
    job, reason = found.job, found.job.state_reason or "None"
    known = meaning(reason)
    if job.is_held and (known is None or known.waits):  # An older reason, which Slurm has not renewed.
        reason, known = _HELD, meaning(_HELD)
    nodes = [node for node in snapshot.nodes.values() if set(job.partition.split(",")) & set(node.partitions)]
    short = _short(found, reason, nodes)
    link = Link(subject=f"Job {written_id(found)}", says=_waits(found, reason, short))
    if not nodes:
        return _without_workers(link, found, case)
    deeper = slurm.node_in_the_way(job, reason, snapshot, case)
    if deeper is not None:
        return Finding(chain=(link, *deeper.chain), remedy=deeper.remedy, needs_nothing=True)
    causes = (*_lacks(found, short, nodes), *slurm.why_busy(job, reason, snapshot))
    return Finding(chain=(link, *causes), remedy=_advice(job, reason), needs_nothing=True)


def _waits(found: JobDetail, reason: str, short: Sequence[str]) -> str:
    job, known = found.job, meaning(reason)
    since = found.eligible_since or job.submit_time
    when = f" since {since:%Y-%m-%d %H:%M} UTC" if since is not None else ""
    what = f"{known.says} ({reason})" if known is not None else reason
    if reason.startswith("Resources") and short:
        what = f"it is the next one in line, and no node has enough free {_listed(short)} ({reason})"
    if reason == "None":
        what = "the scheduler has not looked at it yet"
    guess = found.expected_start
    start = f" Slurm expects to start it at {guess:%Y-%m-%d %H:%M} UTC." if guess is not None else ""
    return f"of {_owner(job)} waits in partition {job.partition}{when}: {what}.{start}"


def _advice(job: SlurmJob, reason: str) -> Remedy:
    known = meaning(reason)
    if known is None:
        return Remedy(advice="Slurm's manual of squeue has its reasons.", commands=(_shown(job),))
    turn = "Nothing is wrong. " if known.waits else ""
    advice = turn + known.advice.replace("JOB", job.address)
    release = f"scontrol release {job.address}"
    if job.is_held and release not in advice:  # As it does with one that cannot run.
        advice = f"{advice} Slurm holds it meanwhile: release it afterwards."
        return Remedy(advice=advice, commands=(_shown(job), release))
    return Remedy(advice=advice, commands=(release if release in advice else _shown(job),))


def _shown(job: SlurmJob) -> str:
    return f"scontrol show job {job.address}"


def _without_workers(link: Link, found: JobDetail, case: Case) -> Finding:
    """No node is in its partition: which NodeSet could have workers, and how to get one."""
    job = found.job
    sets = [one for one in case.picture.all(NodeSet, case.namespace) if not one.metadata.is_terminating]
    empty = [one for one in sets if not one.status.registered_replicas]
    if not empty:
        says = "has no node that Slurm knows."
        where = Link(subject=f"Partition {job.partition}", says=says)
        remedy = Remedy(advice="See which nodes there are.", commands=("sinfo -N -l",))
        return Finding(chain=(link, where), remedy=remedy, needs_nothing=True)
    chosen = next((one for one in empty if job.partition in (one.slurm_name, one.metadata.name)), empty[0])
    name, wanted = chosen.metadata.name, max(1, job.node_count)
    where = Link(
        subject=f"Partition {job.partition}",
        says=f"has no node: NodeSet {name} has {chosen.status.registered_replicas} workers in Slurm.",
    )
    edited = edited_object(chosen)
    advice = f"Give NodeSet {name} at least {wanted} worker{'s' if wanted > 1 else ''}; the job then starts."
    command = f"scale nodesets.slinky.slurm.net {name} --replicas={wanted}"
    if edited is not None:
        advice = f"{advice} Set replicas in {edited.where}; where it has no replicas, scale the NodeSet."
        command = f"edit {edited.kind.lower()} {edited.name}"
    commands = (case.kubectl(command), case.kubectl_slurm(f"explain nodeset/{name}"))
    return Finding(chain=(link, where), remedy=Remedy(advice=advice, commands=commands), needs_nothing=True)


def _short(found: JobDetail, reason: str, nodes: Sequence[SlurmNode]) -> list[str]:
    """The resources that too few of the nodes have free which take jobs."""
    if not reason.startswith(("Resources", "Priority", "None")):
        return []
    count, free = max(1, found.job.node_count), [_free(node) for node in nodes if not is_out(node)]
    return [
        name
        for name, need in _needs(found).items()
        if sum(1 for one in free if one.get(name, 0) >= need) < count
    ]


def _lacks(found: JobDetail, short: Sequence[str], nodes: Sequence[SlurmNode]) -> Iterator[Link]:
    """How much it needs of what is short, and how much there is."""
    count, needs = max(1, found.job.node_count), _needs(found)
    usable = [_free(node) for node in nodes if not is_out(node)]
    each = "" if count == 1 else f" on each of {count} nodes"
    for name in short:
        most = max((one.get(name, 0) for one in usable), default=0)
        there = f"of {counted(len(usable), 'node')} that can take jobs, the one with the most has"
        says = f"needs {_amount(name, needs[name])}{each}; {there} {_amount(name, most)} free."
        yield Link(subject=f"Job {written_id(found)}", says=says)


def _listed(names: Sequence[str]) -> str:
    words = {"cpu": "CPUs", "mem": "memory"}
    return " and ".join(words.get(name, name.removeprefix("gres/")) for name in names)


def _needs(found: JobDetail) -> dict[str, int]:
    """What it asks for on each node."""
    try:
        asked = tres(found.requested)
    except TresError:
        return {}
    count = max(1, found.job.node_count)
    names = [name for name in asked if name in ("cpu", "mem") or _is_plain_gres(name)]
    return {name: ceil(asked[name] / count) for name in names if asked[name]}


def _is_plain_gres(name: str) -> bool:
    """`gres/gpu`, without its type: that one counts them all."""
    return name.startswith("gres/") and ":" not in name


def _free(node: SlurmNode) -> dict[str, int]:
    free = {
        "cpu": (node.effective_cpus or node.cpus) - node.allocated_cpus,
        "mem": (node.real_memory_mb - node.allocated_memory_mb) * MIB,
    }
    try:
        has, used = gres_counts(gres(node.gres)), gres_counts(gres(node.gres_used))
    except TresError:
        return free
    return free | {f"gres/{name}": number - used.get(name, 0) for name, number in has.items()}


def _amount(name: str, amount: int) -> str:
    if name == "mem":
        return f"{amount / 1024**3:.1f} GiB of memory" if amount else "no memory"
    what = "CPU" if name == "cpu" else name.removeprefix("gres/")
    number = "no" if amount <= 0 else str(amount)
    return f"{number} {what}{'' if amount == 1 else 's'}"


def _owner(job: SlurmJob) -> str:
    return job.user or str(job.user_id)
