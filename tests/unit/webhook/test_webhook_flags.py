"""`slurm-operator webhook`: its own flags, and those of Deployments that exist already."""

from pathlib import Path

import click
import pytest

from slurm_operator.cli.flags import given_by_people
from slurm_operator.cli.webhook import settings_of, webhook
from slurm_operator.runtime.settings import Address
from slurm_operator.webhook.lookup import is_name

THEIRS = [
    "--health-addr=:8081", "--metrics-addr=0", "--metrics-secure=false", "--leader-elect", "--leader-elect-namespace=slurm",
    "--enable-http2=false", "--namespaces=lab,slurm", "--server-addr=:9443", "--zap-log-level=info", "--zap-encoder=json",
]  # fmt: skip


def chosen(*args: str):
    with webhook.make_context("webhook", list(args)) as context:
        return settings_of(context.params, given_by_people(context))


def test_the_flags_of_the_operator_before_us_are_understood():
    settings = chosen(*THEIRS)

    assert (settings.server, settings.metrics.is_off) == (Address("0.0.0.0", 9443), True)
    assert settings.namespaces == ("lab", "slurm")


def test_without_flags_it_listens_where_everybody_expects_it(monkeypatch):
    monkeypatch.delenv("WEBHOOK_PORT", raising=False)

    settings = chosen()

    assert (settings.server.port, settings.health.port, settings.metrics.is_off) == (9443, 8081, True)
    assert settings.certificates is None
    assert settings.hosts("slurm")[-2:] == (
        "slurm-operator-webhook.slurm.svc",
        "slurm-operator-webhook.slurm.svc.cluster.local",
    )


def test_the_environment_names_port_and_certificate(monkeypatch):
    monkeypatch.setenv("WEBHOOK_PORT", "10250")
    monkeypatch.setenv("WEBHOOK_TLS_FILE", "/etc/tls/both.pem")

    settings = chosen()

    assert settings.server.port == 10250
    assert settings.certificates == Path("/etc/tls/both.pem")
    assert chosen("--server-addr=:9443").server.port == 9443, "a flag wins"


def test_flag_then_environment_then_file_then_default(tmp_path, monkeypatch):
    path = tmp_path / "settings.yaml"
    path.write_text("webhook-port: 9444\nwebhook-tls-file: /file/tls.crt\nclient-max-retries: 3\n")
    for name in ("WEBHOOK_PORT", "WEBHOOK_TLS_FILE"):
        monkeypatch.delenv(name, raising=False)

    def seen(*args: str):
        settings = chosen(*args)
        return settings.server.port, settings.certificates

    assert seen() == (9443, None)
    assert seen(f"--config={path}") == (9444, Path("/file/tls.crt"))
    monkeypatch.setenv("WEBHOOK_PORT", "9445")
    monkeypatch.setenv("WEBHOOK_TLS_FILE", "/variable/tls.crt")
    assert seen(f"--config={path}") == (9445, Path("/variable/tls.crt"))
    flags = ("-server-addr=:9446", "--cert-file=/flag/tls.crt")
    assert seen(f"--config={path}", *flags) == (9446, Path("/flag/tls.crt"))
    assert seen("--cert-dir=/flag")[1] == Path("/flag"), "a flag for the other form wins, too"


def test_a_flag_that_nobody_knows_is_refused():
    with pytest.raises(click.NoSuchOption):
        chosen("--no-such-flag")


@pytest.mark.parametrize(
    ("text", "is_one"),
    [
        ("slurm", True), ("a.b-c", True), ("a" * 253, True), ("a" * 254, False), ("", False), ("A", False), ("-a", False),
        ("a/b", False), ("../secrets/x", False), ("a..b", False), ("a?x=1", False), ("a\n", False), ("a%2e", False),
    ],
)  # fmt: skip
def test_only_a_name_becomes_part_of_a_url(text, is_one):
    assert is_name(text) is is_one
