"""The definitions of slurm.nebius.ai against a table of every field, written down from their releases, and golden files."""

import os
from pathlib import Path
from typing import Any

import pytest

from slurm_operator import wire
from slurm_operator.api import KINDS as FIRST_KINDS
from slurm_operator.api.nebius import KINDS
from slurm_operator.api.schema.crd import crd, root_schema
from testing import nebius
from testing.golden import as_yaml

GOLDEN = Path(__file__).parent / "golden"
MODELS = {cls.KIND.kind: cls for cls in KINDS}
TABLE = nebius.fields()


def version(kind: str) -> dict[str, Any]:
    [found] = crd(MODELS[kind])["spec"]["versions"]
    return found


def test_the_group_has_these_kinds_in_these_versions() -> None:
    assert {cls.KIND.kind: cls.KIND.api_version for cls in KINDS} == {
        "SlurmCluster": "slurm.nebius.ai/v1",
        "NodeSet": "slurm.nebius.ai/v1alpha1",
        "NodeSetPowerState": "slurm.nebius.ai/v1alpha1",
        "NodeConfigurator": "slurm.nebius.ai/v1alpha1",
        "JailedConfig": "slurm.nebius.ai/v1alpha1",
        "ActiveCheck": "slurm.nebius.ai/v1alpha1",
    }
    assert set(TABLE) == set(MODELS)


@pytest.mark.parametrize("kind", MODELS)
def test_a_kind_has_every_field_of_the_table_and_no_other(kind: str) -> None:
    found = {path for path, _ in described(kind)}

    assert sorted(set(TABLE[kind]) - found) == []
    assert sorted(found - set(TABLE[kind])) == []


@pytest.mark.parametrize("kind", MODELS)
def test_a_field_has_the_type_default_and_bounds_of_the_table(kind: str) -> None:
    wrong = {
        path: (fact, TABLE[kind][path])
        for path, fact in described(kind)
        if path in TABLE[kind] and fact != TABLE[kind][path]
    }

    assert wrong == {}


def described(kind: str) -> list[tuple[str, nebius.Fact]]:
    own = ("spec", "status")
    return [row for row in nebius.described(root_schema(MODELS[kind])) if row[0].split(".")[0] in own]


WHOLE_DEFAULTS = {
    "mpiConfig": {"pmixEnv": "OMPI_MCA_btl_tcp_if_include=eth0"},
    "slurmConfig": {
        "defMemPerNode": 0,
        "defCpuPerGPU": 4,
        "completeWait": 5,
        "maxJobCount": 20000,
        "minJobAge": 1800,
        "messageTimeout": 60,
        "topologyPlugin": "topology/tree",
        "topologyParam": "SwitchAsNodeRank",
        "suspendTime": 1000000000,
        "resumeTimeout": 1800,
    },
    "plugStackConfig": {
        "pyxis": {
            "required": True,
            "useSquashfuse": False,
            "importerPath": "/opt/slurm_scripts/pyxis_caching_importer.sh",
        },
        "ncclDebug": {
            "required": False,
            "enabled": False,
            "logLevel": "INFO",
            "outputToFile": True,
            "outputToStdOut": False,
            "outputDirectory": "/opt/soperator-outputs/local/nccl_logs",
        },
        "ncclInspectorPreConf": {
            "required": False,
            "enabled": False,
            "profilerPlugin": "/usr/lib/x86_64-linux-gnu/libnccl-profiler-inspector.so",
            "dumpDir": "/opt/soperator-outputs/shared/nccl_profiles/%j/%s",
            "dumpVerbose": False,
            "dumpThreadIntervalMicroseconds": 1000000,
        },
    },
    "slurmNodes.controller.openMetrics": {
        "enabled": True,
        "serviceMonitor": {"interval": "30s", "scrapeTimeout": "28s"},
    },
    "slurmNodes.exporter.podMonitorConfig": {
        "jobLabel": "slurm-exporter",
        "interval": "30s",
        "scrapeTimeout": "20s",
    },
}


@pytest.mark.parametrize(("path", "wanted"), WHOLE_DEFAULTS.items())
def test_an_object_that_is_left_out_of_a_slurmcluster_is_filled_in_as_a_whole(path: str, wanted: Any) -> None:
    found = root_schema(MODELS["SlurmCluster"])["properties"]["spec"]
    for name in path.split("."):
        found = found["properties"][name]

    assert found["default"] == wanted


COLUMNS = {
    "SlurmCluster": [
        ("Status", "string", ".status.phase", 0),
        ("Controllers", "string", '.status.conditions[?(@.type=="ControllersAvailable")].status', 0),
        ("Login", "integer", ".status.readyLogin", 0),
        ("SConfigCtrl", "string", '.status.conditions[?(@.type=="SConfigControllerAvailable")].status', 0),
        ("Accounting", "string", '.status.conditions[?(@.type=="AccountingAvailable")].status', 0),
        ("Workers", "integer", ".status.readyWorkers", 1),
        ("AGE", "date", ".metadata.creationTimestamp", 1),
    ],
    "NodeSet": [
        ("Status", "string", ".status.phase", 0),
        ("Desired", "integer", ".spec.replicas", 0),
        ("Ready", "integer", ".status.replicas", 0),
        ("Ephemeral", "boolean", ".spec.ephemeralNodes", 0),
        ("AGE", "date", ".metadata.creationTimestamp", 1),
    ],
    "NodeSetPowerState": [
        ("NodeSet", "string", ".spec.nodeSetRef", 0),
        ("Active", "integer", ".status.activeCount", 0),
        ("Ready", "string", '.status.conditions[?(@.type=="Ready")].status', 0),
        ("AGE", "date", ".metadata.creationTimestamp", 0),
    ],
    "NodeConfigurator": [
        ("Rebooter Enabled", "boolean", ".spec.rebooter.enabled", 0),
        ("NodeConfigurator Enabled", "boolean", ".spec.nodeConfigurator.enabled", 0),
        ("AGE", "date", ".metadata.creationTimestamp", 0),
    ],
    "JailedConfig": [
        ("Files Written", "string", '.status.conditions[?(@.type=="FilesWritten")].reason', 0),
        (
            "Reconfiguration Status",
            "string",
            '.status.conditions[?(@.type=="UpdateActionsCompleted")].reason',
            0,
        ),
        ("Jailed Path", "string", ".spec.items[0].path", 0),
        ("AGE", "date", ".metadata.creationTimestamp", 0),
    ],
    "ActiveCheck": [
        ("Type", "string", ".spec.checkType", 0),
        ("Init", "boolean", ".spec.runAfterCreation", 0),
        ("Suspend", "boolean", ".spec.suspend", 0),
        ("Schedule", "string", ".spec.schedule", 0),
        ("K8s Status", "string", ".status.k8sJobsStatus.lastJobStatus", 0),
        ("Slurm Status", "string", ".status.slurmJobsStatus.lastRunStatus", 0),
        ("Slurm Submit Time", "date", ".status.slurmJobsStatus.lastRunSubmitTime", 0),
        ("Slurm ID", "string", ".status.slurmJobsStatus.lastRunId", 0),
        ("AGE", "date", ".metadata.creationTimestamp", 0),
    ],
}


@pytest.mark.parametrize("kind", MODELS)
def test_kubectl_shows_these_columns(kind: str) -> None:
    columns = [
        (column["name"], column["type"], column["jsonPath"], column["priority"])
        for column in version(kind)["additionalPrinterColumns"]
    ]

    assert columns == COLUMNS[kind]


def test_only_a_nodeset_can_be_scaled_and_every_kind_has_a_status_of_its_own() -> None:
    scale = {
        "specReplicasPath": ".spec.replicas",
        "statusReplicasPath": ".status.replicas",
        "labelSelectorPath": ".status.labelSelector",
    }

    assert {kind: version(kind)["subresources"] for kind in MODELS} == {
        kind: {"status": {}, **({"scale": scale} if kind == "NodeSet" else {})} for kind in MODELS
    }


@pytest.mark.parametrize("kind", MODELS)
def test_a_kind_has_no_short_name_and_one_version(kind: str) -> None:
    definition = crd(MODELS[kind])["spec"]

    assert definition["names"]["shortNames"] == []
    assert definition["scope"] == "Namespaced"
    assert (version(kind)["served"], version(kind)["storage"]) == (True, True)


def test_only_jailedconfig_needs_a_spec() -> None:
    assert {kind for kind in MODELS if root_schema(MODELS[kind]).get("required")} == {"JailedConfig"}


@pytest.mark.parametrize("kind", MODELS)
def test_every_field_is_described(kind: str) -> None:
    assert undescribed(root_schema(MODELS[kind])) == ["metadata"]


def undescribed(schema: dict[str, Any], path: str = "") -> list[str]:
    """Paths of fields without a description, in what is passed on too."""
    found = []
    for name, inner in schema.get("properties", {}).items():
        here = f"{path}.{name}".lstrip(".")
        found += [] if inner.get("description") else [here]
        for below in (inner, inner.get("items", {}), inner.get("additionalProperties", {})):
            found += undescribed(below, here)
    return found


@pytest.mark.parametrize("kind", MODELS)
def test_a_definition_fits_into_what_kubectl_apply_keeps_of_it(kind: str) -> None:
    """`kubectl apply` keeps it in annotations, of which an object may have 256 KiB; etcd takes 1.5 MB."""
    assert len(wire.encode(crd(MODELS[kind]))) < 256 * 1024 - 4096


@pytest.mark.parametrize("kind", MODELS)
def test_a_definition_is_the_one_in_its_golden_file(kind: str) -> None:
    path = GOLDEN / f"{MODELS[kind].KIND.plural}.yaml"
    text = as_yaml([crd(MODELS[kind])])
    if os.environ.get("SLURM_OPERATOR_GOLDEN") == "write":
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    assert text == path.read_text(), (
        f"run again with SLURM_OPERATOR_GOLDEN=write and look at what changed in {path}"
    )


def test_no_two_definitions_have_the_same_name() -> None:
    found = [crd(cls)["metadata"]["name"] for cls in (*FIRST_KINDS, *KINDS)]

    assert len(set(found)) == len(found)
