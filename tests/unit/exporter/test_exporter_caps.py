"""Hostile names, and more jobs than a page may have."""

from slurm_operator.exporter.facts import Facts
from slurm_operator.exporter.options import MOST_SERIES, Compat, Options
from slurm_operator.exporter.page import table
from slurm_operator.exporter.table import Histogram, capped, histogram, text
from slurm_operator.exporter.tallies import MOST_REASONS, Tallies
from unit.exporter.pages import NOW, jobs, labels, nodes, of, page, series

HOSTILE = 'x"} 1\nslurm_forged{a="\\" \x00\x1b[2J\r\u202e' + "é" * 400


def test_ten_thousand_jobs_fit_and_the_rest_is_cut_and_told():
    many = jobs(*({"job_id": number} for number in range(10_000)))
    facts = Facts(jobs=many)

    whole = table(facts, Tallies(), NOW, Options())
    cut = table(facts, Tallies(), NOW, Options(most_series=4_000))

    assert not whole.dropped
    assert all(family.size <= MOST_SERIES for family in whole.families)
    assert all(family.size <= 4_000 for family in cut.families)
    assert cut.dropped["slurm_job_info"] == 6_000
    assert set(cut.dropped) == {
        "slurm_job_info",
        "slurm_node_job",
        "slurm_job_duration_seconds",
        "slurm_job_cpus",
        "slurm_job_memory_bytes",
    }
    sums = of(series(text(cut.families, "demo").decode()), "slurm_queue_jobs")
    assert sum(sums.values()) == 10_000, "sums count what the cap leaves out"


def test_a_cap_leaves_out_ended_jobs_before_others():
    facts = Facts(
        jobs=jobs(
            {"job_id": 9, "job_state": ["COMPLETED"]},
            {"job_id": 1, "job_state": ["RUNNING"]},
            {"job_id": 5, "job_state": ["PENDING"], "nodes": ""},
        )
    )

    found = of(series(page(facts, Options(most_series=2, sums=False))), "slurm_job_info")

    assert {dict(one)["job_id"] for one in found} == {"1", "5"}


def test_a_histogram_is_cut_as_a_whole():
    some = [((str(number),), Histogram((1.0, 2.0)).observed(1.5)) for number in range(3)]

    found = capped([histogram("h", "about", ("n",), some)], 12)

    assert found.dropped == {"h": 5}
    assert of(series(text(found.families, "demo").decode()), "h_count") == {
        labels(n="0"): 1,
        labels(n="1"): 1,
    }


def test_hostile_names_neither_break_the_page_nor_forge_series():
    facts = Facts(
        nodes=nodes({"name": "w-0", "reason": HOSTILE, "comment": HOSTILE, "reservation": HOSTILE}),
        jobs=jobs(
            {"name": HOSTILE, "user_name": HOSTILE, "account": HOSTILE, "partition": HOSTILE},
            {"job_id": 2, "name": "\ud800half a character"},
        ),
    )
    for compat in Compat:
        found = page(facts, Options(compat=compat))
        known = series(found)

        assert not any(name.startswith("slurm_forged") for name, _ in known)
        assert all(char.isprintable() or char == "\n" for char in found)
        assert all(len(value) <= 256 for _, pairs in known for _, value in pairs)


def test_reasons_that_look_the_same_are_one_series():
    tallies = Tallies()
    fine = {"state": ["IDLE"], "reason": ""}
    at = 0.0
    for end in ("a", "b"):
        at += 30
        tallies.nodes_read(nodes(fine), at)
        tallies.nodes_read(nodes({"state": ["DOWN"], "reason": "r" * 300 + end}), at + 10)

    found = of(series(page(Facts(nodes=()), Options(), tallies)), "slurm_node_fails_total")

    assert list(found.values()) == [2]


def test_reasons_that_differ_each_time_do_not_fill_the_memory():
    tallies, failures = Tallies(), 3 * MOST_REASONS
    for number in range(failures):
        tallies.nodes_read(nodes({"state": ["IDLE"], "reason": ""}), number * 60.0)
        tallies.nodes_read(nodes({"state": ["DOWN"], "reason": f"at {number}"}), number * 60.0 + 30)

    found = of(series(page(Facts(nodes=()), Options(), tallies)), "slurm_node_fails_total")

    assert len(found) == MOST_REASONS + 1
    assert sum(found.values()) == failures
    tallies.nodes_read((), 1e6)
    assert not any((tallies.fails, tallies._reasons))
