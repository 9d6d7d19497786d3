"""Anybody may write annotations: whatever stands there, we read it as ours or as nothing."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from slurm_operator.manifests.builders import key_ring
from slurm_operator.manifests.meta import Meta
from slurm_operator.manifests.moments import moment
from slurm_operator.manifests.objects import Pod, Secret
from slurm_operator.reconcilers.controller import annotations as marks
from slurm_operator.reconcilers.controller.configuration import config_state
from slurm_operator.reconcilers.token.observe import EXPIRES_AT, ISSUED_AT, KEY_DIGEST, USERNAME, issued_in

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)

years = st.sampled_from(["0001", "1969", "2026", "8999", "9999"])
offsets = st.sampled_from(["", "Z", "+00:00", "+14:00", "-23:59"])
times = st.builds("{}-12-31T23:59:59{}".format, years, offsets)
numbers = st.sampled_from(["0", "7", "-1", "\N{ARABIC-INDIC DIGIT SEVEN}", "9" * 5000])
notes = st.text(max_size=8) | times | st.builds("{} {} {}".format, st.just("a1b2"), numbers, times)


# A loaded machine is no finding.
patient = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


def notes_of(*names: str) -> st.SearchStrategy[dict[str, str]]:
    return st.fixed_dictionaries({}, optional=dict.fromkeys(names, notes))


def noted(annotations: dict[str, str]) -> Meta:
    return Meta(name="it", namespace="ns", annotations=annotations)


@patient
@given(notes)
def test_any_note_is_a_time_to_count_from_or_none(text: str) -> None:
    found = moment(text)
    assert found is None or found + timedelta(days=1) > min(found, NOW)


@pytest.mark.parametrize(
    "text", ["2026-01-01T12:00:00", "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59+00:00", ""]
)
def test_a_time_that_nobody_can_count_from_is_none(text: str) -> None:
    assert moment(text) is None


@patient
@given(notes_of(key_ring.SIGNS, key_ring.NEXT, key_ring.FORMER, key_ring.SINCE))
def test_any_notes_on_a_key_ring_are_a_ring_or_none(annotations: dict[str, str]) -> None:
    entries = {f"key-{value}": "digest" for value in annotations.values()}
    found = key_ring.ring_of(Secret(metadata=noted(annotations), digests=entries))
    assert (
        found is None or found.since is None or found.since + timedelta(seconds=100) > min(found.since, NOW)
    )


@patient
@given(notes_of(ISSUED_AT, EXPIRES_AT, USERNAME, KEY_DIGEST))
def test_any_notes_on_a_token_are_a_token_or_none(annotations: dict[str, str]) -> None:
    found = issued_in(Secret(metadata=noted(annotations)))
    assert found is None or (found.until - found.at) * 0.8 <= timedelta.max


@patient
@given(notes_of(marks.FILES_SENT, marks.RECONFIGURE_ASKED))
def test_any_notes_on_a_pod_of_slurmctld_are_read(annotations: dict[str, str]) -> None:
    class Seen:
        pods = (Pod(metadata=noted(annotations)),)

    assert config_state.sent(Seen.pods[0])[1] + timedelta(seconds=2) != NOW
    assert config_state.asked(Seen)[1] >= 0
