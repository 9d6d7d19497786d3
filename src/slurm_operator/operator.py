"""The operator, put together: what it watches and which reconcilers decide about it."""

from functools import partial
from typing import Any

from slurm_operator import wire
from slurm_operator.api import registry
from slurm_operator.api.nebius import SlurmCluster
from slurm_operator.api.nebius import names as nebius_names
from slurm_operator.api.registry import Registered, Registry, with_parts
from slurm_operator.api.schema import codec
from slurm_operator.api.shared import names
from slurm_operator.api.shared.children import APP_NAMES
from slurm_operator.api.slinky.nodeset import NodeSet
from slurm_operator.manifests import kinds
from slurm_operator.manifests.events import FAILED_CREATE, Event
from slurm_operator.manifests.meta import decode_of_owner
from slurm_operator.manifests.objects import KubeNode, Pod
from slurm_operator.manifests.platform import Namespace, PodTemplate, StorageClass, VolumeClaim
from slurm_operator.plan.belonging import Scope
from slurm_operator.plan.reconciler import Reconciler
from slurm_operator.reconcilers import accounting, cluster, controller, loginset, nodeset, restapi, token
from slurm_operator.reconcilers.nebius import (
    activecheck,
    kubenode,
    nodeconfigurator,
    powerstate,
    slurmcluster,
)
from slurm_operator.reconcilers.nebius import nodeset as nebius_nodeset
from slurm_operator.reconcilers.shared.slurm_servers import slurm_servers
from slurm_operator.runtime.manager import Program
from slurm_operator.runtime.other_operator import Rival
from slurm_operator.runtime.settings import Settings
from slurm_operator.runtime.world.sources import POD_INDEXES, ChildSource, Source, Sources

# Whatever we make for a Slurm cluster carries one of these names; so does what the operator before us made.
OUR_CHILDREN = f"{names.APP_NAME} in ({','.join(APP_NAMES)})"

# What reconcilers make and compare whole with what should be. Secrets are not among them: see the World.
OUR_CHILD_KINDS = (
    kinds.CONFIG_MAP,
    kinds.CONTROLLER_REVISION,
    kinds.DEPLOYMENT,
    kinds.DISRUPTION_BUDGET,
    kinds.PERSISTENT_VOLUME_CLAIM,
    kinds.SERVICE,
    kinds.SERVICE_MONITOR,
    kinds.STATEFUL_SET,
)

# Only for the second API: Jobs that populate shared roots and those of checks, what runs on every Kubernetes
# node, and the accounts of all three.
NEBIUS_CHILD_KINDS = (
    kinds.DAEMON_SET,
    kinds.JOB,
    kinds.CRON_JOB,
    kinds.SERVICE_ACCOUNT,
    kinds.ROLE,
    kinds.ROLE_BINDING,
)

# Only for the second API, and where other operators have brought these kinds. StatefulSets of Kruise are what
# Soperator left behind, and are only looked at.
OTHERS_KINDS = (
    kinds.MARIADB,
    kinds.MARIADB_GRANT,
    kinds.POD_MONITOR,
    kinds.APP_ARMOR_PROFILE,
    kinds.KRUISE_STATEFUL_SET,
)

# While one of these acts on its group, we do not.
RIVALS = (
    Rival(
        group=nebius_names.GROUP,
        name="Soperator",
        lease=nebius_names.SOPERATOR_LEASE,
        kind=SlurmCluster.KIND,
        about=SlurmCluster,
    ),
)

# Each reconciler has a flag `--NAME-workers`; existing Deployments pass them.
RECONCILER_NAMES = registry.ALL.reconcilers


def reconcilers(settings: Settings, known: Registry = registry.ALL) -> tuple[Reconciler[Any], ...]:
    """Those of the kinds that are on, and of the parts that their clusters are made of."""
    made, ours = _made(settings), with_parts(known.on(settings.groups))
    of_kinds = (made[one.reconciler] for one in _in_order(ours) if _is_reconciled(one, settings))
    return (*of_kinds, *_of_kube_nodes(settings))


def _of_kube_nodes(settings: Settings) -> tuple[Reconciler[Any], ...]:
    """Whoever looks after some namespaces cannot tell what else runs on a Kubernetes node."""
    is_on = nebius_names.GROUP in settings.groups and not settings.namespaces
    return (kubenode.reconciler(settings.nodes),) if is_on and settings.nodes is not None else ()


def _is_reconciled(one: Registered, settings: Settings) -> bool:
    return bool(one.reconciler) and one.resource not in settings.left_out


def _made(settings: Settings) -> dict[str, Reconciler[Any]]:
    """Every reconciler there is, by the name that the registry knows it by."""
    every: tuple[Reconciler[Any], ...] = (
        accounting.RECONCILER,
        cluster.RECONCILER,
        controller.RECONCILER,
        loginset.RECONCILER,
        nodeset.reconciler(settings.propagated_node_conditions),
        restapi.RECONCILER,
        token.RECONCILER,
        slurmcluster.reconciler(settings.tier_prefix),
        nebius_nodeset.RECONCILER,
        activecheck.RECONCILER,
        powerstate.RECONCILER,
        nodeconfigurator.RECONCILER,
    )
    return {one.name: one for one in every}


def _in_order(ours: Registry) -> list[Registered]:
    """Group by group, by the name of the reconciler."""
    return sorted(ours, key=lambda one: (ours.groups.index(one.group), one.reconciler))


def program(settings: Settings, known: Registry = registry.ALL) -> Program:
    ours, scope = with_parts(known.on(settings.groups)), Scope(frozenset(settings.groups))
    return Program(
        sources=sources(ours),
        reconcilers=reconcilers(settings, known),
        slurm_servers=partial(slurm_servers, scope=scope),
        says_where=ours.models,
        kinds=ours,
        scope=scope,
        measured=kubenode.of_pod if settings.kubelets is not None else None,
        rivals=tuple(rival for rival in RIVALS if rival.group in settings.groups),
    )


def sources(ours: Registry) -> Sources:
    """What an operator for these kinds watches."""
    has_nebius = nebius_names.GROUP in ours.groups
    of_clusters = NEBIUS_CHILD_KINDS if has_nebius else ()
    others = OTHERS_KINDS if has_nebius else ()
    return Sources(
        records=(
            *(_source(one) for one in _in_order(ours) if not one.is_optional),
            Source(
                Pod,
                kinds.POD,
                wire.decoder(Pod),
                label_selector=OUR_CHILDREN,
                indexes=POD_INDEXES,
            ),
            # Confined to namespaces, we may not be allowed to look at machines; NodeSets then do without.
            Source(KubeNode, kinds.KUBE_NODE, wire.decoder(KubeNode), is_optional=True),
            # An installation made for the operator before us has no Clusters, and may not look at these.
            *(_source(one) for one in _in_order(ours) if one.is_optional),
            Source(Namespace, kinds.NAMESPACE, wire.decoder(Namespace), is_optional=True),
            # Why a StatefulSet has no pods stands nowhere else.
            Source(
                Event,
                kinds.EVENT,
                wire.decoder(Event),
                field_selector=f"reason={FAILED_CREATE}",
                is_optional=True,
            ),
            # Volumes of users, which several slurmctlds may have to share.
            Source(
                VolumeClaim,
                kinds.PERSISTENT_VOLUME_CLAIM,
                wire.decoder(VolumeClaim),
                is_optional=True,
            ),
            Source(StorageClass, kinds.STORAGE_CLASS, wire.decoder(StorageClass), is_optional=True),
            # What pods of checks are made from, where a check names one.
            *(
                [Source(PodTemplate, kinds.POD_TEMPLATE, wire.decoder(PodTemplate), is_optional=True)]
                if has_nebius
                else []
            ),
        ),
        children=(*OUR_CHILD_KINDS, *of_clusters, *others),
        child_selector=OUR_CHILDREN,
        # They come with the Prometheus operator, the MariaDB operator and Kruise, maybe long after us.
        optional_children=(kinds.SERVICE_MONITOR, *others),
        # Those of the operator before us have no label of ours until we have found them by their name.
        other_children={
            kinds.CONTROLLER_REVISION: ChildSource(names.LABEL_REVISION, decode_of_owner(NodeSet.KIND))
        },
    )


def _source(one: Registered) -> Source[Any]:
    return Source(one.model, one.kind, codec.decoder(one.model), is_optional=one.is_optional)
