"""Probes with which a kubelet kills slurmd, and every job with it: which workers have one, and why."""

from collections.abc import Sequence

from slurm_operator.api.shared.probes import DEADLY, HANDLERS
from slurm_operator.conditions import Reason
from slurm_operator.listing import first_few
from slurm_operator.manifests.meta import Manifest
from slurm_operator.manifests.objects import Pod
from slurm_operator.plan.conditions import Condition, true
from slurm_operator.reconcilers.nodeset.observe import Seen
from slurm_operator.reconcilers.nodeset.workers import Worker
from slurm_operator.safety.gate import SLURMD

# The condition that says so. It is there while it is true.
JOBS_AT_RISK = "JobsAtRisk"

# How many workers a message names.
MOST_NAMED = 5


def without_empty(pod_spec: Manifest) -> Manifest:
    """A probe of the user's that only adjusts one of ours has nothing to ask, now that ours is gone.

    The API server would refuse the pod for it.
    """
    containers = [
        {key: value for key, value in one.items() if not _is_empty_probe(one, key)}
        if one.get("name") == SLURMD
        else one
        for one in pod_spec.get("containers") or ()
    ]
    return {**pod_spec, "containers": containers}


def _is_empty_probe(container: Manifest, key: str) -> bool:
    return key in DEADLY and HANDLERS.isdisjoint(container[key] or {})


def at_risk(workers: Sequence[Worker]) -> list[Worker]:
    """Workers whose slurmd has a liveness probe: made by an earlier operator, or because the spec says so."""
    return [worker for worker in workers if has_liveness_probe(worker.pod) and not worker.pod.has_ended]


def has_liveness_probe(pod: Pod) -> bool:
    return any(one.name == SLURMD and one.liveness_probe is not None for one in pod.spec.containers)


def condition(seen: Seen) -> Condition | None:
    found = at_risk(seen.workers)
    if not found:
        return None
    names_ = first_few(sorted(worker.name for worker in found), MOST_NAMED)
    message = (
        f"{len(found)} of {len(seen.workers)} workers have a liveness probe: {names_}. If slurmd does "
        "not answer it, the kubelet kills slurmd and every job there. "
    )
    return true(JOBS_AT_RISK, Reason.LIVENESS_PROBE, message + _way_out(seen))


def _way_out(seen: Seen) -> str:
    nodeset = seen.nodeset
    wanted = [problem.path for problem in nodeset.spec.probe_problems() if "livenessProbe" in problem.path]
    if wanted:
        return f"Remove spec.{wanted[0]}; the workers are then replaced, each when its jobs are done."
    return (
        "New workers have none. To replace these, each when its jobs are done: "
        f"kubectl annotate pod -n {nodeset.metadata.namespace} NAME nodeset.slinky.slurm.net/replace=true"
    )
