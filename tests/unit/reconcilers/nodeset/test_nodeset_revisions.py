"""Revisions: only a change of mind makes one, and whoever goes back finds the old one again."""

import pytest

from slurm_operator import wire
from slurm_operator.api.schema import codec
from slurm_operator.manifests.meta import Child
from slurm_operator.plan.actions import Create, DeleteObject, PatchObject
from slurm_operator.reconcilers.nodeset.creation import revisions
from testing.workers import controller, nodeset, planned, revision_of, told, worker, world


def meant(text: str, **spec):
    return nodeset(replicas=1, extraConf=text, **spec)


def numbered(child: Child, number: int) -> Child:
    return wire.replace(child, body={**child.body, "revision": number})


def history(*texts: str) -> list[Child]:
    """What was meant, one after the other, and remembered."""
    return [numbered(revision_of(meant(text)), number) for number, text in enumerate(texts, 1)]


def hash_of(child: Child) -> str:
    return child.metadata.labels["controller-revision-hash"]


def seen(spec, there, *, at: Child):
    return world(spec, controller(), worker(0, revision=hash_of(at)), revisions_=there)


def steps(made) -> list[str]:
    """What happens to the history."""
    found = []
    for action in planned(made).actions():
        match action:
            case Create(manifest={"kind": "ControllerRevision", "revision": number}):
                found.append(f"new {number}")
            case PatchObject(reason="RolledBack", operations=({"value": number},)):
                found.append(f"again as {number}")
            case DeleteObject(key=key):
                found.append(f"forget {key.name}")
    return found


CHART = {
    "helm.sh/chart": "slurm-1.3.0",
    "app.kubernetes.io/part-of": "slurm",
    "app.kubernetes.io/version": "26.05",
    "app.kubernetes.io/managed-by": "Helm",
}
ONE, TWO, THREE = history("Weight=1", "Weight=2", "Weight=3")


@pytest.mark.parametrize(
    ("made", "story"),
    [
        pytest.param(seen(meant("Weight=1"), [ONE], at=ONE), [], id="as it was"),
        pytest.param(seen(meant("Weight=2"), [ONE], at=ONE), ["new 2"], id="a change of mind"),
        pytest.param(seen(meant("Weight=1"), [ONE, TWO], at=TWO), ["again as 3"], id="back to what was meant before"),
        pytest.param(seen(meant("Weight=1"), [numbered(ONE, 3), TWO], at=TWO), [], id="and only once"),
        pytest.param(
            seen(meant("Weight=3", revisionHistoryLimit=0), [ONE, TWO, THREE], at=TWO), [f"forget {ONE.metadata.name}"],
            id="the history is full: what a worker still has is kept",
        ),
        pytest.param(seen(meant("Weight=3", revisionHistoryLimit=1), [ONE, TWO, THREE], at=THREE), [f"forget {ONE.metadata.name}"], id="the oldest goes first"),
        pytest.param(seen(meant("Weight=3", revisionHistoryLimit=10), [ONE, TWO, THREE], at=THREE), [], id="there is room"),
    ],
)  # fmt: skip
def test_the_history_of_what_was_meant(made, story):
    assert steps(made) == story


def test_workers_go_back_to_a_revision_under_its_old_hash():
    made = seen(meant("Weight=1"), [ONE, TWO], at=TWO)

    assert revisions.current(meant("Weight=1"), [ONE, TWO]).hash == hash_of(ONE)
    assert [step for step in told(made) if "gpu-0" in step], "the worker of the other revision is replaced"


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param({"template": {"spec": {}}}, id="an empty map"),
        pytest.param({"slurmd": {"env": []}}, id="an empty list"),
        pytest.param({"template": {"metadata": {"labels": CHART}}}, id="labels of a chart"),
        pytest.param({"updateStrategy": {"type": "OnDelete"}}, id="how workers go is not what they are"),
        pytest.param({"drainPolicy": {"type": "Wait"}}, id="nor how long they are waited for"),
    ],
)
def test_what_means_the_same_is_no_new_revision(spec):
    assert not revisions.current(nodeset(replicas=1, extraConf="Weight=1", **spec), [ONE]).is_new


def test_a_label_of_the_users_own_is_another_revision_also_beside_those_of_a_chart():
    labels = {"template": {"metadata": {"labels": {**CHART, "team": "blue"}}}}

    assert revisions.current(nodeset(replicas=1, extraConf="Weight=1", **labels), [ONE]).is_new


def test_a_revision_of_the_operator_before_us_with_labels_of_its_chart_is_that_of_our_chart():
    labelled = nodeset(replicas=1, extraConf="Weight=1", template={"metadata": {"labels": CHART}})
    stored = {"spec": {**codec.plain(labelled.spec), "$patch": "replace"}}
    theirs = Child(
        metadata=wire.replace(ONE.metadata, annotations={}, labels={}, name="gpu-5f7b9"),
        body={**ONE.body, "data": stored},
    )

    assert revisions.current(meant("Weight=1"), [theirs]).hash == "5f7b9"


def test_a_revision_of_the_operator_before_us_keeps_its_hash():
    bare = wire.replace(ONE.metadata, annotations={}, labels={}, name="gpu-5f7b9")
    theirs = Child(
        metadata=bare, body={**ONE.body, "data": {"spec": {**ONE.body["data"]["spec"], "$patch": "replace"}}}
    )

    assert revisions.current(meant("Weight=1"), [theirs]).hash == "5f7b9"
