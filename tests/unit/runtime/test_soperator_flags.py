"""`slurm-operator soperator` is started by the command lines of Soperator's own Deployments."""

import click
import pytest

from slurm_operator.api.nebius import names
from slurm_operator.cli.soperator import chosen_controllers, notes, settings_of, soperator, webhook_settings
from slurm_operator.manifests.builders import admission
from slurm_operator.operator import program
from slurm_operator.runtime.settings import Address, Settings, SettingsProblem
from slurm_operator.webhook.process import CERTIFICATES, answerers

# What the charts of 1.23 and 5.0 pass.
OF_5_0 = [
    "--health-probe-bind-address=:8081",
    "--metrics-bind-address=:8443",
    "--metrics-secure=true",
    "--leader-elect",
]
OF_1_23 = ["--health-probe-bind-address=:8081", "--metrics-bind-address=127.0.0.1:8080", "--leader-elect",
           "--enable-topology-controller=true", "--feature-gates=NodeSetWorkers=true"]  # fmt: skip
EVERYTHING = [
    "--metrics-bind-address=:8080", "--health-probe-bind-address=:8081", "--operator-namespace=soperator-system",
    "--leader-elect=true", "--metrics-secure=false", "--enable-http2=false", "--log-format=json", "--log-level=info",
    "--cache-sync-timeout=2m", "--max-concurrent-reconciles=10", "--controllers=*,-topology",
]  # fmt: skip
VARIABLES = {
    "SLURM_OPERATOR_WATCH_NAMESPACES": "*", "ENABLE_WEBHOOKS": "true", "TOPOLOGY_LABEL_PREFIX": "topology.nebius.com",
    "IS_PROMETHEUS_CRD_INSTALLED": "true", "IS_MARIADB_CRD_INSTALLED": "true", "IS_APPARMOR_CRD_INSTALLED": "false",
    "KUBERNETES_CLUSTER_DOMAIN": "cluster.local",
}  # fmt: skip


@pytest.fixture(autouse=True)
def _no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*VARIABLES, "SLURM_OPERATOR_CONTROLLERS", "WEBHOOK_PORT", "WEBHOOK_CERT_DIR"):
        monkeypatch.delenv(name, raising=False)


def chosen(*args: str) -> Settings:
    with soperator.make_context("soperator", list(args)) as context:
        return settings_of(context.params)


def said(*args: str, **environment: str) -> list[str]:
    with soperator.make_context("soperator", list(args)) as context:
        return list(notes(context, environment))


def test_without_flags_it_is_what_soperator_s_manager_is():
    settings = chosen()

    assert (settings.metrics, settings.health) == (Address("0.0.0.0", 8080), Address("0.0.0.0", 8081))
    assert (settings.leader_elect, settings.leader_elect_id) == (True, "e21479ae.nebius.ai")
    assert settings.groups == (names.GROUP,)
    assert settings.namespaces == ()


def test_the_chart_of_5_0_starts_it():
    settings = chosen(*OF_5_0)

    assert (settings.metrics.port, settings.metrics_secure, settings.health.port) == (8443, True, 8081)
    assert said(*OF_5_0) == []


def test_the_chart_of_1_23_starts_it_and_what_has_no_meaning_is_said():
    assert chosen(*OF_1_23).metrics == Address("127.0.0.1", 8080)
    assert said(*OF_1_23) == [
        "--enable-topology-controller has no effect: slurmConfig.topologyPlugin says whether there is a topology",
        "--feature-gates has no effect: there are none",
    ]


def test_every_flag_is_understood_or_said_to_have_no_effect():
    settings = chosen(*EVERYTHING)

    assert (settings.leader_elect_namespace, settings.default_workers) == ("soperator-system", 10)
    assert said(*EVERYTHING) == [
        "--cache-sync-timeout has no effect: caches are waited for as long as it takes",
        "--enable-http2 has no effect: our servers speak HTTP/1.1 only",
        "--controllers: leaving out 'topology' has no effect: it has no reconciler of its own",
    ]


def test_one_dash_is_as_good_as_two():
    assert chosen("-metrics-bind-address=:9090", "-leader-elect=false").metrics.port == 9090


@pytest.mark.parametrize("level", ["debug", "info", "warn", "error", "dpanic", "panic", "fatal"])
def test_every_level_and_format_of_theirs_is_known(level):
    chosen(f"--log-level={level}", "--log-format=plain")


def test_the_environment_of_the_chart_is_understood(monkeypatch):
    for name, value in VARIABLES.items():
        monkeypatch.setenv(name, value)

    assert chosen().namespaces == ()
    monkeypatch.setenv("SLURM_OPERATOR_WATCH_NAMESPACES", "lab")
    assert chosen().namespaces == ("lab",)
    assert [note.split()[0] for note in said(**VARIABLES)] == [
        "IS_APPARMOR_CRD_INSTALLED", "IS_MARIADB_CRD_INSTALLED", "IS_PROMETHEUS_CRD_INSTALLED",
    ]  # fmt: skip


def test_labels_of_the_network_may_begin_with_something_else(monkeypatch):
    assert chosen().tier_prefix == "topology.nebius.com"
    monkeypatch.setenv("TOPOLOGY_LABEL_PREFIX", "net.example")
    assert chosen().tier_prefix == "net.example"


@pytest.mark.parametrize(("value", "is_on"), [("true", True), ("false", False), (None, True)])
def test_webhooks_are_on_unless_the_chart_says_otherwise(monkeypatch, value, is_on):
    if value is not None:
        monkeypatch.setenv("ENABLE_WEBHOOKS", value)

    with soperator.make_context("soperator", []) as context:
        assert context.params["webhooks"] is is_on


def test_admission_is_answered_where_the_chart_s_configuration_asks():
    with soperator.make_context("soperator", OF_5_0) as context:
        settings = webhook_settings(settings_of(context.params), context.params)
    paths = set(answerers(None, settings))

    assert (settings.server.port, settings.certificates) == (9443, CERTIFICATES)
    assert paths >= {
        admission.SECRET_PATH,
        "/validate-slurm-nebius-ai-v1-slurmcluster",
        "/validate-slurm-nebius-ai-v1alpha1-nodeset",
    }
    assert not any("slinky" in path for path in paths), "the first group is off"


ALL = {"cluster", "nodeconfigurator", "nodeset", "rollingupdate", "topology"}


@pytest.mark.parametrize(
    ("text", "run"),
    [
        ("", ALL),
        ("*", ALL),
        ("cluster,nodeset", {"cluster", "nodeset"}),
        ("*,-topology", ALL - {"topology"}),
        ("-cluster", ALL - {"cluster"}),
        ("cluster, nodeset, -nodeset", {"cluster"}),
    ],
)
def test_controllers_are_chosen_in_their_syntax(text, run):
    assert chosen_controllers(text) == run


def test_what_is_left_out_is_not_reconciled():
    left = chosen("--controllers=cluster").left_out

    assert left == (
        "nodeconfigurators.slurm.nebius.ai",
        "nodesets.slurm.nebius.ai",
        "nodesetpowerstates.slurm.nebius.ai",
    )
    everything = "--controllers=-cluster,-nodeset,-nodeconfigurator"
    about = {one.kind for one in program(chosen(everything, "--checks=false")).reconcilers}
    assert {kind.group for kind in about} == {"slinky.slurm.net"}, "the parts of clusters are"


@pytest.mark.parametrize(
    ("flag", "words"),
    [
        ("--controllers=clutser", "there is no 'clutser'. There are: cluster, nodeconfigurator"),
        ("--cache-sync-timeout=soon", "--cache-sync-timeout"),
        ("--metrics-bind-address=here", "not an address to listen on"),
    ],
)
def test_nonsense_is_refused_by_name(flag, words):
    with pytest.raises(SettingsProblem, match=words):
        chosen(flag)


def test_a_flag_that_nobody_knows_is_refused():
    with pytest.raises(click.NoSuchOption):
        chosen("--no-such-flag")


def test_with_a_service_it_makes_a_certificate_of_its_own():
    with soperator.make_context("soperator", ["--webhook-service=op-webhook-service"]) as context:
        own = webhook_settings(settings_of(context.params), context.params)

    assert own.certificates is None
    assert (own.service, own.configurations) == ("op-webhook-service", ("op-webhook-service",))
    assert own.secret == "op-webhook-service-certificates"
    assert "op-webhook-service.here.svc" in own.hosts("here")
