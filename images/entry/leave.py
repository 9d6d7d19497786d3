"""Runs before a worker pod ends: takes no new jobs, tells owners of running ones, waits for them to be over.

The pod's grace period is the limit. A drain that is there already keeps its reason, whoever set it, and so
does a node that is down.
"""

import time
from contextlib import suppress

from .slurmctld import NodeRecord, Unreachable, command, node_record, unfinished_jobs
from .steps import steps_here, work_here
from .watch import LEAVING

_POLL_S = 2.0
_SILENCE_S = 30.0


def leave(name: str, pod_uid: str) -> int:
    """Comes back when no job, nor the epilog of one, is left on this worker."""
    with suppress(OSError):  # On a full disk it is more important to wait for the jobs.
        LEAVING.touch()
    told: set[str] = set()
    heard = time.monotonic()
    while True:
        is_drained = _drain(name, pod_uid)
        jobs = unfinished_jobs(name)
        here = steps_here()
        if isinstance(jobs, Unreachable):
            # Nobody can send a job now, and what runs in this container is the only witness left.
            if not work_here() and time.monotonic() - heard > _SILENCE_S:
                return 0
        else:
            heard = time.monotonic()
            told |= _tell(set(jobs) - told, name)
            if is_drained and not jobs and not here and not _cleans_up(name):
                return 0
        time.sleep(_POLL_S)


def drain_reason(pod_uid: str) -> str:
    pod = f" (pod {pod_uid})" if pod_uid else ""
    return f"slurm-operator: PodTerminating: the pod is asked to end{pod}"


def _drain(name: str, pod_uid: str) -> bool:
    """Whether no new job can start here from now on."""
    record = node_record(name)
    if not isinstance(record, NodeRecord):
        return False
    if not takes_jobs(record):
        return True
    done = command("scontrol", "update", f"nodename={name}", "state=drain", f"reason={drain_reason(pod_uid)}")
    return done is not None and done.returncode == 0


def takes_jobs(record: NodeRecord) -> bool:
    """Whether a job may start there, unless it is drained. On one that is DOWN none does, and it keeps its
    reason: a human may have said so, and with a drain of ours the next worker would lift both.
    """
    is_down = any(word.startswith("DOWN") for word in record.states)  # DOWN* is one that does not answer.
    return record.known and not is_down and "DRAIN" not in record.states


def _cleans_up(name: str) -> bool:
    """Whether an epilog may still run: a node can be busy with it for longer than its job is in the list."""
    record = node_record(name)
    return not isinstance(record, NodeRecord) or "COMPLETING" in record.states


def _tell(jobs: set[str], name: str) -> set[str]:
    message = (
        f"{name} is leaving the cluster; it waits for this job as long as it may. Please finish or requeue."
    )
    for job in sorted(jobs):
        command("scontrol", "notify", job, message)
    return jobs
