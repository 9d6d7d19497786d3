"""Every kind once: by group and kind, with a reconciler of its own."""

import pytest

from slurm_operator.api import nebius, registry
from slurm_operator.api.nebius import names as nebius_names
from slurm_operator.api.registry import Registered, Registry, name_of
from slurm_operator.api.shared import names
from slurm_operator.api.slinky.nodeset import NodeSet
from slurm_operator.operator import RECONCILER_NAMES, program, reconcilers
from slurm_operator.runtime.settings import Settings
from testing.two_groups import GROUP, GROUPS, OTHER, TWO


def test_every_kind_has_the_reconciler_that_is_about_it():
    made = {one.name: one for one in reconcilers(Settings(groups=registry.GROUPS))}

    assert made.keys() == set(registry.ALL.reconcilers) == set(RECONCILER_NAMES)
    assert {one.name for one in reconcilers(Settings())} == set(registry.DEFAULT.reconcilers)
    for one in registry.ALL:
        if one.reconciler:
            assert (made[one.reconciler].about, made[one.reconciler].kind) == (one.model, one.kind)


def test_every_kind_of_the_usual_group_has_a_reconciler():
    assert len(registry.DEFAULT.reconcilers) == len(registry.DEFAULT)


def test_a_kind_may_have_no_reconciler_and_is_watched_all_the_same():
    only = program(Settings(groups=(nebius_names.GROUP,)))
    watched = {source.kind for source in only.sources.records}

    assert nebius.JailedConfig.KIND in watched
    assert nebius.JailedConfig.KIND not in {one.kind for one in only.reconcilers}


def test_the_parts_of_a_cluster_are_reconciled_with_the_group_in_front_of_them():
    only = program(Settings(groups=(nebius_names.GROUP,)))

    assert {one.name for one in only.reconcilers} >= set(registry.DEFAULT.reconcilers)
    assert only.scope.groups == {nebius_names.GROUP}
    assert only.kinds.groups == registry.GROUPS
    assert program(Settings()).kinds == registry.DEFAULT


def test_the_other_operator_is_looked_for_only_with_its_group():
    assert program(Settings()).rivals == ()
    [rival] = program(Settings(groups=registry.GROUPS)).rivals
    assert (rival.group, rival.lease) == (nebius_names.GROUP, "e21479ae.nebius.ai")


def test_a_kind_is_found_by_its_group():
    ours, theirs = TWO.find(names.GROUP, "NodeSet"), TWO.find(GROUP, "NodeSet")

    assert (ours.model, theirs.model) == (NodeSet, OTHER)
    assert (theirs.plural, theirs.short_names, theirs.versions) == ("nodesets", ("tns",), ("v1", "v1alpha1"))
    assert TWO.find("elsewhere.example.com", "NodeSet") is None


def test_only_kinds_of_the_first_group_are_called_by_their_bare_name():
    ours, theirs = TWO.find(names.GROUP, "NodeSet"), TWO.find(GROUP, "NodeSet")

    assert (ours.name, ours.resource) == ("NodeSet", "nodesets")
    assert (theirs.name, theirs.resource) == ("NodeSet.testing.example.com", "nodesets.testing.example.com")
    assert name_of(theirs.kind) == theirs.name


@pytest.mark.parametrize(
    ("group", "resource", "called"),
    [
        pytest.param(names.GROUP, "nodesets", "nodesets", id="ours, as before"),
        pytest.param(names.GROUP, "nodesets/status", "nodesets/status", id="and its status"),
        pytest.param(GROUP, "nodesets", "nodesets.testing.example.com", id="a second group says which"),
        pytest.param(GROUP, "nodesets/status", "nodesets.testing.example.com/status", id="of a status too"),
        pytest.param("apps", "deployments", "deployments", id="of Kubernetes"),
        pytest.param("apps.kruise.io", "statefulsets", "statefulsets.apps.kruise.io", id="of Kruise"),
        pytest.param("slurm.nebius.ai", "slurmclusters", "slurmclusters", id="looked up, but none of ours"),
    ],
)
def test_series_that_exist_keep_their_labels(group, resource, called):
    assert TWO.resource(group, resource) == called


def test_a_group_is_off_until_somebody_asks_for_it():
    assert Settings().groups == registry.DEFAULT_GROUPS
    assert TWO.on(Settings().groups).models == registry.DEFAULT.models
    assert TWO.on(GROUPS) == TWO
    assert TWO.on([GROUP]).models == (OTHER,)


def test_a_group_that_does_not_exist_is_refused_by_name():
    with pytest.raises(ValueError, match=r"no API group 'nowhere'\. There are: slinky\.slurm\.net"):
        registry.ALL.on(["nowhere"])


@pytest.mark.parametrize(
    ("twice", "why"),
    [
        pytest.param(Registered(NodeSet, reconciler="another"), "the kind", id="the same kind"),
        pytest.param(
            Registered(OTHER, reconciler="nodeset"), "the reconciler nodeset", id="a reconciler's name"
        ),
    ],
)
def test_nothing_is_registered_twice(twice, why):
    with pytest.raises(ValueError, match=why):
        Registry((*registry.ALL, twice))
