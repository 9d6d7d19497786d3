"""The operator, put together: what it watches and which reconcilers decide about it."""

from typing import Any

from slurm_operator import wire
from slurm_operator.api import names, reading
from slurm_operator.api.accounting import Accounting
from slurm_operator.api.cluster import Cluster
from slurm_operator.api.controller import Controller
from slurm_operator.api.loginset import LoginSet
from slurm_operator.api.nodeset import NodeSet
from slurm_operator.api.restapi import RestApi
from slurm_operator.api.token import Token
from slurm_operator.manifests import kinds
from slurm_operator.manifests.events import FAILED_CREATE, Event
from slurm_operator.manifests.meta import decode_of_owner
from slurm_operator.manifests.objects import KubeNode, Pod
from slurm_operator.manifests.platform import Namespace, StorageClass, VolumeClaim
from slurm_operator.plan.wiring import Reconciler
from slurm_operator.reconcilers import accounting, cluster, controller, loginset, nodeset, restapi, token
from slurm_operator.reconcilers.connections import slurm_servers
from slurm_operator.runtime.manager import Program
from slurm_operator.runtime.settings import Settings
from slurm_operator.runtime.sources import OWNER, ChildSource, Source, Sources, owner_uids

# Whatever we make for a Slurm cluster carries one of these names; so does what the operator before us made.
OUR_CHILDREN = (
    "app.kubernetes.io/name in (slurmctld,slurmrestd,slurmdbd,slurmd,login,mariadb,slurm-rehearsal)"
)

OUR_KINDS: tuple[type[Any], ...] = (Accounting, Controller, LoginSet, NodeSet, RestApi, Token)

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

# Each reconciler has a flag `--NAME-workers`; existing Deployments pass them.
RECONCILER_NAMES = ("cluster", "controller", "restapi", "accounting", "nodeset", "loginset", "token")


def reconcilers(settings: Settings) -> tuple[Reconciler[Any], ...]:
    return (
        accounting.RECONCILER,
        cluster.RECONCILER,
        controller.RECONCILER,
        loginset.RECONCILER,
        nodeset.reconciler(settings.propagated_node_conditions),
        restapi.RECONCILER,
        token.RECONCILER,
    )


def program(settings: Settings) -> Program:
    return Program(
        sources=Sources(
            records=(
                *(Source(kind, kind.KIND, reading.decoder(kind)) for kind in OUR_KINDS),
                Source(
                    Pod,
                    kinds.POD,
                    wire.decoder(Pod),
                    label_selector=OUR_CHILDREN,
                    indexes={OWNER: owner_uids},
                ),
                # Confined to namespaces, we may not be allowed to look at machines; NodeSets then do without.
                Source(KubeNode, kinds.KUBE_NODE, wire.decoder(KubeNode), is_optional=True),
                # An installation made for the operator before us has no Clusters, and may not look at these.
                Source(Cluster, Cluster.KIND, reading.decoder(Cluster), is_optional=True),
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
            ),
            children=OUR_CHILD_KINDS,
            child_selector=OUR_CHILDREN,
            # They come with the Prometheus operator, maybe long after us.
            optional_children=(kinds.SERVICE_MONITOR,),
            # Those of the operator before us have no label of ours until we have found them by their name.
            other_children={
                kinds.CONTROLLER_REVISION: ChildSource(
                    names.LABEL_REVISION, decode_of_owner(NodeSet.KIND.kind)
                )
            },
        ),
        reconcilers=reconcilers(settings),
        slurm_servers=slurm_servers,
        says_where=(*OUR_KINDS, Cluster),
    )
