"""Parts that are kinds of our own: compared as typed records, never cached twice."""

from slurm_operator.api import KINDS, registry
from slurm_operator.api.schema import codec
from slurm_operator.api.schema.explicit_fields import explicit_fields
from slurm_operator.api.shared.meta import Meta
from slurm_operator.api.slinky.restapi import RestApi
from slurm_operator.manifests import kinds
from slurm_operator.manifests.compare.differences import stamped
from slurm_operator.reconcilers.shared.composed import FAREWELL, PART_TYPES
from slurm_operator.reconcilers.shared.parts import missing_part

OWNER = Meta(name="demo", namespace="ns", uid="uid-1")


def manifest(**spec) -> dict:
    owner = {
        "apiVersion": "v",
        "kind": "Cluster",
        "name": "demo",
        "uid": "uid-1",
        "controller": True,
        "blockOwnerDeletion": True,
    }
    return {
        "apiVersion": "slinky.slurm.net/v1beta1",
        "kind": "RestApi",
        "metadata": {"name": "demo", "namespace": "ns", "ownerReferences": [owner]},
        "spec": {"controllerRef": {"name": "demo"}, **spec},
    }  # fmt: skip


def live(made: dict, **spec) -> RestApi:
    """The object after `made` was applied, with what others did to it."""
    applied = stamped(made)
    return codec.read(RestApi, {**applied, "spec": {**applied["spec"], **spec}})


def test_a_field_that_is_no_longer_wanted_is_dropped_by_applying_without_it():
    before = live(manifest(slurmrestd={"image": "old"}))

    step = missing_part(manifest(), before, OWNER)

    assert (step.reason, "slurmrestd" in step.manifest["spec"]) == ("Updated", False)


def test_what_somebody_added_inside_a_field_of_ours_is_taken_out():
    ours = manifest(slurmrestd={"image": "ours"})

    step = missing_part(ours, live(ours, slurmrestd={"image": "ours", "args": ["-v"]}), OWNER)

    assert step.operations == ({"op": "add", "path": "/spec/slurmrestd", "value": {"image": "ours"}},)


def test_what_somebody_added_beside_our_fields_is_taken_out():
    step = missing_part(manifest(), live(manifest(), template={"spec": {"hostNetwork": True}}), OWNER)

    assert step.operations == ({"op": "remove", "path": "/spec/template"},)


def test_defaults_that_the_api_server_wrote_are_no_difference():
    everything = codec.plain(live(manifest()))["spec"]

    assert missing_part(manifest(), live(manifest(), **everything), OWNER) is None


def test_only_what_differs_from_the_default_was_said():
    spec = live(manifest(), replicas=1, service={"port": 8080, "spec": {}}).spec

    assert explicit_fields(spec) == {"controllerRef": {"name": "demo"}, "service": {"port": 8080}}


def test_our_own_kinds_are_kinds_that_can_be_written():
    for kind in KINDS:
        given = {"apiVersion": kind.KIND.api_version, "kind": kind.KIND.kind}
        assert kinds.kind_of(given) == kind.KIND


def test_every_kind_that_the_operator_composes_clusters_of_has_its_place_in_both_orders():
    composed = {one.model for one in registry.DEFAULT if one.use is registry.Use.MAKE}

    assert set(PART_TYPES) == composed
    assert set(FAREWELL) == {model.KIND.kind for model in composed}
