"""A pod template that Slinky's operator made: kept while it is for the spec as it is, replaced when that changes."""

import copy

import pytest

from slurm_operator import wire
from slurm_operator.manifests.compare.differences import (
    INPUT_DIGEST,
    KEPT_TEMPLATE,
    TEMPLATE_DIGEST,
    settled_template,
)
from slurm_operator.manifests.meta import Child, decode_child
from testing import slinky

RECORDED = slinky.named(slinky.recorded(), "StatefulSet", "slurm-controller")
IMAGE = "docker.io/local/slurmctld:26.05"


def wanted(spec: str, image: str = IMAGE) -> dict:
    """What we would write for a spec: another template than Slinky's, of the same images."""
    return {
        "metadata": {"name": "slurm-controller", "annotations": {INPUT_DIGEST: spec}},
        "spec": {
            "template": {"metadata": {}, "spec": {"containers": [{"name": "slurmctld", "image": image}]}}
        },
    }


def live(manifest: dict | None = None, image: str = IMAGE, note: str = "") -> Child:
    """Slinky's StatefulSet, with the notes of what we wrote there last."""
    body = copy.deepcopy(RECORDED)
    template = body["spec"]["template"]
    template["spec"]["containers"][0]["image"] = image
    template["metadata"]["annotations"]["note"] = note
    if manifest is not None:
        body["metadata"]["annotations"] |= manifest["metadata"]["annotations"]
    return decode_child(wire.encode(body))


FIRST = settled_template(wanted("one"), live())  # Our write at the swap.


@pytest.mark.parametrize(
    ("desired", "there", "is_kept"),
    [
        pytest.param(wanted("one"), live(), True, id="the swap"),
        pytest.param(wanted("one", "new"), live(), False, id="the swap, and Slinky had not kept up"),
        pytest.param(wanted("one"), live(FIRST), True, id="the next pass"),
        pytest.param(wanted("two"), live(FIRST), False, id="the spec changes: that arrives"),
        pytest.param(wanted("two", "new"), live(FIRST), False, id="its image changes: that arrives"),
        pytest.param(wanted("one"), live(FIRST, note="other"), True, id="Slinky made another one meanwhile"),
        pytest.param(wanted("two"), live(FIRST, note="other"), True, id="for a spec that changed meanwhile"),
        pytest.param(wanted("two", "new"), live(FIRST, "new", "other"), True, id="and so did its image"),
        pytest.param(wanted("two", "new"), live(FIRST, note="other"), False, id="but Slinky had not kept up"),
    ],
)
def test_a_template_of_slinky_is_kept_while_it_is_for_the_spec_as_it_is(desired, there, is_kept):
    found = settled_template(desired, there)

    template = there.body["spec"]["template"] if is_kept else desired["spec"]["template"]
    assert found["spec"]["template"] == template
    assert (KEPT_TEMPLATE in found["metadata"]["annotations"]) is is_kept
    assert (TEMPLATE_DIGEST in found["metadata"]["annotations"]) is not is_kept


def test_a_template_of_ours_that_slinky_replaced_is_not_put_back():
    ours = settled_template(wanted("one"), None)

    assert settled_template(wanted("one"), live(ours))["spec"]["template"] == live().body["spec"]["template"]
