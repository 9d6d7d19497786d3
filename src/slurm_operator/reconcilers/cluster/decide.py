"""What is missing of a Cluster's parts, what has to go, and in which order."""

from collections.abc import Iterator
from datetime import datetime

from slurm_operator import wire
from slurm_operator.api.schema.problems import Problem, References, Severity, spec_problems
from slurm_operator.api.shared import names
from slurm_operator.api.shared.meta import key_of
from slurm_operator.api.slinky.cluster import Cluster
from slurm_operator.api.slinky.controller import cluster_name_problems
from slurm_operator.conditions import Reason
from slurm_operator.manifests.meta import Child, Manifest
from slurm_operator.manifests.objects import Unread
from slurm_operator.plan.actions import Action, Wait
from slurm_operator.plan.order import is_forced
from slurm_operator.plan.plan import Lane, Plan, lane, plan
from slurm_operator.reconcilers.cluster import partitions
from slurm_operator.reconcilers.cluster.desired import desired
from slurm_operator.reconcilers.cluster.observe import Seen
from slurm_operator.reconcilers.cluster.part_removal import farewell, surplus, unused_file
from slurm_operator.reconcilers.shared.children import missing_write
from slurm_operator.reconcilers.shared.composed import FAREWELL, ORPHAN, next_removal_step, part_name
from slurm_operator.reconcilers.shared.deletion_hold import holding
from slurm_operator.reconcilers.shared.dependencies import Need
from slurm_operator.reconcilers.shared.parts import NAME_TAKEN, is_owned, missing_part, missing_scaled_part


def decide(seen: Seen, now: datetime) -> Plan:
    held = lane("holding", _held(seen))
    if seen.meta.is_terminating:
        return plan(held, lane("farewell", farewell(seen)))
    if seen.cluster.spec.is_adopted:
        return plan(held, lane("adopted", adopted(seen)))
    refused = [Wait(subject="spec", reason=Reason.SPEC_REFUSED, message=str(one)) for one in problems(seen)]
    if refused:
        return plan(held, lane("spec", refused))
    wanted = desired(seen)
    if taken := strangers(seen, wanted):
        return plan(held, lane("names", taken))
    leaving = partitions.waits(seen)
    return plan(
        held,
        *_lanes(seen, wanted),
        *(
            lane(f"leaving {part_name(part)}", [next_removal_step(part, Cluster.KIND)])
            for part in surplus(seen, wanted)
        ),
        lane("files", unused_file(seen)),
        lane("partitions", leaving),
        waits_on=(key_of(seen.cluster),) if leaving else (),
    )


def problems(seen: Seen) -> list[Problem]:
    """What is wrong with the spec and has no remedy here."""
    cluster, refs = seen.cluster, References()
    before = cluster.status.cluster_name or None
    found = [
        *spec_problems(cluster.spec, None, refs),
        *cluster_name_problems(cluster.cluster_name, before, refs),
    ]
    return [problem for problem in found if problem.severity is Severity.ERROR]


def _held(seen: Seen) -> list[Action]:
    """Keeps the Cluster while it has parts, so that they go in order."""
    kept = ORPHAN in seen.meta.finalizers
    parts = [] if kept else [part_name(part) for kind in FAREWELL for part in seen.own(kind)]
    return [step for step in holding(Cluster.KIND, seen.meta, parts) if not isinstance(step, Wait)]


def adopted(seen: Seen) -> Iterator[Action]:
    """Nothing is made for a Slurm elsewhere; what is in the way of looking at it is told."""
    if isinstance(seen.token, Need):
        yield seen.token.wait
    for kind in FAREWELL:
        for part in seen.own(kind):
            message = (
                f"{part_name(part)} was made before spec.server was set. It is left as it is; "
                "take spec.server away again, or delete it."
            )
            yield Wait(subject=part_name(part), reason=Reason.FORMER_PART, message=message)


def _lanes(seen: Seen, wanted: list[Manifest]) -> Iterator[Lane]:
    """One lane per part, so that trouble with one holds up no other; files come before who reads them."""
    files = [_file_step(seen, one) for one in wanted if one["kind"] == "ConfigMap"]
    for manifest in wanted:
        if manifest["kind"] != "ConfigMap" and not _comes_later(seen, manifest):
            before = files if manifest["kind"] == "Controller" else []
            stages = ([step] for step in (*before, _step(seen, manifest)) if step is not None)
            yield lane(f"{manifest['kind']} {manifest['metadata']['name']}", *stages)


def _comes_later(seen: Seen, manifest: Manifest) -> bool:
    """A NodeSet waits until the Cluster is held, which it is when the first of the other parts is there.

    Who deletes a Cluster that is not takes along what slurmctld needs to start, and workers wait for that.
    """
    is_held = names.IN_USE_FINALIZER in seen.meta.finalizers or is_forced(seen.meta)
    kind, name = manifest["kind"], manifest["metadata"]["name"]
    return kind == "NodeSet" and (kind, name) not in seen.parts and not is_held


def strangers(seen: Seen, wanted: list[Manifest]) -> list[Wait]:
    """Objects of others in the place of what all parts refer to: they would join somebody else's cluster."""
    heads = [_step(seen, one) for one in wanted if one["kind"] in ("Accounting", "Controller")]
    return [step for step in heads if isinstance(step, Wait) and step.reason == NAME_TAKEN]


def _step(seen: Seen, manifest: Manifest) -> Action | None:
    kind, name = manifest["kind"], manifest["metadata"]["name"]
    there = seen.parts.get((kind, name))
    if kind != "NodeSet":
        return missing_part(manifest, there, seen.meta)
    replicas = {
        names.cluster_part(seen.meta.name, one.name): one.replicas for one in seen.cluster.spec.node_sets
    }
    is_settled = seen.cluster.status.observed_generation == seen.meta.generation
    return missing_scaled_part(manifest, there, seen.meta, replicas[name], is_reverted=is_settled)


def _file_step(seen: Seen, manifest: Manifest) -> Action | None:
    """cgroup.conf, unless the user brings one."""
    subject, there = f"ConfigMap {manifest['metadata']['name']}", seen.cgroup_conf
    if isinstance(there, Unread):
        message = f"waiting for {subject}, which cannot be read: {there.why}."
        return Wait(subject=subject, reason=Reason.CONFIG_MAP_UNREAD, message=message)
    if there is not None and not is_owned(there, seen.meta):
        message = f"{subject} exists already and was not made by this Cluster; it is left alone."
        return Wait(subject=subject, reason=NAME_TAKEN, message=message)
    live = Child(metadata=there.metadata, body=wire.plain(there)) if there is not None else None
    return missing_write(manifest, lambda *_: live)
