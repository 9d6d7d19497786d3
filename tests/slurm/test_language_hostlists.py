"""Our hostlists against Slurm's own, on a few hundred generated ones. Only `scontrol` runs; no daemon is needed."""

import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from parser_box import parser_box

from slurm_operator.slurm.hostlist import HostlistError, compress, expand
from testing.boxed.box import Box

EACH_LINE = 'while read -r line; do scontrol show "$0" "$line" 2>/dev/null | tr "\\n" " "; echo; done'


@pytest.fixture(scope="module")
def box(rootfs: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Box]:
    with parser_box(rootfs, tmp_path_factory.mktemp("hostlists")) as box:
        yield box


def shown(box: Box, what: str, expressions: list[str]) -> list[list[str]]:
    """What `scontrol show hostnames`, or another word, prints for each line."""
    output = box.run("sh", "-c", EACH_LINE, what, stdin="".join(f"{line}\n" for line in expressions)).stdout
    return [line.split() for line in output.splitlines()]


def names(draw: random.Random) -> list[str]:
    prefix = draw.choice(["a", "gpu-", "n1-ib", "rack2node", "x-"])
    width = draw.choice([0, 0, 0, 2, 3])
    start = draw.choice([0, 1, 7, 95, 998, 10**17 - 3, 2**63])
    count = draw.randint(1, 12)
    numbers = [start + draw.randint(0, 14) for _ in range(count)]
    plain = [prefix.rstrip("-")] if draw.random() < 0.2 else []
    return [f"{prefix}{number:0{width}d}" for number in numbers] + plain


def expression(draw: random.Random) -> str:
    def bracket() -> str:
        parts = []
        for _ in range(draw.randint(1, 3)):
            first = draw.randint(0, 120)
            text = f"{first:0{draw.choice([0, 0, 2, 4])}d}"
            parts.append(text if draw.random() < 0.4 else f"{text}-{first + draw.randint(0, 9)}")
        return f"[{','.join(parts)}]"

    def term() -> str:
        return "".join(draw.choice(["a", "b-", "node"]) + draw.choice(["", bracket(), "7"]) for _ in range(2))

    return ",".join(term() for _ in range(draw.randint(1, 4)))


def test_expansions_agree_with_scontrol(box):
    draw = random.Random(26)
    expressions = [expression(draw) for _ in range(250)]

    expected = shown(box, "hostnames", expressions)

    # scontrol lists the names of several brackets in an order of its own.
    assert [sorted(expand(text)) for text in expressions] == [sorted(names) for names in expected]


def test_names_survive_our_compression_and_slurms_expansion(box):
    draw = random.Random(5)
    lists = [names(draw) for _ in range(150)]

    expected = shown(box, "hostnames", [compress(some) for some in lists])

    assert [sorted(some) for some in expected] == [sorted(set(some)) for some in lists]


def test_names_survive_slurms_compression_and_our_expansion(box):
    draw = random.Random(7)
    lists = [sorted(set(names(draw))) for _ in range(150)]

    compressed = shown(box, "hostlist", [",".join(some) for some in lists])

    assert [sorted(expand(text)) for (text,) in compressed] == lists


BROKEN = [
    "a[1-3",
    "a[3-1]",
    "a[]",
    "a[-3]",
    "a[x]",
    "a[1-2-3]",
    "a[1,]",
    "a[0-99999999]",
    "a[1-65537]",
    "a[0x1-0x3]",
]


def test_what_scontrol_refuses_we_refuse(box):
    said = shown(box, "hostnames", BROKEN)

    assert all(names[:2] in ([], ["Invalid", "hostlist:"]) for names in said)
    for text in BROKEN:
        with pytest.raises(HostlistError):
            expand(text)


def test_scontrol_still_changes_numbers_that_it_cannot_hold(box):
    too_large = ["a18446744073709551616", "a[99999999999999999999]"]

    assert shown(box, "hostnames", too_large) == [["a18446744073709551615"], ["a18446744073709551615"]]
    assert shown(box, "hostnames", ["a18446744073709551614"]) == [expand("a18446744073709551614")]
    for text in too_large:
        with pytest.raises(HostlistError, match="too large"):
            expand(text)
