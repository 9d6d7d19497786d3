"""What is missing of a RestApi's objects, and what it waits for."""

from datetime import datetime, timedelta

from slurm_operator.api.restapi import RestApi
from slurm_operator.plan.children import missing_among
from slurm_operator.plan.holding import holding
from slurm_operator.plan.needs import look_again
from slurm_operator.plan.plan import Lane, Plan, lane, plan
from slurm_operator.reconcilers.restapi.desired import deployment, service
from slurm_operator.reconcilers.restapi.observe import Seen

LOOK_AGAIN = timedelta(seconds=30)


def decide(seen: Seen, now: datetime) -> Plan:
    meta = seen.restapi.metadata
    held = lane("holding", holding(RestApi.KIND, meta, seen.dependents))
    if meta.is_terminating:
        # What runs stays as it is until nobody needs it. Not all who do wake us when they are gone.
        return plan(held, look_again=LOOK_AGAIN if seen.dependents else None)
    return plan(
        held,
        lane("service", missing_among([service(seen)], seen.children)),
        workload(seen),
        look_again=look_again(seen.needs),
    )


def workload(seen: Seen) -> Lane:
    """slurmrestd without its files would only end again and again, so it is not started before they exist."""
    waits = {need.wait: None for need in seen.needs}
    if waits:
        return lane("slurmrestd", waits)
    return lane("slurmrestd", missing_among([deployment(seen)], seen.children))
