"""`slurm_operator.conditions`: every word that is told, and no other."""

import subprocess
import sys

import pytest

from slurm_operator.conditions import ConditionType, Reason
from slurm_operator.reconcilers.nodeset.worker.drain_causes import Leaving, Staying
from slurm_operator.safety.gate import ShutFor
from testing.said_reasons import given_reasons, said_types

# Their members become reasons of waits and deletions. That each has a name in `Reason` is checked when one is used.
BECOME_REASONS = (Leaving, ShutFor, Staying)


def test_every_type_of_a_condition_has_a_public_name_and_no_other_has():
    assert {str(one) for one in ConditionType} == said_types(), (
        "write it into src/slurm_operator/conditions.py"
    )


def test_no_reason_has_a_public_name_that_nothing_gives():
    given = given_reasons() | {str(one) for words in BECOME_REASONS for one in words}

    assert {str(one) for one in Reason} - given == set(), "delete it in src/slurm_operator/conditions.py"


@pytest.mark.parametrize("words", BECOME_REASONS)
def test_what_becomes_a_reason_is_one(words):
    assert [one for one in words if one not in set(Reason)] == []


def test_reasons_are_called_as_they_are_written_and_stand_in_order():
    assert [name.replace("_", "").lower() for name in Reason.__members__] == [one.lower() for one in Reason]
    assert list(Reason.__members__) == sorted(Reason.__members__)


def test_the_words_that_people_wait_for_are_among_them():
    assert (ConditionType.READY, ConditionType.DEGRADED, Reason.SLURM_UNREACHABLE) == (
        "Ready",
        "Degraded",
        "SlurmUnreachable",
    )


def test_whoever_imports_them_gets_nothing_else():
    code = "import sys, slurm_operator.conditions; print([n for n in sys.modules if n.startswith('slurm_operator.')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "['slurm_operator.conditions']"
