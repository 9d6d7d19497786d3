"""What a Cluster says about itself: how its parts are, and what Slurm counts."""

from collections.abc import Iterator

from slurm_operator.api import reading
from slurm_operator.api.cluster_status import ComponentStatus
from slurm_operator.api.loginset import LoginSet
from slurm_operator.api.restapi import RestApi
from slurm_operator.manifests.meta import Manifest
from slurm_operator.plan.conditions import Condition
from slurm_operator.plan.plan import Outcome, Plan
from slurm_operator.plan.wiring import StatusReport
from slurm_operator.reconcilers.cluster import causes, counts
from slurm_operator.reconcilers.cluster.desired import chosen_isolation
from slurm_operator.reconcilers.cluster.observe import Seen
from slurm_operator.slurm.snapshot import Snapshot


def status(seen: Seen, plan: Plan, outcome: Outcome) -> StatusReport:
    conditions = list(causes.conditions(seen, plan, outcome))
    return StatusReport(conditions=conditions, fields=facts(seen, conditions))


def facts(seen: Seen, conditions: list[Condition]) -> Manifest:
    ready = next(condition for condition in conditions if condition.type == "Ready")
    fields: Manifest = {
        "observedGeneration": seen.meta.generation,
        "isReady": ready.status == "True",
        "components": [reading.plain(component) for component in components(seen)],
    }
    if isinstance(seen.slurm, Snapshot):
        fields |= {
            "slurmVersion": seen.slurm.release,
            "nodes": reading.plain(counts.nodes(seen.slurm)),
            "jobs": reading.plain(counts.jobs(seen.slurm)),
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
        state = causes.state(part)
        yield ComponentStatus(
            kind=part.KIND.kind,
            name=part.metadata.name,
            ready=state.is_ready,
            reason=state.reason,
            message=state.message,
        )


def _endpoints(seen: Seen) -> Iterator[str]:
    for one in seen.own("LoginSet"):
        if isinstance(one, LoginSet) and one.status.endpoint:
            yield one.status.endpoint
