"""One moment of `top`."""

from datetime import timedelta

from slurm_operator import wire
from slurm_operator.cli.kubectl.screen.frames import frame, screen
from slurm_operator.slurm.node import Vitals
from slurm_operator.slurm.snapshot import Unreachable
from testing.texts import assert_text
from testing.workers import NOW, job, slurm, slurm_node, worker


def crowded():
    pods = [worker(n) for n in range(4)]
    load = {"cpus": 8, "real_memory_mb": 64 * 1024, "vitals": Vitals(cpu_load=3.5)}
    nodes = [
        slurm_node(pods[0], "IDLE", **load),
        slurm_node(pods[1], "MIXED", **load, allocated_cpus=4, allocated_memory_mb=2048, gres="gpu:2", gres_used="gpu:1"),
        slurm_node(pods[2], "MIXED", "DRAIN", **load),
        slurm_node(pods[3], "DOWN", "NOT_RESPONDING"),
    ]  # fmt: skip
    jobs = [
        job(9, words=("PENDING",), state_reason="Resources", name="later"),
        job(7, "gpu-1", "gpu-2", minutes=None, name="endless", partition="all"),
        job(8, "gpu-1", minutes=90, name="short", partition="all"),
    ]
    return slurm(*nodes, jobs=jobs)


def test_trouble_stands_first_and_running_jobs_before_waiting_ones():
    shown = frame("ns/demo", crowded(), {"gpu-1": "machine-1"}, NOW + timedelta(minutes=10))

    assert_text("top/crowded.txt", screen(shown).plain)
    assert [row.name for row in shown.nodes] == ["gpu-3", "gpu-2", "gpu-1", "gpu-0"]


def test_a_small_terminal_is_told_how_much_it_does_not_show():
    text = screen(frame("ns/demo", crowded(), {}, NOW), height=15).plain

    assert text.count("\n") <= 15
    assert "… and 2 more" in text
    assert "… and 1 more" in text


def test_a_slurm_that_does_not_answer_is_said_so():
    shown = frame("ns/demo", Unreachable(since=NOW, why="no connection"), {}, NOW)

    assert screen(shown).plain == "ns/demo   12:00:00 UTC\nSlurm cannot be asked: no connection\n"
    assert wire.decode_any(wire.encode(shown))["unreachable"] == "no connection"
