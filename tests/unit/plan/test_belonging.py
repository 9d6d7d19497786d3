"""Which API an object belongs to: a part of a SlurmCluster to that of its owner, whatever its own group is."""

import pytest

from slurm_operator.api import nebius
from slurm_operator.api.nebius import names as nebius_names
from slurm_operator.api.shared import names
from slurm_operator.api.shared.meta import Meta, OwnerReference
from slurm_operator.api.slinky.controller import Controller
from slurm_operator.api.slinky.nodeset import NodeSet
from slurm_operator.plan.belonging import Scope, group_of

FIRST, SECOND = names.GROUP, nebius_names.GROUP
PART = f"{SECOND}/v1 SlurmCluster"
OLDER_PART = f"{SECOND}/v1alpha1 NodeSet"
CLUSTER = f"{FIRST}/v1beta1 Cluster"
HELM = "helm.toolkit.fluxcd.io/v2 HelmRelease"


def owned(*owners: str) -> Meta:
    references = [one.split() for one in owners]
    return Meta(
        name="slurm",
        namespace="ns",
        owner_references=tuple(
            OwnerReference(api_version=version, kind=kind, name="x", uid="u") for version, kind in references
        ),
    )


@pytest.mark.parametrize(
    ("kind", "owners", "group"),
    [
        pytest.param(Controller.KIND, [], FIRST, id="made by a person"),
        pytest.param(Controller.KIND, [CLUSTER], FIRST, id="part of a Cluster"),
        pytest.param(Controller.KIND, [PART], SECOND, id="part of a SlurmCluster"),
        pytest.param(NodeSet.KIND, [OLDER_PART], SECOND, id="of a NodeSet of the second group"),
        pytest.param(Controller.KIND, [HELM], FIRST, id="owned by something that is not ours"),
        pytest.param(Controller.KIND, [HELM, PART], SECOND, id="the owner of ours counts"),
        pytest.param(nebius.SlurmCluster.KIND, [], SECOND, id="the front door"),
        pytest.param(nebius.NodeSet.KIND, [PART], SECOND, id="a NodeSet made for slurmNodes.worker"),
    ],
)
def test_a_part_belongs_to_the_group_of_its_owner(kind, owners, group):
    assert group_of(kind, owned(*owners)) == group


@pytest.mark.parametrize(
    ("scope", "of_people", "of_a_slurmcluster"),
    [
        pytest.param(Scope(frozenset({FIRST})), True, False, id="only the first group"),
        pytest.param(Scope(frozenset({SECOND})), False, True, id="only the second"),
        pytest.param(Scope(frozenset({FIRST, SECOND})), True, True, id="both"),
        pytest.param(
            Scope(frozenset({FIRST, SECOND}), held=frozenset({SECOND})),
            True,
            False,
            id="both, and somebody else acts on the second",
        ),
    ],
)
def test_objects_of_a_group_that_is_off_or_held_are_left_alone(scope, of_people, of_a_slurmcluster):
    assert scope.covers(Controller.KIND, owned()) is of_people
    assert scope.covers(Controller.KIND, owned(PART)) is of_a_slurmcluster
