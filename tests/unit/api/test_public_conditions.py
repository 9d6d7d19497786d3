"""`slurm_operator.conditions`: every word that is told, and no other."""

import subprocess
import sys

from slurm_operator.conditions import ConditionType, Reason
from testing.said_reasons import said

TYPES, REASONS = said()


def test_every_type_of_a_condition_has_a_public_name_and_no_other_has():
    assert {str(one) for one in ConditionType} == TYPES, "write it into src/slurm_operator/conditions.py"


def test_every_reason_has_a_public_name_and_no_other_has():
    assert {str(one) for one in Reason} == REASONS, "write it into src/slurm_operator/conditions.py"


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
