"""Whether the Slurm clusters of a namespace have what they need, and nothing that kills their jobs."""

import re
from collections.abc import Iterator

from slurm_operator.api.shared import names
from slurm_operator.api.shared.conditions import DEGRADED, READY, Truth
from slurm_operator.api.slinky.accounting import Accounting
from slurm_operator.insight.doctor.facts import Facts, Serving
from slurm_operator.insight.doctor.finding import Finding, fail, listed, note, ok, unread, warn
from slurm_operator.insight.explain.pods import is_worker
from slurm_operator.insight.older_pods import less_confined
from slurm_operator.manifests.objects import Unread
from slurm_operator.manifests.pod_troubles import troubles
from slurm_operator.reconcilers.nodeset.report.killing_probes import has_liveness_probe
from slurm_operator.slurm.conf.lines import parse

_SHOWN = 4

# What cgroup.conf has to say before a job cannot use the memory, cores and devices of others.
_CONSTRAINTS = ("ConstrainRAMSpace", "ConstrainCores", "ConstrainDevices")


def databases(facts: Facts) -> Iterator[Finding]:
    if isinstance(facts.accountings, Unread):
        yield unread("Database", facts.accountings)
        return
    for accounting in facts.accountings:
        yield _database(accounting, facts.databases.get(accounting.metadata.name))


def _database(accounting: Accounting, serving: Serving | Unread | None) -> Finding:
    """What the Service of the database tells, then what slurmdbd's own check has told."""
    name, status = accounting.metadata.name, accounting.status
    told = {one.type: one for one in status.conditions if one.status is Truth.TRUE}
    if isinstance(serving, Serving) and serving.ready == 0:
        return fail(
            "Database",
            f"Accounting {name}: nothing is ready behind Service {serving.namespace}/{serving.name}.",
            f"See `kubectl get pods -n {serving.namespace}`; slurmdbd starts when it answers.",
        )
    if DEGRADED in told:
        return fail(
            "Database",
            f"Accounting {name}: {told[DEGRADED].message}",
            f"`kubectl slurm explain accounting/{name}` says more.",
        )
    if READY in told:
        where = status.database.address if status.database is not None else status.endpoint
        return ok("Database", f"Accounting {name} works{f' with {where}' if where else ''}.")
    return note(
        "Database",
        f"Accounting {name} is not ready yet.",
        f"`kubectl slurm explain accounting/{name}` says what it waits for.",
    )


def enforcement(facts: Facts) -> Iterator[Finding]:
    """Controllers whose jobs may use more than they asked for."""
    if isinstance(facts.cgroup_files, Unread):
        return
    for name, text in sorted(facts.cgroup_files.items()):
        said = {
            pair.key.lower(): pair.value.lower() for one in parse(text, "").settings for pair in one.pairs
        }
        if not text or said.get("cgroupplugin") == "disabled":
            continue  # Then the pod is what holds them, as its isolation says.
        free = [key for key in _CONSTRAINTS if said.get(key.lower()) != "yes"]
        if free:
            yield note(
                "Isolation",
                f"Controller {name} lets jobs use more than they asked for: {listed(free)} are off.",
                "Bring a cgroup.conf with them (configFileRefs), or use a Cluster with isolation: cgroup.",
            )


def images(facts: Facts) -> Iterator[Finding]:
    if isinstance(facts.pods, Unread):
        yield unread("Images", facts.pods)
        return
    found = [text for text in troubles(facts.pods) if re.search(r"Image|image", text)]
    for text in found[:_SHOWN]:
        yield fail(
            "Images",
            f"{text[0].upper()}{text[1:]}",
            "Correct the image's name, or give the nodes access to its registry (imagePullSecrets).",
        )
    if not found and facts.pods:
        yield ok("Images", f"Those of all {len(facts.pods)} pods could be had.")


def overrides(facts: Facts) -> Iterator[Finding]:
    """Workers that somebody allowed to be deleted, and that are still there."""
    if isinstance(facts.pods, Unread):
        return
    found = sorted(
        pod.metadata.name
        for pod in facts.pods
        if is_worker(pod)
        and pod.metadata.annotations.get(names.ALLOW_DELETION) == "true"
        and pod.metadata.deletion_timestamp is None
    )
    if found:
        yield warn(
            "Overrides",
            f"{listed(found)} may be deleted with running jobs: annotated with {names.ALLOW_DELETION}=true.",
            "If nobody is about to delete them, take the annotation off: "
            f"`kubectl annotate pod -n {facts.namespace} {' '.join(found)} {names.ALLOW_DELETION}-`.",
        )


def forced(facts: Facts) -> Iterator[Finding]:
    """Objects whose deletion somebody forced, or was about to, and that are still there."""
    if isinstance(facts.forced, Unread):
        yield unread("Forced deletions", facts.forced)
    elif facts.forced:
        yield warn(
            "Forced deletions",
            f"{listed(facts.forced)}: deleting it does not wait for jobs, or for what depends on it. It is "
            f"annotated with {names.FORCE_DELETION}=true.",
            "If nobody is about to delete it, take the annotation off: "
            f"`kubectl annotate -n {facts.namespace} {facts.forced[0]} {names.FORCE_DELETION}-`.",
        )


def confinement(facts: Facts) -> Iterator[Finding]:
    """Pods keep the limits that they were made with; each kind of pod has a gentle way to be made again."""
    if isinstance(facts.pods, Unread):
        return
    found = less_confined(facts.pods)
    if not found:
        return
    workers = [pod.metadata.name for pod in found if is_worker(pod)]
    others = [pod for pod in found if not is_worker(pod)]
    ways = []
    if workers:
        ways.append(
            f"A worker is replaced when its jobs are done: `kubectl annotate pod -n {facts.namespace} "
            f"{workers[0]} {names.POD_REPLACE}=true`."
        )
    if others:
        ways.append(
            "Other daemons are made again, as carefully as after any change, when an annotation in "
            "spec.template.metadata of their object changes; of a part of a cluster, in the cluster. For "
            "MariaDB it is spec.managed.template. Sessions in login pods end."
        )
    yield note(
        "Confinement",
        f"{len(found)} of {len(facts.pods)} pods are as an earlier version made them, which confined daemons "
        f"less: {listed([pod.metadata.name for pod in found])}. They go on like that.",
        " ".join(ways),
    )


def probes(facts: Facts) -> Iterator[Finding]:
    """Pods keep the probes that they were made with, also when the operator makes new ones without."""
    if isinstance(facts.pods, Unread):
        return
    workers = [pod for pod in facts.pods if is_worker(pod)]
    found = sorted(pod.metadata.name for pod in workers if has_liveness_probe(pod))
    if found:
        yield warn(
            "Liveness probes",
            f"{len(found)} of {len(workers)} workers have one: {listed(found)}. If slurmd does not answer "
            "it, the kubelet kills slurmd and every job there.",
            "Take livenessProbe out of the NodeSet, if it is there. Then replace each of these when its jobs "
            f"are done: `kubectl annotate pod -n {facts.namespace} {found[0]} {names.POD_REPLACE}=true`.",
        )
    elif workers:
        yield ok("Liveness probes", f"None of {len(workers)} workers has one.")
