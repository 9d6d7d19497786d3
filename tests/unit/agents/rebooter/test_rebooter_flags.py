"""`slurm-operator rebooter`: the flags and variables of Soperator's DaemonSets, and what they come to."""

import asyncio
from datetime import UTC, datetime, timedelta

import click
import pytest

from slurm_local.image.images import program_layer
from slurm_operator.agents.rebooter.host import Host
from slurm_operator.cli.rebooter import host_of, rebooter, settings_of
from slurm_operator.runtime.settings import SettingsProblem

NODE = {"REBOOTER_NODE_NAME": "worker-7", "REBOOTER_EVICTION_METHOD": "evict"}


@pytest.fixture
def chosen(monkeypatch):
    for name, value in NODE.items():
        monkeypatch.setenv(name, value)

    def read(*args: str):
        with rebooter.make_context("rebooter", list(args)) as context:
            return settings_of(context.params, "soperator-system"), host_of(context.params)

    return read


def test_the_arguments_of_their_pods_are_understood(chosen):
    settings, host = chosen("-log-level", "debug", "-log-format", "json", "-reconcile-timeout", "3m")

    assert (settings.node_name, settings.namespace) == ("worker-7", "soperator-system")
    assert settings.limits.look_again == timedelta(minutes=3)
    assert host.command[:3] == ("nsenter", "--target", "1")
    assert host.command[-2:] == ("systemctl", "reboot")


def test_without_flags(chosen):
    settings, _ = chosen()

    assert (settings.max_nodes, settings.limits.max_reboots, settings.is_dry_run) == (1, 3, False)
    assert settings.limits.look_again == timedelta(minutes=1)
    assert (settings.health.port, settings.metrics.port) == (8081, 8080)


def test_without_a_node_it_does_not_start(monkeypatch):
    monkeypatch.delenv("REBOOTER_NODE_NAME", raising=False)
    with pytest.raises(click.MissingParameter):
        rebooter.make_context("rebooter", [])


@pytest.mark.parametrize(
    ("flag", "message"),
    [
        ("--reconcile-timeout=often", "--reconcile-timeout: 'often' is not a duration"),
        ("--reboot-timeout=0s", "--reboot-timeout is 0s; it must be at least 1s"),
        ("--reboot-command=' ", "--reboot-command: No closing quotation"),
        ("--reboot-command= ", "--reboot-command is empty"),
    ],
)
def test_what_cannot_be_is_said(chosen, flag, message):
    with pytest.raises(SettingsProblem, match=message):
        chosen(flag)


@pytest.mark.parametrize(
    ("name", "value"),
    [("REBOOTER_EVICTION_METHOD", "delete"), ("REBOOTER_MAX_NODES", "0")],
)
def test_a_variable_that_says_something_else_is_refused(chosen, monkeypatch, name, value):
    monkeypatch.setenv(name, value)
    with pytest.raises(click.BadParameter):
        chosen()


def test_the_image_has_it_under_their_name():
    script = program_layer()["/usr/bin/rebooter"]

    assert script.content.decode() == '#!/bin/sh\nexec python3 -m slurm_operator.cli rebooter "$@"\n'


# ---- The machine below


def test_which_boot_it_is(tmp_path):
    (tmp_path / "sys/kernel/random").mkdir(parents=True)
    (tmp_path / "sys/kernel/random/boot_id").write_text("1234-5678\n")
    (tmp_path / "stat").write_text("cpu  1 2 3\nbtime 1767268800\nprocesses 3\n")
    host = Host(tmp_path)

    assert host.boot_id() == "1234-5678"
    assert host.booted_at() == datetime(2026, 1, 1, 12, tzinfo=UTC)


def test_this_very_machine_can_be_read():
    assert len(Host().boot_id()) == 36
    assert Host().booted_at() < datetime.now(UTC)


@pytest.mark.parametrize(
    ("command", "trouble"),
    [
        (("true",), ""),
        (("sh", "-c", "echo 'no init'; exit 3"), "`sh -c echo 'no init'; exit 3` ended with 3: no init."),
        (("sh", "-c", "exit 1"), "`sh -c exit 1` ended with 1."),
        (("/nonexistent/reboot",), "`/nonexistent/reboot` cannot be run: No such file or directory."),
    ],
)
def test_the_command(command, trouble):
    assert asyncio.run(Host(command=command).reboot()) == trouble
