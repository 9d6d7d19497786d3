"""Whether the API server keeps workers from being deleted by hand. The operator says so when it does not."""

import asyncio
import math
from collections.abc import Callable
from typing import Final

import structlog
from prometheus_client import Gauge

from slurm_operator import wire
from slurm_operator.api.shared import names
from slurm_operator.kube.client import Client
from slurm_operator.kube.errors import Forbidden, KubeError, NotFound
from slurm_operator.manifests.builders.protection import INSTALL, LET_LOOK
from slurm_operator.manifests.kinds import ADMISSION_POLICY, ADMISSION_POLICY_BINDING
from slurm_operator.manifests.meta import Manifest
from slurm_operator.plan.world import Protection

log = structlog.get_logger(__name__)

# Policies are made by people, and rarely; to watch them would cost two connections for ever.
LOOK_SECONDS: Final = 600
LOOK_AGAIN_SECONDS: Final = (
    60  # While there is none, or nobody can tell: somebody may be about to change that.
)

_GAUGE: Final = {Protection.PROTECTED: 1.0, Protection.UNPROTECTED: 0.0, Protection.UNKNOWN: math.nan}

REMEDY: Final = "`slurm-operator manifests --no-crds --image IMAGE` has it, and the chart unless turned off."


async def is_protected(client: Client) -> bool:
    """Whether a policy about deleting our workers is there and bound. Raises KubeError."""
    return any(map(protects, await bound_policies(client)))


async def bound_policies(client: Client) -> list[Manifest]:
    """The admission policies that are in force. Raises KubeError."""
    policies = await client.request("GET", ADMISSION_POLICY.path())
    bindings = await client.request("GET", ADMISSION_POLICY_BINDING.path())
    bound = {one["spec"].get("policyName") for one in bindings["items"]}
    return [one for one in policies["items"] if one["metadata"]["name"] in bound]


def protects(policy: Manifest) -> bool:
    """Whether a policy is about deleting pods with our label."""
    constraints = policy["spec"].get("matchConstraints") or {}
    selector = wire.encode(constraints.get("objectSelector") or {})
    is_about_pods = any(
        "DELETE" in rule.get("operations", ()) and "pods" in rule.get("resources", ())
        for rule in constraints.get("resourceRules") or ()
    )
    return is_about_pods and names.LABEL_POD_PROTECT.encode() in selector


async def protection_of(client: Client) -> Protection:
    """What can be told about it. Raises KubeError when that says nothing: the server was away, or busy."""
    try:
        return Protection.PROTECTED if await is_protected(client) else Protection.UNPROTECTED
    except Forbidden:
        return Protection.UNKNOWN
    except NotFound:
        return Protection.UNPROTECTED  # A Kubernetes without such policies.


async def tell_of_protection(client: Client, gauge: Gauge, note: Callable[[Protection], None]) -> None:
    """Keeps the gauge, notes and logs every new answer."""
    told = Protection.NOT_LOOKED
    while True:
        try:
            found = await protection_of(client)
        except KubeError as error:
            log.debug("whether a policy protects workers cannot be seen", why=str(error))
        else:
            gauge.set(_GAUGE[found])
            if found is not told:
                note(found)
                _log(found, told)
            told = found
        await asyncio.sleep(LOOK_SECONDS if told is Protection.PROTECTED else LOOK_AGAIN_SECONDS)


def _log(found: Protection, told: Protection) -> None:
    match found:
        case Protection.UNPROTECTED:
            log.warning("no policy protects workers: deleting the pod of one ends its jobs", remedy=INSTALL)
        case Protection.UNKNOWN:
            log.warning(
                "unknown whether a policy protects workers: the operator may not look", remedy=LET_LOOK
            )
        case Protection.PROTECTED if told is not Protection.NOT_LOOKED:
            log.info("a policy protects workers again")
