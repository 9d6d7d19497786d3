"""What people type: mistyped commands, short names, -h, and keys."""

import asyncio
import os
import pty
from collections.abc import Iterator

import pytest
from click.testing import CliRunner

import slurm_operator
from slurm_operator.api.shared.meta import Meta
from slurm_operator.cli.kubectl import kubectl_slurm, options_last
from slurm_operator.cli.kubectl.screen import keys
from slurm_operator.cli.kubectl.screen.watching import again
from slurm_operator.cli.root import main
from slurm_operator.insight.evaluation import kinds_named
from slurm_operator.insight.operator_pods import Container, OperatorPod, Spec, running_operator
from slurm_operator.insight.text.output import as_yaml
from slurm_operator.insight.typed_names import cluster_name, did_you_mean, of_kubernetes
from slurm_operator.kube.auth.credentials import Fixed, Identity, Impersonating, bearer
from slurm_operator.operator import reconcilers
from slurm_operator.runtime.settings import Settings


def typed(*words: str) -> str:
    return CliRunner().invoke(kubectl_slurm, list(words)).output


@pytest.mark.parametrize(
    ("word", "question"),
    [
        ("statsu", "Did you mean status?"),
        ("job", "Did you mean jobs?"),
        ("shel", "Did you mean shell?"),
    ],
)
def test_a_mistyped_command_is_answered_with_a_question(word: str, question: str) -> None:
    assert f"There is no command '{word}'. {question}" in typed(word)


def test_a_word_that_is_like_nothing_is_not_guessed_at() -> None:
    assert "Did you mean" not in typed("zzz")
    assert did_you_mean("gpu", ["cpu"]) == ""


@pytest.mark.parametrize("words", [["-h"], ["status", "-h"], ["jobs", "-h"], ["shell", "-h"]])
def test_help_is_there_by_its_short_name(words: list[str]) -> None:
    done = CliRunner().invoke(kubectl_slurm, words)

    assert done.exit_code == 0
    assert done.output.startswith("Usage:")


def test_both_programs_say_their_version() -> None:
    assert slurm_operator.__version__ in typed("--version")
    assert slurm_operator.__version__ in CliRunner().invoke(main, ["--version"]).output


@pytest.mark.parametrize(
    ("written", "read"),
    [
        pytest.param(
            "-n a shell sinfo -n 1", "shell -n a sinfo -n 1", id="a command for the pod keeps its words"
        ),
        pytest.param("--as ada status", "status --as ada", id="as somebody else"),
    ],
)
def test_where_to_look_stands_before_what_is_passed_on(written: str, read: str) -> None:
    assert options_last(written.split()) == read.split()


@pytest.mark.parametrize(
    "word", ["nodeset", "nodesets", "nss", "NodeSet", "nodeset.slinky.slurm.net", "slurmd"]
)
def test_a_kind_is_known_by_every_name_that_kubectl_has_for_it(word: str) -> None:
    [found] = kinds_named(word, reconcilers(Settings()))

    assert found.kind.kind == "NodeSet"


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("demo", "demo"),
        ("slurm/demo", "slurm/demo"),
        ("cluster/demo", "demo"),
        ("cluster.slinky.slurm.net/demo", "demo"),
        ("scl/demo", "demo"),
    ],
)
def test_a_cluster_is_known_by_its_name_in_every_form(written: str, name: str) -> None:
    assert cluster_name(written) == name


def test_pods_and_nodes_have_the_short_names_of_kubectl() -> None:
    assert [of_kubernetes(word) for word in ("po", "pods", "no", "Job")] == ["pod", "pod", "node", "job"]


def operator_pod(image: str) -> OperatorPod:
    return OperatorPod(
        metadata=Meta(name="op"), spec=Spec(containers=(Container(name="manager", image=image),))
    )


@pytest.mark.parametrize(
    ("images", "says"),
    [
        pytest.param([], "No operator runs here that you can see", id="none"),
        pytest.param(["r.example:5000/op:1.2.0"], "", id="the same"),
        pytest.param(["op:v1.1.0"], "The operator is version 1.1.0, this plugin 1.2.0", id="another"),
        pytest.param(["op@sha256:abc"], "", id="nobody can tell: nothing is said"),
        pytest.param(["op:latest"], "", id="no version"),
    ],
)
def test_an_operator_of_another_version_is_told_and_one_that_nobody_knows_is_not(
    images: list[str], says: str
) -> None:
    found = running_operator(map(operator_pod, images), "1.2.0")

    assert found.startswith(says)
    assert bool(found) is bool(says)


def test_somebody_else_is_asked_for_in_headers_and_our_own_token_stays() -> None:
    own = Fixed(Identity((bearer("t"), ("Impersonate-User", "of the kubeconfig"))))

    found = asyncio.run(Impersonating(own, "ada", ("hpc", "dev")).identity())

    assert found.headers == (
        ("Authorization", "Bearer t"),
        ("Impersonate-User", "ada"),
        ("Impersonate-Group", "hpc"),
        ("Impersonate-Group", "dev"),
    )


def test_who_watches_is_shown_what_has_changed_until_they_stop() -> None:
    answers: Iterator[object] = iter([1, 1, 2, 2, KeyboardInterrupt()])

    def look() -> object:
        found = next(answers)
        if isinstance(found, BaseException):
            raise found
        return found

    assert list(again(look, watch=True, wait=lambda _: None)) == [1, 2]
    assert list(again(lambda: 1, watch=False)) == [1]


def test_yaml_has_what_json_has_and_nothing_that_a_terminal_obeys() -> None:
    assert as_yaml({"a": ["b", 1], "c": "\x1b[31m\u202e"}) == 'a:\n- b\n- 1\nc: "\\e[31m\\u202E"\n'


@pytest.mark.parametrize(("key", "ends"), [(b"q", True), (b"Q", True), (b"xq", True), (b"x", False)])
def test_q_ends_a_screen_and_other_keys_do_not(
    monkeypatch: pytest.MonkeyPatch, key: bytes, ends: bool
) -> None:
    ours, theirs = pty.openpty()
    drawn: list[object] = []

    async def draw() -> None:
        os.write(ours, key)
        while ends or len(drawn) < 20:
            drawn.append(1)
            await asyncio.sleep(0.01)
        drawn.append("to the end")

    with os.fdopen(theirs, closefd=True) as terminal:
        monkeypatch.setattr("sys.stdin", terminal)
        asyncio.run(keys.until_key(keys.QUIT, draw()))
    os.close(ours)

    assert ("to the end" not in drawn) is ends
