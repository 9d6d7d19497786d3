"""Faults of every kind while jobs run: no ledger is broken, and the books say the same."""

import pytest
from test_slurm_workers import cluster_of, operator
from worker_table import TABLE

__all__ = ["operator"]

pytestmark = pytest.mark.timeout(900)

# How long to look on after a fault. What goes wrong goes wrong at once.
A_WHILE = 5


@pytest.mark.parametrize("row", [row for row in TABLE if row.is_quick], ids=str)
def test_no_job_is_lost(operator, row):
    with cluster_of(operator, **row.controller) as slurm:
        row.play(slurm, A_WHILE)


@pytest.mark.full
@pytest.mark.parametrize("row", [row for row in TABLE if not row.is_quick], ids=str)
def test_no_job_is_lost_in_rarer_cases(operator, row):
    with cluster_of(operator, keeps_books=True, **row.controller) as slurm:
        row.play(slurm, A_WHILE)
