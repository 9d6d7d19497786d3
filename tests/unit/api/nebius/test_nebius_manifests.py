"""Manifests of slurm.nebius.ai: what is read, what is warned about, what is refused beyond the schema."""

from typing import Any

import pytest

from slurm_operator.api.nebius import KINDS, NodeSet, SlurmCluster
from slurm_operator.api.schema.codec import plain, read
from slurm_operator.api.schema.problems import Problem, References, Severity
from testing import nebius
from testing.nebius import changed

MODELS = {cls.KIND.kind: cls for cls in KINDS}
ACCEPTED = nebius.accepted()
BY_WEBHOOK = [row for row in nebius.refused() if "webhook" in row]


def thing(manifest: dict[str, Any]) -> Any:
    return read(MODELS[manifest["kind"]], manifest)


def problems(manifest: dict[str, Any]) -> list[Problem]:
    return list(thing(manifest).problems(None, References()))


def said(manifest: dict[str, Any], severity: Severity) -> list[str]:
    return [str(problem) for problem in problems(manifest) if problem.severity is severity]


@pytest.mark.parametrize("name", ACCEPTED)
def test_an_accepted_manifest_has_no_error_and_just_these_warnings(name: str) -> None:
    assert said(ACCEPTED[name], Severity.ERROR) == []
    assert said(ACCEPTED[name], Severity.WARNING) == nebius.warnings_of(ACCEPTED[name])


@pytest.mark.parametrize("name", ACCEPTED)
def test_what_a_manifest_says_is_read_and_can_be_written_again(name: str) -> None:
    read_once = thing(ACCEPTED[name])

    assert thing({**ACCEPTED[name], **plain(read_once)}) == read_once


def test_every_kind_has_a_manifest_and_all_but_jailedconfig_one_without_a_spec() -> None:
    assert {one["kind"] for one in ACCEPTED.values()} == set(MODELS)
    assert {one["kind"] for one in ACCEPTED.values() if "spec" not in one} == set(MODELS) - {"JailedConfig"}


@pytest.mark.parametrize("kind", MODELS)
def test_every_field_of_the_table_is_read_and_written_as_it_was(kind: str) -> None:
    manifest = nebius.filled(kind)

    found = plain(thing(manifest))

    assert {part: found[part] for part in ("spec", "status")} == {
        part: manifest[part] for part in ("spec", "status")
    }


@pytest.mark.parametrize("row", BY_WEBHOOK, ids=lambda row: f"{row['of']} {next(iter(row['changed']))}")
def test_what_the_schema_cannot_express_is_refused_in_these_words(row: dict[str, Any]) -> None:
    assert said(changed(ACCEPTED[row["of"]], row["changed"]), Severity.ERROR) == row["webhook"].splitlines()


@pytest.mark.parametrize(
    ("name", "changes", "warning"),
    [
        (
            "SlurmCluster/smallest",
            {"spec.pause": True},
            "spec.pause: has no equivalent and is ignored; use maintenance: downscale",
        ),
        (
            "SlurmCluster/smallest",
            {"spec.slurmConfig": {"debugFlags": "Script"}},
            "spec.slurmConfig.debugFlags: is ignored; write `DebugFlags=` into spec.customSlurmConfig",
        ),
        (
            "SlurmCluster/smallest",
            {"spec.slurmNodes.exporter.useSoperatorExporter": True},
            "spec.slurmNodes.exporter.useSoperatorExporter: has no equivalent and is ignored: there is one exporter",
        ),
        (
            "SlurmCluster/whole",
            {"spec.slurmNodes.exporter.exporterContainer": ...},
            "spec.slurmNodes.exporter.exporterContainer: is missing: the exporter starts when it has an image",
        ),
        (
            "SlurmCluster/whole",
            {"spec.sConfigController.hostUsers": True},
            "spec.sConfigController.hostUsers: is ignored; use node.hostUsers",
        ),
        (
            "SlurmCluster/whole",
            {"spec.slurmNodes.accounting.mariadbOperator.enabled": True},
            "spec.slurmNodes.accounting.externalDB.enabled: is ignored: mariadbOperator is enabled too, and is used",
        ),
        (
            "SlurmCluster/whole",
            {"spec.volumeSources.3.name": "jail", "spec.slurmNodes.login.volumes.jailSubMounts": []},
            "spec.volumeSources[3].name: there is already a 'jail', and the first one counts",
        ),
        (
            "SlurmCluster/whole",
            {"spec.slurmNodes.controller.volumes.spool.volumeSourceName": "jail"},
            "spec.slurmNodes.controller.volumes.spool.volumeClaimTemplateSpec: is ignored: volumeSourceName says "
            "which volume it is",
        ),
        (
            "NodeSet/cpu",
            {"spec.slurmd.volumes.spool": {"volumeClaimTemplateSpec": {"storageClassName": "fast"}}},
            "spec.slurmd.volumes.spool.volumeClaimTemplateSpec: is ignored: it is no volume source; for a claim per "
            "pod write ephemeral.volumeClaimTemplate",
        ),
        (
            "NodeSet/gpu",
            {
                "spec.slurmd.livenessProbe": ...,
                "spec.nodeConfig": {},
                "spec.slurmd.volumes.jailSubMounts.0.volumeClaimTemplateSpec": {"storageClassName": "fast"},
            },
            "spec.slurmd.volumes.jailSubMounts[0].volumeClaimTemplateSpec: is ignored: volumeSource says which "
            "volume it is",
        ),
        (
            "NodeSetPowerState/gpu",
            {"spec.activeNodes": [0, -1]},
            "spec.activeNodes[1]: -1 is no ordinal, and is ignored",
        ),
        (
            "NodeConfigurator/customised",
            {"spec.rebooter.enabled": True},
            "spec.customContainer.enabled: is ignored: rebooter is enabled, and runs in its place",
        ),
        (
            "NodeConfigurator/customised",
            {"spec.customContainer.enabled": False},
            "spec: enables neither rebooter nor customContainer: no pods run",
        ),
    ],
)
def test_what_has_no_effect_is_told(name: str, changes: dict[str, Any], warning: str) -> None:
    manifest = changed(ACCEPTED[name], changes)

    assert said(manifest, Severity.WARNING) == [warning]
    assert said(manifest, Severity.ERROR) == []


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param(
            {"spec.maintenance": "skipPopulateJail", "spec.populateJail.k8sNodeFilterName": ""}, id="skipped"
        ),
        pytest.param({"spec.slurmNodes.login.userIsolation.memoryHigh": "20Gi"}, id="isolation is off"),
    ],
)
def test_a_part_that_does_not_run_is_not_examined(changes: dict[str, Any]) -> None:
    assert problems(changed(ACCEPTED["SlurmCluster/smallest"], changes)) == []


def spec_of(name: str, changes: dict[str, Any] | None = None) -> Any:
    return thing(changed(ACCEPTED[name], changes or {})).spec


def test_workers_of_older_releases_have_gpus_unless_somebody_said_otherwise() -> None:
    assert spec_of("SlurmCluster/older").older_workers_have_gpus
    assert spec_of("SlurmCluster/older", {"spec.clusterType": ...}).older_workers_have_gpus
    assert not spec_of("SlurmCluster/older", {"spec.clusterType": "cpu"}).older_workers_have_gpus


@pytest.mark.parametrize(
    ("changes", "size"),
    [
        ({}, 9),
        ({"spec.topology": {"blockSize": 18}}, 9),
        ({"spec.topology": {"blockSize": 4}}, 4),
        ({"spec.slurmConfig": {}}, 18),
    ],
)
def test_the_block_size_of_older_releases_counts_where_no_other_is_said(
    changes: dict[str, Any], size: int
) -> None:
    assert spec_of("SlurmCluster/older", changes).block_size == size


def test_the_exporter_of_older_releases_is_read_where_there_is_no_other() -> None:
    assert (
        spec_of("SlurmCluster/older").slurm_nodes.exporter.container.image
        == "registry.example/exporter:1.23.0"
    )
    assert (
        spec_of("SlurmCluster/whole").slurm_nodes.exporter.container.image
        == "registry.example/exporter:5.0.0"
    )
    assert spec_of("SlurmCluster/typed").slurm_nodes.exporter.container is None


def test_filters_and_sources_are_found_by_name_and_the_first_one_counts() -> None:
    spec = spec_of("SlurmCluster/whole", {"spec.volumeSources.3": {"name": "jail", "emptyDir": {}}})

    assert spec.filters["login"].node_selector == {"slurm.nebius.ai/nodeset": "login"}
    assert spec.sources["jail"]["persistentVolumeClaim"]["claimName"] == "jail-pvc"


@pytest.mark.parametrize(
    ("name", "cluster"),
    [("cpu", "smallest"), ("older-nodes", "older"), ("typed-nodes", ""), ("nodes-without-spec", "")],
)
def test_a_nodeset_knows_its_cluster_from_its_spec_or_from_an_older_annotation(
    name: str, cluster: str
) -> None:
    assert thing(ACCEPTED[f"NodeSet/{name}"]).cluster == cluster


def test_attributes_of_older_nodesets_are_read() -> None:
    assert (spec_of("NodeSet/older-nodes").features, spec_of("NodeSet/older-nodes").extra) == (["a"], "b")
    assert (spec_of("NodeSet/gpu").features, spec_of("NodeSet/gpu").extra) == (["h100", "fast"], '{"a": 1}')


@pytest.mark.parametrize(
    ("name", "command"), [("customised", ["/pause"]), ("older-configurator", []), ("rebooting", None)]
)
def test_the_container_of_older_nodeconfigurators_is_read(name: str, command: list[str] | None) -> None:
    custom = spec_of(f"NodeConfigurator/{name}").custom

    assert (custom.command if custom else None) == command


@pytest.mark.parametrize(("name", "wanted"), [("gpus", True), ("older-check", True), ("typed-check", False)])
def test_a_check_for_each_worker_may_be_written_in_the_older_way(name: str, wanted: bool) -> None:
    assert spec_of(f"ActiveCheck/{name}").slurm_job_spec.is_for_each_worker is wanted


def test_an_image_without_a_tag_is_its_repository() -> None:
    assert spec_of("NodeSet/cpu").slurmd.image.reference == "registry.example/slurmd:1"
    assert spec_of("NodeSet/cpu").munge.image.reference == "registry.example/munge"


@pytest.mark.parametrize("phase", ["Pending", "Not available", "Available", "Reconciling"])
def test_a_stored_cluster_of_any_release_is_read(phase: str) -> None:
    status = {"phase": phase, "readyWorkers": 3, "readyLogin": None, "conditions": None}

    found = read(SlurmCluster, {"metadata": {"name": "c"}, "status": status}).status

    assert (found.phase, found.ready_workers, found.ready_login) == (phase, 3, 0)


@pytest.mark.parametrize(
    ("share", "replicas", "holds"),
    [
        (1, 1, True),
        (500, 9, True),
        (0, 1, False),
        (501, 1, False),
        ("20%", 5, True),
        ("100%", 500, True),
        ("50%", 1001, True),
        ("50%", 1002, False),
        ("0%", 5, False),
        ("5", 5, False),
        ("020%", 5, False),
        ("20%\n", 5, False),
        ("٣%", 5, False),
    ],
)
def test_the_share_of_workers_that_may_be_away_is_checked_in_python_too(
    share: int | str, replicas: int, holds: bool
) -> None:
    manifest = changed(ACCEPTED["NodeSet/cpu"], {"spec.maxUnavailable": share, "spec.replicas": replicas})

    found = [problem.path for problem in read(NodeSet, manifest).problems(None, References())]

    assert found == ([] if holds else ["spec.maxUnavailable"])


@pytest.mark.parametrize(
    ("name", "changes", "path"),
    [
        (
            "SlurmCluster/whole",
            {"spec.partitionConfiguration": {"configType": "structured"}},
            "spec.partitionConfiguration.partitions",
        ),
        (
            "SlurmCluster/whole",
            {"spec.sConfigController.reconfigureWaitTimeout": "10s"},
            "spec.sConfigController.reconfigureWaitTimeout",
        ),
        (
            "SlurmCluster/whole",
            {"spec.slurmNodes.exporter.accountingJobsLookback": "0s"},
            "spec.slurmNodes.exporter.accountingJobsLookback",
        ),
    ],
)
def test_rules_of_the_schema_are_checked_in_python_too(name: str, changes: dict[str, Any], path: str) -> None:
    """An API server with other definitions does not know them."""
    assert [problem.path for problem in problems(changed(ACCEPTED[name], changes))] == [path]
