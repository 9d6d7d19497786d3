"""Take out any one part of a rule of the order in which workers go, and a contest of two of them notices.

That two rules change places, or that one is missing, is tried beside the contests.
"""

import pytest

from simulation.mutants import is_passed, mutated
from slurm_operator.reconcilers.nodeset.departures import scale_in_order
from slurm_operator.reconcilers.nodeset.workers import Worker
from unit.reconcilers.nodeset import test_nodeset_victims as victims

TESTS = [
    victims.test_of_two_the_one_whose_loss_costs_less_goes_first,
    victims.test_an_earlier_rule_beats_the_next_one,
    victims.test_what_was_begun_goes_on,
    victims.test_among_daemons_the_newest_goes_first,
]


def test_without_a_mutation_all_is_well():
    assert [test.__name__ for test in TESTS if not is_passed(test)] == []


@pytest.mark.parametrize(
    ("target", "old", "new"),
    [
        pytest.param(scale_in_order.is_surplus, "and worker.is_drained_itself", "", id="the drain is about an earlier pod"),
        pytest.param(scale_in_order.is_surplus, "ours.cause in SURPLUS and", "", id="drained for something else"),
        pytest.param(scale_in_order.is_free_surplus, "and not worker.jobs", "", id="its jobs are not over"),
        pytest.param(scale_in_order._drains_as_surplus, "return 0", "return 2", id="it was chosen before"),
        pytest.param(scale_in_order._drains_as_surplus, "return 1 if", "return 2 if", id="it may have been chosen"),
        pytest.param(scale_in_order._drains_as_surplus, "return 1 if", "return 0 if", id="who was for certain comes before who may"),
        pytest.param(scale_in_order.deletion_cost, "_COST.fullmatch(text) and", "", id="a cost that is no number"),
        pytest.param(scale_in_order._deadline, "not worker.jobs", "False", id="idle before busy"),
        pytest.param(Worker.deadline, "max(", "min(", id="the last of its jobs"),
        pytest.param(Worker.deadline, "job.deadline or FOREVER", "job.deadline or job.start_time", id="a job without limit"),
        pytest.param(scale_in_order._newest_first, "-moment.timestamp()", "moment.timestamp()", id="the newest first"),
        pytest.param(scale_in_order._rank, '"Unknown": 1', '"Unknown": 0', id="pending before unknown"),
        pytest.param(scale_in_order._rank, "worker.is_user_cordoned or worker.is_node_cordoned", "worker.is_user_cordoned", id="a cordoned machine"),
        pytest.param(scale_in_order._rank, "worker.is_user_cordoned or worker.is_node_cordoned", "worker.is_node_cordoned", id="a cordoned worker"),
    ],
)  # fmt: skip
def test_one_part_less_is_noticed(target, old, new):
    with mutated(target, old, new):
        assert not all(is_passed(test) for test in TESTS)
