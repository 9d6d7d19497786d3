"""Flags about Kubernetes nodes, of every command that has them."""

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import click
import pytest

from slurm_operator.cli import manager, soperator, soperatorchecks
from slurm_operator.cli.node_flags import node_notes
from slurm_operator.operator import program
from slurm_operator.reconcilers.nebius.kubenode.options import DEFAULTS, NodeOptions
from slurm_operator.runtime.kubelets import KubeletSettings
from slurm_operator.runtime.settings import Settings, SettingsProblem

COMMANDS: dict[str, tuple[click.Command, Callable[..., Settings]]] = {
    "manager": (manager.manager, manager.settings_of),
    "soperator": (soperator.soperator, soperator.settings_of),
    "soperatorchecks": (soperatorchecks.soperatorchecks, soperatorchecks.settings_of),
}


def settings(command: str, *args: str) -> Settings:
    made, read = COMMANDS[command]
    with made.make_context(command, list(args)) as context:
        return read(context.params)


def nodes(command: str, *args: str) -> NodeOptions:
    found = settings(command, *args).nodes
    assert found is not None
    return found


@pytest.mark.parametrize("command", COMMANDS)
def test_nothing_is_deleted_or_replaced_unless_somebody_asks_for_it(command):
    found = nodes(command)

    assert found == DEFAULTS
    assert not any([found.replaces, found.deletes_drained, found.deletes_not_ready])
    assert (found.brake.max_percent, found.brake.window) == (20, timedelta(hours=1))


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(
    ("flag", "field", "value"),
    [
        ("--enable-node-replacement", "replaces", True),
        ("--enable-node-replacement=true", "replaces", True),
        ("-delete-not-ready-nodes=true", "deletes_not_ready", True),
        ("--delete-drained-nodes", "deletes_drained", True),
        ("--not-ready-timeout=30m", "not_ready_timeout", timedelta(minutes=30)),
        (
            "--maintenance-condition-type=MaintenanceScheduled",
            "maintenance_condition",
            "MaintenanceScheduled",
        ),
        (
            "--maintenance-ignore-node-labels=slurm.nebius.ai/nodeset=nfs, a=b",
            "ignored_labels",
            {"slurm.nebius.ai/nodeset": "nfs", "a": "b"},
        ),
        ("--brake-max-percent=5", "brake", type(DEFAULTS.brake)(5, timedelta(hours=1))),
        ("--ephemeral-storage-threshold=95", "storage_threshold", 95.0),
        ("--ephemeral-storage-resume-threshold=50", "storage_resume_threshold", 50.0),
        ("--brake-window=90m", "brake", type(DEFAULTS.brake)(20, timedelta(minutes=90))),
    ],
)
def test_each_flag_does_what_it_says(command, flag, field, value):
    assert getattr(nodes(command, flag), field) == value


@pytest.mark.parametrize(
    ("flag", "complaint"),
    [
        ("--not-ready-timeout=soon", "--not-ready-timeout: 'soon' is not a duration"),
        ("--brake-window=0s", "--brake-window: '0s' is no time"),
        ("--maintenance-ignore-node-labels=nfs", "'nfs' is no label; write key=value"),
    ],
)
@pytest.mark.parametrize("command", COMMANDS)
def test_a_wrong_value_is_refused_in_clear_words(command, flag, complaint):
    with pytest.raises(SettingsProblem, match=complaint):
        settings(command, flag)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_worker_is_not_resumed_above_what_drains_it(command):
    with pytest.raises(SettingsProblem, match="--ephemeral-storage-resume-threshold: workers would be"):
        settings(command, "--ephemeral-storage-threshold=70")


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(
    ("flags", "found"),
    [
        ([], KubeletSettings()),
        (["--kubelet-port=4194"], KubeletSettings(port=4194)),
        (["--kubelet-request-timeout=3s"], KubeletSettings(timeout_seconds=3)),
        (["--kubelet-insecure-skip-tls-verify"], KubeletSettings(insecure=True)),
        (["--kubelet-ca-file=/ca.crt"], KubeletSettings(authority=Path("/ca.crt"))),
        (["--kubelet-tls-server-name=kubelet"], KubeletSettings(server_name="kubelet")),
        (["--requeue-after-pod-ephemeral-storage-check=5m"], KubeletSettings(every_seconds=300)),
        (["--pod-ephemeral-max-concurrent-reconciles=7"], KubeletSettings(at_once=7)),
    ],
    ids=str,
)
def test_how_kubelets_are_asked(command, flags, found):
    assert settings(command, *flags).kubelets == found


def test_a_share_is_a_percentage():
    with pytest.raises(click.BadParameter, match="0<=x<=100"):
        settings("manager", "--brake-max-percent=101")


@pytest.mark.parametrize(
    ("variable", "value", "field", "expected"),
    [
        ("MAINTENANCE_IGNORE_NODE_LABELS", "a=b", "ignored_labels", {"a": "b"}),
        ("SLURM_OPERATOR_BRAKE_MAX_PERCENT", "7", "brake", type(DEFAULTS.brake)(7, timedelta(hours=1))),
        ("SLURM_OPERATOR_BRAKE_WINDOW", "2h", "brake", type(DEFAULTS.brake)(20, timedelta(hours=2))),
    ],
)
@pytest.mark.parametrize("command", COMMANDS)
def test_the_environment_says_it_too(monkeypatch, command, variable, value, field, expected):
    monkeypatch.setenv(variable, value)

    assert getattr(nodes(command), field) == expected


NEBIUS = "--api=slurm.nebius.ai"
ON = [
    ("manager", [NEBIUS], True),
    ("manager", [], False),
    ("manager", [NEBIUS, "--node-controllers=false"], False),
    ("manager", [NEBIUS, "--checks=false"], False),
    ("manager", [NEBIUS, "--namespaces=a"], False),
    ("soperator", [], True),
    ("soperator", ["--checks=false"], False),
    ("soperator", ["--namespaces=a"], False),
    ("soperatorchecks", [], True),
    ("soperatorchecks", ["--namespaces=a"], False),
]


@pytest.mark.parametrize(("command", "args", "is_on"), ON)
def test_where_they_run(command, args, is_on):
    """Not where only some namespaces are looked after: nobody can tell there what else a Kubernetes node has."""
    found = program(settings(command, *args)).reconcilers

    assert ("kubenode" in [one.name for one in found]) == is_on


@pytest.mark.parametrize(
    ("command", "args", "is_told"),
    [
        ("manager", [NEBIUS, "--namespaces=a"], True),
        ("soperatorchecks", ["--namespaces=a"], True),
        ("manager", ["--namespaces=a"], False),
        ("manager", [NEBIUS, "--namespaces=a", "--checks=false"], False),
        ("manager", [NEBIUS], False),
    ],
)
def test_where_they_cannot_run_the_log_says_so(command, args, is_told):
    told = list(node_notes(settings(command, *args)))

    assert ["node controllers are off" in line for line in told] == ([True] if is_told else [])
