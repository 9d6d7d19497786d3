"""`slurm-operator sconfigcontroller`: the flags that Soperator's Deployments pass."""

import click
import pytest

from slurm_operator.cli.sconfigcontroller import sconfigcontroller, settings_of
from slurm_operator.runtime.settings import SettingsProblem

THEIRS = [
    "--cluster-namespace=slurm", "--cluster-name=demo", "--jail-path=/mnt/jail", "--slurmapiserver=http://demo-rest-svc.slurm:6820",
    "--metrics-bind-address=:8443", "--metrics-secure", "--leader-elect", "--reconfigure-poll-interval=30s", "--reconfigure-wait-timeout=5m0s",
    "--log-level=dpanic", "--log-format=plain", "--cache-sync-timeout=1m", "--max-concurrent-reconciles=1", "--enable-http2=false",
    "--health-probe-bind-address=:8082", "--operator-namespace=soperator-system",
]  # fmt: skip


def chosen(*args: str):
    with sconfigcontroller.make_context("sconfigcontroller", list(args)) as context:
        return settings_of(context.params)


def test_the_flags_of_soperators_deployment_are_understood():
    settings = chosen(*THEIRS)

    assert (settings.namespace, settings.cluster, settings.root) == ("slurm", "demo", "/mnt/jail")
    assert settings.slurm_url == "http://demo-rest-svc.slurm:6820"
    assert (settings.poll_seconds, settings.wait_seconds) == (30.0, 300.0)
    assert (settings.metrics.port, settings.metrics_secure, settings.health.port) == (8443, True, 8082)
    assert settings.leader_elect


def test_without_flags_the_defaults_are_soperators():
    settings = chosen()

    assert (settings.namespace, settings.cluster, settings.root) == ("default", "soperator", "/mnt/jail")
    assert settings.slurm_url == "http://localhost:6820"
    assert (settings.poll_seconds, settings.wait_seconds, settings.settle_seconds) == (20.0, 60.0, 16.0)
    assert (settings.health.port, settings.metrics.port, settings.leader_elect) == (8081, 8080, True)


@pytest.mark.parametrize(
    ("flag", "message"),
    [
        ("--reconfigure-poll-interval=often", "--reconfigure-poll-interval: 'often' is not a duration"),
        ("--reconfigure-poll-interval=0s", "--reconfigure-poll-interval is 0s; it must be at least 0.1s"),
        ("--reconfigure-poll-interval=2m", "must be longer than --reconfigure-poll-interval"),
        ("--settle-time=-1s", "--settle-time is -1s; it must be at least 0s"),
        ("--metrics-bind-address=nowhere", "'nowhere' is not an address"),
    ],
)
def test_what_cannot_be_is_said(flag, message):
    with pytest.raises(SettingsProblem, match=message):
        chosen(flag)


def test_a_file_system_without_a_cache_of_names_needs_no_settling():
    assert chosen("--settle-time=0s").settle_seconds == 0.0


def test_a_level_that_nobody_knows_is_refused():
    with pytest.raises(click.BadParameter):
        chosen("--log-level=loud")
