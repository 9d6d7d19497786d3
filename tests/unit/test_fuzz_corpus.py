"""Whatever the fuzzer found worth keeping, and what it began with: read, or refused by the error made for it."""

import pytest

from testing.fuzz.corpus import keep, kept
from testing.fuzz.targets import SEEDS, TARGETS


@pytest.mark.parametrize("name", TARGETS)
def test_everything_that_was_kept_is_read_or_refused(name):
    inputs = kept(name)

    assert len(inputs) >= len(SEEDS[name]) > 0
    for one in inputs:
        TARGETS[name](one)


def test_a_corpus_is_kept_as_it_was(tmp_path):
    found = [b"\x00\n ", b"gpu-[0-3]", "ü".encode(), b"x" * 3000]

    keep("hostlist", [*found, *SEEDS["hostlist"], b""], tmp_path)

    assert sorted(kept("hostlist", tmp_path)) == sorted([*found, *SEEDS["hostlist"]])


def test_a_target_that_falls_over_is_noticed(monkeypatch):
    monkeypatch.setattr("testing.fuzz.targets.compress", lambda names: "gpu-0")

    with pytest.raises(AssertionError):
        TARGETS["hostlist"](b"gpu-[0-3]")
