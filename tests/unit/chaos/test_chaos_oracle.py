"""Which jobs count as lost, and which hits as opportunities."""

import os

import pytest

from chaos.impact import ALL, EVERYBODY, Blow
from chaos.jobs import Fate, Job, busy, fate

START = "start 7 1700000000 cpu-1"


@pytest.mark.parametrize(
    ("lines", "is_excused", "expected"),
    [
        pytest.param([START, "beat", "end"], False, Fate.KEPT, id="it ran to its end"),
        pytest.param([START, "beat"], False, Fate.LOST, id="it stopped beating"),
        pytest.param([START], False, Fate.LOST, id="it stopped before its first beat"),
        pytest.param([START, "beat", START, "beat", "end"], False, Fate.LOST, id="it was started twice"),
        pytest.param([START, "end", "end"], False, Fate.LOST, id="it ended twice"),
        pytest.param([START, "end", "beat"], False, Fate.LOST, id="something wrote after its end"),
        pytest.param([], False, Fate.NEVER_STARTED, id="it never ran"),
        pytest.param([START, "beat"], True, Fate.EXCUSED, id="its machine was unplugged"),
        pytest.param([START, "end"], True, Fate.KEPT, id="excused, and it ended all the same"),
    ],
)
def test_a_job_is_lost_unless_it_started_once_and_ended_by_itself(lines, is_excused, expected):
    assert fate(lines, is_excused=is_excused) is expected


def test_a_job_runs_where_its_ledger_says_until_it_ends(tmp_path):
    job = Job(tmp_path / "ledger", 5)
    assert (job.node, job.number, job.started_at) == (None, None, 0.0)

    job.ledger.write_text(f"{START}\nbeat\n")
    assert (job.node, job.number, job.started_at) == ("cpu-1", 7, 1700000000.0)
    assert busy([job]) == {"cpu-1"}
    assert job.is_beating()

    job.ledger.write_text(f"{START}\nbeat\nend\n")
    assert (job.node, busy([job]), job.is_beating()) == (None, frozenset(), False)


def test_a_silent_job_does_not_beat(tmp_path):
    job = Job(tmp_path / "ledger", 5)
    job.ledger.write_text(f"{START}\nbeat\n")
    os.utime(job.ledger, (0, 0))

    assert not job.is_beating()
    assert job.fate is Fate.LOST


@pytest.mark.parametrize(
    ("blow", "with_jobs", "expected"),
    [
        pytest.param(EVERYBODY, ALL, 4, id="all of them"),
        pytest.param(EVERYBODY, {"cpu-0"}, 1, id="only where a job runs"),
        pytest.param(Blow(frozenset({"cpu-2"})), {"cpu-0"}, 0, id="a worker without a job"),
        pytest.param(Blow(ALL, spared=3), ALL, 1, id="scale in to three: one has to go"),
        pytest.param(Blow(ALL, spared=3), {"cpu-0", "cpu-1"}, 0, id="the idle ones may be those that go"),
        pytest.param(Blow(), ALL, 0, id="a broken daemon is about no worker"),
        pytest.param(EVERYBODY, {"node-1"}, 0, id="not a worker of ours"),
    ],
)
def test_an_opportunity_is_a_node_that_was_hit_for_certain_while_a_job_ran_there(blow, with_jobs, expected):
    assert blow.opportunities(frozenset(with_jobs)) == expected
