"""What a Cluster says about itself: how its parts are, and what Slurm counts."""

from collections.abc import Iterator

from slurm_operator.api.schema import codec
from slurm_operator.api.slinky.cluster_status import ComponentStatus
from slurm_operator.api.slinky.loginset import LoginSet
from slurm_operator.api.slinky.restapi import RestApi
from slurm_operator.manifests.meta import Manifest
from slurm_operator.plan.conditions import Condition
from slurm_operator.plan.plan import Outcome, Plan
from slurm_operator.plan.reconciler import StatusReport
from slurm_operator.reconcilers.cluster import causes, counts
from slurm_operator.reconcilers.cluster.desired import chosen_isolation
from slurm_operator.reconcilers.cluster.observe import Seen
from slurm_operator.reconcilers.shared.composed import state
from slurm_operator.slurm.snapshot import Snapshot


def status(seen: Seen, plan: Plan, outcome: Outcome) -> StatusReport:
    conditions = list(causes.conditions(seen, plan, outcome))
    return StatusReport(conditions=conditions, fields=status_fields(seen, conditions))


def status_fields(seen: Seen, conditions: list[Condition]) -> Manifest:
    ready = next(condition for condition in conditions if condition.type == "Ready")
    fields: Manifest = {
        "observedGeneration": seen.meta.generation,
        "isReady": ready.status == "True",
        "components": [codec.plain(component) for component in components(seen)],
    }
    if isinstance(seen.slurm, Snapshot):
        fields |= {
            "slurmVersion": seen.slurm.release,
            "nodes": codec.plain(counts.nodes(seen.slurm)),
            "jobs": codec.plain(counts.jobs(seen.slurm)),
        }
    if seen.cluster.spec.is_adopted:
        known = seen.slurm.cluster if isinstance(seen.slurm, Snapshot) else seen.cluster.status.cluster_name
        return {**fields, "clusterName": known, "restUrl": seen.cluster.spec.server}
    return {
        **fields,
        "clusterName": seen.cluster.cluster_name,
        "isolation": str(chosen_isolation(seen).mode),
        "restUrl": next((one.status.url for one in seen.own("RestApi") if isinstance(one, RestApi)), ""),
        "login": next(_endpoints(seen), ""),
    }


def components(seen: Seen) -> Iterator[ComponentStatus]:
    for part in causes.parts(seen):
        found = state(part)
        yield ComponentStatus(
            kind=part.KIND.kind,
            name=part.metadata.name,
            ready=found.is_ready,
            reason=found.reason,
            message=found.message,
        )


def _endpoints(seen: Seen) -> Iterator[str]:
    for one in seen.own("LoginSet"):
        if isinstance(one, LoginSet) and one.status.endpoint:
            yield one.status.endpoint
