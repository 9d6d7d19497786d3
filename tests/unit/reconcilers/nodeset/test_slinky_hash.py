"""The hash that Slinky's operator gives to a spec: one that it was recorded with, others that Go code gave."""

import pytest

from slurm_operator.api.schema import codec
from slurm_operator.api.slinky.nodeset import NodeSet
from slurm_operator.manifests.compare.go_pods import canonical
from slurm_operator.reconcilers.nodeset.creation.slinky_hash import patch, their_hash
from testing import slinky


def nodeset(spec: dict) -> NodeSet:
    return codec.read(
        NodeSet, {"metadata": {"name": "w"}, "spec": {"controllerRef": {"name": "slurm"}, **spec}}
    )


@pytest.mark.parametrize(("spec", "hash_"), slinky.hashes())
def test_a_spec_has_the_hash_that_slinky_gives_it(spec, hash_):
    assert their_hash(nodeset({"oversubscribeNode": False, **spec})) == hash_


def test_what_was_recorded_has_the_data_and_the_hash_that_were_recorded():
    objects = slinky.recorded()
    recorded = codec.read(NodeSet, slinky.named(objects, "NodeSet", "w"))
    revision = slinky.named(objects, "ControllerRevision", f"w-{slinky.HASH}")

    assert patch(recorded.spec) == revision["data"]
    assert (
        their_hash(recorded) == revision["metadata"]["labels"]["controller.kubernetes.io/hash"] == slinky.HASH
    )


@pytest.mark.parametrize(
    ("given", "written"),
    [
        ("1000m", "1"), ("1", "1"), (1, "1"), (0.5, "500m"), ("1500m", "1500m"), ("1000", "1k"), ("0", "0"),
        ("1024Mi", "1Gi"), ("1.5Gi", "1536Mi"), ("512Ki", "512Ki"), ("0.5Ki", "512"), ("1e3", "1e3"),
        ("1E6", "1E6"), ("5e-1", "500e-3"), ("100u", "100u"), ("12E", "12E"), ("no amount", "no amount"),
    ],
)  # fmt: skip
def test_a_quantity_is_written_as_go_writes_it(given, written):
    assert canonical(given) == written
