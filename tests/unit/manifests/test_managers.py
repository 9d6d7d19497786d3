"""Fields that Slinky's operator wrote become ours, with who wrote what else as it was."""

from slurm_operator import wire
from slurm_operator.manifests.managers import has_theirs, taken_over
from slurm_operator.manifests.meta import decode_child
from testing import slinky

BUDGET = slinky.named(slinky.recorded(), "PodDisruptionBudget", "slurm-workers-pdb-slurm")
THEIRS, STATUS = BUDGET["metadata"]["managedFields"]
OURS = {
    **THEIRS,
    "manager": "slurm-operator",
    "operation": "Apply",
    "fieldsV1": {"f:spec": {"f:minAvailable": {}, "f:selector": {}}},
}


def test_what_was_recorded_has_fields_of_theirs_and_what_we_applied_has_none():
    assert has_theirs([THEIRS, STATUS])
    assert not has_theirs([OURS, STATUS]), "the status is written by Kubernetes"
    assert not has_theirs([{**THEIRS, "subresource": "status"}])
    assert decode_child(wire.encode(BUDGET)).has_others
    assert "managedFields" not in decode_child(wire.encode(BUDGET)).body["metadata"]


def test_their_fields_are_ours_afterwards_beside_those_that_we_applied():
    [kept, ours] = taken_over([THEIRS, OURS, STATUS])

    assert kept == STATUS
    assert (ours["manager"], ours["operation"]) == ("slurm-operator", "Apply")
    assert ours["fieldsV1"]["f:spec"] == {"f:maxUnavailable": {}, "f:minAvailable": {}, "f:selector": {}}
    assert "f:ownerReferences" in ours["fieldsV1"]["f:metadata"]


def test_an_object_that_we_never_applied_is_taken_over_as_it_is():
    [_, ours] = taken_over([THEIRS, STATUS])

    assert ours["fieldsV1"] == THEIRS["fieldsV1"]
    assert not has_theirs([ours, STATUS])
