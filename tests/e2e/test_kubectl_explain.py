"""Real faults on a real cluster: `kubectl slurm explain` names cause and remedy, and Ready comes back after the repair."""

import pytest
from faults import ANSWERS, FAULTS, WAITING
from operator_rig import install, until
from patient import PATIENCE_S, Patient

from slurm_local import image
from slurm_local.progress import Quiet

pytestmark = pytest.mark.timeout(900)

# One of Slurm, one of Kubernetes: in every run of the tests. All others in the long one.
ALWAYS = ("bad-image",)


@pytest.fixture(scope="module")
def patient(fragile_cluster, paths) -> Patient:
    """One Cluster for all faults, on machines of its own: some faults are theirs."""
    fragile_cluster.load_image(image.operator_archive(paths, Quiet()))
    install(fragile_cluster, image.OPERATOR_IMAGE)
    made = Patient(fragile_cluster)
    until(made.is_ready, PATIENCE_S, lambda: made.kubectl("get", "clusters"))
    made.wait_well()
    return made


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in ALWAYS else pytest.mark.full) for name in FAULTS]
)
def test_a_real_fault_is_named_with_its_remedy_and_ready_comes_back_when_it_is_mended(patient, name):
    fault = FAULTS[name]
    patient.wait_idle()
    story = fault.happens(patient)
    what = next(story)

    patient.wait_told(what, fault.cause, fault.remedy, well=name in WAITING)

    with pytest.raises(StopIteration):
        next(story)  # It is repaired.
    patient.wait_well()
    until(patient.is_ready, PATIENCE_S, lambda: patient.kubectl("get", "clusters"))


@pytest.mark.full
@pytest.mark.parametrize("name", ANSWERS)
def test_a_question_about_a_running_cluster_gets_the_right_answer(patient, name):
    asked = ANSWERS[name]
    patient.wait_idle()
    story = asked.happens(patient)
    what = next(story)

    patient.wait_told(what, asked.cause, asked.remedy, well=name in WAITING)

    with pytest.raises(StopIteration):
        next(story)
    patient.wait_well()


def test_there_are_twenty_five_faults():
    assert len(FAULTS) == 25
