"""What an operator is asked for so that it can be compared with another, and when it has done it."""

import pytest
from operator_rig import Slurm

from chaos import baseline
from chaos import manifests as wanted
from slurm_local.cluster import Cluster
from slurm_local.paths import Paths


@pytest.fixture
def slurm(tmp_path):
    """A Slurm cluster that only has manifests."""
    return Slurm(Cluster("nowhere", Paths(tmp_path, tmp_path)), "chaos")


def specs(manifests):
    return {each["kind"]: each["spec"] for each in manifests}


def test_plain_words_ask_for_nothing_that_only_our_operator_has(slurm):
    ours, asked = specs(wanted.components(slurm)), specs(baseline.components(slurm))

    assert list(asked) == list(ours)
    assert "managed" in ours["Accounting"]
    assert "managed" not in asked["Accounting"]
    assert "oversubscribeNode" in ours["NodeSet"]
    assert "oversubscribeNode" not in asked["NodeSet"]
    assert asked["NodeSet"]["replicas"] == ours["NodeSet"]["replicas"]


def test_every_secret_that_plain_words_name_is_there_before(slurm):
    made = {
        each["metadata"]["name"]: set(each["data"])
        for each in baseline.surroundings("chaos")
        if each["kind"] == "Secret"
    }
    asked = specs(baseline.components(slurm))
    named = [
        asked["Accounting"]["storageConfig"]["passwordKeyRef"],
        *(asked[kind][key] for kind in ("Accounting", "Controller") for key in ("slurmKeyRef", "jwtKeyRef")),
    ]

    assert all(each["key"] in made[each["name"]] for each in named)


WHOLE = {"observedGeneration": 2, "replicas": 4, "updatedReplicas": 4, "readyReplicas": 4}


@pytest.mark.parametrize(
    ("status", "is_well"),
    [
        pytest.param(WHOLE, True, id="as many as wanted, all new and Ready"),
        pytest.param(
            {**WHOLE, "observedGeneration": 1}, False, id="the operator has not seen the last change"
        ),
        pytest.param({**WHOLE, "replicas": 5}, False, id="one too many"),
        pytest.param({**WHOLE, "updatedReplicas": 3}, False, id="one is of an old revision"),
        pytest.param({**WHOLE, "readyReplicas": 3}, False, id="one is not Ready"),
        pytest.param({}, False, id="nothing is known yet"),
    ],
)
def test_counts_tell_when_all_is_well_where_there_are_no_conditions(status, is_well):
    found = {"metadata": {"name": "cpu", "generation": 2}, "status": status}

    assert (baseline.lack(found, 4) == "") is is_well
