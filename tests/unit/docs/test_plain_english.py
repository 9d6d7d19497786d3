"""Words that a native reader stumbles over are in no message, comment, test or page."""

import ast
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
# The word, and what to say instead.
OUT = {
    r"mend(s|ed|ing)?": "fix, repair",
    r"anew": "again",
    r"as (it|they) should be": "healthy, in order",
    r"by (itself|themselves)": "automatically, on its own, or nothing",
    r"in vain": "without effect, or what happened instead",
    r"lets? go of": "release",
    r"a human's word": "a manual drain",
    r"(the|a|its|their|our|this|each|every|any|of) former": "previous",  # Not the names in code.
    r"operators? before us": "the Slinky operator, or another one",
    r"(is|are|as|too|very) dear": "expensive",
    r"nobody looks at the": "it is not monitored",
    r"it is another case": "its state has changed",
}
# What users read says that these are created, started, removed or deleted.
THINGS = r"workers?|pods?|namespaces?|nodes?|records?|claims?|nodesets?|partitions?|slurmctld|replacements?"
COME_AND_GO = re.compile(
    rf"\b(?:{THINGS})(?: that)? (?:comes?|goes|came|go)\b"
    r"(?! (?:on|ahead|through|by|as|up|down|into|to|from|out|first)\b)",
    re.IGNORECASE,
)
PAGES_FOR_USERS = (
    "README.md",
    "docs/concepts",
    "docs/guides",
    "docs/reference",
    "docs/tutorial",
    "docs/*.md",
)
ANY = re.compile(rf"\b(?:{'|'.join(OUT)})\b", re.IGNORECASE)
SPOKEN = {".py", ".md", ".md.jinja", ".sh", ".c", ".h", ".yaml", ".yml", ".tpl", ".toml", ".txt", ""}


def words_that_are_out(text: str) -> list[str]:
    """Each with its line, and what to say instead."""
    flat = re.sub(r"\s+(#|//|\*|--)?\s*", " ", text)
    found = []
    for match in ANY.finditer(flat):
        [instead] = [say for word, say in OUT.items() if re.fullmatch(word, match.group(), re.IGNORECASE)]
        found.append(f"...{flat[max(0, match.start() - 40) : match.end() + 20]}...: say {instead}")
    return found


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("The key is made anew.", 1),
        ("# It ends by\n    # itself.", 1),
        ("Nothing is changed until the spec is Mended.", 1),
        ("The former one is kept; former = keys[1:]", 1),
        ("To be woken is dear.", 1),
        ("A recommended amendment; by its elf.", 0),
    ],
)
def test_a_word_is_found_also_across_lines(text, count):
    assert len(words_that_are_out(text)) == count


def test_words_that_are_out_stand_nowhere():
    tracked = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    files = [ROOT / name for name in tracked.split("\0") if name]
    assert len(files) > 500
    found = {
        str(path.relative_to(ROOT)): words
        for path in files
        if path != Path(__file__) and path.suffix in SPOKEN and path.name != "LICENSE" and path.is_file()
        if (words := words_that_are_out(path.read_text(errors="replace")))
    }

    assert found == {}


def strings(source: str) -> Iterator[str]:
    """What the program may say: string constants, the pieces of f-strings joined, without docstrings."""
    tree = ast.parse(source)
    silent = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            silent |= {id(value) for value in node.values}
            yield "".join(value.value if isinstance(value, ast.Constant) else "{}" for value in node.values)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in silent:
            yield node.value


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("Waits until the worker goes.", 1),
        ("A pod\ncomes in its place; the record that came later.", 2),
        ("The node goes on, and the pod goes ahead of others.", 0),
    ],
)
def test_things_that_come_and_go_are_found(text, count):
    assert len(COME_AND_GO.findall(" ".join(text.split()))) == count


def test_strings_are_found_as_a_user_would_read_them():
    source = '"""The pod goes."""\nx = f"worker {name} " "goes"\ny = "a pod"\n'

    assert list(strings(source)) == ["worker {} goes", "a pod"]


def test_nothing_that_users_read_comes_or_goes():
    pages = [path for place in PAGES_FOR_USERS for path in _pages(place)]
    programs = list((ROOT / "src").rglob("*.py"))
    assert len(pages) > 60
    assert len(programs) > 500
    found = [
        f"{path.relative_to(ROOT)}: ...{match.group()}..."
        for path, texts in [
            *((page, [page.read_text()]) for page in pages),
            *((program, list(strings(program.read_text()))) for program in programs),
        ]
        for text in texts
        for match in COME_AND_GO.finditer(" ".join(text.split()))
    ]

    assert found == []


def _pages(place: str) -> list[Path]:
    return sorted((ROOT / place).rglob("*.md")) if (ROOT / place).is_dir() else sorted(ROOT.glob(place))
