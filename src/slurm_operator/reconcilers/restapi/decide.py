"""What is missing of a RestApi's objects, and what it waits for."""

from collections.abc import Iterator
from datetime import datetime, timedelta

from slurm_operator.api.slinky.restapi import RestApi
from slurm_operator.manifests import kinds
from slurm_operator.plan.actions import Wait
from slurm_operator.plan.plan import Lane, Plan, lane, plan
from slurm_operator.reconcilers.restapi.desired import deployment, named_objects, service
from slurm_operator.reconcilers.restapi.exporter import exporter
from slurm_operator.reconcilers.restapi.observe import Seen
from slurm_operator.reconcilers.shared.children import among, missing_among, taken
from slurm_operator.reconcilers.shared.deletion_hold import holding
from slurm_operator.reconcilers.shared.dependencies import look_again

LOOK_AGAIN = timedelta(seconds=30)

COST_OF_FORCE = (
    "nobody can then ask Slurm which workers are free, and NodeSets that are being deleted wait until theirs "
    "have ended, there is another RestApi, or they are forced as well"
)


def decide(seen: Seen, now: datetime) -> Plan:
    meta = seen.restapi.metadata
    steps = holding(RestApi.KIND, meta, seen.dependents, cost=COST_OF_FORCE)
    held = lane("holding", steps)
    if meta.is_terminating and not any(isinstance(step, Wait) for step in steps):
        return plan(held)
    if meta.is_terminating:
        # What runs stays as it is until nobody needs it. Not all who do wake us when they are gone.
        return plan(held, *_missed(seen), look_again=LOOK_AGAIN)
    return plan(
        held,
        lane("service", missing_among([service(seen)], seen.children)),
        workload(seen),
        lane("names", taken(named_objects(seen.restapi), among(seen.children))),
        exporter(seen),
        look_again=look_again(seen.needs),
    )


def _missed(seen: Seen) -> Iterator[Lane]:
    """What somebody else deleted, or what could not be made before, and workers cannot go without."""
    called = seen.restapi.child_names
    if (kinds.SERVICE, called.service) not in seen.children:
        yield lane("service", missing_among([service(seen)], seen.children))
    if (kinds.DEPLOYMENT, called.workload) not in seen.children:
        yield workload(seen)


def workload(seen: Seen) -> Lane:
    """slurmrestd without its files would only end again and again, so it is not started before they exist."""
    waits = {need.wait: None for need in seen.needs}
    if waits:
        return lane("slurmrestd", waits)
    return lane("slurmrestd", missing_among([deployment(seen)], seen.children))
