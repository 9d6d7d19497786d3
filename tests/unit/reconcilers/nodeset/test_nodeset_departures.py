"""Of several reasons to leave the first one in the list is the cause."""

from datetime import timedelta

import pytest

from slurm_operator.api.shared import names
from slurm_operator.reconcilers.nodeset import RECONCILER
from slurm_operator.reconcilers.nodeset.departures import rules
from slurm_operator.reconcilers.nodeset.departures.rules import RULES, departures
from slurm_operator.reconcilers.nodeset.worker.drain_causes import Leaving
from testing.workers import KEY, NOW, controller, nodeset, slurm, slurm_node, worker, world

RETIRED = {names.POD_RETIRED: worker(0).metadata.uid}
REPLACE = {names.POD_REPLACE: "true"}
LONG_AGO = timedelta(days=1)


def cause(spec, pod, *nodes):
    """Why the one worker leaves."""
    seen = RECONCILER.observe(KEY, world(nodeset(**spec), controller(), pod, slurm_=slurm(*nodes)))
    assert seen is not None
    found = departures(seen, NOW).leaving.get(pod.metadata.uid)
    return found.kind if found is not None else None


# Each worker has another reason, too, that comes later in the list.
@pytest.mark.parametrize(
    ("spec", "pod", "kind"),
    [
        pytest.param({"deleted": True, "replicas": 0}, worker(0, annotations=RETIRED), Leaving.DELETION, id="the NodeSet is deleted"),
        pytest.param({"replicas": 0}, worker(0, annotations=REPLACE), Leaving.SCALE_IN, id="none is wanted"),
        pytest.param({"replicas": 1}, worker(0, phase="Failed", age=LONG_AGO, annotations=RETIRED), Leaving.ENDED, id="its containers have ended"),
        pytest.param({"replicas": 1}, worker(0, annotations=RETIRED, terminating=True), Leaving.RETIRED, id="it was retired"),
        pytest.param({"replicas": 1}, worker(0, annotations=REPLACE, terminating=True), Leaving.TERMINATING, id="its pod is asked to end"),
        pytest.param({"replicas": 1}, worker(0, annotations=REPLACE), Leaving.UPDATE, id="somebody wants another"),
    ],
)  # fmt: skip
def test_the_first_reason_in_the_list_is_the_cause(spec, pod, kind):
    assert cause(spec, pod, slurm_node(pod, "IDLE")) is kind


def test_an_update_comes_last_because_its_budget_depends_on_who_leaves_anyway():
    assert RULES[-1] is rules.is_made_from_something_else
    assert cause({"replicas": 1}, worker(0, revision="older"), slurm_node(worker(0), "IDLE")) in (
        Leaving.UPDATE,
        Leaving.RESOURCES,
    )


def test_a_worker_at_rest_is_asked_only_what_time_and_others_decide():
    pod = worker(0, annotations=RETIRED)
    seen = RECONCILER.observe(
        KEY, world(nodeset(replicas=1), controller(), pod, slurm_=slurm(slurm_node(pod, "IDLE")))
    )
    assert seen is not None

    still = departures(seen, NOW, frozenset({pod.metadata.uid})).leaving
    looked_at = departures(seen, NOW).leaving

    assert [one.kind for one in looked_at.values()] == [Leaving.RETIRED]
    assert all(one.kind is not Leaving.RETIRED for one in still.values())
