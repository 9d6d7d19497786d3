"""Text of others is shown and never obeyed; what is plain stays as it is."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm_operator import wire
from slurm_operator.printable import MOST_MARKS, cut, printable, printable_json, printable_lines
from testing.hostile import HOSTILE, obeyed

# Text with far more of what matters here than ordinary text has.
TEXTS = st.text(
    st.one_of(st.characters(), st.sampled_from(sorted(set("".join(HOSTILE.values()))))), max_size=60
)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31m", r"\x1b[31m"),
        ("\x9b", r"\x9b"),
        ("a\nb\tc\r", r"a\nb\tc\r"),
        ("\u202e", r"\u202e"),
        ("\U000e0041", r"\U000e0041"),
        ("\ud800", r"\ud800"),
        ("a\ufe0f", r"a\ufe0f"),
        ("e" + "\u0301" * (MOST_MARKS + 1), "e" + "\u0301" * MOST_MARKS + r"\u0301"),
        ("\u0301", r"\u0301"),
    ],
)
def test_what_a_terminal_would_obey_is_written_out(text, shown):
    assert printable(text) == shown


@pytest.mark.parametrize(
    "text",
    ["", "gpu-[0-7]: 100 % → done", r"C:\x1b", "Grüße, Čeština, Việt", "日本語　です", "עברית", "हिन्दी", "e\u0301", "a\u00a0b", "🚀", "✓"],
)  # fmt: skip
def test_what_is_plain_stays_as_it_is(text):
    assert printable(text) == printable_lines(text) == printable_json(text) == text


@given(TEXTS)
def test_nothing_is_left_to_obey_and_once_is_enough(text):
    shown = printable(text)

    assert obeyed(shown, but="") == ""
    assert printable(shown) == shown
    assert obeyed(printable_lines(text), but="\n\t") == ""
    assert printable_lines(text).count("\n") == text.count("\n")
    shown.encode()  # Whatever it was, it can be written to a file.


@given(TEXTS)
def test_the_visible_letters_of_a_text_are_all_still_there(text):
    rest = iter(printable(text))

    assert all(char in rest for char in text if char.isalnum() and char.isascii())


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=60))
def test_json_means_the_same_and_has_nothing_to_obey(text):
    for json in (wire.encode([text]).decode(), wire.pretty({"a": [text]})):
        shown = printable_json(json)

        assert obeyed(shown) == ""
        assert wire.decode_any(shown) == wire.decode_any(json)


@pytest.mark.parametrize("text", [text for name, text in HOSTILE.items() if name != "half a character"])
def test_json_of_hostile_texts_means_the_same(text):
    shown = printable_json(wire.encode(text).decode())

    assert obeyed(shown) == ""
    assert wire.decode_any(shown) == text


def test_what_is_too_long_ends_in_an_ellipsis():
    assert cut("abcdef", 6) == "abcdef"
    assert cut("abcdefg", 6) == "abcde…"
