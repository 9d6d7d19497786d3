"""The commands that move clusters over, in the order that loses no job."""

from collections.abc import Iterable, Iterator
from typing import Final

from slurm_operator.api.nebius import names
from slurm_operator.insight.doctor.finding import Finding, note
from slurm_operator.insight.doctor.soperator.chosen import (
    clusters,
    deployments_of,
    replicas,
    stateful_sets,
    things,
    why_not_taken_over,
)
from slurm_operator.insight.doctor.soperator.facts import Found
from slurm_operator.manifests.meta import Manifest
from slurm_operator.manifests.objects import Unread

GUIDE: Final = "docs/guides/from-soperator.md"

# States in which a job has something to lose; pending ones are kept with slurmctld's volume.
RUNNING: Final = "running,suspended,completing,configuring,stopped,signaling,stage_out"


def steps(found: Found) -> Iterator[Finding]:
    """The way that is safe here."""
    there = clusters(found)
    if not there:
        return
    yield note(
        "Order", "Jobs go on until StatefulSets of workers are deleted with their pods.", f"See {GUIDE}."
    )
    for number, step in enumerate(_commands(found, there), start=1):
        yield note("Order", f"Step {number}", step)


def _commands(found: Found, there: Iterable[Manifest]) -> Iterator[str]:
    yield "`slurm-operator crds | kubectl apply --server-side --force-conflicts -f -`"
    for one in things(found.programs):
        if replicas(one):
            meta = one["metadata"]
            yield f"`kubectl -n {meta['namespace']} scale deployment/{meta['name']} --replicas=0`"
    hooks = () if isinstance(found.hooks, Unread) else found.hooks
    for hook in hooks:
        if not hook.is_ours:
            yield hook.deletion
    yield (
        "`helm upgrade --install slurm-operator charts/slurm-operator -n slurm-operator --create-namespace "
        "--set apis.nebius=true`"
    )
    for cluster in there:
        yield from _handover(found, cluster)


def _handover(found: Found, cluster: Manifest) -> Iterator[str]:
    meta = cluster["metadata"]
    namespace, name = meta["namespace"], meta["name"]
    workloads, plain = stateful_sets(found, cluster), deployments_of(found, cluster)
    if not workloads and not plain:
        return
    # Older releases gave workloads no name of the cluster.
    prefixed = names.controller(name)
    is_old = prefixed not in workloads and "controller" in workloads
    workload = "controller" if is_old else prefixed
    if not why_not_taken_over(found, cluster):
        yield from _with_jobs(cluster, workload, workloads, plain)
        yield (
            f"Or without taking workers of {name} over, in place of the steps that begin with `kubectl -n "
            f"{namespace} annotate`: let running jobs end first, as follows"
        )
    inside = f"kubectl -n {namespace} exec {workload}-0 -c slurmctld --"
    yield (
        f"No new job starts: `for p in $({inside} sinfo -h -o %R | sort -u); do {inside} scontrol update "
        "partitionname=$p state=down; done`"
    )
    yield f"Wait until this prints nothing: `{inside} squeue -h -t {RUNNING}`"
    if workloads:
        yield (
            f"Delete what makes pods: `kubectl -n {namespace} delete statefulsets.apps.kruise.io "
            f"{' '.join(workloads)}`"
        )
    if plain:
        yield f"`kubectl -n {namespace} delete deployment {' '.join(plain)}`"
    yield _is_ready(cluster)


def _with_jobs(cluster: Manifest, slurmctld: str, workloads: list[str], plain: list[str]) -> Iterator[str]:
    """Workers change hands with the jobs in them; slurmctld restarts once, at its own step."""
    namespace, name = cluster["metadata"]["namespace"], cluster["metadata"]["name"]
    login = [one for one in workloads if one in (names.login(name), "login")]
    kruise = f"kubectl -n {namespace} delete statefulsets.apps.kruise.io"
    yield (
        f"Workers are taken over with the jobs in them: `kubectl -n {namespace} annotate "
        f"slurmclusters.slurm.nebius.ai {name} {names.TAKE_OVER}=true`"
    )
    yield (
        f"Wait until this says that the workers are taken over: `kubectl -n {namespace} get "
        f"slurmclusters.slurm.nebius.ai {name} -o "
        """jsonpath='{.status.conditions[?(@.type=="Ready")].message}'`"""
    )
    if plain:
        yield f"`kubectl -n {namespace} delete deployment {' '.join(plain)}`"
    yield f"slurmctld restarts once, running jobs go on: `{kruise} {slurmctld}`"
    if login:
        yield f"When nobody is logged in: `{kruise} {' '.join(login)}`"
    yield _is_ready(cluster)


def _is_ready(cluster: Manifest) -> str:
    namespace, name = cluster["metadata"]["namespace"], cluster["metadata"]["name"]
    there = f"slurmclusters.slurm.nebius.ai/{name}"
    return f"`kubectl -n {namespace} wait --for=condition=Ready {there} --timeout=15m`"
