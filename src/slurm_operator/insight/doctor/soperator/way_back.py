"""What has to be done before Soperator can take its clusters again.

Soperator knows neither our parts nor our finalizers, and the names of its pods are taken. So
what runs here is deleted first, when no job runs. Secrets, the shared root and slurmctld's volume stay.
"""

from collections.abc import Iterator
from typing import Any, Final

from slurm_operator import wire
from slurm_operator.api import registry
from slurm_operator.api.nebius import SlurmCluster, names
from slurm_operator.api.schema.kind import Kind
from slurm_operator.api.slinky.accounting import Accounting
from slurm_operator.api.slinky.controller import Controller
from slurm_operator.api.slinky.loginset import LoginSet
from slurm_operator.api.slinky.nodeset import NodeSet as WorkerPart
from slurm_operator.api.slinky.restapi import RestApi
from slurm_operator.insight.doctor import way_back
from slurm_operator.insight.doctor.finding import Finding, listed, note, ok, warn
from slurm_operator.insight.doctor.soperator.steps import GUIDE
from slurm_operator.insight.doctor.way_back import NOTHING_LEFT, Installed, Part, blocked, left_behind
from slurm_operator.kube.client import Client
from slurm_operator.manifests.meta import Manifest
from slurm_operator.reconcilers.nebius.shared.families import Family, family
from slurm_operator.reconcilers.nebius.shared.inherited import STATE_VOLUME
from slurm_operator.reconcilers.nebius.shared.objects import match_labels
from slurm_operator.reconcilers.nebius.shared.root import WORKER

_WHY: Final = {
    Part.FINALIZERS: "Soperator never removes them: a deleted object would stay Terminating.",
    Part.ANNOTATION: "It names this installation as the manager.",
    Part.CONDITIONS: "Nobody would keep them up to date.",
    Part.BUDGET: "Its pods are gone, and nobody would delete it.",
    Part.POLICY: "It exempts this operator alone: nobody else could delete a protected worker.",
}
_REMEDY: Final = "Run `kubectl slurm doctor --to soperator --release` when the steps below say so."
# Workers first; what keeps the queue last.
_PARTS: Final = (WorkerPart, LoginSet, RestApi, Controller, Accounting)


class Found(wire.Record):
    """What there is of us, and of the clusters that would be given back."""

    installed: Installed

    def of(self, kind: Kind) -> list[Any]:
        return list(self.installed.objects.get(kind, ()))


async def look(client: Client, *, is_patient: bool = False) -> Found:
    return Found(installed=await way_back.look(client, is_patient=is_patient, of=registry.ALL))


def findings(found: Found) -> list[Finding]:
    """What is there, what to do about it, and the order."""
    clusters = found.of(SlurmCluster.KIND)
    told = [
        *blocked(found.installed),
        *left_behind(found.installed, _WHY, _REMEDY),
        *(one for cluster in clusters for one in _cluster(found, cluster)),
        *_steps(found, clusters),
    ]
    return told or [NOTHING_LEFT]


def _cluster(found: Found, cluster: Manifest) -> Iterator[Finding]:
    name = f"SlurmCluster {_where(cluster)}"
    if _image_family(cluster) is Family.OURS:
        yield warn(
            "Images",
            f"{name} has images of ours, which Soperator cannot run: its pods expect other programs in them.",
            "Write Soperator's images into the SlurmCluster and its NodeSets before its manager is started.",
        )
    parts = [f"{kind.kind} {one['metadata']['name']}" for kind, one in _parts(found, cluster)]
    if not parts:
        yield ok("Parts", f"{name}: nothing of ours runs it.")
        return
    yield warn(
        "Parts",
        f"{name} is made of {listed(parts)}. Their pods have the names that Soperator's StatefulSets need, "
        "and Soperator cannot take them over.",
        "Let the workers leave, then delete the parts, as in the steps below.",
    )
    yield from _state(found, cluster)


def _image_family(cluster: Manifest) -> Family:
    nodes = (cluster.get("spec") or {}).get("slurmNodes") or {}
    image = str(((nodes.get("controller") or {}).get("slurmctld") or {}).get("image", ""))
    return family(image, cluster["metadata"].get("annotations") or {})


def _parts(found: Found, cluster: Manifest) -> Iterator[tuple[Kind, Manifest]]:
    """What it was made into, in the order in which that can be deleted."""
    namespace, name = cluster["metadata"]["namespace"], cluster["metadata"]["name"]
    for part in _PARTS:
        for one in found.of(part.KIND):
            owners = one["metadata"].get("ownerReferences") or ()
            is_of_group = any(str(owner["apiVersion"]).startswith(f"{names.GROUP}/") for owner in owners)
            is_owned = any(owner["name"] == name for owner in owners)
            is_worker = _controller_of(one) == name
            if is_of_group and one["metadata"]["namespace"] == namespace and (is_owned or is_worker):
                yield part.KIND, one


def _controller_of(part: Manifest) -> str:
    return str((((part.get("spec") or {}).get("controllerRef")) or {}).get("name", ""))


def _state(found: Found, cluster: Manifest) -> Iterator[Finding]:
    name = f"SlurmCluster {_where(cluster)}"
    for kind, one in _parts(found, cluster):
        if kind != Controller.KIND:
            continue
        persistence = (one.get("spec") or {}).get("persistence") or {}
        claim = str(persistence.get("existingClaim") or "")
        nodes = (cluster.get("spec") or {}).get("slurmNodes") or {}
        spool = ((nodes.get("controller") or {}).get("volumes") or {}).get("spool") or {}
        if claim.startswith(f"{STATE_VOLUME}-") or spool.get("volumeSourceName"):
            volume = claim or spool["volumeSourceName"]
            message = f"{name}: Soperator's slurmctld goes on with volume {volume}, and the queue in it."
            yield ok("State", message)
        else:
            yield warn(
                "State",
                f"{name}: slurmctld's state is in a volume that Soperator does not know: it would start with "
                "an empty queue, and job ids from 1.",
                "Let the queue run empty, and set FirstJobId in customSlurmConfig above the last id.",
            )


def _steps(found: Found, clusters: list[Manifest]) -> Iterator[Finding]:
    given_back = [one for one in clusters if any(_parts(found, one))]
    if not given_back:
        return
    message = "No job is ended: each worker is removed when it has none. Pending jobs stay."
    yield note("Order", message, f"See {GUIDE}.")
    every = [
        *(step for cluster in given_back for step in _emptied(cluster)),
        "Stop our operator: `kubectl -n slurm-operator scale deployment/slurm-operator --replicas=0`",
        "`kubectl slurm doctor --to soperator --release`",
        *(step for cluster in given_back for step in _deleted(found, cluster)),
        "Start Soperator's manager. If its webhook was deleted, upgrade its release, which makes it again",
        *(_patch(cluster, "none") for cluster in given_back),
    ]
    for number, step in enumerate(every, start=1):
        yield note("Order", f"Step {number}", step)


def _emptied(cluster: Manifest) -> Iterator[str]:
    """While our operator runs, it waits for the jobs of each worker."""
    namespace, name = cluster["metadata"]["namespace"], cluster["metadata"]["name"]
    selector = ",".join(f"{key}={value}" for key, value in match_labels(name, WORKER).items())
    yield f"Workers are removed when their jobs are done: {_patch(cluster, 'downscale')}"
    yield f"Until none is left: `kubectl -n {namespace} wait --for=delete pod -l {selector} --timeout=24h`"


def _patch(cluster: Manifest, mode: str) -> str:
    meta = cluster["metadata"]
    change = f'{{"spec":{{"maintenance":"{mode}"}}}}'
    return (
        f"`kubectl -n {meta['namespace']} patch slurmclusters.slurm.nebius.ai {meta['name']} --type=merge "
        f"-p '{change}'`"
    )


def _deleted(found: Found, cluster: Manifest) -> Iterator[str]:
    """The login pods' Service keeps its address; the others are made again with Soperator's selectors."""
    namespace, name = cluster["metadata"]["namespace"], cluster["metadata"]["name"]
    parts = [
        (f"{kind.plural}.{kind.group}/{one['metadata']['name']}", kind == LoginSet.KIND)
        for kind, one in _parts(found, cluster)
    ]
    if kept := " ".join(part for part, is_login in parts if is_login):
        yield f"`kubectl -n {namespace} delete {kept} --cascade=orphan`"
        yield f"`kubectl -n {namespace} delete statefulset {names.login(name)}`"
    if others := " ".join(part for part, is_login in parts if not is_login):
        yield f"`kubectl -n {namespace} delete {others} --cascade=foreground`"
    ours = f"{names.sconfigcontroller(name)} {names.exporter(name)}"
    yield f"`kubectl -n {namespace} delete deployment {ours} --ignore-not-found`"


def _where(thing: Manifest) -> str:
    return f"{thing['metadata']['namespace']}/{thing['metadata']['name']}"
