"""A NodeSet says whether a policy protects its workers: yes, no, or that nobody can tell, which is not no."""

import re

import pytest

from slurm_operator import wire
from slurm_operator.api.shared.conditions import Condition, Truth
from slurm_operator.plan.plan import Outcome, Plan
from slurm_operator.plan.world import Protection
from slurm_operator.reconcilers.nodeset import RECONCILER
from testing.workers import KEY, controller, nodeset, world


def told(protection: Protection, spec=None) -> Condition | None:
    made = world(spec or nodeset(replicas=0), controller())
    made.protection = protection
    report = RECONCILER.status(RECONCILER.observe(KEY, made), Plan(), Outcome())
    return next((one for one in report.conditions if one.type == "Protected"), None)


@pytest.mark.parametrize(
    ("protection", "status", "words"),
    [
        pytest.param(Protection.PROTECTED, Truth.TRUE, "A policy", id="there is one"),
        pytest.param(
            Protection.UNPROTECTED,
            Truth.FALSE,
            "unprotected: .*manifests --only-protection",
            id="there is none",
        ),
        pytest.param(
            Protection.UNKNOWN,
            Truth.UNKNOWN,
            "unknown: .*kubectl create clusterrolebinding",
            id="no right to look",
        ),
    ],
)
def test_protection_is_told_with_the_command_that_helps(protection, status, words):
    found = told(protection)

    assert found is not None
    assert found.status is status
    assert re.match(words, found.message)


def test_until_somebody_has_looked_it_stays_as_it_was():
    assert told(Protection.NOT_LOOKED) is None

    before = told(Protection.UNKNOWN)
    spec = nodeset(replicas=0)
    spec = wire.replace(spec, status=wire.replace(spec.status, conditions=[before]))
    assert told(Protection.NOT_LOOKED, spec) == before


def test_who_turned_protection_off_is_told_so():
    found = told(Protection.PROTECTED, nodeset(replicas=0, workloadDisruptionProtection=False))

    assert found is not None
    assert (found.status, found.reason) == (Truth.FALSE, "TurnedOff")
