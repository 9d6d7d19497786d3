"""Words in Slurm that other versions of the operator read and write. Nothing here changes; rows are added.

There is no way to have this file written again: a row that fails is a drain, or a note, that the other version
does not understand.
"""

from datetime import UTC, datetime

import pytest

from images.entry import leave
from slurm_operator.reconcilers.nebius.powerstate.wishes import FAILED_CAUSE
from slurm_operator.reconcilers.nodeset.creation import prestop_script
from slurm_operator.reconcilers.nodeset.worker import job_notices
from slurm_operator.reconcilers.nodeset.worker.drain_causes import Leaving, Staying
from slurm_operator.slurm import wire_words
from slurm_operator.slurm.reasons import OurReason

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
UID = "0d1e2f3a-0000-4000-8000-000000000000"


@pytest.mark.parametrize(
    ("written", "frozen"),
    [
        (OurReason("ScaleIn", "why", pod_uid=UID), f"slurm-operator: ScaleIn: why (pod {UID})"),
        (OurReason("ScaleIn", "why", made_until=NOON), "slurm-operator: ScaleIn: why (pods made until 2026-01-01T12:00:00Z)"),
        (wire_words.was_down("why"), "DOWN since the worker before it; why"),
        (wire_words.being_replaced("5f"), "being replaced by revision 5f"),
        (wire_words.being_replaced("5f", is_ahead=True), "being replaced by revision 5f, ahead of the others"),
        (job_notices.notice("gpu-1", "requeued", NOON, "Update", ""), "slurm-operator: gpu-1 is leaving (Update); this job is requeued at 2026-01-01 12:00:00 UTC"),
        (wire_words.note_of_start("gpu-1", "no image"), "slurm-operator: gpu-1 does not start: no image"),
        (wire_words.BETWEEN_NOTES, " | "),
        (FAILED_CAUSE, "PowerUpFailed"),
        (leave.drain_reason(UID), f"slurm-operator: PodTerminating: the pod is asked to end (pod {UID})"),
        (leave.drain_reason(""), "slurm-operator: PodTerminating: the pod is asked to end"),
    ],
)  # fmt: skip
def test_what_is_written_stays_as_it_is(written, frozen):
    assert str(written) == frozen


def test_the_causes_of_drains_stay_as_they_are():
    assert {str(one) for one in Leaving} >= {
        "ScaleIn", "Update", "ModeSwitch", "Deletion", "NodeUnfit", "Duplicate", "HostnameMismatch", "Unpinned", "Ended",
        "Retired", "Resources", "PodTerminating", "Forgotten",
    }  # fmt: skip
    assert {str(one) for one in Staying} >= {"NodeCordon", "NodeTaint", "PodCordon", "Unresponsive"}
    assert str(Leaving.TERMINATING) == wire_words.POD_TERMINATING


@pytest.mark.parametrize(
    ("text", "cause", "pod_uid", "until"),
    [
        ("slurm-operator: Update: why (pods made until 2026-01-01T12:00:00Z)", "Update", "", NOON),
        (f"slurm-operator: PodTerminating: the pod is asked to end (pod {UID})", "PodTerminating", UID, None),
        ("slurm-operator: NodeCordon: why (pod 0d1e) : Not responding", "NodeCordon", "0d1e", None),
        ("slurm-operator: ScaleIn: why (pods made until 2026-99-99T12:00:00Z)", "ScaleIn", "", None),
        ("slurm-operator: ScaleIn", "ScaleIn", "", None),
    ],
)
def test_what_was_written_once_is_understood(text, cause, pod_uid, until):
    read = OurReason.read(text)

    assert read is not None
    assert (read.cause, read.pod_uid, read.made_until) == (cause, pod_uid, until)


def test_notes_of_jobs_that_were_written_once_are_found():
    left = wire_words.NOTICE_OF_LEAVING.match(
        "slurm-operator: gpu-1 is leaving (Update); this job is requeued at 2026-01-01 12:00:00 UTC. Ask Ada"
    )
    starts = wire_words.NOTE_OF_START.match("slurm-operator: gpu-1 does not start: no image")

    assert left is not None
    assert (left["node"], left["at"]) == ("gpu-1", "2026-01-01 12:00:00")
    assert starts is not None
    assert starts["node"] == "gpu-1"


def test_a_worker_that_drains_itself_uses_the_same_words():
    begin = f"{wire_words.OUR_REASON_PREFIX}{wire_words.POD_TERMINATING}: "

    assert f'reason="{begin}' in prestop_script.LEAVE
    assert leave.drain_reason("").startswith(begin)


def test_the_comment_of_a_node_has_these_entries():
    assert {"namespace", "podName", "nodeSetName"} == wire_words.COMMENT_KEYS
