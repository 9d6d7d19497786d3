"""Whether the API server keeps workers from being deleted by hand. The operator says so when it does not."""

import asyncio
from typing import Final

import structlog
from prometheus_client import Gauge

from slurm_operator import wire
from slurm_operator.api import names
from slurm_operator.kube.client import Client
from slurm_operator.kube.errors import KubeError
from slurm_operator.manifests.kinds import ADMISSION_POLICY, ADMISSION_POLICY_BINDING
from slurm_operator.manifests.meta import Manifest

log = structlog.get_logger(__name__)

# Policies are made by people, and rarely; to watch them would cost two connections for ever.
LOOK_SECONDS: Final = 600

REMEDY: Final = "It comes with `slurm-operator manifests --no-crds`, and with the chart unless turned off."


async def is_protected(client: Client) -> bool:
    """Whether a policy about deleting our workers is there and bound. Raises KubeError."""
    policies = await client.request("GET", ADMISSION_POLICY.path())
    bindings = await client.request("GET", ADMISSION_POLICY_BINDING.path())
    bound = {one["spec"].get("policyName") for one in bindings["items"]}
    return any(_protects(one) and one["metadata"]["name"] in bound for one in policies["items"])


def _protects(policy: Manifest) -> bool:
    """Whether a policy is about deleting pods with our label."""
    constraints = policy["spec"].get("matchConstraints") or {}
    selector = wire.encode(constraints.get("objectSelector") or {})
    is_about_pods = any(
        "DELETE" in rule.get("operations", ()) and "pods" in rule.get("resources", ())
        for rule in constraints.get("resourceRules") or ()
    )
    return is_about_pods and names.LABEL_POD_PROTECT.encode() in selector


async def tell_of_protection(client: Client, gauge: Gauge) -> None:
    """Keeps the gauge, and logs every new answer. Where nobody may look, nothing is said."""
    told = True
    while True:
        try:
            found = await is_protected(client)
            gauge.set(found)
            if told and not found:
                log.warning(
                    "no policy protects workers: deleting the pod of one ends its jobs", remedy=REMEDY
                )
            elif found and not told:
                log.info("a policy protects workers again")
            told = found
        except KubeError as error:
            log.debug("whether a policy protects workers cannot be seen", why=str(error))
        await asyncio.sleep(LOOK_SECONDS)
