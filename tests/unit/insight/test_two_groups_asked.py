"""Two kinds called NodeSet, asked about by kubectl slurm: explain, doctor, plan and bundle tell them apart."""

import pytest

from slurm_operator.api import registry
from slurm_operator.api.schema.crd import crd
from slurm_operator.api.shared import names
from slurm_operator.insight.bundle.archive import object_path
from slurm_operator.insight.doctor.admission import webhooks
from slurm_operator.insight.doctor.collection import collect_facts
from slurm_operator.insight.doctor.facts import Facts
from slurm_operator.insight.doctor.finding import Level
from slurm_operator.insight.doctor.installation import definitions
from slurm_operator.insight.doctor.rights import needed_rights, operators_needs
from slurm_operator.insight.explain.chain import Case, Explanation, NotThere
from slurm_operator.insight.explain.lookup import explain
from slurm_operator.insight.forecast.objects import Known, objects
from slurm_operator.insight.world_snapshot import Picture
from slurm_operator.manifests.builders.admission import service, validating
from slurm_operator.manifests.objects import Unread
from slurm_operator.plan.conditions import READY, false
from testing.two_groups import GROUP, OTHER, OURS, TWO, made, noting
from unit.kube.fake_api_server import Answer, FakeApi, listing

UNREAD = Unread(why="not asked")


def explained(what: str, *things: object) -> Explanation:
    picture = Picture(is_whole=True)
    for thing in things:
        picture.put(thing)
    kind, _, name = what.partition("/")
    return explain(kind, name, Case(picture, (noting("nodeset", OURS), noting("testing", OTHER)), "ns"))


@pytest.mark.parametrize(
    ("what", "subject"),
    [
        pytest.param("nodeset/gpu", "NodeSet gpu", id="the bare word, where only ours has the name"),
        pytest.param("NodeSets/gpu", "NodeSet gpu", id="in the plural"),
        pytest.param("nodeset/cpu", "NodeSet.testing.example.com cpu", id="where only theirs has it"),
        pytest.param("nodeset.slinky.slurm.net/both", "NodeSet both", id="ours by its full name"),
        pytest.param("nodeset.testing.example.com/both", "NodeSet.testing.example.com both", id="theirs"),
        pytest.param(
            "nodesets.testing.example.com/both", "NodeSet.testing.example.com both", id="as a resource"
        ),
    ],
)
def test_explain_finds_the_one_that_is_meant(what, subject):
    there = made(OURS, "gpu"), made(OTHER, "cpu"), made(OURS, "both"), made(OTHER, "both")

    assert explained(what, *there).subject == subject


def test_explain_asks_which_when_both_groups_have_one():
    with pytest.raises(NotThere) as told:
        explained("nodeset/both", made(OURS, "both"), made(OTHER, "both"))

    assert str(told.value) == (
        "Several API groups have a nodeset 'both' in namespace 'ns'. "
        "Say nodeset.slinky.slurm.net/both or nodeset.testing.example.com/both."
    )


@pytest.mark.parametrize(
    ("what", "words"),
    [
        ("nodeset/no", "There is no NodeSet 'no' in namespace 'ns'; there are: gpu."),
        (
            "nodeset.testing.example.com/gpu",
            "There is no NodeSet.testing.example.com 'gpu' in namespace 'ns'; there are: cpu.",
        ),
        ("nodeset.elsewhere/gpu", "Kinds: nodeset, nodeset.testing.example.com, node, pod, job."),
    ],
)
def test_explain_says_what_there_is_of_that_group(what, words):
    with pytest.raises(NotThere) as told:
        explained(what, made(OURS, "gpu"), made(OTHER, "cpu"))

    assert str(told.value).endswith(words)


@pytest.mark.parametrize(("type_", "kind"), [(OURS, "nodeset"), (OTHER, "nodeset.testing.example.com")])
def test_commands_in_a_remedy_name_the_group_of_the_second_kind(type_, kind):
    picture = Picture(is_whole=True)
    picture.put(made(type_, "gpu"))
    odd = noting("nodeset", type_, says=false(READY, "Odd", "nobody knows why"))

    found = explain("nodeset", "gpu", Case(picture, (odd,), "ns"))
    assert found.remedy.commands == (f"kubectl -n ns describe {kind} gpu",)


def definitions_of(**more: object) -> Facts:
    asked = dict.fromkeys(Facts.__struct_fields__, UNREAD)
    return Facts(**{**asked, "namespace": "ns", "databases": {}, **more})


def test_doctor_misses_the_definition_of_the_second_kind():
    there = {f"{model.KIND.plural}.{model.KIND.group}": crd(model) for model in registry.DEFAULT.models}
    [found] = definitions(definitions_of(crds=there, ours=TWO))

    assert found.level is Level.WARN
    assert found.message == "Not installed: NodeSet.testing.example.com. What needs them does not work."
    whole = there | {"nodesets.testing.example.com": crd(OTHER)}
    [found] = definitions(definitions_of(crds=whole, ours=TWO))
    assert (found.level, found.message) == (Level.OK, "All 8 kinds are installed, in this program's version.")


def test_doctor_asks_for_rights_in_both_groups():
    for needed in (needed_rights("ns", TWO), operators_needs("ns", TWO)):
        listed = {right.group for right in needed if (right.verb, right.resource) == ("list", "nodesets")}
        assert listed == {names.GROUP, GROUP}
    assert {right.group for right in needed_rights("ns")} == {names.GROUP, ""}


async def test_doctor_looks_at_definitions_and_webhooks_of_both_groups():
    crds = [crd(OURS), crd(OTHER), {**crd(OTHER), "spec": {"group": "elsewhere.example.com"}}]
    second = {**validating(service("home"), kinds=TWO.on([GROUP])), "metadata": {"name": "second"}}

    async def answered(answer: Answer) -> None:
        path = answer.asked.path
        if path.endswith("/customresourcedefinitions"):
            await listing(*crds)(answer)
        elif path.endswith("/validatingwebhookconfigurations"):
            await listing(second)(answer)
        elif answer.asked.method == "GET":
            await answer.json({"gitVersion": "v1.36.3", "items": [], "metadata": {"name": "ns"}})
        else:
            await answer.json({"status": {"allowed": True, "userInfo": {"username": "ada"}}})

    async with FakeApi(lists=[answered], others=[answered]) as api, api.client() as client:
        both, first = await collect_facts(client, "ns", TWO), await collect_facts(client, "ns")
        asked = await webhooks(client, "ns")

    assert set(both.crds) == {"nodesets.slinky.slurm.net", "nodesets.testing.example.com"}
    assert set(first.crds) == {"nodesets.slinky.slurm.net"}
    assert [one.configuration for one in both.webhooks] == ["second"]
    assert asked == ()


def test_a_plan_sees_two_objects_where_two_groups_have_one_of_the_name():
    picture = Picture(is_whole=True)
    picture.put(made(OURS, "gpu"))
    picture.put(made(OTHER, "gpu"))

    found = objects(picture, TWO)
    assert {known: thing.uid for known, thing in found.items()} == {
        Known("NodeSet", "ns", "gpu"): "gpu-of-slinky.slurm.net",
        Known("NodeSet.testing.example.com", "ns", "gpu"): "gpu-of-testing.example.com",
    }


def test_a_bundle_has_a_file_for_each():
    assert object_path(OURS.KIND) == "objects/nodesets.slinky.slurm.net.json"
    assert object_path(OTHER.KIND) == "objects/nodesets.testing.example.com.json"
