"""What a RestApi says about itself."""

from slurm_operator.manifests.meta import Manifest
from slurm_operator.plan.plan import Outcome, Plan
from slurm_operator.plan.reconciler import StatusReport
from slurm_operator.reconcilers.restapi.desired import owner
from slurm_operator.reconcilers.restapi.observe import APP, Seen
from slurm_operator.reconcilers.shared.daemon_conditions import Standing
from slurm_operator.reconcilers.shared.slurm_servers import url
from slurm_operator.slurm.snapshot import Snapshot


def status(seen: Seen, plan: Plan, outcome: Outcome) -> StatusReport:
    standing = Standing(
        daemon=APP,
        serving=f"slurmrestd answers at {url(seen.restapi)}.",
        rollout=seen.rollout,
        needs=seen.needs,
        troubles=seen.troubles,
        replicas=seen.restapi.spec.replicas,
    )
    return StatusReport(conditions=standing.conditions(plan, outcome), fields=status_fields(seen))


def status_fields(seen: Seen) -> Manifest:
    meta, rollout = seen.restapi.metadata, seen.rollout
    is_asked = isinstance(seen.slurm, Snapshot) and seen.slurm.url == url(seen.restapi)
    fields: Manifest = {
        "observedGeneration": meta.generation,
        "selector": owner(seen.restapi).selector_text,
        "url": url(seen.restapi),
        "replicas": rollout.replicas if rollout is not None else 0,
        "readyReplicas": rollout.ready if rollout is not None else 0,
        "inUse": is_asked,
    }
    if isinstance(seen.slurm, Snapshot) and is_asked:
        fields |= {"slurmVersion": seen.slurm.release, "apiVersions": [seen.slurm.api_version]}
    return fields
