"""Commands that the documentation names within a sentence or a table: such a command exists, with these options."""

import re
import shlex

import click
import pytest

from slurm_operator.cli.kubectl import kubectl_slurm
from slurm_operator.cli.root import main
from testing.docs import FENCE, PAGES, ROOT

PROGRAMS = {"kubectl slurm": kubectl_slurm, "kubectl-slurm": kubectl_slurm, "slurm-operator": main}
SPAN = re.compile(r"`((?:kubectl slurm|kubectl-slurm|slurm-operator) [^`]+)`")

# Words of these are for another program.
PASSED_ON = {"kubectl", "helm", "shell"}


def spans() -> list[tuple[str, str]]:
    found = [
        (str(page.relative_to(ROOT)), span)
        for page in PAGES
        for span in SPAN.findall(FENCE.sub("", page.read_text()))
    ]
    return sorted(set(found))


def unknown(text: str) -> list[str]:
    """The words of a command that it does not know."""
    program = next(name for name in PROGRAMS if text.startswith(f"{name} "))
    words = [word for word in shlex.split(text.removeprefix(program)) if word not in ("...", "…")]
    command: click.Command = PROGRAMS[program]
    while isinstance(command, click.Group) and words and not words[0].startswith("-"):
        found = command.get_command(click.Context(command), words[0])
        if found is None:
            return words[:1]
        command, name = found, words.pop(0)
        if name in PASSED_ON:
            return []
    known = {"--help", *(option for each in command.params for option in (*each.opts, *each.secondary_opts))}
    return [word for word in words if word.startswith("-") and word.partition("=")[0] not in known]


def test_commands_are_named_in_many_places() -> None:
    assert len(spans()) > 30


@pytest.mark.parametrize(("page", "text"), spans())
def test_a_command_that_is_named_exists_with_its_options(page: str, text: str) -> None:
    assert unknown(text) == []


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("kubectl slurm status -n NAMESPACE", []),
        ("kubectl slurm state", ["state"]),
        ("kubectl slurm plan -f FILE --remove", ["--remove"]),
        ("slurm-operator local up --nodes=3", []),
        ("slurm-operator local kubectl get pods --anything", []),
    ],
)
def test_a_command_that_does_not_exist_would_be_noticed(text: str, words: list[str]) -> None:
    assert unknown(text) == words
