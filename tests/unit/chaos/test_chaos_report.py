"""Lines of JSON, the page that is made of them, and the proxy that spoils answers."""

from pathlib import Path

import pytest

from chaos import record
from chaos.compared import compared
from chaos.figures import share
from chaos.proxy import Proxy
from chaos.record import Result
from chaos.report import comparison, page, ranges, slurmcluster

ROOT = Path(__file__).parents[3]
RESULTS = ROOT / "chaos" / "results"


def result(seed: int, **changes: object) -> Result:
    facts: dict[str, object] = {
        "faults": ("scale in", "slurmctld killed"), "missed": (), "jobs": 8, "opportunities": 3, "in_the_dark": 4,
        "lost": (), "excused": 0, "never_started": 1, "settled_s": 10.0, "took_s": 20.0,
    }  # fmt: skip
    return Result(seed=seed, **{**facts, **changes})


def test_an_interrupted_series_keeps_every_finished_run(tmp_path):
    file = tmp_path / "deep" / "series.jsonl"
    for seed in (3, 1):
        record.append(file, result(seed))

    assert [each.seed for each in record.read([file])] == [1, 3]
    assert record.read([tmp_path / "nothing yet"]) == []


def test_batches_add_up_and_the_last_play_of_a_seed_counts(tmp_path):
    first, second = tmp_path / "first.jsonl", tmp_path / "second.jsonl"
    record.append(first, result(1, lost=(17,)))
    record.append(first, result(2))
    record.append(second, result(1))

    assert [each.lost for each in record.read([first, second])] == [(), ()]
    assert [each.lost for each in record.failed([first, second])] == [(17,)]


@pytest.mark.parametrize(
    ("changes", "is_good"),
    [({}, True), ({"lost": (4,)}, False), ({"trouble": "does not settle"}, False), ({"excused": 2}, True)],
)
def test_a_run_is_good_when_no_job_was_lost_and_it_settled(changes, is_good):
    assert result(1, **changes).is_good is is_good


def test_the_page_sets_the_control_beside_the_same_seeds():
    whole = [result(1), result(2), result(3)]
    said = page(whole, [], [result(2, lost=(5, 6)), result(3, lost=(7,))], "a machine")

    assert "| runs | 3 | 2 | 2 |" in said
    assert "| **jobs lost** | **0** | **0** | **3** |" in said
    assert "| runs that lost a job | 0 | 0 | 2 |" in said
    assert "a machine" in said


@pytest.mark.parametrize(
    ("results", "words"),
    [
        pytest.param(
            [result(seed) for seed in range(200)], "no job lost: met.", id="200 runs, 600 opportunities"
        ),
        pytest.param([result(1)], "**not met yet**, with 1 runs and 3 opportunities", id="a short series"),
        pytest.param(
            [result(seed, opportunities=2) for seed in range(200)],
            "**not met yet**",
            id="too few opportunities",
        ),
        pytest.param(
            [result(seed, lost=(1,) if seed == 7 else ()) for seed in range(200)],
            "**not met yet**",
            id="a lost job",
        ),
    ],
)
def test_the_page_says_whether_enough_was_played(results, words):
    assert words in page(results, [], [], "a machine")


def test_the_page_in_the_docs_is_what_the_results_say():
    files, control = [RESULTS / "series.jsonl"], [RESULTS / "control.jsonl"]
    shown = (ROOT / "docs" / "decisions" / "chaos.md").read_text()
    described = shown.partition("Machine: ")[2].partition(". Other work")[0]

    said = page(
        record.read(files),
        record.failed(files),
        record.read(control),
        described,
        comparison(),
        slurmcluster(),
    )
    assert said == shown


def test_two_operators_are_compared_by_the_seeds_that_both_have_played():
    ours = [result(1), result(2), result(3)]
    other = [
        result(2, lost=(5, 6), faults=("worker pod deleted by hand",), missed=("operator's clock wrong",)),
        result(3, lost=(7,), settled_s=-1.0, trouble="does not settle"),
        result(4),
    ]

    said = compared(ours, other, "theirs").splitlines()

    assert said[0] == "| | ours | theirs |"
    assert "| runs | 2 | 2 |" in said
    assert "| **jobs lost** | **0** | **3** |" in said
    assert "| runs that did not settle | 0 | 1 |" in said
    assert "| jobs lost in runs where nobody deleted a worker or the NodeSet | 0 | 1 |" in said
    assert said[-2:] == [
        "| 2 | scale in, slurmctld killed | lost no job, settled in 10 s | "
        "lost 2 of 8 jobs, settled in 10 s; not hit by: operator's clock wrong |",
        "| 3 | scale in, slurmctld killed | lost no job, settled in 10 s | lost 1 of 8 jobs, did not settle |",
    ]


def test_a_comparison_without_common_seeds_says_so():
    assert compared([result(1)], [result(2)], "theirs") == "Nobody has been compared yet."


def test_the_page_names_seeds_that_had_failed():
    before = [result(2, lost=(9,), trouble="does not settle", settled_s=-1.0)]
    said = page([result(1), result(2)], before, [], "a machine")

    assert "| 2 | lost 1 of 8 jobs, did not settle | lost no job, settled in 10 s |" in said


def test_the_page_counts_what_hit_and_what_found_nothing():
    said = page([result(1), result(2, missed=("scale in",), faults=())], [], [], "a machine")

    assert "| scale in | mass | 1 | 1 |" in said
    assert "| machine unplugged | deadly | 0 | 0 |" in said


@pytest.mark.parametrize(
    ("values", "part", "expected"),
    [([], 0.5, 0), ([3], 0.95, 3), ([1, 2, 3, 4], 0.5, 2), (range(1, 101), 0.95, 95), ([5, 1], 1.0, 5)],
)
def test_a_share_is_a_value_that_was_measured(values, part, expected):
    assert share(values, part) == expected


@pytest.mark.parametrize(
    ("seeds", "words"),
    [([], "none"), ([4], "4"), ([1, 2, 3], "1 to 3"), ([1, 2, 7, 9, 10], "1 to 2, 7, 9 to 10")],
)
def test_seeds_that_follow_each_other_are_told_as_one(seeds, words):
    assert ranges(seeds) == words


REQUEST = b"GET /slurm/v0.0.45/nodes/ HTTP/1.1\r\nHost: x\r\nX-SLURM-USER-TOKEN: good.token\r\n\r\n"


def test_tokens_are_exchanged_for_an_expired_one():
    sent = Proxy("expired", b"old.token").request(REQUEST)

    assert b"X-SLURM-USER-TOKEN: old.token\r\n\r\n" in sent
    assert b"good" not in sent


def test_bearer_tokens_too():
    sent = Proxy("expired", b"old").request(b"GET / HTTP/1.1\r\nAuthorization: Bearer good\r\n\r\n")

    assert sent == b"GET / HTTP/1.1\r\nAuthorization: Bearer old\r\n\r\n"


@pytest.mark.parametrize("mode", ["slow", "truncated"])
def test_other_requests_pass_unchanged(mode):
    assert Proxy(mode, b"").request(REQUEST) == REQUEST


def test_half_an_answer_is_truncated():
    assert Proxy("truncated", b"").answer(b"12345678") == b"1234"
    assert Proxy("slow", b"").answer(b"12345678") == b"12345678"
