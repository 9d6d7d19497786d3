"""Faults of every kind while jobs run: no ledger is broken, and the books say the same."""

import pytest
from test_slurm_workers import cluster_of, operator
from worker_table import TABLE, in_words

from testing.docs import ROOT

__all__ = ["operator"]

pytestmark = pytest.mark.timeout(900)

# How long to look on after a fault. What goes wrong goes wrong at once.
A_WHILE = 5


ROWS = [pytest.param(row, id=str(row), marks=() if row.is_quick else pytest.mark.full) for row in TABLE]


@pytest.mark.parametrize("row", ROWS)
def test_no_job_is_lost(operator, row):
    with cluster_of(operator, keeps_books=True, **row.controller) as slurm:
        row.play(slurm, A_WHILE)


def test_the_documentation_has_the_same_table():
    assert in_words() in (ROOT / "docs/concepts/the-gate.md").read_text()
