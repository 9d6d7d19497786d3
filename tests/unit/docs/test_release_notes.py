"""The news in changes/ become the notes of a release, all of them, and the hooks for commits fetch nothing."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[3]
NEWS = sorted(file for file in (ROOT / "changes").glob("*.md") if file.name != "README.md")
CHANGELOG = (ROOT / "CHANGELOG.md").read_text()


def _one_line(text: str) -> str:
    return " ".join(text.split())


def test_the_notes_of_the_next_release_hold_every_piece_of_news() -> None:
    command = [
        str(Path(sys.executable).with_name("towncrier")),
        "build",
        "--draft",
        "--version",
        "9.9.9",
        "--date",
        "2030-01-01",
    ]
    notes = _one_line(subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout)

    assert "## 9.9.9 (2030-01-01)" in notes
    assert [file.name for file in NEWS if f"- {_one_line(file.read_text())}" not in notes] == []


@pytest.mark.parametrize("file", NEWS, ids=lambda file: file.name)
def test_a_piece_of_news_is_a_sentence_or_three_of_a_known_kind(file: Path) -> None:
    text = _one_line(file.read_text())

    assert re.fullmatch(r"[a-z0-9-]+\.(added|changed|fixed)\.md", file.name)
    assert text.endswith((".", "`.", ").")), "a piece of news ends with a full stop"
    assert len(text) <= 600, "news are short; the rest belongs into a guide"


@pytest.mark.parametrize("file", NEWS, ids=lambda file: file.name)
def test_before_the_first_release_nothing_is_changed_or_fixed(file: Path) -> None:
    released = re.search(r"^## \d", CHANGELOG, re.MULTILINE) is not None

    assert released or file.name.endswith(".added.md"), (
        "nobody had the old behaviour: fold it into the news of its feature"
    )


def test_hooks_for_commits_are_of_this_repository_alone() -> None:
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"]

    assert [repository["repo"] for repository in hooks] == ["local"]
    assert {hook["language"] for repository in hooks for hook in repository["hooks"]} == {"system"}
