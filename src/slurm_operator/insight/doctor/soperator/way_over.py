"""What moving over from Soperator would change here, what has no effect, and which order is safe.

Nothing is changed. What may not be looked at is said, and the rest is told all the same.
"""

from collections.abc import Iterator
from typing import Final

from slurm_operator.api import registry
from slurm_operator.api.nebius import NodeSet, SlurmCluster
from slurm_operator.insight.doctor.finding import Finding, listed, note, ok, unread, warn
from slurm_operator.insight.doctor.hooks import findings_about
from slurm_operator.insight.doctor.soperator.chosen import (
    clusters,
    replicas,
    things,
    where,
)
from slurm_operator.insight.doctor.soperator.facts import KINDS, KRUISE_CRD, Found
from slurm_operator.insight.doctor.soperator.one_cluster import findings_about_cluster
from slurm_operator.insight.doctor.soperator.steps import steps
from slurm_operator.insight.doctor.specs import about_spec
from slurm_operator.manifests.meta import Manifest
from slurm_operator.manifests.objects import Unread
from slurm_operator.reconcilers.nebius.ignored import used
from slurm_operator.reconcilers.nebius.nodeset import unsupported as of_nodesets
from slurm_operator.reconcilers.nebius.shared.families import family
from slurm_operator.reconcilers.nebius.slurmcluster import unsupported as of_clusters

# Releases that make what a cluster lives on: they stay as they are.
_STAY: Final = {
    "slurm-cluster": "Its SlurmCluster, priority classes and accounts are used as they are.",
    "nodesets": "Its NodeSets are used as they are.",
    "slurm-cluster-storage": "Its volumes are used as they are.",
    "nfs-server": "It serves a volume.",
    "soperator-custom-configmaps": "Its ConfigMaps are used as they are.",
    "soperator-activechecks": "Its ActiveChecks are used as they are.",
    "soperator-dcgm-exporter": "It runs beside the cluster.",
    "nodeconfigurator": "Its NodeConfigurator is used as it is.",
}
_GO: Final = {
    "soperator": "Its manager is replaced.",
    "soperatorchecks": "Its work is done by our manager.",
}


def findings(found: Found) -> list[Finding]:
    """In the order in which people need them; the steps last."""
    return [
        *_installation(found),
        *_definitions(found),
        *_admission(found),
        *_certificates(found),
        *_releases(found),
        *_flux(found),
        *_specs(found),
        *(one for cluster in clusters(found) for one in findings_about_cluster(found, cluster)),
        *steps(found),
    ]


def _installation(found: Found) -> Iterator[Finding]:
    check = "Soperator"
    if isinstance(found.programs, Unread):
        yield unread(check, found.programs)
    for one in things(found.programs):
        image = one["spec"]["template"]["spec"]["containers"][0].get("image", "no image")
        yield ok(check, f"Deployment {where(one)}: {image}, {replicas(one)} replica(s).")
    if not things(found.programs) and not isinstance(found.programs, Unread):
        message = "No manager of Soperator is installed."
        yield note(check, message, "What follows is about what it left behind.")
    if isinstance(found.leads, Unread):
        yield unread("Lease", found.leads)
        return
    for lead in found.leads:
        if lead.is_ours:
            yield ok("Lease", f"{lead.place} is held by our operator.")
        elif lead.is_renewed:
            yield note(
                "Lease",
                f"{lead.place} is renewed by {lead.holder}. Until that ends, our operator changes nothing of "
                "this API.",
                "See the steps below.",
            )
        else:
            yield ok("Lease", f"{lead.place} is renewed by nobody.")


def _definitions(found: Found) -> Iterator[Finding]:
    check = "CRDs"
    if isinstance(found.crds, Unread):
        yield unread(check, found.crds)
        return
    theirs = [one for one in KINDS if f"{one.plural}.{one.group}" in found.crds]
    if not theirs:
        yield note(check, "None of Soperator's kinds is installed.", "There is nothing to move.")
        return
    owners = {_release_of(found.crds[f"{one.plural}.{one.group}"]) for one in theirs}
    owner = max(owners)
    made = f"by Helm release {owner}" if owner else "not by Helm"
    yield ok(check, f"{len(theirs)} kinds of slurm.nebius.ai are installed, {made}.")
    if owner:
        yield note(
            check,
            f"Uninstalling release {owner} may delete them, and every cluster with them.",
            "Never uninstall a release that contains CRDs. "
            "`helm get manifest RELEASE -n NAMESPACE | sed -n '/^kind: CustomResourceDefinition/p'` says "
            "whether one does.",
        )
    missing = [one.plural for one in registry.DEFAULT if f"{one.plural}.{one.group}" not in found.crds]
    if missing:
        yield note(
            check,
            f"Would be added, in slinky.slurm.net: {listed(missing)}. Clusters are made of these parts.",
            "See the steps below. No object changes.",
        )
    if KRUISE_CRD in found.crds:
        yield note(
            check,
            "Kruise makes the pods of these clusters. Our operator does not need it.",
            "Keep it until every StatefulSet of its is gone; other workloads may use it.",
        )


def _release_of(crd: Manifest) -> str:
    return str((crd["metadata"].get("annotations") or {}).get("meta.helm.sh/release-name", ""))


def _admission(found: Found) -> Iterator[Finding]:
    check = "Webhooks"
    if isinstance(found.hooks, Unread):
        yield unread(check, found.hooks)
        return
    needed = [hook for hook in found.hooks if hook.is_served and hook.is_blocking and not hook.is_ours]
    yield from findings_about(check, [hook for hook in found.hooks if hook not in needed])
    for hook in needed:
        yield warn(
            check,
            f"{hook.name} is answered by Soperator's manager itself. When that is scaled to 0, every "
            "change of a SlurmCluster, a NodeSet or a guarded Secret is refused.",
            "See the steps below: it is deleted right after the manager was stopped.",
        )


def _certificates(found: Found) -> Iterator[Finding]:
    check = "Certificates"
    if isinstance(found.certificates, Unread):
        yield unread(check, found.certificates)
        return
    is_left = not things(found.programs) and not isinstance(found.programs, Unread)
    for one in found.certificates if is_left else ():
        message = f"{one.rpartition(' ')[2]} was left behind: cert-manager renews it for nobody."
        yield warn(check, message, f"Run `kubectl delete {one}`.")
    if found.certificates and not is_left:
        yield note(
            check,
            f"cert-manager keeps {len(found.certificates)} object(s) for Soperator's webhook. Ours makes its "
            "own certificate unless certManager.enabled is true.",
            "They go with the release. If they are there afterwards, this command names them.",
        )


def _releases(found: Found) -> Iterator[Finding]:
    check = "Releases"
    if isinstance(found.released, Unread):
        yield unread(check, found.released)
        return
    for release in found.released:
        where = f"Release {release.name} -n {release.namespace} ({release.chart} {release.version})"
        if release.chart in _STAY:
            yield ok(check, f"{where}: stays. {_STAY[release.chart]}")
        elif release.chart in _GO:
            keep = f" It contains {len(release.crds)} CRDs." if release.crds else ""
            yield note(
                check,
                f"{where}: {_GO[release.chart]}{keep}",
                "Scale its Deployment to 0 and leave the release installed: so the way back stays short.",
            )


def _flux(found: Found) -> Iterator[Finding]:
    check = "Flux"
    if isinstance(found.flux, Unread):
        yield unread(check, found.flux)
        return
    for one in found.flux:
        chart = str((((one.get("spec") or {}).get("chart") or {}).get("spec") or {}).get("chart", ""))
        if chart.rpartition("/")[2].removeprefix("helm-") in _GO and not one["spec"].get("suspend"):
            yield warn(
                check,
                f"HelmRelease {where(one)} keeps {chart} installed: an upgrade starts the manager again.",
                f"Run `kubectl -n {one['metadata']['namespace']} patch helmrelease {one['metadata']['name']} "
                """--type=merge -p '{"spec":{"suspend":true}}'`.""",
            )


def _specs(found: Found) -> Iterator[Finding]:
    check = "Objects"
    if isinstance(found.objects, Unread):
        yield unread(check, found.objects)
        return
    for one in KINDS:
        for thing in found.objects.get(one.kind.kind, ()):
            yield from about_spec(check, one, thing, _without_effect)
    counts = {kind: len(things) for kind, things in found.objects.items() if things}
    yield ok(check, f"{', '.join(f'{n} {kind}' for kind, n in sorted(counts.items())) or 'none'}.")


def _without_effect(read: object) -> Iterator[str]:
    """Fields that this manifest sets and that count for nothing with its images."""
    if isinstance(read, SlurmCluster) and read.spec is not None:
        image = read.spec.slurm_nodes.controller.slurmctld.image
        yield from used(read.spec, of_clusters.IGNORED, family(image, read.metadata.annotations))
    if isinstance(read, NodeSet) and read.spec is not None:
        image = read.spec.slurmd.image.reference
        yield from used(read.spec, of_nodesets.IGNORED, family(image, read.metadata.annotations))
