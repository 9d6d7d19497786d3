"""What is applied and changed in runs, as each API has it."""

import copy

import pytest

from chaos.impact import ALL, Blow
from chaos.kube import Change
from chaos.subjects import COMPONENTS, EVERY, SHARED_ROOT
from slurm_local.cluster import Cluster
from slurm_local.paths import Paths
from slurm_operator.api import registry
from slurm_operator.api.nebius import NodeSet, SlurmCluster
from slurm_operator.api.schema import codec
from slurm_operator.api.schema.problems import References, Severity
from slurm_operator.api.slinky.controller import Controller
from slurm_operator.api.slinky.nodeset import NodeSet as WorkerPart
from slurm_operator.manifests import kinds
from testing import slurmclusters

MODELS = {one.kind: one.model for one in registry.ALL}


@pytest.fixture
def cluster(tmp_path):
    """One that only has manifests."""
    return Cluster("nowhere", Paths(tmp_path, tmp_path))


def changes(subject) -> list[Change]:
    made = [
        subject.scaled(1),
        subject.marked("x"),
        subject.with_image("docker.io/local/other", "7"),
        subject.configured("Line=1"),
    ]
    return [*made, subject.in_maintenance()] if subject is SHARED_ROOT else made


def patched(manifest: dict, patch: dict) -> dict:
    """After a merge patch."""
    made = copy.deepcopy(manifest)
    for key, value in patch.items():
        is_both = isinstance(value, dict) and isinstance(made.get(key), dict)
        made[key] = patched(made[key], value) if is_both else value
    return made


def paths(value: object, before: tuple = ()) -> set[tuple]:
    if not isinstance(value, dict):
        return {before}
    return {path for key, inner in value.items() for path in paths(inner, (*before, key))}


@pytest.mark.parametrize("subject", EVERY, ids=lambda subject: type(subject).__name__)
def test_what_is_applied_and_every_change_of_it_is_accepted(subject, cluster):
    objects = {(kinds.kind_of(one), one["metadata"]["name"]): one for one in subject.objects(cluster)}
    made = [
        objects[each.of] | {"spec": patched(objects[each.of]["spec"], each.spec)} for each in changes(subject)
    ]

    for manifest in (*objects.values(), *made):
        found = codec.read(MODELS[kinds.kind_of(manifest)], manifest)
        problems = found.problems(None, References()) if hasattr(found, "problems") else ()
        assert [one for one in problems if one.severity is Severity.ERROR] == [], manifest
    assert all(manifest not in objects.values() for manifest in made)


@pytest.mark.parametrize("subject", EVERY, ids=lambda subject: type(subject).__name__)
def test_what_changes_is_put_back_with_the_next_apply(subject, cluster):
    """Fields that no manifest has would stay; only another mark on workers may."""
    objects = {(kinds.kind_of(one), one["metadata"]["name"]): one for one in subject.objects(cluster)}
    mark = subject.marked("x")

    for each in changes(subject):
        if each != mark:
            assert paths(each.spec) <= paths(objects[each.of]["spec"]), each


@pytest.mark.parametrize("subject", EVERY, ids=lambda subject: type(subject).__name__)
def test_volumes_that_are_claimed_are_there_before(subject, cluster):
    made = subject.surroundings(cluster, cluster.directory / "state")
    claims = {one["metadata"]["name"] for one in made if one["kind"] == "PersistentVolumeClaim"}
    volumes = {one["metadata"]["name"] for one in made if one["kind"] == "PersistentVolume"}

    assert claims == volumes == ({"jail", "state"} if subject is SHARED_ROOT else {"state"})


def test_what_is_watched_and_hit_is_what_a_slurmcluster_becomes(cluster):
    made = (SlurmCluster, SHARED_ROOT.cluster.name), (NodeSet, SHARED_ROOT.nodeset.name)
    there = slurmclusters.settled(slurmclusters.world(*SHARED_ROOT.objects(cluster)), *made)
    slurmclusters.settled(slurmclusters.populated(there, SHARED_ROOT.cluster.name), *made)

    found = {(type(thing).KIND, thing.metadata.name) for thing in there.things}
    assert {*SHARED_ROOT.watched, SHARED_ROOT.restapi, SHARED_ROOT.worker_part} <= found
    controller = there.get(Controller, "ns", SHARED_ROOT.cluster.name)
    assert f"{controller.spec.children.names.workload}-0" == SHARED_ROOT.slurmctld
    workers = there.get(WorkerPart, "ns", SHARED_ROOT.worker_part.name)
    name, _, value = SHARED_ROOT.worker_label.partition("=")
    assert workers.spec.children.labels[name] == value
    assert {f"cpu-{number}" for number in workers.spec.numbers} <= ALL


def test_lowest_numbers_stay_with_a_slurmcluster_and_anybody_may_with_a_nodeset_of_parts():
    assert SHARED_ROOT.leaving(3) == Blow(frozenset({"cpu-3"}))
    assert SHARED_ROOT.leaving(0) == Blow(ALL)
    assert COMPONENTS.leaving(3) == Blow(ALL, spared=3)


@pytest.mark.parametrize(
    ("conditions", "lack"),
    [
        pytest.param([{"type": "Ready", "status": "True"}], "", id="Ready"),
        pytest.param(
            [{"type": "Ready", "status": "False", "message": "wait"}],
            "nodesets/cpu is not Ready: wait",
            id="says why not",
        ),
        pytest.param([], "nodesets/cpu is not Ready: None", id="says nothing yet"),
    ],
)
def test_an_object_says_itself_what_it_lacks(conditions, lack):
    found = {"status": {"conditions": conditions}}

    assert SHARED_ROOT.lack(None, SHARED_ROOT.nodeset, found) == lack
