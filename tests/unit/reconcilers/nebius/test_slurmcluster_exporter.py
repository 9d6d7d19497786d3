"""The exporter of a SlurmCluster: by its switch, for either family of images, and gone with the switch."""

import pytest

from slurm_operator import operator
from slurm_operator.api import registry
from slurm_operator.api.nebius import SlurmCluster
from slurm_operator.api.shared.children import APP_NAMES
from slurm_operator.install import rights
from slurm_operator.manifests import kinds
from slurm_operator.plan.actions import Apply, DeleteObject
from testing.slurmclusters import decide, manifest, report, settled, with_our_images, world
from unit.exporter.test_exporter_flags import settings

NAME, POD = "smallest", "smallest-slurm-exporter"
ON = {
    "enabled": True,
    "k8sNodeFilterName": "all",
    "exporterContainer": {"image": "registry.example/exporter:1"},
}


def cluster(*, ours: bool = True, maintenance: str = "none", **changes):
    body = manifest(
        "SlurmCluster", NAME, spec__slurmNodes__exporter={**ON, **changes}, spec__maintenance=maintenance
    )
    return with_our_images(body) if ours else body


def there_is(*, monitors: bool = True, **changes):
    there = world(cluster(**changes))
    there.served |= {kinds.POD_MONITOR} if monitors else set()
    return there


def made(there) -> dict[str, dict]:
    """What the first pass makes for the exporter, by kind."""
    _, plan = decide(there, SlurmCluster, NAME)
    found = [step.manifest for step in plan.actions() if isinstance(step, Apply)]
    return {
        one["kind"]: one
        for one in found
        if one["metadata"]["labels"].get("app.kubernetes.io/component") == "exporter"
    }


def pod(**changes) -> dict:
    return made(there_is(**changes))["Deployment"]["spec"]["template"]["spec"]


def environment(container: dict) -> dict[str, str]:
    return {one["name"]: one["value"] for one in container["env"]}


def test_without_the_switch_there_is_nothing_of_it():
    assert made(there_is(enabled=False)) == {}


def test_our_exporter_has_the_key_and_no_token_of_the_api_server():
    found = made(there_is())
    spec = found["Deployment"]["spec"]["template"]["spec"]
    [container] = spec["containers"]

    assert set(found) == {"Deployment", "PodMonitor"}
    assert spec["automountServiceAccountToken"] is False
    [volume] = spec["volumes"]
    assert volume["projected"]["sources"][0]["secret"]["name"] == "smallest-rest-jwt-key"
    assert container["command"] == ["slurm-operator", "exporter"]
    assert "--compat=soperator" in container["args"]
    assert "--slurm-api-server=http://smallest-operator-rest.ns.svc:6820" in container["args"]


def test_an_account_of_the_user_reads_labels_of_kubernetes_nodes():
    spec = pod(serviceAccountName="mine")

    assert spec["serviceAccountName"] == "mine"
    assert "automountServiceAccountToken" not in spec


def test_soperators_exporter_starts_as_its_image_says_and_reads_its_key_itself():
    found = made(there_is(ours=False))
    spec = found["Deployment"]["spec"]["template"]["spec"]
    [container] = spec["containers"]

    assert set(found) == {"Deployment", "PodMonitor", "ServiceAccount", "Role", "RoleBinding"}
    assert spec["serviceAccountName"] == POD
    assert not {"command", "volumeMounts"} & set(container)
    assert not any("compat" in one or "key" in one for one in container["args"])
    granted = {
        (group, resource, verb)
        for rule in found["Role"]["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }
    has = {
        (right.group, resource, verb)
        for right in rights.in_namespaces(registry.ALL)
        for resource in right.resources
        for verb in right.verbs
    }
    assert granted - has == set()
    assert set(made(there_is(ours=False, serviceAccountName="mine"))) == {"Deployment", "PodMonitor"}


def test_our_exporter_understands_the_settings_of_the_manifest():
    wished = {"collectionInterval": "1d12h", "maxCollectorInflight": 30, "accountingJobsLookback": "2w"}
    [container] = pod(**wished)["containers"]

    found = settings(*container["args"], environ=environment(container))

    assert found.plan.interval_seconds == 36 * 3600
    assert found.plan.lookback.days == 14
    assert found.plan.most_in_flight == 30
    assert (found.plan.cluster, found.login.user) == (NAME, "root")
    assert str(found.login.key_file) == "/etc/slurm-exporter/jwt.key"


def test_jobs_are_read_from_slurmctld_where_there_is_no_accounting():
    [container] = pod(jobSource="accounting")["containers"]

    assert environment(container)["SLURM_EXPORTER_JOB_SOURCE"] == "controller"


def test_prometheus_finds_both_pages_of_this_cluster_only():
    monitor = made(there_is(podMonitorConfig={"interval": "15s", "jobLabel": "team"}))["PodMonitor"]
    spec = monitor["spec"]

    assert monitor["metadata"]["name"] == NAME
    assert spec["selector"]["matchLabels"]["app.kubernetes.io/instance"] == NAME
    assert [(one["port"], one["interval"]) for one in spec["podMetricsEndpoints"]] == [
        ("metrics", "15s"),
        ("monitoring", "15s"),
    ]
    for one in spec["podMetricsEndpoints"]:
        assert "pod" not in one["metricRelabelings"][0]["regex"], "the label of slurm_node_pod_info"
    assert spec["jobLabel"] == "team"


def test_without_the_prometheus_operator_there_is_no_podmonitor():
    assert set(made(there_is(monitors=False))) == {"Deployment"}


def test_once_made_nothing_is_written_again_and_switched_off_it_is_deleted():
    there = settled(there_is(), (SlurmCluster, NAME))
    assert made(there) == {}

    off = world(cluster(enabled=False))
    there.things = [next(iter(off.things)) if isinstance(one, SlurmCluster) else one for one in there.things]
    _, plan = decide(there, SlurmCluster, NAME)
    deletes = [step for step in plan.actions() if isinstance(step, DeleteObject)]

    assert {(step.kind, step.key.name) for step in deletes} == {
        (kinds.DEPLOYMENT, POD),
        (kinds.POD_MONITOR, NAME),
    }


def test_maintenance_takes_it_down_too():
    assert made(there_is(maintenance="downscale"))["Deployment"]["spec"]["replicas"] == 0


def test_without_an_image_it_says_what_is_missing():
    there = there_is(exporterContainer={"image": ""})
    _, plan = decide(there, SlurmCluster, NAME)

    assert made(there) == {}
    assert not any("exporter" in wait.message for wait in plan.waits), "the cluster itself waits for nothing"
    assert "exporterContainer has no image" in report(there, SlurmCluster, NAME)["FieldsSupported"][2]


@pytest.mark.parametrize("kind", [kinds.DEPLOYMENT, kinds.POD_MONITOR])
def test_the_operator_sees_and_may_delete_what_it_makes(kind):
    found = made(there_is())[kind.kind]
    may = {
        verb
        for right in rights.in_namespaces(registry.ALL)
        if right.group == kind.group and kind.plural in right.resources
        for verb in right.verbs
    }

    assert found["metadata"]["labels"]["app.kubernetes.io/name"] in APP_NAMES
    assert kind in operator.sources(registry.ALL).children
    assert {"create", "patch", "delete", "list", "watch"} <= may
