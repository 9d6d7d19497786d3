"""Why a job waits, in words for people."""

import pytest

from slurm_operator.slurm.jobs.waiting_reasons import meaning


@pytest.mark.parametrize(
    ("reason", "words", "waits"),
    [
        ("Resources", "are busy", True),
        ("Priority", "higher priority", True),
        ("JobHeldUser", "its owner holds it", False),
        ("(JobHeldAdmin)", "an administrator holds it", False),
        ("job_requeued_in_held_state_Held", "on hold", False),
        ("QOSMaxJobsPerUserLimit", "limit of its QOS or account", True),
        ("AssocGrpCpuLimit", "limit of its QOS or account", True),
        ("ReqNodeNotAvail, UnavailableNodes:gpu-3", "insists on", False),
        ("BadConstraints", "no node of the cluster", False),
        ("PartitionInactive", "takes no jobs", False),
    ],
)
def test_a_reason_says_what_it_means_and_whether_to_wait_is_enough(
    reason: str, words: str, waits: bool
) -> None:
    found = meaning(reason)

    assert found is not None
    assert words in found.says
    assert found.waits is waits
    assert found.advice


def test_a_word_of_a_newer_slurm_has_no_meaning_yet() -> None:
    assert meaning("MoonInTheWrongHouse") is None
