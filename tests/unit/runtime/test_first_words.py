"""After a start, what people were told before stands until Slurm has been read: once, and not for ever."""

import pytest

from slurm_operator.api.schema.codec import read
from slurm_operator.api.shared.meta import ObjectKey
from slurm_operator.api.slinky.restapi import RestApi
from slurm_operator.kube.auth.access import Access
from slurm_operator.kube.client import Client
from slurm_operator.kube.events import Recorder
from slurm_operator.manifests.meta import Manifest
from slurm_operator.plan.actions import Create, Tell, Wait
from slurm_operator.plan.plan import Failure, Outcome
from slurm_operator.reconcilers import restapi
from slurm_operator.runtime.report.reporter import Reporter
from slurm_operator.runtime.world.caches import Caches
from slurm_operator.runtime.world.sources import Sources
from slurm_operator.slurmsync.connections import SlurmClusters
from slurm_operator.slurmsync.startup_grace import FIRST_WORD_SECONDS, FirstWords

OURS, THEIRS = ObjectKey("ns", "slurm"), ObjectKey("ns", "other")

WAIT = Wait(subject="gpu-0", reason="SlurmUnreachable", message="not read yet")
TOLD = Tell(subject="gpu-0", reason="Drained", message="ada drained it")
MADE = Create(manifest={}, reason="ScalingUp", message="one more")


class Time:
    """Seconds that a test counts itself."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_before_anybody_is_asked_nothing_is_waited_for():
    assert FirstWords(Time()).left_seconds(OURS) == 0


def test_a_cluster_is_waited_for_until_it_was_read():
    words = FirstWords(Time())
    words.ask([OURS, THEIRS], are_all_known=True)
    words.came(THEIRS)

    assert words.left_seconds(OURS) == FIRST_WORD_SECONDS
    assert words.left_seconds(THEIRS) == 0


def test_one_that_says_nothing_is_waited_for_no_longer_than_that():
    time = Time()
    words = FirstWords(time)
    words.ask([OURS], are_all_known=True)
    time.now += FIRST_WORD_SECONDS - 1
    words.ask(
        [OURS, THEIRS], are_all_known=True
    )  # Another one has come; the first has not waited less for it.

    assert words.left_seconds(OURS) == 1
    time.now += 1
    assert words.left_seconds(OURS) == 0


def test_one_that_was_read_once_is_not_waited_for_again_when_its_address_changes():
    words = FirstWords(Time())
    words.ask([OURS], are_all_known=True)
    words.came(OURS)
    words.ask([], are_all_known=True)
    words.ask([OURS], are_all_known=True)

    assert words.left_seconds(OURS) == 0


@pytest.mark.parametrize(("are_all_known", "left"), [(False, FIRST_WORD_SECONDS), (True, 0)])
def test_one_that_nobody_asks_is_waited_for_only_while_its_key_may_still_be_read(are_all_known, left):
    words = FirstWords(Time())
    words.ask([], are_all_known=are_all_known)

    assert words.left_seconds(OURS) == left


def reporter() -> Reporter:
    client = Client(Access(server="http://nowhere"))
    known = Caches(
        client,
        Sources(records=(), children=(), child_selector=""),
        ("",),
        SlurmClusters(client, lambda: True),
    )
    return Reporter(client, known, Recorder(client))


def one(*generations: int) -> RestApi:
    """A RestApi of generation 2, with conditions about these generations of it."""
    conditions: list[Manifest] = [
        {"type": f"Type{number}", "status": "True", "reason": "Fine", "observedGeneration": generation}
        for number, generation in enumerate(generations)
    ]
    metadata = {"name": "slurm", "namespace": "ns", "uid": "u", "generation": 2}
    spec = {"controllerRef": {"name": "slurm"}}
    return read(RestApi, {"metadata": metadata, "spec": spec, "status": {"conditions": conditions}})


@pytest.mark.parametrize(
    ("thing", "stands"),
    [
        pytest.param(one(2, 2), True, id="all of it is about the spec as it is"),
        pytest.param(one(1, 1), False, id="the spec has changed since"),
        pytest.param(one(), False, id="nothing was ever said"),
    ],
)
def test_only_words_about_the_spec_as_it_is_may_stand(thing, stands):
    assert reporter().is_told_before(restapi.RECONCILER, thing) is stands


@pytest.mark.parametrize(
    ("outcome", "changed"),
    [
        pytest.param(Outcome(), False, id="nothing to do"),
        pytest.param(Outcome(done=(WAIT, TOLD)), False, id="waited and told"),
        pytest.param(Outcome(done=(WAIT, MADE)), True, id="made something"),
        pytest.param(Outcome(failed=(Failure(action=MADE, error="quota"),)), True, id="tried to"),
    ],
)
def test_a_pass_that_did_something_has_something_to_say(outcome, changed):
    assert outcome.changed_anything is changed
