"""A namespace that is being deleted: slurmctld ends at once, workers end with their jobs or their grace."""

from slurm_operator.api.shared import names
from slurm_operator.api.slinky.controller import Controller
from slurm_operator.insight.explain.chain import Case, Finding, Link, Remedy
from slurm_operator.insight.explain.pods import is_worker
from slurm_operator.manifests.objects import Pod
from slurm_operator.manifests.platform import Namespace

_SHOWN = 5


def ending(case: Case, pods: tuple[Pod, ...] = ()) -> Finding | None:
    """That the namespace is being deleted, and when its workers end, or just these; None when it stays."""
    namespace = case.picture.get(Namespace, "", case.namespace)
    if namespace is None or not namespace.metadata.is_terminating:
        return None
    since = namespace.metadata.deletion_timestamp
    asked = f" since {since:%Y-%m-%d %H:%M:%S} UTC" if since is not None else " for a while"
    says = f"has been terminating{asked}. That cannot be undone."
    workers = [pod for pod in pods or case.picture.all(Pod, case.namespace) if is_worker(pod)]
    links = [Link(subject=f"Pod {pod.metadata.name}", says=when(pod)) for pod in workers[:_SHOWN]]
    if len(workers) > _SHOWN:
        links.append(Link(subject=f"{len(workers) - _SHOWN} more workers", says="end in the same way."))
    chain = (Link(subject=f"Namespace {case.namespace}", says=says), *links)
    return Finding(chain=chain, remedy=_remedy(case, has_workers=bool(workers)))


def when(pod: Pod) -> str:
    """When a worker in such a namespace ends."""
    latest = pod.metadata.deletion_timestamp
    if latest is not None:
        return f"ends when its jobs are done, and at {latest:%Y-%m-%d %H:%M:%S} UTC at the latest."
    if names.LABEL_POD_PROTECT in pod.metadata.labels:
        return "is kept as long as a job may run there; the namespace waits for it."
    return "is about to be asked to end; it then waits for its jobs, for as long as its grace period."


def _remedy(case: Case, *, has_workers: bool) -> Remedy:
    show = f"kubectl get namespace {case.namespace} -o jsonpath='{{.status.conditions}}'"
    if not has_workers:
        return Remedy(advice="No worker is left; see what else Kubernetes waits for.", commands=(show,))
    listed = case.kubectl("get pods -l app.kubernetes.io/name=slurmd")
    advice = "Save the results of running jobs to a place outside this namespace before their workers end."
    external = [one for one in case.picture.all(Controller, case.namespace) if one.spec.external]
    if not external:
        return Remedy(advice=advice, commands=(listed, show))
    release = case.kubectl(f"annotate controller {external[0].metadata.name} {names.FORCE_DELETION}=true")
    advice += (
        " slurmctld is elsewhere and goes on; the last command lets each worker end after its own jobs, "
        "within its grace period."
    )
    return Remedy(advice=advice, commands=(listed, show, release))
