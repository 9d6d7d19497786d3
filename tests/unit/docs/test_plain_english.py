"""Words that a native reader stumbles over are in no message, comment, test or page."""

import re
import subprocess
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
}
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
