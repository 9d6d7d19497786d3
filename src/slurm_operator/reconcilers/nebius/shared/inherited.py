"""Objects that Soperator made for a cluster, and that are to belong to its parts now.

Soperator's Services, files and Secrets belong to the SlurmCluster or its NodeSet. The parts want objects of
the same names, and leave alone what belongs to somebody else. So these lose their owner first, and a part
takes over what has none: names, addresses and keys stay. No part is made before, so a step can be repeated.
"""

from collections.abc import Iterable, Iterator, Mapping
from datetime import timedelta
from typing import Final

from slurm_operator import wire
from slurm_operator.api.nebius import names
from slurm_operator.api.schema.kind import Kind
from slurm_operator.api.shared import names as shared_names
from slurm_operator.api.shared.meta import HasMeta, Meta, ObjectKey
from slurm_operator.conditions import Reason
from slurm_operator.manifests import kinds
from slurm_operator.manifests.compare.differences import APPLIED_DIGEST
from slurm_operator.manifests.objects import Secret
from slurm_operator.manifests.platform import VolumeClaim
from slurm_operator.plan.actions import PatchObject
from slurm_operator.plan.world import World
from slurm_operator.reconcilers.shared.parts import is_owned

INHERITED: Final = Reason.INHERITED

# A part that takes an object over is made in the next pass.
INHERITED_SOON: Final = timedelta(seconds=1)

# What Soperator calls the volume of slurmctld, where the SlurmCluster has a template for it.
STATE_VOLUME: Final = "controller-spool"


def of_cluster(cluster: str) -> tuple[tuple[Kind, str], ...]:
    """What belongs to a SlurmCluster of Soperator, and here to one of its parts or to nobody."""
    services = (
        names.controller_service(cluster),
        names.nodeset_service(cluster),
        names.accounting_service(cluster),
        names.rest_service(cluster),
        names.login_service(cluster),
        names.login_headless_service(cluster),
    )
    secrets = (
        names.munge_secret(cluster),
        names.rest_jwt_secret(cluster),
        names.sshd_keys_secret(cluster),
        names.slurmdbd_configs(cluster),
    )
    return (
        *((kinds.SERVICE, name) for name in services),
        (kinds.CONFIG_MAP, names.slurm_configs(cluster)),
        *((kinds.SECRET, name) for name in secrets),
    )


def of_nodeset(cluster: str, nodeset: str) -> tuple[tuple[Kind, str], ...]:
    return ((kinds.SERVICE, names.one_nodeset_service(cluster, nodeset)),)


def inherited(owner: Meta, wanted: Iterable[tuple[Kind, str]], world: World) -> dict[tuple[Kind, str], Meta]:
    """Those of the named objects that belong to `owner` itself."""
    found = ((key, _there(key, owner.namespace, world)) for key in wanted)
    return {key: there.metadata for key, there in found if there is not None and is_owned(there, owner)}


def _there(wanted: tuple[Kind, str], namespace: str, world: World) -> HasMeta | None:
    kind, name = wanted
    if kind == kinds.SECRET:
        found = world.secret(namespace, name)
        return found if isinstance(found, Secret) else None
    return world.child(kind, namespace, name)


def soperator_files(cluster: str, namespace: str, world: World) -> Mapping[str, str]:
    """Slurm's files by name as long as they are Soperator's; ours carry our mark."""
    found = world.child(kinds.CONFIG_MAP, namespace, names.slurm_configs(cluster))
    if found is None or APPLIED_DIGEST in found.metadata.annotations:
        return {}
    return found.body.get("data") or {}


def soperator_state(cluster: str, namespace: str, world: World) -> str | None:
    """The claim with slurmctld's state as Soperator left it; empty without one, None if nobody may look."""
    if not world.serves(kinds.PERSISTENT_VOLUME_CLAIM):
        return None
    # Older releases gave workloads no name of the cluster; claims say by a label whose they are.
    for workload in (names.controller(cluster), "controller"):
        claim = world.get(VolumeClaim, namespace, f"{STATE_VOLUME}-{workload}-0")
        if claim is not None and _is_state_of(cluster, claim):
            return claim.metadata.name
    return ""


def _is_state_of(cluster: str, claim: VolumeClaim) -> bool:
    owner = claim.metadata.labels.get(shared_names.APP_INSTANCE, cluster)
    return owner == cluster and not claim.metadata.is_terminating


def without_owner(owner: Meta, found: Iterable[tuple[Kind, Meta]]) -> Iterator[PatchObject]:
    """One write for each: it no longer goes with `owner`, and a part may take it over."""
    for kind, meta in found:
        kept = [wire.plain(one) for one in meta.owner_references if one.uid != owner.uid]
        yield PatchObject(
            kind=kind,
            key=ObjectKey(meta.namespace, meta.name),
            uid=meta.uid,
            operations=(
                {"op": "test", "path": "/metadata/resourceVersion", "value": meta.resource_version},
                {"op": "replace", "path": "/metadata/ownerReferences", "value": kept},
            ),
            reason=INHERITED,
            message=f"{kind.kind} {meta.name}, which Soperator made, is handed over to the parts of "
            f"{owner.name}",
        )
