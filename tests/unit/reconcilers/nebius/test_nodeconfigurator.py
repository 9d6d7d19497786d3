"""The pods of a NodeConfigurator: which manifests are made, and what is said where there are none."""

import json
from functools import cache

import pytest

from slurm_operator.api import registry
from slurm_operator.api.nebius.nodeconfigurator import NodeConfigurator, NodeConfiguratorSpec
from slurm_operator.api.schema import codec
from slurm_operator.api.shared.meta import ObjectKey
from slurm_operator.install import rights
from slurm_operator.manifests import kinds
from slurm_operator.plan.actions import Apply, DeleteObject
from slurm_operator.reconcilers.nebius.nodeconfigurator import RECONCILER
from slurm_operator.reconcilers.nebius.nodeconfigurator.desired import RULES
from testing import children
from testing.golden import assert_golden
from testing.nebius import walk
from testing.slurmclusters import NOW, carried_out, manifest, read, world

NAMES = ("rebooting", "customised", "older-configurator", "typed-configurator", "empty-configurator")


def look(there, name):
    seen = RECONCILER.observe(ObjectKey("ns", name), there)
    assert seen is not None
    return seen, RECONCILER.decide(seen, NOW)


def written(there, name):
    return [action.manifest for action in look(there, name)[1].actions() if isinstance(action, Apply)]


def made(name, **changes):
    there = world(manifest("NodeConfigurator", name, **changes))
    return {body["kind"]: body for body in written(there, name)}


def pod(name, **changes):
    return made(name, **changes)["DaemonSet"]["spec"]["template"]["spec"]


def report(there, name):
    seen, plan = look(there, name)
    return children.report(RECONCILER, seen, plan)


@pytest.mark.parametrize("name", NAMES[:3] + NAMES[4:])
def test_the_manifests(name):
    there = world(manifest("NodeConfigurator", name))

    assert_golden("nebius/nodeconfigurator", name, written(there, name))


@pytest.mark.parametrize("name", NAMES[:3] + NAMES[4:])
def test_what_is_there_is_not_written_again(name):
    there = world(manifest("NodeConfigurator", name))
    carried_out(there, look(there, name)[1])

    assert written(there, name) == []


def test_the_rebooter_lives_through_its_own_taint():
    tolerations = pod("empty-configurator")["tolerations"]

    assert {"key": "node.kubernetes.io/NoExecute", "operator": "Exists", "effect": "NoExecute"} in tolerations
    assert "tolerations" not in pod("customised")


def test_without_an_image_the_rebooter_is_that_of_the_operator(monkeypatch):
    monkeypatch.setenv("SLURM_OPERATOR_EXPORTER_IMAGE", "registry.example/operator:7")

    [container] = pod("typed-configurator")["containers"]
    assert (container["image"], container["command"]) == (
        "registry.example/operator:7",
        ["/usr/bin/rebooter"],
    )


def test_an_account_is_made_only_where_the_manifest_names_none():
    assert set(made("empty-configurator")) == {"ServiceAccount", "Role", "RoleBinding", "DaemonSet"}
    assert set(made("rebooting")) == {"DaemonSet"}
    assert set(made("customised")) == {"DaemonSet"}


def test_the_operator_gives_no_right_that_it_does_not_have():
    ours = rights.in_namespaces(registry.ALL)
    for rule in RULES:
        [group], [resource] = rule["apiGroups"], rule["resources"]
        held = {verb for right in ours if right.group == group and resource in right.resources for verb in right.verbs}  # fmt: skip
        assert set(rule["verbs"]) <= held


def test_an_account_that_the_operator_made_is_told_with_the_command_that_gives_its_rights():
    there = world(manifest("NodeConfigurator", "empty-configurator"))
    carried_out(there, look(there, "empty-configurator")[1])
    counts = {"desiredNumberScheduled": 3, "numberReady": 3, "updatedNumberScheduled": 3}
    children.running(there, kinds.DAEMON_SET, "empty-configurator-ds", **counts)

    truth, reason, message = report(there, "empty-configurator")["Ready"]
    assert (truth, reason) == ("True", "Running")
    assert message == (
        "3 of 3 pods are ready. If nobody has given them their rights yet, an administrator runs once: "
        "kubectl create clusterrolebinding ns-empty-configurator-rebooter "
        "--clusterrole=slurm-operator-rebooter --serviceaccount=ns:empty-configurator-rebooter"
    )


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        ({}, ("False", "Starting", "0 of 0 pods are ready.")),
        ({"desiredNumberScheduled": 3, "numberReady": 2, "updatedNumberScheduled": 3, "observedGeneration": 1}, ("False", "Starting", "2 of 3 pods are ready.")),
        ({"desiredNumberScheduled": 3, "numberReady": 3, "updatedNumberScheduled": 1, "observedGeneration": 1}, ("False", "Starting", "3 of 3 pods are ready.")),
        ({"desiredNumberScheduled": 3, "numberReady": 3, "updatedNumberScheduled": 3, "observedGeneration": 1}, ("True", "Running", "3 of 3 pods are ready.")),
    ],
)  # fmt: skip
def test_how_far_the_pods_are(counts, expected):
    there = world(manifest("NodeConfigurator", "customised"))
    assert report(there, "customised")["Ready"][:2] == ("False", "NotMade")

    carried_out(there, look(there, "customised")[1])
    there.child(kinds.DAEMON_SET, "ns", "customised-ds").body["status"] = counts
    found = report(there, "customised")
    assert found["Ready"] == expected


@pytest.mark.parametrize(
    ("name", "changes", "reason", "says"),
    [
        pytest.param("configurator-without-spec", {}, "NothingEnabled", "spec is missing", id="no spec"),
        pytest.param("empty-configurator", {"spec": {"rebooter": {"enabled": False}}}, "NothingEnabled", "Neither spec.rebooter nor spec.customContainer is enabled", id="neither"),
        pytest.param("customised", {"spec__customContainer__image": None}, "SpecRefused", "spec.customContainer.image.repository is missing", id="no image"),
        pytest.param("older-configurator", {"spec__nodeConfigurator__image__repository": ""}, "SpecRefused", "spec.nodeConfigurator.image.repository is missing", id="an image without a name"),
        pytest.param("rebooting", {"spec__rebooter__logFormat": "xml"}, "SpecRefused", "spec.rebooter.logFormat is 'xml'; it may be json or plain", id="format"),
        pytest.param("rebooting", {"spec__rebooter__hostUsers": False}, "SpecRefused", "spec.rebooter.hostUsers is false", id="users"),
    ],
)  # fmt: skip
def test_what_cannot_run_is_said_and_makes_no_daemon_set(name, changes, reason, says):
    there = world(manifest("NodeConfigurator", name, **changes))

    assert written(there, name) == []
    found = report(there, name)["Ready"]
    assert found[:2] == ("False", reason)
    assert says in found[2]


def test_pods_end_when_nothing_is_enabled_any_more():
    there = world(manifest("NodeConfigurator", "customised"))
    carried_out(there, look(there, "customised")[1])
    there.things = [read(manifest("NodeConfigurator", "customised", spec={"rebooter": {"enabled": False}}))]

    [delete] = [one for one in look(there, "customised")[1].actions() if isinstance(one, DeleteObject)]
    assert (delete.kind, delete.key.name) == (kinds.DAEMON_SET, "customised-ds")


def test_a_spec_that_is_refused_leaves_its_pods_as_they_are():
    there = world(manifest("NodeConfigurator", "rebooting"))
    carried_out(there, look(there, "rebooting")[1])
    there.things = [read(manifest("NodeConfigurator", "rebooting", spec__rebooter__logFormat="xml"))]

    assert not [one for one in look(there, "rebooting")[1].actions() if isinstance(one, Apply | DeleteObject)]


def test_a_daemon_set_of_soperator_keeps_its_selector():
    """It cannot change, and with another one every write would be refused."""
    there = world(manifest("NodeConfigurator", "customised"))
    theirs = {"app.kubernetes.io/name": "slurmcluster", "app": "theirs"}
    children.put(there, {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "customised-ds", "namespace": "ns"}, "spec": {"selector": {"matchLabels": theirs}}})  # fmt: skip

    [body] = written(there, "customised")
    assert body["spec"]["selector"]["matchLabels"] == theirs
    assert theirs.items() <= body["spec"]["template"]["metadata"]["labels"].items()


def test_a_deleted_one_is_left_to_kubernetes():
    there = world()
    there.things = [
        read(manifest("NodeConfigurator", "customised"), deletionTimestamp="2026-01-01T12:00:00Z")
    ]

    assert list(look(there, "customised")[1].actions()) == []


# ---- Every field counts

CONTAINER = {
    "enabled": True, "name": "own", "image": {"repository": "registry.example/own", "tag": "1"}, "command": ["own"],
    "resources": {"limits": {"memory": "1Gi"}}, "livenessProbe": {"tcpSocket": {"port": 1}}, "readinessProbe": {"tcpSocket": {"port": 1}},
    "env": [{"name": "A", "value": "b"}], "tolerations": [{"key": "a"}], "nodeSelector": {"a": "b"}, "affinity": {"nodeAffinity": {}},
    "priorityClassName": "high", "serviceAccountName": "own", "hostUsers": True,
}  # fmt: skip
OFF = {"rebooter": {"enabled": False}}
INIT = {"initContainers": [{"name": "sysctl", "image": "b", "command": ["sysctl"]}]}
BODIES = {
    "rebooter": manifest("NodeConfigurator", "rebooting", spec__shareProcessNamespace=False),
    "custom": manifest("NodeConfigurator", "customised", spec={**OFF, **INIT, "customContainer": CONTAINER}),
    "older": manifest("NodeConfigurator", "customised", spec={**OFF, **INIT, "nodeConfigurator": CONTAINER}),
}
CASES = [
    (name, path, field)
    for name, body in BODIES.items()
    for path, field in walk.leaves(NodeConfiguratorSpec, body["spec"], ("spec",))
    if len(path) == 2 or path[1] in body["spec"]
]
VALUES = {"spec.rebooter.logFormat": "plain", "spec.rebooter.resources": {"limits": {"memory": "2Gi"}}}

# There is one word for it.
ONE_VALUE = {"spec.rebooter.evictionMethod"}


def decided(body):
    _, plan = look(world(body), body["metadata"]["name"])
    return json.dumps(codec.plain([repr(action) for action in plan.actions()]))


@cache
def before(name):
    return decided(BODIES[name])


def is_noticed(name, path, field):
    body, text = BODIES[name], walk.text(path)
    value = VALUES.get(text, walk.another(field, walk.value_at(body, path)))
    return before(name) != decided(walk.with_value(body, path, value))


@pytest.mark.parametrize("text", sorted({walk.text(path) for _, path, _ in CASES} - ONE_VALUE))
def test_a_field_counts_for_something(text):
    assert any(is_noticed(name, path, field) for name, path, field in CASES if walk.text(path) == text)


def test_the_eviction_method_is_passed_on():
    [container] = pod("rebooting")["containers"]

    assert {"name": "REBOOTER_EVICTION_METHOD", "value": "evict"} in container["env"]
    assert RECONCILER.kind == NodeConfigurator.KIND
