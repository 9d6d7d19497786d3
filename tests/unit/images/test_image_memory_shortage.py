"""Which processes of a worker are spared when memory is short."""

import os
from pathlib import Path

import pytest

from images.entry.memory_shortage import spare_slurmd


def process(directory: Path, pid: int, comm: str) -> Path:
    (directory / str(pid)).mkdir()
    (directory / str(pid) / "comm").write_text(f"{comm}\n")
    (directory / str(pid) / "oom_score_adj").write_text("726\n")
    return directory / str(pid) / "oom_score_adj"


@pytest.mark.parametrize(
    ("parent", "spared"),
    [
        pytest.param("tini", "-999", id="the init of our image"),
        pytest.param("systemd", "726\n", id="the init of the node: not ours"),
        pytest.param("bash", "726\n", id="somebody who tries it out"),
    ],
)
def test_slurmd_and_the_init_of_its_container_are_spared(tmp_path, parent, spared):
    own, other = process(tmp_path, os.getpid(), "entry"), process(tmp_path, os.getppid(), parent)

    spare_slurmd(tmp_path)

    assert own.read_text() == "-999"
    assert other.read_text() == spared


def test_without_the_right_to_do_so_nothing_changes_and_slurmd_starts(tmp_path):
    spare_slurmd(tmp_path)

    assert list(tmp_path.iterdir()) == []
