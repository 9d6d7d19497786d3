"""One argument on its way through the entry points of images, by a real shell and with a slurmd that shows what it got."""

import os
import shlex
import stat
import subprocess
from pathlib import Path

import pytest

from images.entry.options import argument_words, with_node_items
from slurm_operator.manifests.builders.shell import one_word

SLURMD = "#!/bin/sh\nfor word; do printf '%s\\n' \"$word\"; done\n"

# How the default images start slurmd: all arguments in one variable, and that into a line for a shell.
JOINED = 'SLURMD_OPTIONS="${SLURMD_OPTIONS:-} $*"; '
IN_A_SHELL = JOINED + 'bash -xc "exec slurmd --systemd $SLURMD_OPTIONS"'
FOR_SUPERVISORD = JOINED + 'printf %s "$SLURMD_OPTIONS"'

ITEMS = [
    pytest.param("Features=gpu", id="one plain item"),
    pytest.param("Features=gpu Gres=gpu:2 Weight=10", id="several items"),
    pytest.param("Features=gpu Gres=gpu:a100:2(S:0-1)", id="what a shell would read as a command"),
    pytest.param('Features=gpu Reason="two words" Weight=10', id="a value with a space"),
    pytest.param("Features=gpu Reason=it's", id="a single quote"),
    pytest.param('Features=gpu Reason=7"', id="a double quote"),
    pytest.param("Features=gpu Reason=$(touch ran)`touch ran`", id="commands"),
    pytest.param("Features=gpu Reason=';touch ran;'", id="a command that leaves the quotes"),
    pytest.param('Features=gpu Reason=";touch ran;"', id="a command that leaves supervisord's quotes"),
    pytest.param("Features=gpu Reason=\"';touch ran;'\"", id="a command that leaves both"),
    pytest.param("Features=$HOME ${HOME}", id="a variable"),
    pytest.param("Features=* [ab]?", id="names of files"),
    pytest.param("Features=ä,ü Weight=1", id="other letters"),
]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "slurmd").write_text(SLURMD)
    (tmp_path / "slurmd").chmod(stat.S_IRWXU)
    return tmp_path


def ran(place: Path, *command: str) -> str:
    env = {"PATH": f"{place}:{os.defpath}", "HOME": "/root"}
    done = subprocess.run(command, cwd=place, env=env, text=True, capture_output=True, check=True, timeout=30)
    assert not (place / "ran").exists(), "a shell ran what stands in a value"
    return done.stdout


def pod_arguments(items: str) -> list[str]:
    return ["-Z", "--conf-server", "ctld:6817", "--conf", one_word(items), "-v"]


def what_slurmd_gets(items: str) -> list[str]:
    return ["--systemd", "-Z", "--conf-server", "ctld:6817", "--conf", items, "-v"]


@pytest.mark.parametrize("items", ITEMS)
def test_a_shell_makes_one_word_of_it(place, items):
    said = ran(place, "bash", "-c", IN_A_SHELL, "entry", *pod_arguments(items))

    assert said.splitlines() == what_slurmd_gets(items)


@pytest.mark.parametrize("items", ITEMS)
def test_supervisord_in_between_changes_nothing(place, items):
    options = ran(place, "bash", "-c", FOR_SUPERVISORD, "entry", *pod_arguments(items))
    command = f'bash -xc "exec slurmd --systemd {options}"'

    assert ran(place, *shlex.split(command)).splitlines() == what_slurmd_gets(items)


@pytest.mark.parametrize("items", ITEMS)
def test_our_own_image_reads_it_as_a_shell_does(items):
    assert argument_words(pod_arguments(items), {"HOME": "/root"}) == what_slurmd_gets(items)[1:]


def test_our_own_image_adds_to_it_and_keeps_values_whole():
    words = argument_words(pod_arguments('Features=gpu Reason="two words" Weight=10'), {})

    assert with_node_items(words, {"CoreSpecCount": "2"})[-1] == (
        'Features=gpu Reason="two words" Weight=10 CoreSpecCount=2'
    )


def test_what_needs_no_quotes_has_none():
    """So that it also suits an image that starts slurmd without any shell."""
    assert one_word("Features=gpu,a100") == "Features=gpu,a100"
