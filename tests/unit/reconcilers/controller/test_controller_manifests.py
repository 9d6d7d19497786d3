"""The manifests of a Controller, kept in the repository: a changed builder is a readable diff."""

import pytest

from slurm_operator.manifests import kinds
from slurm_operator.reconcilers.controller.configuration.files import files_of, refusal, wanted_files
from slurm_operator.reconcilers.controller.observe import observe
from slurm_operator.slurm.conf.lines import parse
from testing.controller_cases import CASES, manifests
from testing.controllers import KEY, child, controller, files, thing, world
from testing.golden import assert_golden


def conf(made):
    seen = observe(KEY, made)
    return parse(wanted_files(seen).texts["slurm.conf"], "slurm.conf")


def of_kind(made, kind):
    return next(m for m in manifests(made) if kinds.kind_of(m) == kind)


@pytest.mark.parametrize("case", CASES)
def test_the_manifests_are_those_in_the_repository(case):
    assert_golden("controller", case, manifests(CASES[case]))


@pytest.mark.parametrize("case", CASES)
def test_what_we_render_passes_our_own_check(case):
    seen = observe(KEY, CASES[case])

    assert refusal(seen, wanted_files(seen)) is None


def test_the_order_of_nodesets_and_references_makes_no_difference():
    one = world(controller(), thing("NodeSet", "a", {"controllerRef": {"name": "slurm"}}),
                thing("NodeSet", "b", {"controllerRef": {"name": "slurm"}}))  # fmt: skip
    other = world(*reversed(one.things))

    assert manifests(one) == manifests(other)


def test_words_of_the_user_keep_their_spelling_and_ours_stay():
    found = conf(CASES["everything"])

    words = found.last("SlurmctldParameters").split(",")
    assert {"Idle_On_Node_Suspend", "enable_configless", "reconfig_on_restart"} < set(words)
    assert sorted(found.last("AuthInfo").split(",")) == ["cred_expire=5", "use_client_ids"]
    assert found.last("MaxNodeCount") == "64"


def test_an_external_slurmdbd_is_really_used():
    found = conf(CASES["external-accounting"])

    assert (found.last("AccountingStorageHost"), found.last("AccountingStoragePort")) == (
        "dbd.example.com",
        "7000",
    )


def test_a_nodeset_that_leaves_takes_no_new_jobs_but_keeps_its_line():
    [line] = [s for s in conf(CASES["nodesets"]).all("PartitionName") if s.value == "old"]

    assert (line.option("State"), line.option("MaxTime")) == ("INACTIVE", "60")


def test_the_digest_in_slurm_conf_covers_every_file():
    def stamp(content):
        made = world(controller({"configFileRefs": [{"name": "f"}]}), files("f", {"gres.conf": content}))
        return wanted_files(observe(KEY, made)).digest

    assert len(stamp("Name=gpu\n")) == 16
    assert stamp("Name=gpu\n") != stamp("Name=tpu\n")
    assert stamp("Name=gpu\n") == stamp("Name=gpu\n")


def test_the_files_can_be_read_back_from_the_config_map():
    made = CASES["everything"]

    assert files_of(child(of_kind(made, kinds.CONFIG_MAP))) == wanted_files(observe(KEY, made))


def test_the_client_service_selects_by_labels_that_the_pod_template_has():
    for case in ("defaults", "ha", "everything"):
        selector = of_kind(CASES[case], kinds.SERVICE)["spec"]["selector"]
        labels = of_kind(CASES[case], kinds.STATEFUL_SET)["spec"]["template"]["metadata"]["labels"]
        assert selector.items() <= labels.items()


def test_prometheus_finds_one_service_only():
    monitor = of_kind(CASES["everything"], kinds.SERVICE_MONITOR)["spec"]["selector"]["matchLabels"]
    services = [m for m in manifests(CASES["everything"]) if m["kind"] == "Service"]

    assert [
        s["metadata"]["name"] for s in services if monitor.items() <= s["metadata"]["labels"].items()
    ] == ["slurm-controller"]


def test_a_label_or_annotation_on_the_controller_restarts_nothing():
    before = of_kind(world(controller()), kinds.STATEFUL_SET)
    after = of_kind(world(controller(labels={"a": "b"}, annotations={"c": "d"})), kinds.STATEFUL_SET)
    digest = "slinky.slurm.net/input-digest"

    assert before["metadata"]["annotations"][digest] == after["metadata"]["annotations"][digest]


def test_an_explicit_false_and_zero_of_the_user_count():
    pod = of_kind(CASES["everything"], kinds.STATEFUL_SET)["spec"]["template"]["spec"]

    assert pod["containers"][0]["securityContext"] == {
        "runAsNonRoot": False,
        "runAsUser": 0,
        "runAsGroup": 401,
        # Root keeps its capabilities: it may need them.
        "seccompProfile": {"type": "RuntimeDefault"},
        "allowPrivilegeEscalation": False,
    }


@pytest.mark.parametrize(
    ("spec", "things", "reason", "where", "says"),
    [
        pytest.param({"extraConf": "KillWait=5\nMaxJobCoutn=1\n"}, (), "ConfigRefused", "slurm.conf", "line 2 of spec.extraConf", id="a typo"),
        pytest.param({"extraConf": "KillWait=99999999"}, (), "ConfigRefused", "slurm.conf", "KillWait", id="a bad value"),
        pytest.param({"configFileRefs": [{"name": "f"}]}, (files("f", {"gres.conf": "Nmae=gpu\n"}),), "ConfigRefused", "gres.conf", "gres.conf:1", id="a typo in a referenced file"),
        pytest.param({"configFileRefs": [{"name": "f"}]}, (files("f", {"slurm.conf": ""}),), "SpecRefused", "", "which the operator writes", id="a file of ours"),
        pytest.param({"prologScriptRefs": [{"name": "f"}], "epilogScriptRefs": [{"name": "g"}]}, (files("f", {"run": "a"}), files("g", {"run": "b"})), "FilesCollide", "run", "ConfigMap f and ConfigMap g", id="two files, one name"),
        pytest.param({"prologScriptRefs": [{"name": "f"}]}, (files("f", {"run": "x" * 1_000_000}),), "FilesTooLarge", "", "fit into a ConfigMap", id="too much for one object"),
        pytest.param({"clusterName": "x" * 41}, (), "SpecRefused", "", "longer than 40", id="too long a name"),
        pytest.param({"clusterName": "lab", "accountingRef": {"name": "books"}}, (thing("Controller", "a-first", {"clusterName": "lab", "accountingRef": {"name": "books"}}),), "SpecRefused", "", "Controller 'a-first' is already known as 'lab'", id="a name that is taken"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named_before_any_daemon_sees_it(spec, things, reason, where, says):
    seen = observe(KEY, world(controller(spec), *things))

    refused = refusal(seen, wanted_files(seen))

    assert (refused.reason, refused.file) == (reason, where)
    assert says in refused.message


@pytest.mark.parametrize(
    ("series", "metrics", "probe"),
    [("24.11", None, "tcpSocket"), ("26.05", "metrics/openmetrics", "httpGet")],
)
def test_an_older_slurm_is_told_and_asked_only_what_it_knows(series, metrics, probe):
    made = world(controller({"slurmctld": {"image": f"slurmctld:{series}"}, "metrics": {"enabled": True}}))
    pod = of_kind(made, kinds.STATEFUL_SET)["spec"]["template"]["spec"]
    slurmctld = next(one for one in pod["containers"] if one["name"] == "slurmctld")

    assert conf(made).last("MetricsType") == metrics
    assert all(probe in slurmctld[f"{when}Probe"] for when in ("startup", "liveness", "readiness"))
