"""Chooses from what was found: the objects of one cluster, by names and labels that Soperator gives them."""

from collections.abc import Iterable

from slurm_operator.api.nebius import NodeSet, SlurmCluster, names
from slurm_operator.api.shared import names as shared_names
from slurm_operator.insight.doctor.soperator.facts import Found
from slurm_operator.manifests.compare.differences import APPLIED_DIGEST
from slurm_operator.manifests.meta import Manifest
from slurm_operator.manifests.objects import Unread
from slurm_operator.reconcilers.nebius.shared.families import Family, family
from slurm_operator.reconcilers.nebius.shared.soperator_pods import deployments


def things(asked: object) -> list[Manifest]:
    """Those that were found; none of what could not be asked."""
    return [] if isinstance(asked, Unread) else list(asked)  # type: ignore[call-overload]


def clusters(found: Found) -> list[Manifest]:
    objects = found.objects
    return [] if isinstance(objects, Unread) else objects.get(SlurmCluster.KIND.kind, [])


def nodesets(found: Found, cluster: Manifest) -> list[Manifest]:
    objects = found.objects if isinstance(found.objects, dict) else {}
    meta = cluster["metadata"]
    return [
        one
        for one in objects.get(NodeSet.KIND.kind, ())
        if one["metadata"]["namespace"] == meta["namespace"] and _cluster_of_nodeset(one) == meta["name"]
    ]


def _cluster_of_nodeset(nodeset: Manifest) -> str:
    notes = nodeset["metadata"].get("annotations") or {}
    said = (nodeset.get("spec") or {}).get("clusterName")
    return str(said or notes.get(names.PARENTAL_CLUSTER_REF, ""))


def where(thing: Manifest) -> str:
    return f"{thing['metadata']['namespace']}/{thing['metadata']['name']}"


def of_cluster(cluster: Manifest, things: Iterable[Manifest]) -> list[Manifest]:
    """Those of one cluster, by the label that Soperator gives everything."""
    meta = cluster["metadata"]
    return [
        one
        for one in things
        if one["metadata"]["namespace"] == meta["namespace"]
        and (one["metadata"].get("labels") or {}).get(shared_names.APP_INSTANCE) == meta["name"]
    ]


def stateful_sets(found: Found, cluster: Manifest) -> list[str]:
    return sorted(one["metadata"]["name"] for one in of_cluster(cluster, things(found.stateful_sets)))


def deployments_of(found: Found, cluster: Manifest) -> list[str]:
    """Those that Soperator made; ours carry our mark."""
    wanted = deployments(cluster["metadata"]["name"])
    there = of_cluster(cluster, things(found.deployments))
    return sorted(
        one["metadata"]["name"]
        for one in there
        if one["metadata"]["name"] in wanted
        and APPLIED_DIGEST not in (one["metadata"].get("annotations") or {})
    )


def why_not_taken_over(found: Found, cluster: Manifest) -> str:
    """Why workers of a cluster have to end before it can be moved over; empty where they need not."""
    for nodeset in nodesets(found, cluster):
        spec, notes = nodeset.get("spec") or {}, cluster["metadata"].get("annotations") or {}
        if spec.get("ephemeralNodes"):
            return f"NodeSet {where(nodeset)} has ephemeralNodes, and which of them run is up to Soperator"
        image = (spec.get("slurmd") or {}).get("image") or {}
        if family(f"{image.get('repository', '')}:{image.get('tag', '')}", notes) is Family.OURS:
            return f"NodeSet {where(nodeset)} is to have images of this operator"
    made = {*stateful_sets(found, cluster)} & {one["metadata"]["name"] for one in nodesets(found, cluster)}
    return "" if made else "Kruise has no StatefulSet of a NodeSet"


def replicas(deployment: Manifest) -> int:
    return int(deployment["spec"].get("replicas", 1))
