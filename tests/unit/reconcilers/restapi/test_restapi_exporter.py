"""The exporter beside slurmrestd: by a switch, and gone with it."""

import pytest

from slurm_operator.api import registry
from slurm_operator.api.shared import names
from slurm_operator.api.shared.children import APP_NAMES
from slurm_operator.api.slinky.controller import Controller
from slurm_operator.api.slinky.restapi import RestApi
from slurm_operator.install import rights
from slurm_operator.manifests import kinds
from slurm_operator.manifests.meta import Child
from slurm_operator.plan.actions import Action, Apply, DeleteObject, Wait
from slurm_operator.reconcilers.restapi.exporter import desired
from testing.children import carried_out, read, secret, with_secrets
from testing.golden import assert_golden
from testing.world import HandmadeWorld
from unit.reconcilers.restapi.test_restapi_decisions import KEY, RECONCILER, decide, restapi, world

ON = {"controllerRef": {"name": "slurm"}, "exporter": {"enabled": True}}
MONITORED = {
    "controllerRef": {"name": "slurm"},
    "exporter": {
        "enabled": True,
        "image": "registry.example.org/exporter:1",
        "compat": "soperator",
        "args": ["--no-personal-data"],
        "template": {
            "spec": {
                "nodeSelector": {"kubernetes.io/os": "linux"},
                "containers": [{"name": "slurm-exporter", "resources": {"limits": {"memory": "2Gi"}}}],
            }
        },
        "serviceMonitor": {"enabled": True, "labels": {"release": "prometheus"}, "scrapeTimeout": "10s"},
    },
}
MADE = (
    (kinds.SERVICE, "rest-metrics"),
    (kinds.DEPLOYMENT, "rest-metrics"),
    (kinds.SERVICE_MONITOR, "rest-metrics"),
)


def with_key(spec: dict | None = None) -> HandmadeWorld:
    there = world(restapi(spec))
    there.served = {*there.served, kinds.SERVICE_MONITOR}
    return with_secrets(there, secret("slurm-auth-jwt", jwt_key="k2"))


def steps(there: HandmadeWorld) -> list[Action]:
    _, plan = decide(there)
    return [step for one in plan.lanes if one.name == "exporter" for stage in one.stages for step in stage]


def there_now(there: HandmadeWorld) -> list[Child]:
    found = (there.child(kind, "ns", name) for kind, name in MADE)
    return [child for child in found if child is not None]


def test_without_the_switch_there_is_nothing_of_it():
    there = with_key()

    assert steps(there) == []
    assert desired(RECONCILER.observe(KEY, there)) == []


@pytest.mark.parametrize(("name", "spec"), [("exporter", ON), ("exporter-monitored", MONITORED)])
def test_the_objects_of_an_exporter(name: str, spec: dict):
    assert_golden("restapi", name, desired(RECONCILER.observe(KEY, with_key(spec))))


def test_a_slurm_elsewhere_has_its_exporter_by_the_same_switch():
    keys = {
        "slurmKeyRef": {"name": "theirs", "key": "slurm.key"},
        "jwtKeyRef": {"name": "theirs", "key": "jwt.key"},
    }
    outside = {
        "external": True,
        "externalConfig": {"host": "slurmctld.example.org", "port": 6817},
        "clusterName": "hpc",
        **keys,
    }
    there = with_key(ON)
    there.things = [thing for thing in there.things if not isinstance(thing, Controller)]
    there.things.append(read(Controller, outside))
    with_secrets(there, secret("theirs", slurm_key="k1", jwt_key="k2"))

    found = {one["kind"]: one for one in desired(RECONCILER.observe(KEY, there))}

    pod = found["Deployment"]["spec"]["template"]["spec"]
    assert set(found) == {"Deployment", "Service"}
    assert "--cluster-name=hpc" in pod["containers"][0]["args"]
    assert pod["volumes"][0]["projected"]["sources"][0]["secret"]["name"] == "theirs"


def test_it_waits_for_the_key_that_it_signs_tokens_with():
    (wait,) = steps(world(restapi(ON)))

    assert isinstance(wait, Wait)
    assert wait.reason == "KeyNotYetGenerated"
    assert "slurm-auth-jwt" in wait.message


def test_once_made_nothing_is_written_again_and_switched_off_it_is_deleted():
    there = with_key(MONITORED)
    assert {step.manifest["kind"] for step in steps(there) if isinstance(step, Apply)} == {
        "Service",
        "Deployment",
        "ServiceMonitor",
    }
    carried_out(there, decide(there)[1])
    assert len(there_now(there)) == 3
    assert steps(there) == []

    there.things = [restapi() if isinstance(thing, RestApi) else thing for thing in there.things]
    deletes = steps(there)

    assert {(step.kind, step.key.name) for step in deletes if isinstance(step, DeleteObject)} == set(MADE)
    assert len(deletes) == 3


def test_objects_of_others_under_its_name_are_left_alone():
    there = with_key(ON)
    other = read(RestApi, {"controllerRef": {"name": "slurm"}}, name="other", uid="u-other")
    foreign = desired(RECONCILER.observe(KEY, with_key(ON)))[0]
    foreign["metadata"]["ownerReferences"][0] |= {"name": "other", "uid": other.metadata.uid}
    carried_out(
        there, type("P", (), {"actions": lambda self: [Apply(manifest=foreign, reason="x", message="x")]})()
    )

    found = steps(there)

    assert [step.reason for step in found if isinstance(step, Wait)] == ["NameTaken"]
    assert not any(isinstance(step, Apply) and step.manifest["kind"] == "Service" for step in found)


def test_its_name_fits_wherever_slurmrestds_own_does():
    longest = "a" * 55

    assert len(names.exporter_workload(longest)) == len(names.restapi_workload(longest)) == 63


def test_the_operator_sees_and_may_delete_what_it_makes():
    """Objects are watched by the label that names their program."""
    for body in desired(RECONCILER.observe(KEY, with_key(MONITORED))):
        kind = kinds.kind_of(body)
        may = {
            verb
            for right in rights.in_namespaces(registry.DEFAULT)
            if right.group == kind.group and kind.plural in right.resources
            for verb in right.verbs
        }

        assert body["metadata"]["labels"][names.APP_NAME] in APP_NAMES
        assert "delete" in may, kind
