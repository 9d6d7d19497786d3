"""The ledger of a cluster, and processes told apart for certain."""

import os
import subprocess
from pathlib import Path

import pytest

from slurm_local.machine.cell import Birth, Cell, born
from slurm_local.state import Ledger, Part, State

STATE = State(name="demo", first=Birth(pid=1, ticks=2), link_number=3)


def test_what_was_written_is_read_back(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "demo")
    part = Part(process=Birth(pid=4, ticks=5), argv=["etcd"], log="/log")

    ledger.write(STATE)
    ledger.add_part("etcd", part)
    ledger.change(ready=True)

    state = ledger.read()
    assert state is not None
    assert (state.parts, state.ready, state.url) == ({"etcd": part}, True, "https://198.19.3.2:6443")


def test_a_cluster_that_does_not_exist_has_no_state(tmp_path: Path) -> None:
    assert Ledger(tmp_path / "nowhere").read() is None


def test_a_process_is_itself_by_the_moment_it_began() -> None:
    me = born(os.getpid())

    assert me is not None
    assert Cell(Birth(pid=os.getpid(), ticks=me)).is_alive
    assert not Cell(Birth(pid=os.getpid(), ticks=me + 1)).is_alive, "an id that was used again"


def test_a_process_that_ended_is_not_alive_even_before_it_is_reaped() -> None:
    with subprocess.Popen(["true"], stdout=subprocess.PIPE) as process:
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)

        assert born(process.pid) is None


@pytest.mark.parametrize("name", ["plain", "with) paren", "with space"])
def test_the_name_of_a_program_does_not_confuse_us(tmp_path: Path, name: str) -> None:
    (tmp_path / "7").mkdir()
    fields = " ".join(str(number) for number in range(1, 40))
    (tmp_path / "7" / "stat").write_text(f"7 ({name}) S {fields}\n")

    assert born(7, tmp_path) == 19
