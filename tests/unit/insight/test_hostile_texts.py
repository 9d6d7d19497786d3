"""Whatever people write into jobs and objects, no command lets a terminal obey it, and no line can be forged."""

import ast
import io
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from click.testing import CliRunner
from rich.console import Console
from rich.text import Text

import slurm_operator
from slurm_operator import wire
from slurm_operator.cli import kubectl_slurm
from slurm_operator.cli.echo import show_crash
from slurm_operator.cli.kubectl import bundle, logs, record
from slurm_operator.cli.kubectl.screen import frames
from slurm_operator.cli.kubectl.shared import proposals
from slurm_operator.insight.collect import Unseen
from slurm_operator.insight.doctor import checkup, finding
from slurm_operator.insight.drain.decide import DRAINED, Outcome, outcomes_text
from slurm_operator.insight.explain.chain import Explanation
from slurm_operator.insight.forecast.outcome import Forecast
from slurm_operator.insight.logs import reading
from slurm_operator.insight.logs.choice import Line, Stream
from slurm_operator.insight.recording.replay import Replayed
from slurm_operator.insight.status.cluster_status import Status
from slurm_operator.insight.text import explain_text, output, plan_text, status_text
from slurm_operator.kube.auth import config
from slurm_operator.kube.errors import ConfigProblem
from slurm_operator.runtime.report.recording import Flight
from slurm_operator.slurm.writes import Verdict
from testing.hostile import HOSTILE, NOW, filled, obeyed

STYLING = re.compile(r"\x1b\[[0-9;]*m")
SOURCE = Path(slurm_operator.__file__).parent


class Shown(NamedTuple):
    """A command's value made of one text, and what it prints of it."""

    value: Callable[[str], Any]
    text: Callable[[Any], Text]


def of(type_: Any, text: Callable[[Any], Text], **fields: Any) -> Shown:
    return Shown(lambda given: wire.replace(filled(type_, given), **fields), text)


SCREENS = {
    "top": of(frames.Frame, frames.screen, unreachable=""),
    "top on a small terminal": of(frames.Frame, lambda one: frames.screen(one, 12), unreachable=""),
    "top without Slurm": of(frames.Frame, frames.screen),
    "top without a job": of(frames.Frame, frames.screen, unreachable="", jobs=()),
    "status": Shown(
        lambda given: [wire.replace(filled(Status, given), unreachable="")],
        lambda found: status_text.screen(found, [filled(Unseen, found[0].name)], NOW),
    ),
    "status without Slurm": Shown(
        lambda given: [filled(Status, given)], lambda found: status_text.screen(found, [], NOW)
    ),
    "explain": of(Explanation, explain_text.text),
    "plan": of(Forecast, plan_text.text),
    "drain": of(Outcome, lambda one: outcomes_text([one], DRAINED), verdict=Verdict.DONE),
    "drain refused": of(Outcome, lambda one: outcomes_text([one], DRAINED), verdict=Verdict.FOREIGN),
    "doctor": Shown(lambda given: [filled(finding.Finding, given)], checkup.report),
    "bundle": of(bundle.Packed, bundle._text),
    "record replay": Shown(
        lambda given: [filled(Replayed, given)],
        lambda found: output.joined(map(output.paragraph, record._replay_text(found))),
    ),
    "table": Shown(lambda given: [given], lambda found: output.table(("A", "B"), [(found[0], found[0])])),
}


def printed(value: Any, text: Callable[[Any], Text], *, how: str = "text", terminal: bool = False) -> str:
    like = output.console({"TERM": "xterm"})
    to = Console(
        file=io.StringIO(), force_terminal=terminal, color_system="standard" if terminal else None,
        highlight=False, markup=False, emoji=False, soft_wrap=like.soft_wrap,
    )  # fmt: skip
    output.emit(how, value, lambda: text(value), to)
    return to.file.getvalue()


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
@pytest.mark.parametrize("screen", SCREENS.values(), ids=SCREENS)
def test_no_screen_has_anything_to_obey_or_a_forged_line(screen, text):
    value = screen.value(text)
    plain, coloured = printed(value, screen.text), printed(value, screen.text, terminal=True)

    assert obeyed(plain) == ""
    assert STYLING.sub("", coloured) == plain
    # A field that is compared in lines has its lines below each other, as many as it has.
    if screen is not SCREENS["plan"]:
        assert plain.count("\n") == printed(screen.value("harmless"), screen.text).count("\n")
    assert all(len(line) < 20 * 4200 for line in plain.splitlines())


@pytest.mark.parametrize("text", [HOSTILE[name] for name in HOSTILE if name != "half a character"])
@pytest.mark.parametrize("screen", SCREENS.values(), ids=SCREENS)
def test_json_of_every_command_has_nothing_to_obey_and_loses_nothing(screen, text):
    value = screen.value(text)
    shown = printed(value, screen.text, how="json")

    assert obeyed(shown) == ""
    assert wire.decode_any(shown) == wire.decode_any(wire.encode(value))


def said(monkeypatch: pytest.MonkeyPatch, text: str, *options: str) -> str:
    """What `kubectl slurm logs` prints of a log with one line."""

    async def streams(_looker: Any, _choice: Any) -> list[Stream]:
        return [Stream("ns", "demo-cpu-0", "slurmd")]

    async def lines(_client: Any, found: list[Stream], _wanted: Any) -> Any:
        yield Line(pod=found[0].pod, container=found[0].container, text=text)

    monkeypatch.setattr(logs, "_streams", streams)
    monkeypatch.setattr(reading, "lines", lines)
    return outcome_of(["logs", *options])[1]


def outcome_of(words: list[str], expected: int = 0) -> tuple[str, str]:
    """What a command says on standard error, and on standard output; the API server is never reached."""
    found = CliRunner(env={"KUBECONFIG": str(KUBECONFIG)}).invoke(kubectl_slurm, words)
    assert found.exit_code == expected, found.output
    return found.stderr, found.stdout


KUBECONFIG = Path(__file__).parent / "kubeconfig.yaml"


@pytest.mark.parametrize(
    "text", [text for text in HOSTILE.values() if "\n" not in text and "\ud800" not in text]
)
def test_a_log_is_whole_and_has_nothing_to_obey(monkeypatch, text):
    shown, json = said(monkeypatch, text), said(monkeypatch, text, "-o", "json")

    assert shown.startswith("demo-cpu-0 slurmd ")
    assert shown.count("\n") == 1
    assert obeyed(shown) == obeyed(json) == ""
    assert wire.decode_any(json)["text"] == text
    assert len(shown) >= len(text)


def test_lines_that_end_as_on_windows_end_like_others(monkeypatch):
    assert said(monkeypatch, "one\r") == "demo-cpu-0 slurmd one\n"
    assert said(monkeypatch, "one\rtwo\r") == "demo-cpu-0 slurmd one\\rtwo\n"


def test_a_log_is_as_it_was_written_only_for_those_who_ask(monkeypatch):
    text = "50 %\r\x1b[32m100 %\x1b[0m\t\u200b"

    assert said(monkeypatch, text, "--raw") == f"demo-cpu-0 slurmd {text}\n"
    assert "--raw is for text" in outcome_of(["logs", "--raw", "-o", "json"], expected=2)[0]


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_errors_that_quote_somebody_have_nothing_to_obey(monkeypatch, text):
    def fails(*_: Any) -> Any:
        raise ConfigProblem(f"the server said: {text}")

    monkeypatch.setattr(config, "find", fails)
    told, _ = outcome_of(["status"], expected=1)

    assert told.startswith("Error: the server said: ")
    assert obeyed(told, but="\n\t") == ""


def test_a_file_that_cannot_be_planned_is_quoted_without_being_obeyed(tmp_path):
    file = tmp_path / "bad.yaml"
    file.write_text(
        'kind: "\\e]0;owned\\a"\napiVersion: v1\nmetadata: {name: "a\\u202e"}\n---\n{"\\e[31m": [}\n'
    )
    told, _ = outcome_of(["plan", "-f", str(file)], expected=2)

    assert told.startswith("Error: ")
    assert obeyed(told) == ""


def test_a_crash_has_nothing_to_obey(capsys):
    error = RuntimeError("a\x1b]0;owned\x07\u202e")
    show_crash(RuntimeError, error, None)

    assert capsys.readouterr().err == "RuntimeError: a\\x1b]0;owned\\x07\\u202e\n"


def test_recorded_decisions_have_nothing_to_obey(tmp_path):
    file = tmp_path / "record"
    told = "".join(text for name, text in HOSTILE.items() if name != "half a character")
    action = {"type": "Wait", "subject": "gpu-0", "reason": "Busy", "message": told}
    flight = Flight(
        reconciler="nodeset", key=("ns", "gpu"), seen_at=NOW, decided_at=NOW, facts=(), plan={"lanes": [{"stages": [[action]]}]}
    )  # fmt: skip
    file.write_bytes(wire.encode(flight) + b"\n")

    for words in (["record", "list", str(file)], ["record", "list", str(file), "-o", "json"]):
        shown = outcome_of(words)[1]
        assert "owned" in shown
        assert obeyed(shown) == ""


def test_a_shell_is_offered_plain_names_only():
    async def ask(_client: Any, _namespace: str) -> set[str]:
        return {"gpu-0", "gpu-1\x1b[31m", "gpu-2\nrm"}

    class Context:
        params = {"kubeconfig": KUBECONFIG}

    assert proposals.proposing(ask)(Context(), None, "gpu") == ["gpu-0"]  # type: ignore[arg-type]


# --- nothing is printed past the two modules that write things out -------------------------------------

ALLOWED = {SOURCE / "cli" / "echo.py", SOURCE / "insight" / "text" / "output.py"}
CALLS = {
    "print", "Console", "click.echo", "click.secho", "click.style", "click.echo_via_pager", "click.confirm", "click.prompt",
    "sys.stdout.write", "sys.stderr.write", "sys.stdout.buffer.write", "sys.stderr.buffer.write", "os.write",
    "Text.assemble", "Text.from_ansi", "Text.from_markup", "pprint.pprint", "rich.print",
}  # fmt: skip
METHODS = {"print", "print_json", "print_exception"}


def ways_out(tree: ast.AST) -> list[str]:
    """Calls that print, or that make a text of something that no cell has seen."""
    found = []
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        name = ast.unparse(node.func)
        is_made = name == "Text" and not all(isinstance(arg, ast.Constant) for arg in node.args)
        if name in CALLS or is_made or name.rpartition(".")[2] in METHODS:
            found.append(f"{node.lineno}: {name}")
    return found


def test_every_command_prints_through_the_one_boundary():
    files = {path for folder in ("cli", "insight") for path in (SOURCE / folder).rglob("*.py")}

    assert files > ALLOWED
    found = {str(path): ways_out(ast.parse(path.read_text())) for path in files - ALLOWED}
    assert {path: ways for path, ways in found.items() if ways} == {}


@pytest.mark.parametrize(
    "code",
    ["print(x)", "click.echo(x)", "sys.stdout.write(x)", "console.print(x)", "Text(x)", "Text.assemble(x)", "Console().out(x)"],
)  # fmt: skip
def test_another_way_out_would_be_noticed(code):
    assert ways_out(ast.parse(code))
    assert not ways_out(ast.parse('Text("\\n"); echo(x); output.paragraph(x)'))
