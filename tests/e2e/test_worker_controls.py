"""The cases of the table once more, with the one thing taken out that keeps their jobs alive: each loses one."""

import pytest
from job_ledger import JobLost, Ledger
from operator_rig import Slurm
from test_slurm_workers import cluster_of, operator
from worker_table import HOLES, TABLE, Row

from slurm_local.errors import LocalError

__all__ = ["operator"]

pytestmark = [pytest.mark.timeout(900), pytest.mark.full]

# Longer than an answer of Slurm counts and then the grace period of any pod that is deleted here take together:
# its job has to be dead before it is let go.
LONG_ENOUGH = 75


@pytest.fixture(scope="module")
def holed(request, operator):
    """All rows with the same hole are played one after the other."""
    with HOLES[request.param](operator):
        yield operator


# Those with the same hole together, as it takes a while to make one.
ROWS = [(hole, row) for hole in HOLES for row in TABLE if row.hole == hole]


@pytest.mark.parametrize(("holed", "row"), ROWS, ids=str, indirect=["holed"], scope="module")
def test_with_a_hole_in_the_gate_the_same_case_loses_a_job(holed, row):
    with cluster_of(holed, **row.controller) as slurm:
        assert loses_a_job(row, slurm)


def loses_a_job(row: Row, slurm: Slurm) -> bool:
    """A case may notice first that something else is not in order; then the ledgers are asked."""
    try:
        row.play(slurm, LONG_ENOUGH)
    except JobLost:
        return True
    except (AssertionError, LocalError):
        return any(job.is_lost() for job in Ledger.of[slurm.namespace])
    return False
