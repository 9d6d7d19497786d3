"""Who goes ahead in an update: behind the wrong one, everybody else would wait for nothing."""

from datetime import timedelta

import pytest

from slurm_operator import wire
from slurm_operator.api.shared import names
from slurm_operator.manifests.objects import KubeNode
from slurm_operator.reconcilers.nodeset.records.outdated import FRESH_RECORD
from slurm_operator.slurm.reasons import OurReason
from testing.story import Story
from testing.workers import (
    controller,
    job,
    machine,
    nodeset,
    ours,
    planned,
    revision_of,
    slurm,
    slurm_node,
    told,
    worker,
    world,
)

HEAD = controller()
COUNT = 8
OLD_SET = nodeset(replicas=COUNT)
NEXT = {"replicas": COUNT, "slurmd": {"image": "slurmd:next"}}
NEW_SET = nodeset(**NEXT, updateStrategy={"rollingUpdate": {"maxUnavailable": "50%"}})
OLD, NEW = revision_of(OLD_SET), revision_of(NEW_SET)
OLD_HASH, NEW_HASH = (r.metadata.labels[names.LABEL_REVISION] for r in (OLD, NEW))
HUMAN = "bad disk, ask Ada"
WEEK = 7 * 24 * 60
AHEAD = str(OurReason("Update", f"being replaced by revision {NEW_HASH}, ahead of the others", "0000-0000"))
AS_ANY = str(OurReason("Update", f"being replaced by revision {NEW_HASH}", "0000-0000"))
IN_AN_EARLIER_ONE = AHEAD.replace(NEW_HASH, "0123456789")


def old(ordinal: int, **kwargs):
    return worker(ordinal, **{"on": f"n{ordinal}", "revision": OLD_HASH, **kwargs})


def new(ordinal: int, **kwargs):
    """It has not registered."""
    return old(
        ordinal, **{"revision": NEW_HASH, "ready": False, "started": False, "phase": "Pending", **kwargs}
    )


def homeless(ordinal: int, *, age=timedelta(minutes=5), **kwargs):
    return new(ordinal, on="", age=age, **kwargs)


def updating(*special, nodes=(), jobs=(), unknown=(), machines=(), missing=(), spec=NEW_SET):
    """Eight workers on a machine each, in the middle of an update. Those not named are old, idle and ready."""
    named = {pod.metadata.name: pod for pod in special}
    pods = [named.get(f"gpu-{n}", old(n)) for n in range(COUNT) if n not in missing]
    known = {node.name: node for node in nodes}
    there = [
        known.get(pod.metadata.name) or slurm_node(pod, "IDLE")
        for pod in pods
        if pod.metadata.name in known
        or (pod.metadata.labels[names.LABEL_REVISION] == OLD_HASH and pod.metadata.name not in unknown)
    ]
    kube_nodes = {f"n{n}": machine(f"n{n}") for n in range(COUNT)} | {m.metadata.name: m for m in machines}
    return world(
        spec, HEAD, *pods, *kube_nodes.values(), revisions_=[OLD, NEW], slurm_=slurm(*there, jobs=jobs)
    )


def drained(ordinal: int, *words, reason=HUMAN, **kwargs):
    return slurm_node(old(ordinal), *(words or ("IDLE",)), "DRAIN", reason=reason, **kwargs)


def left_by(ordinal: int, reason: str):
    """The record of the worker that had this name before, and has another address."""
    return wire.replace(drained(ordinal, reason=reason), address="10.9.9.9")


def busy(*ordinals: int, minutes=WEEK):
    return [job(n + 1, f"gpu-{n}", minutes=minutes + n) for n in ordinals]


def mixed(*ordinals: int):
    return [slurm_node(old(n), "MIXED") for n in ordinals]


CORDONED = machine("n7", cordoned=True)
TAINTED = machine("n7", taints=[("special", "NoSchedule")])
UNREADY = {"ready": False, "unready_for": timedelta(hours=1)}
ALL_BUT_7 = range(7)


@pytest.mark.parametrize(
    ("made", "story"),
    [
        pytest.param(updating(), ["drain gpu-7 for Update"], id="all alike: the first of the victims"),
        pytest.param(updating(nodes=[drained(7, "MIXED")], jobs=busy(7)), ["drain gpu-6 for Update"], id="one is drained by a human, with a job: not that one"),
        pytest.param(updating(nodes=[drained(7)]), ["drain gpu-6 for Update"], id="drained and free: whatever it was drained for may keep its successor from registering"),
        pytest.param(updating(unknown=["gpu-7"]), ["drain gpu-6 for Update"], id="Slurm does not know it: it cannot go"),
        pytest.param(updating(nodes=[drained(7, "MIXED", reason=ours(old(7), "NodeCordon"))], jobs=busy(7), machines=[CORDONED]), ["drain gpu-6 for Update"], id="on a cordoned machine, with a job"),
        pytest.param(updating(old(7, protected=False), nodes=[drained(7, reason=ours(old(7), "NodeCordon"))], machines=[CORDONED]), ["drain gpu-6 for Update"], id="on a cordoned machine and free: its successor would find no place"),
        pytest.param(updating(machines=[CORDONED]), ["drain gpu-6 for Update", "drain gpu-7 for NodeCordon"], id="cordoned in this moment, and not drained yet"),
        pytest.param(updating(machines=[TAINTED]), ["drain gpu-6 for Update"], id="its machine takes no new worker"),
        pytest.param(updating(nodes=mixed(7), jobs=busy(7)), ["drain gpu-6 for Update"], id="idle ones before busy ones"),
        pytest.param(updating(nodes=[*mixed(*ALL_BUT_7), drained(7)], jobs=busy(*ALL_BUT_7)), ["Leaving gpu-7", "delete gpu-7 (Drained)"], id="all others are busy: one out of use that can go, rather than to wait a week"),
        pytest.param(updating(old(7, protected=False), nodes=[*mixed(*ALL_BUT_7), drained(7, reason=ours(old(7), "NodeCordon"))], jobs=busy(*ALL_BUT_7), machines=[CORDONED]), ["Leaving gpu-7", "delete gpu-7 (Drained)"], id="also if its successor may find no place: it costs nothing"),
        pytest.param(updating(nodes=mixed(*range(COUNT)), jobs=busy(*range(COUNT))), ["drain gpu-0 for Update"], id="all are busy: whose job ends soonest"),
        pytest.param(updating(nodes=[*mixed(*ALL_BUT_7), drained(7, "MIXED")], jobs=[*busy(*ALL_BUT_7), job(8, "gpu-7", minutes=1)]), ["drain gpu-0 for Update"], id="all are busy, one of them is out of use: one that is not"),
    ],
)  # fmt: skip
def test_who_goes_ahead_can_go_and_its_successor_can_start(made, story):
    assert told(made) == story


def by_update(ordinal: int, *words):
    return drained(ordinal, *(words or ("IDLE",)), reason=ours(old(ordinal), "Update"))


@pytest.mark.parametrize(
    ("made", "story"),
    [
        pytest.param(updating(nodes=[by_update(7)]), ["Leaving gpu-7", "delete gpu-7 (Drained)"], id="it drains and is free: the rest waits"),
        pytest.param(updating(nodes=[by_update(7, "MIXED")], jobs=busy(7)), ["drain gpu-6 for Update", "wait gpu-7: Draining"], id="its job keeps it: an idle one goes instead"),
        pytest.param(updating(nodes=[by_update(7, "MIXED"), by_update(6)], jobs=busy(7)), ["Leaving gpu-6", "delete gpu-6 (Drained)", "wait gpu-7: Draining"], id="but only one"),
        pytest.param(updating(nodes=[by_update(7, "MIXED"), *mixed(*ALL_BUT_7)], jobs=busy(*range(COUNT))), ["wait gpu-7: Draining"], id="to have a second one wait for its jobs is no help"),
        pytest.param(updating(new(7)), [], id="its successor has a machine: the rest waits"),
        pytest.param(updating(missing=[7]), ["create Pod gpu-7"], id="its successor comes"),
        pytest.param(updating(homeless(7, age=timedelta(seconds=5))), [], id="its successor has no machine yet"),
        pytest.param(updating(homeless(7)), ["drain gpu-6 for Update"], id="it finds none: whatever became of its place, it shows nothing"),
        pytest.param(updating(homeless(7), nodes=[left_by(7, AS_ANY)]), ["drain gpu-6 for Update"], id="the one before it was broken, as its machine may be"),
        pytest.param(updating(homeless(7), homeless(6), homeless(5), nodes=[left_by(n, AS_ANY) for n in (5, 6, 7)]), ["drain gpu-4 for Update"], id="however many of these there are"),
        pytest.param(updating(homeless(7), nodes=[left_by(7, AHEAD)]), ["drain gpu-6 for Update"], id="it made room, and somebody else took it: once"),
        pytest.param(updating(homeless(7), homeless(6), nodes=[left_by(7, AHEAD), left_by(6, AHEAD)]), [], id="twice: the new revision itself finds no place"),
        pytest.param(updating(homeless(7), homeless(6), nodes=[left_by(7, IN_AN_EARLIER_ONE), left_by(6, AHEAD)]), ["drain gpu-5 for Update"], id="an earlier revision says nothing about this one"),
        pytest.param(updating(*(homeless(n, annotations={FRESH_RECORD: "true"}) for n in (6, 7))), [], id="with other resources their records went, and the pods say so"),
        pytest.param(updating(homeless(7), homeless(6), homeless(5), homeless(4)), [], id="never more than the budget"),
        pytest.param(updating(old(7, on="", started=False, phase="Pending", ready=False), unknown=["gpu-7"]), ["drain gpu-6 for Update", "delete gpu-7 (NeverStarted)"], id="one that never had a machine goes, and is no canary"),
        pytest.param(updating(old(7, **UNREADY), nodes=[drained(7, "DOWN")]), ["Leaving gpu-7", "delete gpu-7 (Drained)"], id="a broken one that can go: its successor shows what the revision is like"),
        pytest.param(updating(old(7, **UNREADY), unknown=["gpu-7"]), ["drain gpu-6 for Update", "wait gpu-7: UnknownToSlurm"], id="a broken one that cannot"),
        pytest.param(updating(old(7, **UNREADY), nodes=[drained(7, "DOWN")], machines=[TAINTED]), ["drain gpu-6 for Update", "Leaving gpu-7", "delete gpu-7 (Drained)"], id="a broken one whose machine takes nobody"),
        pytest.param(updating(new(7, phase="Failed", age=timedelta(minutes=20))), ["delete gpu-7 (Ended)"], id="its successor ended on its own, and is made again"),
    ],
)  # fmt: skip
def test_the_rest_waits_for_who_has_gone_ahead_as_long_as_that_shows_something(made, story):
    assert told(made) == story


def forgotten(ordinal: int, *words, **kwargs):
    """As after a reconfigure: slurmctld has yet to hear from its slurmd."""
    return slurm_node(old(ordinal), *(words or ("IDLE",)), slurmd_start_time=None, **kwargs)


UP = [new(n, ready=True, started=True, phase="Running") for n in (6, 7)]
SERVING = [slurm_node(pod, "IDLE") for pod in UP]
RECONFIGURED = [forgotten(n) for n in range(6)]


@pytest.mark.parametrize(
    ("made", "story"),
    [
        pytest.param(updating(*UP, nodes=[*SERVING, *RECONFIGURED]), [], id="six are away, and only four may be"),
        pytest.param(updating(*UP, *(old(n, **UNREADY) for n in range(6)), nodes=[*SERVING, *RECONFIGURED]), [], id="also while none of them is ready"),
        pytest.param(updating(*UP, nodes=[*SERVING, *RECONFIGURED[:3]]), [*(f"wait gpu-{n}: AnotherWorker" for n in range(3)), "drain gpu-5 for Update"], id="three are away: one more may be"),
        pytest.param(updating(*UP, nodes=[*SERVING, *RECONFIGURED[:5], forgotten(5, "DOWN")]), ["wait gpu-5: AnotherWorker"], id="one that slurmctld had given up costs nothing"),
    ],
)  # fmt: skip
def test_workers_that_slurmctld_has_yet_to_hear_from_are_not_out_of_use(made, story):
    assert told(made) == story


def test_where_machines_are_not_seen_one_goes_ahead_all_the_same():
    made = updating()
    made.things = [thing for thing in made.things if not isinstance(thing, KubeNode)]
    made.served = set()

    assert told(made) == ["drain gpu-7 for Update"]


def test_a_pod_without_a_machine_is_looked_at_again_when_that_starts_to_count():
    made = updating(homeless(7, age=timedelta(seconds=12), ready=True))

    assert planned(made).look_again == timedelta(seconds=18)


# ---- At play

SPEC = {"replicas": COUNT, "slurmd": {"image": "slurmd:1"}, "updateStrategy": {"rollingUpdate": {"maxUnavailable": "50%"}}}  # fmt: skip
A_WEEK = 7 * 24 * 3600
BAD_DAYS = [pytest.param(seed, id=f"seed {seed}") for seed in range(2)]


def begun(seed: int, fails: float = 0.15, **spec) -> Story:
    return Story({**SPEC, **spec}, seed=seed, machines=COUNT, fails=fails, lazy=0.4).tick(30)


def of(story: Story, image: str) -> list[str]:
    pods = story.pods.pods.items()
    return sorted(name for name, pod in pods if pod["spec"]["containers"][0]["image"] == image)


def update(story: Story, seconds: int = 200, image: str = "slurmd:2", most: int = 4) -> None:
    """Never more than half of them are away, and no job is lost, in every second."""
    story.change(slurmd={"image": image})
    for _ in range(seconds):
        story.tick()
        assert story.broken == []
        running = story.pods.running().values()
        alive = {pod["metadata"]["uid"] for pod in running if "deletionTimestamp" not in pod["metadata"]}
        serving = [r for r in story.slurm.records.values() if r.pod_uid in alive and not r.is_drain]
        assert story.spec["replicas"] - len(serving) <= most, f"too many away in second {story.second}"


def with_a_job(story: Story) -> str:
    """The worker that has it."""
    made = story.submit(A_WEEK)
    while not made.nodes:
        story.tick()
    return made.nodes[0]


def machine_of(story: Story, name: str):
    where = story.pods.pods[name]["spec"]["nodeName"]
    return next(one for one in story.pods.machines if one.name == where)


@pytest.mark.parametrize("seed", BAD_DAYS)
def test_a_worker_that_a_human_drained_under_a_long_job_holds_up_only_itself(seed):
    story = begun(seed)
    name = with_a_job(story)
    story.slurm.drain(name, HUMAN, "root")
    story.tick(3)

    update(story)

    assert of(story, "slurmd:1") == [name]
    assert story.slurm.records[name].reason == HUMAN


@pytest.mark.parametrize("seed", BAD_DAYS)
def test_a_cordoned_machine_with_a_long_job_holds_up_only_its_worker(seed):
    story = begun(seed)
    name = with_a_job(story)
    machine_of(story, name).is_cordoned = True
    story.tick(3)

    update(story)

    assert of(story, "slurmd:1") == [name]


@pytest.mark.parametrize("seed", BAD_DAYS)
def test_a_cordoned_machine_without_a_job_holds_up_nobody(seed):
    story = begun(seed)
    machine_of(story, "gpu-7").is_cordoned = True
    story.tick(3)

    update(story)

    assert of(story, "slurmd:2") == [f"gpu-{n}" for n in range(COUNT)]
    assert len(story.pods.running()) == COUNT - 1, "there is no machine for the last one"


@pytest.mark.parametrize("seed", BAD_DAYS)
def test_a_worker_for_which_there_is_no_machine_holds_up_nobody(seed):
    story = begun(seed, replicas=COUNT + 1)

    update(story, most=5)

    assert of(story, "slurmd:2") == [f"gpu-{n}" for n in range(COUNT + 1)]
    assert len(story.pods.running()) == COUNT


@pytest.mark.parametrize("seed", BAD_DAYS)
def test_a_machine_that_is_cordoned_while_its_worker_goes_ahead_holds_up_nobody(seed):
    """All are busy. The one that goes ahead waits for its job; when it goes, its place is gone."""
    story = begun(seed)
    jobs = [story.submit(A_WEEK) for _ in range(COUNT)]
    while not all(job.nodes for job in jobs):
        story.tick()
    update(story, seconds=10)
    [ahead] = [record.name for record in story.slurm.records.values() if record.is_drain]
    machine_of(story, ahead).is_cordoned = True
    for one in jobs:
        one.ends_at = story.now + timedelta(seconds=20 if ahead in one.nodes else 90)

    update(story)

    assert of(story, "slurmd:2") == [f"gpu-{n}" for n in range(COUNT)]


@pytest.mark.parametrize("seed", BAD_DAYS)
def test_who_goes_ahead_and_is_kept_by_a_long_job_holds_up_only_itself(seed):
    story = begun(seed)
    jobs = [story.submit(A_WEEK) for _ in range(COUNT)]
    while not all(job.nodes for job in jobs):
        story.tick()
    update(story, seconds=10)
    [ahead] = [record.name for record in story.slurm.records.values() if record.is_drain]
    for one in jobs:
        if ahead not in one.nodes:
            one.ends_at = story.now + timedelta(seconds=20)

    update(story)

    assert of(story, "slurmd:1") == [ahead]


@pytest.mark.parametrize("seed", BAD_DAYS)
def test_a_revision_that_no_machine_takes_costs_two_workers_however_large_the_budget(seed):
    story = begun(seed)
    story.pods.unplaceable.add("slurmd:huge")

    update(story, image="slurmd:huge", seconds=200)
    assert len(of(story, "slurmd:1")) == COUNT - 2

    update(story, image="slurmd:2")
    assert of(story, "slurmd:2") == [f"gpu-{n}" for n in range(COUNT)]


@pytest.mark.parametrize("seed", BAD_DAYS)
def test_an_image_that_cannot_be_pulled_costs_one_worker_however_large_the_budget(seed):
    story = begun(seed)
    story.pods.bad_images.add("slurmd:broken")

    update(story, image="slurmd:broken", seconds=200)

    assert len(of(story, "slurmd:1")) == COUNT - 1


@pytest.mark.parametrize(
    ("fails", "kept"),
    [
        pytest.param(0.0, {COUNT - 2}, id="their new pods say that their records went"),
        pytest.param(0.15, {COUNT - 4, COUNT - 3, COUNT - 2}, id="not if a pod could not be made at once"),
    ],
)
@pytest.mark.parametrize("seed", BAD_DAYS)
def test_other_resources_that_no_machine_has_cost_two_workers_or_at_most_the_budget(seed, fails, kept):
    """Their records go before they come back, and with these what their drains said."""
    story = begun(seed, fails)
    story.pods.unplaceable.add("slurmd:huge")
    story.change(extraConf="CPUs=900")

    update(story, image="slurmd:huge")

    assert len(of(story, "slurmd:1")) in kept
