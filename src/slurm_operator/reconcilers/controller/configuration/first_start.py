"""Whether slurmctld has ever run, as far as its files are concerned.

Before it has, they are tried out in its own pod (`daemon.trial`), and its StatefulSet waits for nothing.
Every later change of them is rehearsed in a pod of its own.
"""

from slurm_operator.manifests.objects import Pod
from slurm_operator.reconcilers.controller.configuration import config_state
from slurm_operator.reconcilers.controller.daemon import trial
from slurm_operator.reconcilers.controller.observe import Seen


def is_next(seen: Seen) -> bool:
    """Nothing is there yet that could read the files, and no state for which they would not be tried out."""
    is_new = seen.workload is None and not seen.pods and not seen.may_have_state
    return is_new and config_state.config_child(seen) is None and config_state.good(seen) is None


def refusals(seen: Seen) -> dict[str, tuple[str, str]]:
    """By pod: the digest of the files that slurmctld refused before its first start, and its words."""
    found = {pod.metadata.name: trial.refused(pod) for pod in seen.pods if not _has_started(pod)}
    return {name: refused for name, refused in found.items() if refused is not None}


def has_been_refused(seen: Seen) -> bool:
    """Whether no slurmctld of this Controller ever started, because of its files."""
    is_known = config_state.good(seen) is not None or any(map(_has_started, seen.pods))
    return not is_known and bool(refusals(seen))


def outdated(seen: Seen) -> list[Pod]:
    """Pods that refused other files than those that are mounted now. Left alone they try again ever later."""
    files, found = config_state.held(seen), refusals(seen)
    if files is None or not has_been_refused(seen):
        return []
    return [
        pod
        for pod in seen.pods
        if pod.metadata.name in found
        and found[pod.metadata.name][0] != files.digest
        and not pod.metadata.is_terminating
    ]


def _has_started(pod: Pod) -> bool:
    status = config_state.slurmctld_of(pod)
    return status is not None and status.has_ever_started
