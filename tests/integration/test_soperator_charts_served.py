"""What the charts of charts/soperator make, on a real API server with the kinds of both groups: all of it is taken.

The manager of the chart runs with the rights that the chart gives, and acts on the SlurmCluster of another.
"""

import json

import pytest
import soperator_charts
import yaml
from chart_rig import objects, program, rendered
from kinds_rig import get, ns, serving_kinds

from slurm_operator.api import registry
from slurm_operator.api.nebius import names
from slurm_operator.api.schema.crd import crd
from testing.docs import Terminal
from testing.foreign_kinds import definitions
from testing.readers import GUIDE_SOPERATOR_CHARTS, type_page
from testing.soperator_charts import SOPERATOR

__all__ = ["ns"]

MONITORS = ("--api-versions", "monitoring.coreos.com/v1")


@pytest.fixture(scope="module")
def plane(tmp_path_factory):
    with serving_kinds(tmp_path_factory.mktemp("soperator-charts"), kinds=registry.ALL) as plane:
        plane.kubectl("apply", "-f", "-", stdin=yaml.safe_dump_all(definitions()))
        plane.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=60s")
        yield plane


@pytest.mark.parametrize(
    ("chart", "values"),
    [
        pytest.param(chart, values, id=f"{chart} {number}")
        for number, (chart, values) in enumerate(soperator_charts.EVERYTHING)
    ],
)
def test_everything_is_taken_by_the_api_server_with_no_field_unknown(plane, ns, chart, values):
    text = rendered(f"soperator/{chart}", values, *MONITORS, release=chart, namespace=ns)
    made = objects(text)

    dry_run = ("apply", "--server-side", "--dry-run=server", "--validate=strict", "-f", "-")
    said = plane.kubectl(*dry_run, stdin=text)

    assert said.count("serverside-applied") == len(made)


@pytest.mark.timeout(240)
def test_the_commands_of_the_guide_install_all_eight(plane, tmp_path):
    terminal = Terminal(tmp_path, plane.kubeconfig, kubectl=plane.kubectl_program, helm=program())

    assert type_page(GUIDE_SOPERATOR_CHARTS, terminal) == []

    releases = json.loads(terminal.type("helm list -A -o json").stdout)
    assert {one["chart"].rpartition("-")[0] for one in releases} == set(SOPERATOR)
    cluster = get(plane, "slurm", "slurmclusters.slurm.nebius.ai", "demo")
    assert cluster["spec"]["slurmNodes"]["controller"]["serviceAccountName"] == "demo-slurm-controller"
    assert get(plane, "slurm", "nodesets.slurm.nebius.ai", "worker")["spec"]["clusterName"] == "demo"


def test_the_definitions_of_the_chart_are_those_of_the_program():
    made = objects(rendered("soperator/soperator-crds", {}, release="soperator-crds"))

    assert {name for _, name in made} == {f"{one.plural}.{one.group}" for one in registry.ALL}
    for one in registry.ALL:
        assert made["CustomResourceDefinition", f"{one.plural}.{one.group}"]["spec"] == crd(one.model)["spec"]


def test_each_chart_has_values_that_make_whatever_there_is():
    assert {chart for chart, _ in soperator_charts.EVERYTHING} == set(SOPERATOR) - {"soperator-crds"}


def test_the_webhook_is_asked_about_every_kind_of_the_group():
    made = objects(rendered("soperator/soperator", {}, release="soperator"))
    asked = made["ValidatingWebhookConfiguration", "soperator-webhook-service"]["webhooks"]

    resources = {one["rules"][0]["resources"][0] for one in asked}
    assert resources == {one.plural for one in registry.ALL if one.group == names.GROUP} | {"secrets"}
    assert json.dumps(asked).count('"soperator-webhook-service"') == len(asked)
