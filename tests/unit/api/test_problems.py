"""What is wrong with a manifest beyond what the API server itself can see."""

from typing import Any

import pytest

from slurm_operator.api import KINDS, Cluster, Controller, NodeSet
from slurm_operator.api.schema.codec import read
from slurm_operator.api.schema.problems import Problem, References, Severity, warning

MODELS = {cls.KIND.kind: cls for cls in KINDS}
REF = {"controllerRef": {"name": "slurm"}}


def thing(kind: str, spec: dict[str, Any], name: str = "slurm") -> Any:
    return read(MODELS[kind], {"metadata": {"name": name, "namespace": "lab"}, "spec": spec})


def said(problems: Any) -> list[str]:
    return [f"{problem.severity}: {problem}" for problem in problems]


@pytest.mark.parametrize(
    ("kind", "spec", "refs", "complaint"),
    [
        pytest.param(
            "Controller",
            {"configFileRefs": [{"name": "files"}]},
            References(config_maps={"files": frozenset({"gres.conf", "slurm.conf"})}),
            "Error: spec.configFileRefs[0].name: ConfigMap 'files' has slurm.conf, which the operator writes; "
            "use extraConf",
            id="a reserved file",
        ),
        pytest.param(
            "Controller",
            {"configFileRefs": [{"name": "other"}, {"name": "files"}]},
            References(config_maps={"files": frozenset({"site.conf"})}),
            "Warning: spec.configFileRefs[1].name: ConfigMap 'files' has site.conf, which Slurm reads only when "
            "another file includes it",
            id="an unknown file",
        ),
        pytest.param(
            "Controller",
            {"configFileRefs": [{"name": "files"}]},
            References(config_maps={"files": None}),
            "Warning: spec.configFileRefs[0].name: there is no ConfigMap 'files' yet; its files are added when "
            "there is",
            id="a ConfigMap that comes later",
        ),
        pytest.param(
            "Controller",
            {"ha": {"enabled": True}, "persistence": {"existingClaim": "state"}},
            References(claims={"state": ("ReadWriteOnce",)}),
            "Error: spec.persistence.existingClaim: PersistentVolumeClaim 'state' cannot be mounted by several pods "
            "at once; with ha.enabled its accessModes must contain ReadWriteMany",
            id="backups on a volume for one",
        ),
        pytest.param(
            "Controller",
            {},
            References(cluster_names={"lab_slurm": ("older",)}),
            "Error: spec.clusterName: Controller 'older' is already known as 'lab_slurm' to the same Accounting",
            id="two clusters of one name in one accounting",
        ),
        pytest.param(
            "Controller",
            {"external": True, "externalConfig": {"host": "a", "port": 1}},
            References(),
            "Warning: spec.slurmKeyRef: an external slurmctld has its own keys; without them nothing here can talk "
            "to it",
            id="external without keys",
        ),
        pytest.param(
            "NodeSet",
            REF | {"extraConf": "Gres=gpu:8 Feature= Weight=5"},
            References(),
            "Warning: spec.extraConf: 'Feature=' is no Key=Value that Slurm could read, and is left out",
            id="a word without a value",
        ),
        pytest.param(
            "NodeSet",
            REF,
            References(node_set_names={"slurm": ("older",)}),
            "Error: spec.template.spec.hostname: NodeSet 'older' is already known as 'slurm' to the same "
            "Controller; use another hostname prefix",
            id="two sets of one name",
        ),
        pytest.param(
            "NodeSet",
            {**REF, "updateStrategy": {"rollingUpdate": {"maxUnavailable": "a few"}}},
            References(),
            "Warning: spec.updateStrategy.rollingUpdate.maxUnavailable: 'a few' is neither a number nor a "
            "percentage such as 25%; 1 is used",
            id="a budget that is none",
        ),
        pytest.param(
            "NodeSet",
            {**REF, "scalingMode": "DaemonSet", "pinToNode": True},
            References(),
            "Warning: spec.pinToNode: makes no difference in DaemonSet mode: there workers belong to their node",
            id="pinned in DaemonSet mode",
        ),
        pytest.param(
            "NodeSet",
            {**REF, "ssh": {"enabled": True}, "template": {"spec": {"hostNetwork": True}}},
            References(),
            "Warning: spec.ssh.enabled: with hostNetwork sshd wants port 22 of the machine, which may have an sshd of "
            "its own there; `Port 2222` in extraSshdConfig gives it another one",
            id="sshd on the machine's port",
        ),
        pytest.param(
            "NodeSet",
            {**REF, "volumeClaimTemplates": [{"metadata": {"name": "a"}}, {"spec": {}}]},
            References(),
            "Warning: spec.volumeClaimTemplates[1].metadata.name: is missing, so no worker gets this volume",
            id="a volume without a name",
        ),
        pytest.param(
            "NodeSet",
            {**REF, "volumeClaimTemplates": [{"metadata": {"name": "a"}}, {"metadata": {"name": "a"}}]},
            References(),
            "Warning: spec.volumeClaimTemplates[0].metadata.name: 'a' is there again below, and the last one counts",
            id="two volumes of one name",
        ),
        pytest.param(
            "NodeSet",
            {"controllerRef": {"name": "slurm", "namespace": "other"}},
            References(),
            "Warning: spec.controllerRef.namespace: only objects in the same namespace can be named; this is "
            "ignored",
            id="a reference across namespaces",
        ),
        pytest.param(
            "RestApi",
            {"controllerRef": {}},
            References(),
            "Warning: spec.controllerRef.name: is empty: slurmrestd starts when it names a Controller",
            id="slurmrestd for nobody",
        ),
        pytest.param(
            "Accounting",
            {},
            References(),
            "Warning: spec.storageConfig: slurmdbd starts when it has a database: set storageConfig, or managed: {}",
            id="accounting without a database",
        ),
        pytest.param(
            "Token",
            {**REF, "username": ""},
            References(),
            "Warning: spec.username: is empty, so the token speaks for user nobody",
            id="a token for nobody",
        ),
        pytest.param(
            "Token",
            {"username": "a", "jwtHs256KeyRef": {"name": "a", "key": "b"}},
            References(),
            "Warning: spec.jwtHs256KeyRef: use jwtKeyRef",
            id="the old name of a field",
        ),
        pytest.param(
            "Cluster",
            {"server": "http://a", "token": {"secretRef": "b"}, "nodeSets": [{"name": "cpu"}]},
            References(),
            "Warning: spec.nodeSets: makes no difference: with server set, that Slurm is only watched",
            id="workers for a Slurm elsewhere",
        ),
        pytest.param(
            "Cluster",
            {"nodeSets": [{"name": "cpu"}, {"name": "all", "scalingMode": "DaemonSet", "pinToNode": True}]},
            References(),
            "Warning: spec.nodeSets[1].pinToNode: makes no difference in DaemonSet mode: there workers belong to "
            "their node",
            id="a problem of a part",
        ),
    ],
)
def test_a_problem_says_where_what_and_how_bad(
    kind: str, spec: dict[str, Any], refs: References, complaint: str
) -> None:
    assert said(thing(kind, spec).problems(None, refs)) == [complaint]


@pytest.mark.parametrize("kind", ["Controller", "LoginSet", "Accounting", "RestApi"])
def test_external_addresses_of_a_service_are_dropped_with_a_warning(kind: str) -> None:
    spec = {**REF, "managed": {}, "service": {"spec": {"externalIPs": ["192.0.2.1"]}}}

    assert said(thing(kind, spec).problems(None, References())) == [
        "Warning: spec.service.spec.externalIPs: is dropped: it would let this Service catch traffic of others"
    ]


@pytest.mark.parametrize("kind", ["Controller", "Cluster"])
@pytest.mark.parametrize(
    ("before", "now", "is_fine"),
    [
        pytest.param({"clusterName": "a"}, {"clusterName": "b"}, False, id="another name"),
        pytest.param({}, {"clusterName": "b"}, False, id="a name where there was the derived one"),
        pytest.param({"clusterName": "a"}, {}, False, id="back to the derived one"),
        pytest.param({}, {"clusterName": "lab_slurm"}, True, id="the derived name, spelt out"),
        pytest.param({"clusterName": "a"}, {"clusterName": "a"}, True, id="no change"),
    ],
)
def test_the_name_that_slurm_knows_never_changes(
    kind: str, before: dict[str, Any], now: dict[str, Any], is_fine: bool
) -> None:
    problems = list(thing(kind, now).problems(thing(kind, before), References()))

    assert (problems == []) is is_fine


def test_a_derived_cluster_name_that_is_too_long_is_refused_when_it_is_made_and_tolerated_later() -> None:
    long = thing("Controller", {}, name="c" * 40)

    [problem] = long.problems(None, References())

    assert "longer than 40 characters; give it a shorter clusterName" in problem.message
    assert list(long.problems(long, References())) == []


def test_a_volume_for_many_or_one_that_nobody_has_seen_is_fine_for_backups() -> None:
    controller = thing("Controller", {"ha": {"enabled": True}, "persistence": {"existingClaim": "state"}})

    for claims in ({}, {"state": None}, {"state": ("ReadWriteMany",)}):
        assert list(controller.problems(None, References(claims=claims))) == []


@pytest.mark.parametrize(
    ("lines", "is_warned"), [("Port 2222", False), ("  port=2222\n", False), ("PortForwarding no", True)]
)
def test_an_sshd_with_a_port_of_its_own_may_share_the_machine(lines: str, is_warned: bool) -> None:
    spec = {
        **REF,
        "ssh": {"enabled": True, "extraSshdConfig": lines},
        "template": {"spec": {"hostNetwork": True}},
    }

    assert bool(said(thing("NodeSet", spec).problems(None, References()))) is is_warned


def test_paths_join_as_people_write_them() -> None:
    assert Problem(path="name", message="m").under("items[2]").under("spec").path == "spec.items[2].name"
    assert Problem(path="", message="m").under("spec").path == "spec"
    assert warning("a", "b").severity is Severity.WARNING


def test_an_old_manifest_is_understood() -> None:
    old = thing("NodeSet", {"clusterName": "slurm", "updateStrategy": {"rollingUpdate": {"paused": True}}})

    assert isinstance(old, NodeSet)
    assert old.spec.controller == "slurm"
    assert old.spec.update_strategy.effective_type == "OnDelete"


def test_an_old_accounting_reference_without_a_name_is_none() -> None:
    controller = thing("Controller", {"accountingRef": {}})

    assert isinstance(controller, Controller)
    assert controller.spec.accounting == ""


def test_an_adopted_slurm_says_so() -> None:
    cluster = thing("Cluster", {"server": "http://a", "token": {"secretRef": "b"}})

    assert isinstance(cluster, Cluster)
    assert cluster.spec.is_adopted
    assert list(cluster.problems(None, References())) == []
