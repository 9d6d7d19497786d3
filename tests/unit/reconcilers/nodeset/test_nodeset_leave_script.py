"""The shell script by which a worker leaves whose image lacks our helper: run by a real shell, with commands that answer as told."""

import os
import signal
import stat
import subprocess
from pathlib import Path

import pytest

from slurm_operator.reconcilers.nodeset.creation.prestop_script import LEAVE
from slurm_operator.slurm.reasons import OurReason

# Answers by its next line, an exit code and a text; the last one stays. scontrol has a list for each verb.
ANSWER = """\
#!/bin/sh
me=$(basename "$0") verb=
if [ "$me" = scontrol ]; then
  [ "$1" != --oneliner ] || shift
  verb=-$1
fi
echo "$me $*" >>"$PLACE/calls"
lines=$PLACE/$me$verb
read -r code text <"$lines"
[ "$(wc -l <"$lines")" -le 1 ] || sed -i 1d "$lines"
echo "$text" | sed '/^$/d'
exit "$code"
"""

# Does not sleep, and ends whoever comes for the tenth time: by then it would wait for ever.
SLEEP = """\
#!/bin/sh
echo "sleep $*" >>"$PLACE/calls"
[ "$(grep -c ^sleep "$PLACE/calls")" -lt 10 ] || kill -KILL $PPID
"""

# Each look at the clock is ten seconds after the one before.
DATE = """\
#!/bin/sh
now=$(($(cat "$PLACE/now") + 10))
echo $now | tee "$PLACE/now"
"""

IDLE = "0 NodeName=gpu-0 Arch=x86_64 State=IDLE+DYNAMIC_NORM ThreadsPerCore=1 Comment=DRAIN me"
DRAINED = "0 NodeName=gpu-0 State=IDLE+DRAIN+DYNAMIC_NORM ThreadsPerCore=1 Reason=disk is loud"
CLEANS_UP = "0 NodeName=gpu-0 State=IDLE+COMPLETING+DRAIN ThreadsPerCore=1"
UNKNOWN = "1 Node gpu-0 not found"
NO_ANSWER = "1 slurm_load_node error: Unable to contact slurm controller (connect failure)"
NO_JOBS, NO_JOB_LIST = "0", "1 slurm_load_jobs error: Unable to contact slurm controller"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "bin").mkdir()
    (tmp_path / "proc").mkdir()
    (tmp_path / "now").write_text("0\n")
    for name, text in {"squeue": ANSWER, "scontrol": ANSWER, "sleep": SLEEP, "date": DATE}.items():
        (tmp_path / "bin" / name).write_text(text)
        (tmp_path / "bin" / name).chmod(stat.S_IRWXU)
    return tmp_path


def runs(place: Path, pid: int, parent: int, line: str) -> None:
    there = place / "proc" / str(pid)
    there.mkdir()
    (there / "cmdline").write_text(line.replace(" ", "\0") if not line.startswith("slurmstepd: ") else line)
    (there / "stat").write_text(f"{pid} (a) b) S {parent} 1 1 0\n")


def leave(
    place: Path,
    *,
    show: list[str],
    squeue: list[str],
    update: str = "0",
    shell: str = "/bin/sh",
    leaves: bool = True,
) -> list[str]:
    """The commands it gave, in their order."""
    answers = {"scontrol-show": show, "squeue": squeue, "scontrol-update": [update], "scontrol-notify": ["0"]}  # fmt: skip
    for name, lines in answers.items():
        (place / name).write_text("".join(f"{line}\n" for line in lines))
    environment = {
        "PATH": f"{place / 'bin'}:{os.defpath}",
        "PLACE": str(place),
        "SLURMD_NODENAME": "gpu-0",
        "POD_UID": "4f1c-22",
    }
    script = LEAVE.replace("/proc/", f"{place}/proc/")
    done = subprocess.run([shell, "-c", script], env=environment, check=False, timeout=60)
    assert done.returncode == (0 if leaves else -signal.SIGKILL)
    return [line.split(" --")[0] for line in (place / "calls").read_text().splitlines()]


SHOW = "scontrol show node gpu-0"


def drains(calls: list[str]) -> list[str]:
    return [call for call in calls if call.startswith("scontrol update")]


@pytest.mark.parametrize("shell", ["/bin/sh", "bash"])
def test_an_idle_worker_drains_itself_and_leaves(place, shell):
    calls = leave(place, show=[IDLE, DRAINED], squeue=[NO_JOBS], shell=shell)

    reason = "slurm-operator: PodTerminating: the pod is asked to end (pod 4f1c-22)"
    assert calls == [SHOW, f"scontrol update nodename=gpu-0 state=drain reason={reason}", "squeue", SHOW]
    read = OurReason.read(reason)
    assert read is not None
    assert (read.cause, read.pod_uid) == ("PodTerminating", "4f1c-22")


def test_a_drain_that_stands_keeps_its_reason(place):
    assert drains(leave(place, show=[DRAINED], squeue=["0 7", NO_JOBS])) == []


@pytest.mark.parametrize("shell", ["/bin/sh", "bash"])
@pytest.mark.parametrize("state", ["DOWN+DYNAMIC_NORM", "DOWN*+DYNAMIC_NORM"])
def test_one_that_somebody_set_down_keeps_their_reason_and_leaves(place, state, shell):
    down = f"0 NodeName=gpu-0 State={state} ThreadsPerCore=1 Reason=bad fan, ask Ada"

    assert drains(leave(place, show=[down], squeue=["0 7", NO_JOBS], shell=shell)) == []


def test_one_that_is_powered_down_drains(place):
    down = "0 NodeName=gpu-0 State=IDLE+POWERING_DOWN+DYNAMIC_NORM ThreadsPerCore=1"

    assert len(drains(leave(place, show=[down, DRAINED], squeue=[NO_JOBS]))) == 1


def test_a_worker_that_somebody_resumes_meanwhile_drains_again(place):
    assert len(drains(leave(place, show=[DRAINED, IDLE, DRAINED], squeue=["0 7", NO_JOBS]))) == 1


def test_a_refused_drain_is_tried_again(place):
    calls = leave(place, show=[IDLE, IDLE, DRAINED], squeue=[NO_JOBS], update="1 busy")

    assert calls.count("sleep 2") == 2
    assert len(drains(calls)) == 2


def test_a_worker_waits_for_its_job_and_then_for_the_epilog(place):
    calls = leave(place, show=[DRAINED, DRAINED, CLEANS_UP, DRAINED], squeue=["0 7", NO_JOBS])

    assert [call.split(" node")[0].split(" gpu-0")[0] for call in calls] == [
        *("scontrol show", "squeue", "scontrol notify 7", "sleep 2"),
        *("scontrol show", "squeue", "scontrol show", "sleep 2"),
        *("scontrol show", "squeue", "scontrol show"),
    ]


def test_owners_are_told_once(place):
    calls = leave(place, show=[DRAINED], squeue=["0 7", "0 7", NO_JOBS])

    assert [call for call in calls if "notify" in call] == [
        "scontrol notify 7 gpu-0 is leaving the cluster; it waits for this job as long as it may. Please "
        "finish or requeue."
    ]


def test_it_asks_for_every_job_that_is_not_finished(place):
    leave(place, show=[DRAINED], squeue=[NO_JOBS])
    [asked] = [line for line in (place / "calls").read_text().splitlines() if line.startswith("squeue")]

    assert "--all" in asked
    assert "RUNNING,SUSPENDED,COMPLETING,CONFIGURING,STOPPED,SIGNALING,RESIZING,STAGE_OUT" in asked


def test_a_worker_that_slurm_forgot_leaves_when_no_step_is_left(place):
    invalid = "1 slurm_load_jobs error: Invalid node name specified"

    assert drains(leave(place, show=[UNKNOWN], squeue=[invalid])) == []


@pytest.mark.parametrize(
    ("show", "squeue", "processes"),
    [
        pytest.param(NO_ANSWER, NO_JOB_LIST, [(10, 1, "slurmstepd: [17.batch]"), (11, 10, "bash script")], id="silence, and a job runs"),
        pytest.param(NO_ANSWER, NO_JOB_LIST, [(10, 1, "slurmstepd: [17.extern]"), (11, 10, "sshd: ada")], id="silence, and somebody is logged in"),
        pytest.param(NO_ANSWER, NO_JOBS, [], id="no answer about the node: it may take jobs"),
        pytest.param(DRAINED, NO_JOBS, [(10, 1, "slurmstepd: [17.0]")], id="Slurm knows of no job, but a step is here"),
        pytest.param(UNKNOWN, NO_JOB_LIST, [(10, 1, "slurmstepd: [17.0]")], id="Slurm forgot the node, and a step is here"),
        pytest.param(DRAINED, "0 7", [], id="a job"),
        pytest.param(CLEANS_UP, NO_JOBS, [], id="an epilog"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("shell", ["/bin/sh", "bash"])
def test_a_worker_waits_as_long_as_a_job_may_run(place, show, squeue, processes, shell):
    for process in processes:
        runs(place, *process)

    leave(place, show=[show], squeue=[squeue], shell=shell, leaves=False)


@pytest.mark.parametrize(
    "processes",
    [
        pytest.param([], id="nothing runs"),
        pytest.param([(10, 1, "slurmstepd: [18.batch]")], id="a step that waits to tell slurmctld"),
        pytest.param([(10, 1, "slurmstepd: [19.extern]"), (11, 10, "sleep 100000000")], id="the place of a job"),
        pytest.param([(10, 1, "/usr/sbin/slurmstepd infinity"), (11, 1, "slurmd -Z")], id="what slurmd keeps for itself"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("shell", ["/bin/sh", "bash"])
def test_a_worker_without_work_leaves_when_slurm_has_been_silent_for_a_while(place, processes, shell):
    for process in processes:
        runs(place, *process)

    calls = leave(place, show=[NO_ANSWER], squeue=[NO_JOB_LIST], shell=shell)

    assert calls == [SHOW, "squeue", "sleep 2"] * 3 + [SHOW, "squeue"]


def test_slurm_that_comes_back_is_asked_as_ever(place):
    calls = leave(place, show=[NO_ANSWER, IDLE, DRAINED], squeue=[NO_JOB_LIST, NO_JOB_LIST, "0 7", NO_JOBS])

    assert len(drains(calls)) == 1
    assert calls[-1] == SHOW
