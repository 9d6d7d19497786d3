"""Daemons that die or hang."""

import os
import random
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress

from chaos.impact import NOBODY, Blow, Missed
from chaos.processes import OPERATOR as OPERATOR
from chaos.processes import WRITER as WRITER
from chaos.stage import Stage
from slurm_local.errors import LocalError

Hit = Callable[[Stage, random.Random], Blow]

# Longer than slurmd is stopped for, so that its end meets a slurmd that answers.
_LONGER_S = 135
_STARTS_WITHIN_S = 15


def killed(program: str) -> Hit:
    return _signalled(program, signal.SIGKILL)


def stopped(program: str) -> Hit:
    """It hangs: its connections stay open, and nobody answers."""
    return _signalled(program, signal.SIGSTOP)


def woken(program: str) -> Callable[[Stage], None]:
    def repair(stage: Stage) -> None:
        with suppress(Missed):  # It has been replaced meanwhile.
            stage.processes.signal(program, signal.SIGCONT)

    return repair


def _signalled(program: str, number: signal.Signals) -> Hit:
    def hit(stage: Stage, chance: random.Random) -> Blow:
        stage.processes.signal(program, number)
        return NOBODY

    return hit


def killed_slurmctld(stage: Stage, chance: random.Random) -> Blow:
    """Once it has written down what it knows: a job that started since is forgotten by Slurm, and ended."""
    stage.wait_saved()
    stage.processes.signal("slurmctld", signal.SIGKILL)
    return NOBODY


def killed_slurmd(stage: Stage, chance: random.Random) -> Blow:
    """Its container ends, and its jobs with it."""
    worker = stage.one_worker(chance)
    pid = stage.processes.slurmd_of(worker)
    stage.excuse({worker}, f"slurmd of {worker} was killed")
    os.kill(pid, signal.SIGKILL)
    return NOBODY


def killed_supervised_slurmd(stage: Stage, chance: random.Random) -> Blow:
    """Its container goes on, where supervisord starts it again beside its jobs."""
    worker = stage.one_worker(chance)
    os.kill(stage.processes.slurmd_of(worker), signal.SIGKILL)
    return Blow(frozenset({worker}))


def stopped_slurmd(stage: Stage, chance: random.Random) -> Blow:
    """Under a job that runs for longer. Whoever kills slurmd for that kills the job."""
    stage.submit([_LONGER_S])
    job = stage.jobs[-1]
    end = time.monotonic() + _STARTS_WITHIN_S
    while job.node is None:
        if time.monotonic() > end:
            raise Missed("no worker took a long job")
        time.sleep(0.2)
    os.kill(stage.processes.slurmd_of(job.node), signal.SIGSTOP)
    return Blow(frozenset({job.node}))


def restarted_api_server(stage: Stage, chance: random.Random) -> Blow:
    stage.cluster.parts.restart("kube-apiserver")
    return NOBODY


def awaited_api_server(stage: Stage) -> None:
    """One that has ended while it started is started again, as a kubelet does with its own."""
    try:
        stage.cluster.parts.raise_if_dead("kube-apiserver")
    except LocalError as ended:
        print(ended, file=sys.stderr)
        stage.cluster.parts.restart("kube-apiserver")
    if not stage.cluster.caller.is_ready():
        raise Missed("the API server is not ready yet")
