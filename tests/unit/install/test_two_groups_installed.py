"""Two kinds called NodeSet in one installation: CRDs, chart files, Roles, webhooks and reference pages."""

from typing import ClassVar

import yaml

from slurm_operator import wire
from slurm_operator.api import registry
from slurm_operator.api.reference import pages
from slurm_operator.api.registry import Registered, Registry, Use
from slurm_operator.api.schema.crd import Definition
from slurm_operator.api.schema.kind import Kind
from slurm_operator.api.schema.model import model, prop
from slurm_operator.api.shared import names
from slurm_operator.api.shared.meta import Meta
from slurm_operator.install import Installation, installation, rights
from slurm_operator.manifests.builders.admission import path_of, service, validating
from slurm_operator.runtime.settings import Address
from slurm_operator.webhook.process import Settings, answerers
from slurm_operator.webhook.review import Request
from testing.chart_files import generated
from testing.rights import IN_NAMESPACES
from testing.two_groups import GROUP, OTHER, OURS, TWO, Spec, Status, manifest

OFF = Address("localhost", 0)
CHART = "slurm-operator-crds/templates"


@model
class Wide:
    """A kind that belongs to no namespace."""

    KIND: ClassVar[Kind] = Kind(group=GROUP, version="v1", kind="Wide", plural="wides", namespaced=False)
    CRD: ClassVar[Definition] = Definition()

    metadata: Meta = prop("m", default=Meta())
    spec: Spec = prop("s")
    status: Status = prop("t", default=Status())


THREE = Registry((*TWO, Registered(Wide, reconciler="testing-wide", use=Use.READ)))


def rules_of(found: list[dict], group: str) -> dict[tuple[str, ...], tuple[str, ...]]:
    """Verbs by resources, in one group."""
    return {tuple(rule["resources"]): tuple(rule["verbs"]) for rule in found if rule["apiGroups"] == [group]}


def test_a_chart_has_a_file_for_each_and_the_first_ones_stay_as_they_are():
    before, after = generated(), generated(TWO)
    files = {path for path in after if path.startswith(CHART)}

    assert files - before.keys() == {f"{CHART}/nodesets.testing.example.com.yaml"}
    assert {path: after[path] for path in files & before.keys()} == {
        path: text for path, text in before.items() if path.startswith(CHART)
    }
    made = yaml.safe_load(after[f"{CHART}/nodesets.testing.example.com.yaml"])
    assert made["metadata"]["name"] == "nodesets.testing.example.com"
    assert made["spec"]["names"]["shortNames"] == ["tns"]


def test_the_operator_may_do_with_each_what_it_does_with_it():
    found = rights.rules(rights.in_namespaces(TWO))
    verbs = ("create", "delete", "get", "list", "patch", "watch")

    assert rules_of(found, GROUP) == {
        ("nodesets",): verbs,
        ("nodesets/status",): ("patch",),
        ("nodesets/finalizers",): ("update",),
    }
    assert rules_of(found, names.GROUP) == rules_of(rights.rules(IN_NAMESPACES), names.GROUP)


def test_a_kind_without_a_namespace_needs_rights_in_the_whole_cluster():
    everywhere = rules_of(rights.rules(rights.cluster_wide(THREE)), GROUP)

    assert everywhere[("wides",)] == ("list", "watch")
    assert all(
        "wides" not in "".join(key) for key in rules_of(rights.rules(rights.in_namespaces(THREE)), GROUP)
    )


def test_webhooks_have_names_and_paths_of_their_own():
    hooks = validating(service("home"), kinds=TWO)["webhooks"]
    named = {hook["name"]: hook for hook in hooks}

    assert len(named) == len(hooks) == len(TWO)
    ours, theirs = named["nodeset.slinky.slurm.net"], named["nodeset.testing.example.com"]
    assert ours["clientConfig"]["service"]["path"] != theirs["clientConfig"]["service"]["path"]
    assert theirs["rules"][0]["apiGroups"] == [GROUP]
    assert hooks[: len(registry.DEFAULT)] == validating(service("home"))["webhooks"]


def test_a_webhook_says_whether_its_kind_has_a_namespace():
    scopes = {
        hook["name"]: hook["rules"][0]["scope"]
        for hook in validating(service("home"), kinds=THREE)["webhooks"]
    }

    assert (scopes["wide.testing.example.com"], scopes["nodeset.testing.example.com"]) == (
        "Cluster",
        "Namespaced",
    )


class Nothing:
    """Nothing is looked up for a kind that refers to nothing."""

    async def references(self, thing: object) -> None:
        return None


async def test_each_manifest_is_judged_by_its_own_model():
    answering = answerers(Nothing(), Settings(server=OFF, health=OFF, metrics=OFF, kinds=TWO))
    large = manifest(OTHER, "gpu", {"size": 10})
    kind = {"group": GROUP, "version": "v1", "kind": "NodeSet"}
    said = {"uid": "1", "kind": kind, "operation": "CREATE", "namespace": "ns", "name": "gpu"}
    asked = wire.convert({**said, "object": large}, Request)

    found = await answering[path_of(OTHER.KIND)](asked)
    assert [str(problem) for problem in found.problems] == ["spec.size: is too large for a test"]
    assert path_of(OTHER.KIND, "v1alpha1") in answering
    assert path_of(OURS.KIND) in answering
    assert path_of(OTHER.KIND) not in answerers(Nothing(), Settings(server=OFF, health=OFF, metrics=OFF))


def test_an_installation_has_what_its_kinds_need():
    chosen = Installation(image="i", webhook_image="w", kinds=TWO)
    found = {(one["kind"], one["metadata"]["name"]): one for one in installation(chosen)}
    [hooks] = [one["webhooks"] for key, one in found.items() if key[0] == "ValidatingWebhookConfiguration"]

    assert rules_of(found["ClusterRole", "slurm-operator"]["rules"], GROUP)
    assert "nodeset.testing.example.com" in {hook["name"] for hook in hooks}
    assert GROUP not in str(installation(Installation(image="i", webhook_image="w")))


def test_each_has_a_page_and_its_name_in_the_index():
    found = pages(TWO)

    assert "[NodeSet](slinky.slurm.net/nodeset.md)" in found["index.md"]
    assert "[NodeSet.testing.example.com](testing.example.com/nodeset.md)" in found["index.md"]
    assert "A kind of another group" in found["testing.example.com/nodeset.md"]
