import pytest

from slurm_operator import wire
from slurm_operator.api.shared.meta import ObjectKey
from slurm_operator.conditions import Reason
from slurm_operator.manifests import kinds
from slurm_operator.plan.actions import Apply, Create, DeleteDaemonPod, DeleteObject, Wait, subject
from slurm_operator.plan.plan import Plan, lane, plan

POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"namespace": "ns", "generateName": "gpu-"}}
SERVICE = {"apiVersion": "v1", "kind": "Service", "metadata": {"namespace": "ns", "name": "slurm"}}


def test_a_pod_is_never_deleted_without_the_gate():
    with pytest.raises(ValueError, match="proof from the gate"):
        DeleteObject(kind=kinds.POD, key=ObjectKey("ns", "gpu-0"), uid="u", reason="X", message="x")


def test_a_pod_with_jobs_in_it_is_no_daemon_pod():
    with pytest.raises(ValueError, match="with a proof"):
        DeleteDaemonPod(key=ObjectKey("ns", "gpu-0"), uid="u", app="slurmd", reason="X", message="x")


def test_a_plan_can_be_written_down_and_read_back():
    before = plan(
        lane("children", [Apply(manifest=SERVICE, reason=Reason.UPDATED, message="spec.ports")]),
        lane("workers", [Create(manifest=POD, reason=Reason.SCALING_UP, message="one more")],
             [Wait(subject="gpu-3", reason=Reason.DRAINING, message="2 jobs are left")]),
    )  # fmt: skip

    assert wire.decode(wire.encode(before), Plan) == before


def test_empty_lanes_and_stages_are_left_out():
    assert plan(lane("nothing", [], [])) == Plan()
    assert Plan().is_idle


@pytest.mark.parametrize(
    ("action", "name"),
    [
        (Apply(manifest=SERVICE, reason="R", message="m"), "Service ns/slurm"),
        (Create(manifest=POD, reason="R", message="m"), "Pod ns/gpu-…"),
        (
            DeleteObject(kind=kinds.SECRET, key=ObjectKey("ns", "x"), uid="u", reason="R", message="m"),
            "Secret ns/x",
        ),
        (Wait(subject="gpu-3", reason="R", message="m"), "gpu-3"),
    ],
)
def test_an_action_says_what_it_is_about(action, name):
    assert subject(action) == name
