"""What a seed decides."""

import random
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from chaos import clock
from chaos.faults import FAULTS, Sort, faults_of
from chaos.scenario import draw
from chaos.subjects import COMPONENTS, EVERY, PLAIN, SHARED_ROOT

SEEDS = range(1, 201)
ROOT = Path(__file__).parents[3]


def told(seed: int) -> str:
    """Everything that is drawn, with the first choice of every fault."""
    drawn = draw(seed, COMPONENTS)
    choices = [drawn.chance(fault).random() for fault in drawn.faults]
    return repr(([fault.name for fault in drawn.faults], drawn.jobs, drawn.later, drawn.pauses, choices))


def test_a_seed_draws_the_same_in_another_process():
    program = f"import sys; sys.path += ['tests/e2e', 'tests/unit/chaos']; from {__name__} import told; print(told(7))"
    printed = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout

    assert printed.strip() == told(7)


def test_seeds_differ():
    assert len({told(seed) for seed in SEEDS}) == len(SEEDS)


@pytest.mark.parametrize("subject", EVERY, ids=lambda subject: type(subject).__name__)
def test_every_run_is_about_all_workers_while_something_breaks(subject):
    for seed in SEEDS:
        sorts = Counter(fault.sort for fault in draw(seed, subject).faults)

        assert sorts[Sort.MASS] == 1, seed
        assert sorts[Sort.WISH] <= 1, seed
        assert 1 <= sorts[Sort.WEATHER] <= 2, seed
        assert sorts[Sort.DEADLY] <= 1, seed


@pytest.mark.parametrize("subject", EVERY, ids=lambda subject: type(subject).__name__)
def test_two_hundred_seeds_draw_every_fault_that_can_happen_to_this_cluster(subject):
    drawn = {fault.name for seed in SEEDS for fault in draw(seed, subject).faults}

    assert drawn == set(faults_of(subject))


def test_what_can_happen_depends_on_the_api():
    ours, root = set(faults_of(COMPONENTS)), set(faults_of(SHARED_ROOT))

    assert set(faults_of(PLAIN)) == ours
    assert ours - root == {"mode switched", "slurmd killed"}
    assert root - ours == {
        "maintenance",
        "part of the NodeSet deleted",
        "SlurmCluster deleted",
        "slurmd killed under supervisord",
        "munged killed",
        "writer of the root killed",
    }


def test_what_loses_jobs_without_any_operator_is_not_drawn_together():
    for seed in SEEDS:
        things = Counter(thing for fault in draw(seed, SHARED_ROOT).faults for thing in fault.about)
        assert not things or max(things.values()) == 1, seed


def test_a_disk_is_never_full_while_slurmctld_is_killed():
    assert FAULTS["disk full for slurmctld"].clashes(FAULTS["slurmctld killed"])


def test_only_draws_from_those_alone():
    wanted = {"scale in", "slurmctld killed"}

    for seed in SEEDS:
        assert {fault.name for fault in draw(seed, COMPONENTS, wanted).faults} == wanted


def test_what_a_fault_chooses_does_not_depend_on_the_faults_before_it():
    drawn = draw(11, COMPONENTS)
    alone = drawn.chance(drawn.faults[-1]).random()
    for fault in drawn.faults[:-1]:
        drawn.chance(fault).random()

    assert drawn.chance(drawn.faults[-1]).random() == alone


def test_the_operators_clock_is_wrong_by_seconds_or_by_minutes_either_way():
    """Steps of 11 to 23 s back once made an old answer of Slurm look new; minutes did not."""
    steps = [clock.drawn(random.Random(seed)) for seed in range(200)]

    assert all(2 <= abs(step) <= 600 for step in steps)
    for least, most in ((-600, -61), (-60, -2), (2, 60), (61, 600)):
        assert sum(least <= step <= most for step in steps) > 20
