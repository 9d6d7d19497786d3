"""Which jobs a change of configuration would cost. While it would, it waits."""

from collections.abc import Iterable, Iterator
from datetime import datetime

from slurm_operator.listing import first_few
from slurm_operator.reconcilers.controller.configuration.config_state import good, needs_restart
from slurm_operator.reconcilers.controller.configuration.files import Files
from slurm_operator.reconcilers.controller.configuration.held_sizes import GIVEN_TO_JOBS
from slurm_operator.reconcilers.controller.observe import Seen
from slurm_operator.safety.gate import PROOF_LIFETIME
from slurm_operator.slurm.conf.changes import changes
from slurm_operator.slurm.conf.grammar import TABLES
from slurm_operator.slurm.conf.includes import load
from slurm_operator.slurm.conf.inventory import SLURM_CONF, partition_names
from slurm_operator.slurm.hostlist import expand
from slurm_operator.slurm.jobs.job import SlurmJob
from slurm_operator.slurm.snapshot import Snapshot

JOBS_TOLD = 5

# Changes of these cost only the jobs of what is no longer there.
_BY_NAME = {"PartitionName", "NodeName"}


def jobs_at_stake(seen: Seen, old: Files, new: Files, now: datetime) -> str:
    """Which jobs would be lost if slurmctld took `new` for `old` now; empty when none would."""
    return next(_stakes(seen, old, new, now), "")


def jobs_left_out(seen: Seen, files: Files, now: datetime) -> str:
    """The same when slurmctld runs with files that nobody kept: only its jobs tell what stands in them."""
    return next(_left_out(seen, files, now), "")


def is_persistent(seen: Seen) -> bool:
    """Whether slurmctld knows its jobs again after a restart."""
    return seen.controller.spec.persistence.enabled


def unfinished(seen: Seen, now: datetime) -> str:
    """Why a slurmctld that forgets its jobs must not be restarted now; empty when there are none."""
    jobs = _jobs(seen, now)
    if isinstance(jobs, str):
        return jobs
    return f"unfinished jobs: {job_ids_text(jobs)}" if jobs else ""


def started(seen: Seen, now: datetime) -> str:
    """Why nothing may happen now that costs running steps; empty when no job has any.

    A job that waits in the queue has nothing to lose, and may wait for this very change.
    """
    jobs = _jobs(seen, now)
    if isinstance(jobs, str):
        return jobs
    begun = [job for job in jobs if job.state.holds_node]
    return f"jobs that have started: {job_ids_text(begun)}" if begun else ""


def _jobs(seen: Seen, now: datetime) -> list[SlurmJob] | str:
    """All jobs that slurmctld knows and that are not over, or why nobody can tell."""
    if not may_have_jobs(seen):
        return []
    if trouble := unseen(seen, now):
        return f"whether jobs are left {trouble}"
    assert isinstance(seen.slurm, Snapshot)
    return list(seen.slurm.jobs.values())


def leaves_out(old: Files, new: Files) -> list[str]:
    """Which NodeSets and partitions of `old` are not in `new`."""
    return sorted((_partitions(old) | _nodesets(old)) - _partitions(new) - _nodesets(new))


def unseen(seen: Seen, now: datetime) -> str:
    """Why nobody can tell which jobs there are now: a job may have started since Slurm was last read.

    Whoever asks for a change expects it to heed the jobs that ran by then, however fast the rehearsal is.
    """
    if not isinstance(seen.slurm, Snapshot):
        return f"cannot be seen: {seen.slurm.why}"
    age_s = max(0.0, (now - seen.slurm.asked_at).total_seconds())  # The clock may have been set back.
    return f"was last seen {age_s:.0f} s ago; Slurm is read again" if is_old(seen, now) else ""


def is_old(seen: Seen, now: datetime) -> bool:
    """What was read of Slurm, if anything, is from before this moment or the one in which a change began."""
    if not isinstance(seen.slurm, Snapshot):
        return True
    begun = [one.metadata.creation_timestamp for one in seen.rehearsals]
    is_older = any(moment is not None and seen.slurm.asked_at < moment for moment in begun)
    return is_older or not seen.slurm.is_fresh(now, PROOF_LIFETIME)


def may_have_jobs(seen: Seen) -> bool:
    """slurmctld has worked at some time, so there may be jobs that it knows.

    Workers that were taken over may have jobs of a slurmctld that another operator ran.
    """
    return good(seen) is not None or bool(seen.ready_pods) or is_first_of_taken_over(seen)


def is_first_of_taken_over(seen: Seen) -> bool:
    """Workers were taken over, and no slurmctld of ours has worked yet."""
    return seen.has_taken_over_workers and good(seen) is None


def job_ids_text(jobs: Iterable[SlurmJob]) -> str:
    return first_few(sorted(job.job_id for job in jobs), JOBS_TOLD)


def _stakes(seen: Seen, old: Files, new: Files, now: datetime) -> Iterator[str]:
    if not may_have_jobs(seen):
        return
    for partition in sorted(_partitions(old) - _partitions(new)):
        if trouble := _jobs_of(seen, now, f"partition {partition}", partition=partition):
            yield f"Without partition {partition} its jobs would end at once; {trouble}."
    for node in sorted(_nodes(old) - _nodes(new)):
        if trouble := _jobs_of(seen, now, f"node {node}", node=node):
            yield f"Without node {node} its jobs would end; {trouble}."
    for node in _reshaped(old, new):
        if trouble := _jobs_of(seen, now, f"node {node}", held_by=node):
            yield f"If the CPUs or GRES of node {node} change, slurmctld ends its jobs; {trouble}."
    # slurmctld of another operator had its volume elsewhere. It is the same volume, with the same jobs.
    elsewhere = {"StateSaveLocation"} if is_first_of_taken_over(seen) else set()
    for change in changes(old.texts, new.texts, TABLES):
        if change.rule.jobs and change.key not in _BY_NAME | elsewhere:
            at_risk = unfinished if change.rule.loses_queue else started
            if trouble := at_risk(seen, now):
                yield f"If {change.key} changes, {change.rule.jobs}; {trouble}."
    if not is_persistent(seen):
        for change in needs_restart(seen, old, new):
            if trouble := unfinished(seen, now):
                yield (
                    f"{change.key} needs a restart, and a slurmctld without persistence forgets its jobs; "
                    f"{trouble}."
                )


def _left_out(seen: Seen, files: Files, now: datetime) -> Iterator[str]:
    jobs = seen.slurm.jobs.values() if isinstance(seen.slurm, Snapshot) else ()
    named = {name for job in jobs for name in job.partition.split(",") if name}
    for partition in sorted(named - _partitions(files)):
        if trouble := _jobs_of(seen, now, f"partition {partition}", partition=partition):
            yield f"Without partition {partition} its jobs would end at once; {trouble}."


def _jobs_of(
    seen: Seen, now: datetime, what: str, *, partition: str = "", node: str = "", held_by: str = ""
) -> str:
    if trouble := unseen(seen, now):
        return f"whether jobs name {what} {trouble}"
    assert isinstance(seen.slurm, Snapshot)
    if held_by:
        jobs = seen.slurm.jobs_on(held_by)
    else:
        jobs = seen.slurm.jobs_in(partition) if partition else seen.slurm.jobs_naming(node)
    return f"unfinished jobs: {job_ids_text(jobs)}" if jobs else ""


def _partitions(files: Files) -> set[str]:
    return partition_names(files.texts)


def _nodesets(files: Files) -> set[str]:
    return {line.value for line in load(files.texts, SLURM_CONF).all("NodeSet")}


def _nodes(files: Files) -> set[str]:
    lines = load(files.texts, SLURM_CONF).all("NodeName")
    return {name for line in lines for name in _expanded(line.value)} - {"DEFAULT"}


def _reshaped(old: Files, new: Files) -> list[str]:
    """Nodes of both whose lines differ in what jobs are given of them.

    Seen on 26.05.5: jobs are killed and requeued when the CPUs of their node change, or a GRES they hold.
    """
    before, after = _shapes(old), _shapes(new)
    return sorted(name for name, shape in after.items() if before.get(name, shape) != shape)


def _shapes(files: Files) -> dict[str, list[str]]:
    """What jobs are given of each node.

    A line for DEFAULT counts for the lines after it that do not say otherwise: slurm.conf(5).
    """
    usual = dict.fromkeys(GIVEN_TO_JOBS, "")
    found: dict[str, list[str]] = {}
    for line in load(files.texts, SLURM_CONF).all("NodeName"):
        said = {key: value for key in GIVEN_TO_JOBS if (value := line.option(key)) is not None}
        if line.value.upper() == "DEFAULT":
            usual |= said
        else:
            shape = [*{**usual, **said}.values()]
            found |= dict.fromkeys(_expanded(line.value), shape)
    return found


def _expanded(hostlist: str) -> list[str]:
    try:
        return expand(hostlist)
    except ValueError:
        return [hostlist]  # Files of somebody else may have what Slurm itself would not take.
