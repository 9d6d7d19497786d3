"""Annotations and pull policies that an operator lays over everything: seen in what is sent, and in no digest."""

import copy

import pytest

from slurm_operator import wire
from slurm_operator.manifests.builders.workloads import with_input
from slurm_operator.manifests.compare.differences import changes, settled_template, stamped
from slurm_operator.manifests.defaults import NO_DEFAULTS, Defaults, with_defaults
from slurm_operator.manifests.meta import Child, Meta

TEAM = Defaults(image_pull_policy="Always", annotations={"example.com/team": "hpc"})
OTHER = Defaults(image_pull_policy="Never", annotations={"example.com/team": "bio"})


def pod(**spec) -> dict:
    containers = [{"name": "slurmd", "image": "a:1"}, {"name": "own", "imagePullPolicy": "Never"}]
    return {
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "gpu-0", "namespace": "ns"},
        "spec": {"initContainers": [{"name": "log"}], "containers": containers, **spec},
    }  # fmt: skip


def stateful_set(image: str = "a:1", replicas: int = 1) -> dict:
    """As a reconciler wants it: with a note of what its template is made from."""
    template = {
        "metadata": {"labels": {"a": "b"}},
        "spec": {"containers": [{"name": "slurmctld", "image": image}]},
    }
    return with_input(
        {
            "apiVersion": "apps/v1", "kind": "StatefulSet",
            "metadata": {"name": "slurm-controller", "namespace": "ns", "annotations": {}},
            "spec": {"replicas": replicas, "template": template},
        },
        image,
    )  # fmt: skip


def sent(wanted: dict, live: Child | None, defaults: Defaults) -> dict:
    return with_defaults(stamped(settled_template(wanted, live)), defaults, live)


def there(manifest: dict) -> Child:
    """What the API server has after an apply: one's own fields as they were sent."""
    return Child(metadata=wire.convert(manifest["metadata"], Meta), body=copy.deepcopy(manifest))


def test_a_pod_gets_what_it_does_not_say_itself():
    made = with_defaults(pod(), TEAM)

    assert made["metadata"]["annotations"] == {"example.com/team": "hpc"}
    policies = [one["imagePullPolicy"] for one in made["spec"]["initContainers"] + made["spec"]["containers"]]
    assert policies == ["Always", "Always", "Never"]
    assert with_defaults(pod(), NO_DEFAULTS) == pod()


def test_what_an_object_says_itself_wins():
    manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "annotations": {"example.com/team": "own"}}}  # fmt: skip

    assert with_defaults(manifest, TEAM)["metadata"]["annotations"] == {"example.com/team": "own"}


@pytest.mark.parametrize("kind", ["Controller", "NodeSet"])
def test_objects_of_our_own_kinds_stay_as_they_are_because_pods_inherit_from_them(kind):
    manifest = {"apiVersion": "slinky.slurm.net/v1beta1", "kind": kind, "metadata": {"name": "a"}, "spec": {}}

    assert with_defaults(manifest, TEAM) == manifest


def test_a_new_workload_gets_them_and_so_do_its_pods():
    made = sent(stateful_set(), None, TEAM)

    assert made["metadata"]["annotations"]["example.com/team"] == "hpc"
    template = made["spec"]["template"]
    assert template["metadata"]["annotations"] == {"example.com/team": "hpc"}
    assert template["spec"]["containers"][0]["imagePullPolicy"] == "Always"


@pytest.mark.parametrize("before", [NO_DEFAULTS, TEAM], ids=["made without any", "made with others"])
@pytest.mark.parametrize("now", [NO_DEFAULTS, TEAM, OTHER], ids=["none", "some", "other"])
def test_they_are_never_a_reason_to_write_or_to_replace_a_pod(before, now):
    live = there(sent(stateful_set(), None, before))

    assert changes(stamped(settled_template(stateful_set(), live)), live) == [], "nothing is written for them"
    scaled = sent(stateful_set(replicas=2), live, now)
    assert scaled["spec"]["template"] == live.body["spec"]["template"], (
        "a write for another reason keeps pods"
    )
    again = sent(stateful_set(replicas=3), there(scaled), now)
    assert again["spec"]["template"] == live.body["spec"]["template"]


def test_a_template_that_changes_anyway_gets_those_of_today():
    live = there(sent(stateful_set(), None, TEAM))

    template = sent(stateful_set("a:2"), live, OTHER)["spec"]["template"]

    assert template["metadata"]["annotations"] == {"example.com/team": "bio"}
    assert template["spec"]["containers"][0] == {
        "imagePullPolicy": "Never",
        "name": "slurmctld",
        "image": "a:2",
    }


def test_a_note_that_somebody_spoilt_says_nothing():
    live = there(sent(stateful_set(), None, TEAM))
    spoilt = {**live.metadata.annotations, "slinky.slurm.net/template-defaults": "{"}
    live = Child(metadata=wire.replace(live.metadata, annotations=spoilt), body=live.body)

    assert sent(stateful_set(replicas=2), live, TEAM)["spec"]["replicas"] == 2
