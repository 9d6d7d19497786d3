"""A Slurm cluster that starts for the first time: nothing is done twice, and nothing is told that is no trouble."""

from datetime import timedelta

import pytest

from slurm_operator.api.shared import names
from slurm_operator.api.shared.conditions import Truth
from slurm_operator.api.shared.meta import Meta
from slurm_operator.manifests import kinds
from slurm_operator.manifests.compare.differences import TEMPLATE_DIGEST
from slurm_operator.manifests.platform import VolumeClaim
from slurm_operator.plan.actions import Apply, Wait, is_housekeeping
from slurm_operator.plan.conditions import DEGRADED, PROGRESSING, READY, true
from slurm_operator.plan.plan import Outcome
from slurm_operator.reconcilers import loginset as loginsets
from slurm_operator.reconcilers import nodeset as nodesets
from slurm_operator.reconcilers import restapi as restapis
from slurm_operator.reconcilers.controller import RECONCILER
from slurm_operator.reconcilers.controller.configuration.pipeline import NODESETS_FOLLOW_WITHIN
from slurm_operator.reconcilers.controller.daemon.trial_scripts import FIRST
from slurm_operator.reconcilers.shared.dependencies import FOLLOWS_WITHIN
from slurm_operator.runtime.report.ready_events import Readiness
from slurm_operator.slurm.snapshot import Unreachable
from testing import workers
from testing.controller_play import GOOD, NOON, Play
from testing.controllers import KEY, NS, controller, put, thing, world

A_SECOND = timedelta(seconds=1)
LATER = NOON + NODESETS_FOLLOW_WITHIN

GPU = thing("NodeSet", "gpu", {"controllerRef": {"name": "slurm"}})
RESTAPI = thing("RestApi", "rest", {"controllerRef": {"name": "slurm"}})


def decided(made, now):
    plan = RECONCILER.decide(RECONCILER.observe(KEY, made), now)
    return plan, {action.reason: action for action in plan.actions()}


def just_made(**metadata):
    return controller(creationTimestamp=f"{NOON:%Y-%m-%dT%H:%M:%SZ}", **metadata)


@pytest.mark.parametrize(
    ("things", "later", "reason"),
    [
        pytest.param([], A_SECOND, "NodeSetsMayFollow", id="made a moment ago: its NodeSets may come"),
        pytest.param([], NODESETS_FOLLOW_WITHIN, "Rehearsing", id="none came: it starts without any"),
        pytest.param([], -A_SECOND, "Rehearsing", id="the API server's clock is ahead: it starts at once"),
        pytest.param([GPU], timedelta(0), "Rehearsing", id="one came: it starts at once"),
    ],
)
def test_the_first_configuration_is_tried_out_with_the_nodesets_that_come_along(things, later, reason):
    plan, found = decided(world(just_made(), RESTAPI, *things), NOON + later)

    assert {"NodeSetsMayFollow", "Rehearsing"} & found.keys() == {reason}
    if isinstance(found[reason], Wait):
        assert plan.look_again == NODESETS_FOLLOW_WITHIN - later, "nothing else would wake us"


def test_a_slurmctld_that_there_is_waits_for_no_nodesets():
    made = Play(world(just_made(), RESTAPI), now=LATER).rounds()
    changed = controller({"extraConf": "SlurmdTimeout=77"}, creationTimestamp=f"{NOON:%Y-%m-%dT%H:%M:%SZ}")
    made.world.things = [changed if type(one) is type(changed) else one for one in made.world.things]

    assert "Rehearsing" in decided(made.world, NOON + A_SECOND)[1]


SAID = "slurmctld: fatal: cannot find scheduler plugin for sched/nonsense\n"
REFUSED = (
    "slurmctld does not start with this configuration: fatal: cannot find scheduler plugin for sched/nonsense"
)


def began(*things, **more):
    """Where nobody has left the state of a slurmctld."""
    there = world(*things)
    there.served.add(kinds.PERSISTENT_VOLUME_CLAIM)
    return Play(there, now=LATER, **more)


def test_whoever_waits_for_a_controller_finds_its_statefulset_before_any_pod_has_run():
    made = began(just_made(), GPU)
    made.round()
    made.round()

    assert made.world.child(kinds.STATEFUL_SET, NS, "slurm-controller") is not None
    assert made.mounted() is not None
    assert not made.pods("slurm-rehearsal")


@pytest.mark.parametrize(
    ("spec", "served", "left", "is_rehearsed"),
    [
        pytest.param({}, True, False, False, id="a new volume"),
        pytest.param({}, True, True, True, id="a volume of this name is left"),
        pytest.param({}, False, False, True, id="nobody may look at volumes"),
        pytest.param({"persistence": {"existingClaim": "mine"}}, True, False, True, id="the user's volume"),
        pytest.param({"persistence": {"enabled": False}}, False, False, False, id="no volume"),
    ],
)
def test_files_are_rehearsed_in_a_pod_of_their_own_where_a_slurmctld_may_have_run(
    spec, served, left, is_rehearsed
):
    there = world(controller(spec), GPU)
    there.served |= {kinds.PERSISTENT_VOLUME_CLAIM} if served else set()
    if left:
        there.things.append(VolumeClaim(metadata=Meta(name="statesave-slurm-controller-0", namespace=NS)))

    assert ("Rehearsing" in decided(there, LATER)[1]) is is_rehearsed


def test_a_first_start_that_fails_is_told_in_the_words_of_a_rehearsal_that_fails():
    made = began(just_made(), GPU, rehearse=lambda files: SAID).rounds()
    told = {one.type: (one.status, one.reason, one.message) for one in made.controller.status.conditions}

    assert told[READY] == (Truth.FALSE, "RehearsalRefused", REFUSED)
    assert told[DEGRADED] == (Truth.TRUE, "RehearsalRefused", REFUSED)
    assert told[PROGRESSING][0] is Truth.FALSE
    assert made.controller.status.config.refused.message == REFUSED
    rehearsed = Play(world(just_made(), GPU), now=LATER, rehearse=lambda files: SAID).rounds()
    words = {
        one.type: (one.status, one.reason, one.message) for one in rehearsed.controller.status.conditions
    }
    assert told == words


def test_files_that_are_corrected_are_rehearsed_before_the_pod_tries_them():
    made = began(
        just_made(), GPU, rehearse=lambda files: SAID if "nonsense" in files.texts["slurm.conf"] else GOOD
    )
    made.spec(extraConf="SchedulerType=sched/nonsense\n")
    made.rounds()
    before = made.mounted()
    made.spec(extraConf="SelectType=select/nonsense\n")
    made.rounds()
    assert made.mounted() == before, "the rehearsal refused it"
    assert made.restarts == 0

    made.spec(extraConf="")
    made.rounds()
    assert (made.restarts, made.running) == (1, made.mounted())
    assert made.condition(READY).status is Truth.TRUE


def test_no_slurmctld_is_restarted_because_later_ones_try_out_their_files():
    made = began(just_made(), GPU, RESTAPI).rounds()
    workload = made.world.child(kinds.STATEFUL_SET, NS, "slurm-controller").body
    pod = workload["spec"]["template"]["spec"]
    former = {**pod, "initContainers": [one for one in pod["initContainers"] if one["name"] != FIRST]}
    assert former["initContainers"] != pod["initContainers"]
    template = {**workload["spec"]["template"], "spec": former}
    notes = {**workload["metadata"]["annotations"], TEMPLATE_DIGEST: "that of an earlier version"}
    metadata = {**workload["metadata"], "annotations": notes}
    put(made.world, {**workload, "metadata": metadata, "spec": {**workload["spec"], "template": template}})

    plan, _ = decided(made.world, made.now)
    written = [action.manifest for action in plan.actions() if isinstance(action, Apply)]
    assert all(one["spec"]["template"] == template for one in written if one["kind"] == "StatefulSet")
    newer = {**workload, "metadata": {**metadata, "annotations": {}}}
    put(made.world, {**newer, "spec": {**workload["spec"], "template": template}})
    changed = [action for action in decided(made.world, made.now)[0].actions() if isinstance(action, Apply)]
    assert "StatefulSet" in {action.manifest["kind"] for action in changed}, "a change of the spec shows"


def test_what_a_user_prepares_for_slurmctld_is_there_when_its_files_are_tried_out():
    mounts = [{"name": "plugins", "mountPath": "/plugins"}, {"name": "scratch", "mountPath": "/tmp"}]
    spec = {
        "slurmctld": {"image": "mine:1", "volumeMounts": mounts, "args": ["-v"]},
        "template": {"spec": {"initContainers": [{"name": "copy-plugins", "image": "plugins"}]}},
    }
    made = began(controller(spec), GPU).rounds()
    pod = made.world.child(kinds.STATEFUL_SET, NS, "slurm-controller").body["spec"]["template"]["spec"]
    trial = pod["initContainers"][-1]

    assert [one["name"] for one in pod["initContainers"]][-2:] == ["copy-plugins", FIRST]
    assert (trial["image"], trial.get("args"), trial.get("livenessProbe")) == ("mine:1", None, None)
    paths = [one["mountPath"] for one in trial["volumeMounts"]]
    assert set(paths) >= {"/plugins", "/tmp"}
    assert len(paths) == len(set(paths)), "the API server refuses two volumes in one place"
    real = {
        one["name"]: one.get("readOnly")
        for one in trial["volumeMounts"]
        if one["name"] in ("slurm-etc", "statesave")
    }
    assert real == {"slurm-etc": True, "statesave": True}


def test_what_only_the_operator_needs_is_no_news():
    _, found = decided(world(just_made(), RESTAPI, GPU), NOON)

    assert {reason for reason, action in found.items() if is_housekeeping(action)} == {"Held", "Rehearsing"}
    assert "Created" in found


def test_a_configuration_that_has_arrived_is_kept_without_being_on_its_way_again():
    made = Play(world(just_made(), RESTAPI, GPU), now=LATER).rounds()
    maps = made.world.children_[kinds.CONFIG_MAP]
    maps[:] = [one for one in maps if one.metadata.name != names.good_config("slurm")]
    seen = RECONCILER.observe(KEY, made.world)
    plan = RECONCILER.decide(seen, LATER)
    report = RECONCILER.status(seen, plan, Outcome())

    [kept] = [action for action in plan.actions() if isinstance(action, Apply)]
    assert kept.reason == "ConfigKept"
    [progressing] = [one for one in report.conditions if one.type == PROGRESSING]
    assert progressing.status is Truth.FALSE
    assert report.fields["config"]["appliedAt"] is not None


@pytest.mark.parametrize(
    ("later", "reason", "told"),
    [
        pytest.param(A_SECOND, "ControllerMayFollow", None, id="made a moment ago: its Controller may come"),
        pytest.param(FOLLOWS_WITHIN, "ControllerNotFound", "Warning", id="none came: people are told"),
        pytest.param(-A_SECOND, "ControllerNotFound", "Warning", id="the API server's clock is ahead: at once"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("of", [restapis.RECONCILER, loginsets.RECONCILER], ids=lambda one: one.name)
def test_a_controller_that_is_made_together_with_what_names_it_is_not_missed(of, later, reason, told):
    spec, made_at = {"controllerRef": {"name": "slurm"}}, f"{NOON:%Y-%m-%dT%H:%M:%SZ}"
    made = world(thing(of.kind.kind, "slurm", spec, creationTimestamp=made_at))
    made.now = NOON + later
    seen = of.observe(KEY, made)
    plan = of.decide(seen, made.now)
    conditions = of.status(seen, plan, Outcome(done=tuple(plan.actions()))).conditions

    assert reason in {wait.reason for wait in plan.waits}
    assert {(one.status, one.reason) for one in conditions if one.type == READY} == {(Truth.FALSE, reason)}
    words = Readiness().news((of.name, KEY), {}, conditions, 1)
    assert (words and words.type) == told
    assert plan.look_again == (None if told else FOLLOWS_WITHIN - later), "nothing else would wake us"


def head(*, is_ready: bool = False, known_since=None):
    made = workers.controller()
    conditions = [true(READY, "Serving")] if is_ready else []
    status = type(made.status)(conditions=conditions, workers_known_since=known_since)
    return type(made)(metadata=made.metadata, spec=made.spec, status=status)


@pytest.mark.parametrize(
    ("of", "ready", "told"),
    [
        pytest.param(head(), False, False, id="slurmctld is being started for the first time"),
        pytest.param(head(is_ready=True), False, True, id="slurmctld runs, so why is it not read?"),
        pytest.param(head(known_since=workers.NOW), False, True, id="slurmctld had workers once"),
        pytest.param(head(), True, True, id="workers run, so there was a slurmctld"),
    ],
)
def test_a_slurm_that_never_was_there_is_no_trouble_of_its_workers(of, ready, told):
    pod = workers.worker(0, **({} if ready else {"ready": False}))
    made = workers.world(workers.nodeset(replicas=1), of, pod)
    made.slurms[workers.CONTROLLER] = Unreachable(since=workers.NOW, why="no answer")
    seen = nodesets.RECONCILER.observe(workers.KEY, made)
    report = nodesets.RECONCILER.status(seen, nodesets.RECONCILER.decide(seen, workers.NOW), Outcome())

    [degraded] = [one for one in report.conditions if one.type == DEGRADED]
    assert (degraded.reason == "SlurmUnreachable") is told


def test_workers_that_were_just_made_are_counted_though_they_were_not_seen_yet():
    made = workers.world(workers.nodeset(replicas=2), head())
    seen = nodesets.RECONCILER.observe(workers.KEY, made)
    plan = nodesets.RECONCILER.decide(seen, workers.NOW)
    fields = nodesets.RECONCILER.status(seen, plan, Outcome(done=tuple(plan.actions()))).fields

    assert (fields["replicas"], fields["updatedReplicas"], fields["readyReplicas"]) == (2, 2, 0)
    refused = nodesets.RECONCILER.status(seen, plan, Outcome()).fields
    assert (refused["replicas"], refused["updatedReplicas"]) == (0, 0)


@pytest.mark.parametrize("former", [False, True])
def test_a_revision_is_news_unless_it_is_the_first(former):
    revisions = [workers.revision_of(workers.nodeset(replicas=7, extraConf="CPUs=9"))] if former else []
    made = workers.world(workers.nodeset(replicas=0), head(), revisions_=revisions)
    seen = nodesets.RECONCILER.observe(workers.KEY, made)
    [revision] = [
        action
        for action in nodesets.RECONCILER.decide(seen, workers.NOW).actions()
        if action.reason == "NewRevision"
    ]

    assert is_housekeeping(revision) is not former
