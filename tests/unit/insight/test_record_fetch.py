"""Where the operator's pods keep their recording, and what a command in one of them says."""

import pytest

from slurm_operator import wire
from slurm_operator.insight.operator_pods import Container, OperatorPod, told_images
from slurm_operator.kube.errors import CommandFailed
from slurm_operator.kube.exec_channels import output

GOOD = b'\x03{"status": "Success"}'


@pytest.mark.parametrize(
    ("args", "folder"),
    [
        (["--leader-elect=true", "--record=/var/lib/x"], "/var/lib/x"),
        (["--record", "/var/lib/x", "--profile"], "/var/lib/x"),
        (["--recording=/no"], ""),
        ([], ""),
    ],
)
def test_the_folder_of_a_recording_stands_in_the_arguments(args, folder):
    assert wire.convert({"name": "manager", "args": args}, Container).folder == folder


def test_the_images_of_the_operator_stand_in_its_environment():
    env = [
        {"name": "SLURM_OPERATOR_IMAGES", "value": "there/{daemon}:1"},
        {"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
    ]
    containers = [{"name": "manager", "env": env}]
    pod = wire.convert({"metadata": {"name": "a"}, "spec": {"containers": containers}}, OperatorPod)

    assert told_images([pod]) == {"SLURM_OPERATOR_IMAGES": "there/{daemon}:1"}


def test_what_a_command_prints_is_put_together_from_its_messages():
    assert output([b"\x01first ", b"\x02a complaint", b"\x01second", b"", GOOD], "exec") == b"first second"


@pytest.mark.parametrize(
    ("messages", "words"),
    [
        ([b"\x02no such file", b'\x03{"status": "Failure", "message": "exit code 1"}'], "exec: exit code 1: no such file"),
        ([b"\x01half of it"], "the connection ended before it did"),
    ],
    ids=["it fails", "the connection breaks"],
)  # fmt: skip
def test_a_command_that_does_not_end_well_says_why(messages, words):
    with pytest.raises(CommandFailed, match=words):
        output(messages, "exec")
