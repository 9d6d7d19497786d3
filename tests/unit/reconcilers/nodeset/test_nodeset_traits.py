"""What Slurm is told about a worker's machine and pod, and what it is not told over somebody else's words."""

import pytest

from slurm_operator import wire
from slurm_operator.api.shared import names
from slurm_operator.plan.actions import Create, WriteSlurm
from testing.workers import (
    controller,
    machine,
    nodeset,
    planned,
    revision_of,
    slurm,
    slurm_node,
    worker,
    world,
)


def plan_for(
    annotations=None,
    *,
    noted="",
    comment_too=False,
    behind=(),
    is_known=True,
    ready=True,
    asked=None,
    **record,
):
    spec = nodeset(replicas=1, podInfoInComment=comment_too, **(asked or {}))
    revision = revision_of(spec)
    notes = {names.TOPOLOGY: noted} if noted else {}
    pod = worker(0, revision=revision.metadata.labels[names.LABEL_REVISION], annotations=notes, ready=ready)
    state = wire.replace(slurm(slurm_node(pod, "IDLE", **record)), behind=frozenset(behind))
    machines = [machine("n1", annotations=annotations or {})] if is_known else []
    return planned(world(spec, controller(), pod, *machines, revisions_=[revision], slurm_=state))


def updates(plan) -> list:
    return [action.write for action in plan.actions() if isinstance(action, WriteSlurm)]


@pytest.mark.parametrize(
    ("annotation", "there", "wanted"),
    [
        pytest.param(
            "nvlink, a100", ["gpu"], ["gpu", "k8s/a100", "k8s/nvlink"], id="prefixed, beside its own"
        ),
        pytest.param("nvlink", ["gpu", "k8s/nvlink"], None, id="in order"),
        pytest.param("nvlink", ["gpu", "k8s/old"], ["gpu", "k8s/nvlink"], id="changed"),
        pytest.param(None, ["gpu", "k8s/old"], ["gpu"], id="gone"),
        pytest.param(None, ["gpu", "by-admin"], None, id="what others set is not ours"),
    ],
)
def test_features_of_the_machine_reach_slurm(annotation, there, wanted):
    annotations = {names.FEATURES: annotation} if annotation is not None else {}

    found = updates(plan_for(annotations, features=tuple(there), active_features=tuple(there)))

    assert [list(write.features) for write in found] == ([wanted] if wanted else [])
    assert [list(write.active_features) for write in found] == ([wanted] if wanted else [])


def test_a_feature_that_is_switched_off_for_now_is_switched_on_with_ours():
    [write] = updates(
        plan_for({names.FEATURES: "x"}, features=("gpu", "k8s/x", "mode"), active_features=("gpu",))
    )

    assert write.active_features == ("gpu", "k8s/x"), "what a user chose not to activate stays inactive"


@pytest.mark.parametrize("unknown", [{"is_known": False}, {"behind": ["gpu-0"]}])
def test_without_fresh_facts_features_stay_as_they_are(unknown):
    assert updates(plan_for({}, features=("gpu", "k8s/x"), active_features=("gpu", "k8s/x"), **unknown)) == []


SW2 = {names.TOPOLOGY: "default:sw2"}


@pytest.mark.parametrize(
    ("annotations", "noted", "topology", "told"),
    [
        pytest.param(SW2, "", "default:sw1", ["default:sw2"], id="elsewhere: moved"),
        pytest.param(SW2, "", "", ["default:sw2"], id="nowhere: placed"),
        pytest.param(
            SW2, "default:sw2", "default:root:sw2", [], id="there: Slurm writes the switches above too"
        ),
        pytest.param(
            SW2,
            "default:root:sw2",
            "default:root:sw2",
            ["default:sw2"],
            id="the annotation lost the switch above: so does the record, which would need it",
        ),
        pytest.param(SW2, "default:sw2", "", [], id="a flat topology shows no place: told once is enough"),
        pytest.param(
            SW2, "default:sw2", "default:sw1", ["default:sw2"], id="moved away by a re-registration"
        ),
        pytest.param({}, "", "default:sw1", [], id="no annotation: not ours to say"),
        pytest.param(
            {}, "default:sw1", "default:root:sw1", [""], id="the annotation is gone, and so is its place"
        ),
        pytest.param(
            {},
            "default:sw1",
            "default:sw1,blocks:b3",
            ["blocks:b3"],
            id="but not one that somebody else gave it",
        ),
        pytest.param({}, "default:sw1", "default:sw2", [], id="somebody else has moved it since"),
        pytest.param({}, "default:sw1", "", [], id="the annotation is gone: a flat topology shows no place"),
        pytest.param({names.TOPOLOGY: "nonsense"}, "", "", [], id="not a place"),
    ],
)
def test_workers_are_where_their_machines_are(annotations, noted, topology, told):
    found = updates(plan_for(annotations, noted=noted, topology=topology))

    assert [write.topology for write in found] == told


def test_the_note_on_the_pod_goes_with_the_annotation():
    [lane] = [lane for lane in plan_for({}, noted="default:sw1").lanes if lane.name.endswith("topology")]
    [[patch]] = lane.stages

    assert patch.operations == (
        {"op": "remove", "path": "/metadata/annotations/topology.slinky.slurm.net~1spec"},
    )


@pytest.mark.parametrize(
    "given",
    [
        pytest.param({"is_known": False}, id="the machine is not seen"),
        pytest.param(
            {"asked": {"template": {"metadata": {"annotations": {names.TOPOLOGY: "default:sw1"}}}}},
            id="the template says so",
        ),
    ],
)
def test_a_place_stays_while_its_annotation_may_stand_somewhere(given):
    made = plan_for({}, noted="default:sw1", topology="default:sw1", **given)

    assert [lane for lane in made.lanes if lane.name.endswith("topology")] == []


@pytest.mark.parametrize(
    "case",
    [
        pytest.param({"annotations": SW2, "topology": "default:sw9"}, id="elsewhere than its machine"),
        pytest.param({"noted": "default:sw9", "topology": "default:sw9"}, id="its machine says no longer the same"),
        pytest.param({"annotations": {names.TOPOLOGY: "rack 7"}, "topology": "default:sw9"}, id="its machine says nonsense"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("extra", ["Topology=default:sw9", "Weight=2\ntopology=default:sw9"])
def test_a_place_in_extra_conf_wins_over_the_machines(case, extra):
    made = plan_for(**case, asked={"extraConf": extra})

    assert [lane for lane in made.lanes if lane.name.endswith("topology")] == []


def test_the_note_on_the_pod_comes_after_slurm_took_it():
    """A switch that Slurm does not know is refused, and then nothing is noted, so it is tried again."""
    [lane] = [lane for lane in plan_for(SW2).lanes if lane.name.endswith("topology")]

    assert [type(stage[0]).__name__ for stage in lane.stages] == ["WriteSlurm", "PatchObject"]


OURS = '{"namespace":"ns","podName":"gpu-0","node":"n9","nodeSetName":"gpu","nodeSetUID":"set-uid"}'


@pytest.mark.parametrize(
    ("comment", "ready", "is_written"),
    [
        pytest.param("", True, True, id="empty"),
        pytest.param(OURS, True, True, id="ours, of another machine"),
        pytest.param(OURS.replace("n9", "n1"), True, False, id="in order"),
        pytest.param("borrowed by Ada", True, False, id="a human's"),
        pytest.param('{"rack": 7}', True, False, id="a tool's"),
        pytest.param("", False, False, id="not ready"),
    ],
)
def test_the_comment_names_the_pod_but_never_replaces_what_somebody_wrote(comment, ready, is_written):
    found = updates(plan_for(comment_too=True, comment=comment, ready=ready))

    assert bool(found) is is_written
    assert all(wire.decode_any(write.comment)["node"] == "n1" for write in found)


def test_the_comment_has_a_switch():
    assert updates(plan_for(comment_too=False)) == []


ON_THE_HOST = {"template": {"spec": {"hostNetwork": True}}}
PRUNED = {"pruneSlurmNodeRecords": "NodeNotFound"}


@pytest.mark.parametrize(
    ("asked", "is_written"),
    [
        pytest.param(PRUNED | ON_THE_HOST, True, id="records are to go with machines they are called after"),
        pytest.param(PRUNED, False, id="workers with numbers are known by those"),
        pytest.param(ON_THE_HOST, False, id="nobody asked to remove records"),
    ],
)
def test_the_comment_is_written_where_only_it_tells_whose_a_record_is(asked, is_written):
    found = updates(plan_for(asked=asked))

    assert [wire.decode_any(write.comment)["nodeSetUID"] for write in found] == ["set-uid"] * is_written


def test_a_daemon_whose_extra_conf_says_its_place_is_not_told_another():
    """Images of others add what the pod's annotation says, whatever stands there already."""
    spec = nodeset(scalingMode="DaemonSet", extraConf="Topology=default:sw9")
    made = world(spec, controller(), machine("n1", annotations=SW2))
    [pod] = [
        a.manifest for a in planned(made).actions() if isinstance(a, Create) and a.manifest["kind"] == "Pod"
    ]

    assert pod["spec"]["containers"][0]["args"][-1].strip("'") == "Features=gpu Topology=default:sw9"
    assert names.TOPOLOGY not in pod["metadata"]["annotations"]


@pytest.mark.parametrize(
    ("place", "said"),
    [
        pytest.param(
            "default:sw2", "Features=gpu Topology=default:sw2", id="slurmd says it when it registers"
        ),
        pytest.param(
            "rack 7", "Features=gpu", id="not a place: it comes without, and its mismatch tells why"
        ),
    ],
)
def test_a_daemon_comes_where_its_machine_is(place, said):
    made = world(
        nodeset(scalingMode="DaemonSet"), controller(), machine("n1", annotations={names.TOPOLOGY: place})
    )
    [pod] = [
        a.manifest for a in planned(made).actions() if isinstance(a, Create) and a.manifest["kind"] == "Pod"
    ]

    assert pod["spec"]["containers"][0]["args"][-1].strip("'") == said
    assert pod["metadata"]["annotations"].get(names.TOPOLOGY, "") == (place if "Topology" in said else "")
