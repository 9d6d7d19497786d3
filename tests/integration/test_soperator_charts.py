"""Charts by which users of Soperator move over: values people have, and what they turn into. No API server is needed."""

import json
from functools import cache

import pytest
import soperator_charts
import yaml
from chart_rig import CHARTS, HelmError, helm, objects, rendered, with_image

from slurm_operator.api.nebius import ActiveCheck, NodeConfigurator, NodeSet, SlurmCluster
from slurm_operator.api.schema.codec import read
from slurm_operator.api.schema.problems import References, Severity
from testing.soperator_charts import SOPERATOR, WITH_VALUES

TABLES = {
    "soperator": soperator_charts.OPERATOR,
    "slurm-cluster": soperator_charts.SLURM_CLUSTER,
    "nodesets": soperator_charts.NODESETS,
    "soperator-activechecks": soperator_charts.CHECKS,
    "soperatorchecks": soperator_charts.OF_CHECKS,
    "nodeconfigurator": soperator_charts.CONFIGURATORS,
    "slurm-cluster-storage": soperator_charts.STORAGE,
}


def made(chart: str, values: dict, *flags: str) -> dict:
    """Rendered objects by kind and name, of a release with the chart's name."""
    return _made(chart, json.dumps(values), flags)


@cache
def _made(chart: str, values: str, flags: tuple[str, ...]) -> dict:
    """Each once: for many a value the question is about the defaults."""
    return objects(rendered(f"soperator/{chart}", json.loads(values), *flags, release=chart))


def notes(chart: str, values: dict) -> str:
    where = ("install", chart, str(CHARTS / "soperator" / chart), "--dry-run=client", "-f", "-")
    given = with_image(f"soperator/{chart}", values)
    return helm(*where, stdin=yaml.safe_dump(given)).partition("NOTES:")[2]


def at(thing, path: str):
    """What stands there; None where nothing does."""
    for word in path.split("."):
        if isinstance(thing, list):
            thing = thing[int(word)] if int(word) < len(thing) else None
        elif isinstance(thing, dict):
            thing = thing.get(word)
    return thing


@pytest.mark.parametrize("chart", SOPERATOR)
def test_a_chart_has_nothing_to_complain_about(chart):
    assert "1 chart(s) linted, 0 chart(s) failed" in helm(
        "lint", "--strict", str(CHARTS / "soperator" / chart)
    )


@pytest.mark.parametrize(
    ("chart", "values", "kind", "name", "path", "value"),
    [
        pytest.param(chart, *row, id=f"{chart}: {name}")
        for chart, table in TABLES.items()
        for name, row in table.items()
    ],
)
def test_a_value_means_what_it_means_in_soperator_s_chart(chart, values, kind, name, path, value):
    found = at(made(chart, values)[kind, name], path)

    if path == "data":  # Beside the other scripts.
        found = {key: found.get(key) for key in value}
    assert found == value


@pytest.mark.parametrize("chart", WITH_VALUES)
def test_defaults_are_all_known_and_rendered_the_same_twice(chart):
    assert rendered(f"soperator/{chart}", {}, release=chart) == rendered(
        f"soperator/{chart}", {}, release=chart
    )
    assert "have no effect" not in notes(chart, {})


@pytest.mark.parametrize(
    ("chart", "values", "told"),
    [
        pytest.param("slurm-cluster", {"slurmNodes": {"login": {"sice": 3}}}, ["slurmNodes.login.sice is not known"], id="a typing error"),
        pytest.param("slurm-cluster", {"k8sNodeFilters": [{"name": "no-gpu", "toleration": []}]}, ["k8sNodeFilters[0].toleration is not known"], id="inside a list"),
        pytest.param("slurm-cluster", {"something": {"new": 1}}, ["something is not known"], id="a value of tomorrow"),
        pytest.param("slurm-cluster", {"slurmScripts": {"prolog": "x", "custom": {}}, "cudaVersion": "12.9.0"}, ["slurmScripts.prolog is called prolog.sh", "slurmScripts.custom is called extra", "cudaVersion has no effect"], id="older names"),
        pytest.param("slurm-cluster", {"slurmNodes": {"exporter": {"munge": {}, "exporter": {"resources": {}}}}}, ["slurmNodes.exporter.munge has no effect", "slurmNodes.exporter.exporter is read as exporterContainer"], id="older exporter"),
        pytest.param("slurm-cluster", {"slurmScripts": {"builtIn": {"x.sh": {"enabled": True}}}}, ["there is no script x.sh"], id="a script that is not there"),
        pytest.param("nodesets", {"nodesets": [{"name": "a", "slurmd": {"volumes": {"spool": {"volumeClaimTemplateSpec": {"a": 1}}}}}]}, ["a: slurmd.volumes.spool.volumeClaimTemplateSpec is a claim for each worker"], id="a spool"),
        pytest.param("nodesets", {"nodesets": [{"name": "a", "replcas": 1}], "fullnameOverride": "x"}, ["nodesets[0].replcas is not known", "fullnameOverride has no effect"], id="of a NodeSet"),
        pytest.param("soperator", {"controllerManager": {"manager": {"args": ["--reconcile-timeout=3m"], "resources": {"limits": {"memory": "128Mi"}}}}}, ["--reconcile-timeout=3m is left out", "limits.memory is 128Mi"], id="of the operator"),
        pytest.param("soperator", {"controllerManager": {"kubeRbacProxy": {"image": "x"}, "manager": {"controllersEnabled": {"cooking": True}}}, "kruise": {"installOperator": True}}, ["kubeRbacProxy has no effect", "controllersEnabled.cooking is not known", "kruise has no effect"], id="older values of the operator"),
    ],
)  # fmt: skip
def test_values_without_an_effect_are_listed_and_stop_nothing(chart, values, told):
    text = notes(chart, values)

    assert [words for words in told if words not in text] == []


@pytest.mark.parametrize(
    ("chart", "values", "words"),
    [
        ("slurm-cluster", {"slurmNodes": {"accounting": {"enabled": True}}}, "enable its externalDB or its mariadbOperator"),
        ("slurm-cluster", {"volumeSources": [{"name": "a", "createPVC": True, "persistentVolumeClaim": {"claimName": "a"}}]}, "a has createPVC and no size"),
        ("slurm-cluster", {"clusterName": None}, "clusterName: say how the cluster is called"),
        ("nodesets", {"nodesets": [{"replicas": 1}]}, "each needs a name"),
    ],
)  # fmt: skip
def test_what_cannot_be_meant_is_refused_with_a_reason(chart, values, words):
    with pytest.raises(HelmError, match=words):
        made(chart, values)


def test_values_that_soperator_s_release_left_behind_are_enough(tmp_path):
    """As `helm upgrade --reuse-values` brings them along: none of the values that only our chart has."""
    theirs = {"clusterName": "a", "images": {"slurmctld": "r/c:5"}, "slurmNodes": {"login": {"size": 1}}}
    values = {
        **theirs,
        "valuesOf": None,
        "defaultImages": None,
        "priorityClasses": None,
        "slurmScripts": None,
    }
    cluster = made("slurm-cluster", values)["SlurmCluster", "a"]["spec"]

    assert cluster["slurmNodes"]["login"]["sshd"]["image"] == "docker.io/local/login:26.05"
    assert cluster["slurmNodes"]["login"]["size"] == 1


@pytest.mark.parametrize("chart", ["slurm-cluster", "nodesets"])
def test_no_null_is_written(chart):
    text = rendered(
        f"soperator/{chart}", soperator_charts.worker() if chart == "nodesets" else {}, release=chart
    )

    assert list(nulls([thing for thing in yaml.safe_load_all(text) if thing])) == []


def nulls(thing, path=""):
    """Where they are."""
    if thing is None:
        yield path
    inner = thing.items() if isinstance(thing, dict) else enumerate(thing if isinstance(thing, list) else ())
    for name, one in inner:
        yield from nulls(one, f"{path}.{name}")


def test_checks_that_are_on_have_their_script_and_their_entry():
    data = made("slurm-cluster", {})["ConfigMap", "slurm1-slurm-scripts"]["data"]
    checks = json.loads(data["checks.json"])

    assert {one["command"].removeprefix("/opt/slurm_scripts/") for one in checks} <= data.keys()
    assert len(checks) == 14
    off = {"slurmScripts": {"builtIn": {"boot_disk_full.sh": {"enabled": False}}}}
    data = made("slurm-cluster", off)["ConfigMap", "slurm1-slurm-scripts"]["data"]
    assert "boot_disk_full" not in data["checks.json"]


def test_monitors_are_made_where_their_kinds_exist():
    there = ("--api-versions", "monitoring.coreos.com/v1")
    kinds = {kind for kind, _ in made("slurm-cluster", {}, *there)}
    kinds |= {kind for kind, _ in made("soperator", {}, *there)}

    assert {"PodMonitor", "ServiceMonitor"} <= kinds
    assert {"PodMonitor", "ServiceMonitor"}.isdisjoint(kind for kind, _ in made("soperator", {}))


MODELS = {one.KIND.kind: one for one in (SlurmCluster, NodeSet, ActiveCheck, NodeConfigurator)}
OF_KINDS = [
    one for one in soperator_charts.EVERYTHING if not one[0].startswith(("soperatorch", "slurm-cluster-st"))
]


@pytest.mark.parametrize(("chart", "values"), [one for one in OF_KINDS if one[0] != "soperator"])
def test_admission_has_nothing_against_what_is_made(chart, values):
    found = [thing for (kind, _), thing in made(chart, values).items() if kind in MODELS]
    problems = [
        f"{problem.path}: {problem.message}"
        for thing in found
        for problem in read(MODELS[thing["kind"]], thing).problems(None, References())
        if problem.severity is Severity.ERROR
    ]

    assert found
    assert problems == []


WORKERS = {
    "clusterName": "a",
    "nodesets": [{"name": "w", "slurmd": {"resources": {"cpu": "1", "memory": "1Gi"}}}],
}


@pytest.mark.parametrize(
    ("chart", "values", "setting"),
    [
        pytest.param("soperator", {}, "controllerManager.manager.image.repository=", id="the manager"),
        pytest.param("soperator", {"controllerManager": {"manager": {"image": "r/o:1"}}}, "exporterImage=", id="the exporter"),
        pytest.param("soperator", {"controllerManager": {"manager": {"image": "r/o:1"}}, "exporterImage": "r/e:1"}, "slurmImages=", id="daemons of clusters"),
        pytest.param("soperatorchecks", {}, "checks.manager.image.repository=", id="checks"),
        pytest.param("soperatorchecks", {"checks": {"manager": {"image": "r/o:1"}}}, "slurmImages=", id="daemons beside checks"),
        pytest.param("nodeconfigurator", {}, "rebooter.image.repository=", id="the rebooter"),
        pytest.param("slurm-cluster", {}, "defaultImages=", id="daemons"),
        pytest.param("slurm-cluster", {"defaultImages": "r/{daemon}:1"}, "=REGISTRY/slurm-operator:", id="programs beside daemons"),
        pytest.param("nodesets", WORKERS, "images.slurmd.repository=", id="workers"),
        pytest.param("soperator-activechecks", {"slurmClusterRefName": "a"}, "images.", id="jobs of checks"),
    ],
)  # fmt: skip
def test_without_an_image_of_your_own_nothing_is_installed(chart, values, setting):
    """Anybody could publish an image under the name that ours have on the local cluster."""
    with pytest.raises(HelmError) as refused:
        rendered(f"soperator/{chart}", {"localImages": False, **values}, release=chart)
    assert setting in str(refused.value)
    assert "Bring our images to a registry of yours" in str(refused.value)


def test_with_images_of_your_own_the_local_cluster_is_not_named():
    images = {name: f"r/{name}:1" for name in ("soperatorExporter", "sConfigController")}
    values = {"localImages": False, "defaultImages": "r/{daemon}:1", "images": images}
    assert "docker.io/local/" not in rendered("soperator/slurm-cluster", values, release="slurm")
