"""One script, played to the simulated and to the real slurmctld: what can be seen must agree after every step."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol

import pytest
from rest_rig import OURS, client_of

from simulation.slurmctld import Slurmctld
from simulation.slurmrest import SimulatedRest
from simulation.weather import Weather
from slurm_operator.slurmrest.errors import SlurmFailure
from testing.boxed.conf import LINES
from testing.daemons import SlurmDaemons

WORKERS = ("w-0", "w-1")
URGENT = "PartitionName=urgent Nodes=ALL PriorityTier=10 State=UP MaxTime=UNLIMITED"
PREEMPTS = {"PreemptType": "preempt/partition_prio", "PreemptMode": "REQUEUE"}
DRAIN = {"state": ["DRAIN"], "reason": OURS}


class Cluster(Protocol):
    """What the script needs of either. `client` is the operator's way to it."""

    client: Any

    def submit(self, node: str) -> int: ...
    def submit_urgent(self, node: str) -> int: ...
    def submit_array(self, node: str) -> int: ...
    def suspend(self, job: int) -> None: ...
    def wake(self, job: int) -> None: ...
    def cancel(self, job: int) -> None: ...
    def restart(self) -> None: ...
    def hang(self) -> None: ...
    def wake_up(self) -> None: ...
    def lose_state(self) -> None: ...


class RealCluster:
    def __init__(self, slurm: SlurmDaemons) -> None:
        self.slurm = slurm
        self.client = client_of(slurm, deadline_s=4.0)

    def submit(self, node: str) -> int:
        return self.slurm.submit("sleep 600", f"--nodelist={node}", "--mem=10")

    def submit_urgent(self, node: str) -> int:
        where = f"--nodelist={node}"
        return self.slurm.submit("sleep 600", where, "--mem=10", "--partition=urgent", "--exclusive")

    def submit_array(self, node: str) -> int:
        return self.slurm.submit("sleep 600", "--array=0-1", f"--nodelist={node}", "--mem=10")

    def suspend(self, job: int) -> None:
        self.slurm.run("scontrol", "suspend", str(job))

    def wake(self, job: int) -> None:
        self.slurm.run("scontrol", "resume", str(job))

    def cancel(self, job: int) -> None:
        self.slurm.run("scancel", str(job))

    def restart(self) -> None:
        self.slurm.slurmctld.restart()

    def hang(self) -> None:
        self.slurm.slurmctld.pause()

    def wake_up(self) -> None:
        self.slurm.slurmctld.resume()

    def lose_state(self) -> None:
        self.slurm.slurmctld.stop()
        self.slurm.head.box.run("sh", "-c", "rm -rf /var/spool/slurmctld/*")
        self.slurm.start()


class ImaginedCluster:
    """Its clock runs ahead by a second with every look, so that what takes time has happened."""

    def __init__(self) -> None:
        weather = Weather(seed=1)
        self.ctld = Slurmctld(weather, datetime.now(UTC), suspended_reads_idle=False)
        self.client = SimulatedRest(self.ctld, weather, lambda *_: None, lambda: None)
        for number, name in enumerate(WORKERS):
            self.ctld.register(name, f"uid-{number}", f"10.0.0.{number}", 8, ("all",))

    def pass_time(self) -> None:
        self.ctld.pass_time(self.ctld.now + timedelta(seconds=1), {"uid-0", "uid-1"})

    def submit(self, node: str) -> int:
        return self.ctld.submit(3600, required=(node,)).job_id

    def submit_urgent(self, node: str) -> int:
        return self.ctld.submit(3600, required=(node,), priority=1, is_exclusive=True).job_id

    def submit_array(self, node: str) -> int:
        head = self.ctld.made + 1
        for task in (1, 0):
            self.ctld.submit(3600, required=(node,), array_job_id=head, array_task_id=task)
        return head

    def suspend(self, job: int) -> None:
        self.ctld.suspend(self.ctld.jobs[job])

    def wake(self, job: int) -> None:
        self.ctld.wake(self.ctld.jobs[job])

    def cancel(self, job: int) -> None:
        self.ctld.cancel(self.ctld.jobs[job])

    def restart(self) -> None:
        """It keeps what it knew."""

    def hang(self) -> None:
        self.ctld.is_hung = True

    def wake_up(self) -> None:
        self.ctld.is_hung = False
        for effect in self.client.late:
            effect()
        self.client.late.clear()

    def lose_state(self) -> None:
        self.ctld.lose_state()


@dataclass
class Play:
    """One cluster, the jobs of the script in their order, its array, and the answer to the last write."""

    cluster: Cluster
    jobs: list[int] = field(default_factory=list)
    array: int = 0
    answer: str = ""

    async def facts(self) -> dict[str, Any]:
        """What anybody can see; how long things take, and numbers that Slurm gives, are left out."""
        nodes, jobs = await self.cluster.client.read.nodes(), await self.cluster.client.read.jobs()
        by_job = {job.job_id: job for job in jobs.records.values()}
        return {
            "answer": self.answer,
            "nodes": {name: _shown(node) for name, node in sorted(nodes.records.items())},
            "jobs": [_words(by_job.get(job)) for job in self.jobs],
            "tasks": {job.address: _words(job) for job in by_job.values() if job.array_task_id is not None},
        }


def _shown(node: Any) -> tuple[str, bool, str]:
    base = "busy" if node.state.is_busy else str(node.state.base)
    return base, node.state.is_drain, node.reason if node.state.is_drain else ""


def _words(job: Any) -> tuple[str, tuple[str, ...]] | None:
    """Its state and where it is; None when it has ended or is forgotten."""
    return None if job is None else (str(job.state.base), job.own_nodes if job.state.holds_node else ())


Step = Callable[[Play], Awaitable[None]]


def at_once(deed: Callable[[Play], Any]) -> Step:
    async def step(play: Play) -> None:
        play.answer = ""
        await asyncio.to_thread(deed, play)

    return step


def asked(call: Callable[[Any, Play], Awaitable[None]]) -> Step:
    """A write of the operator, and the kind of its answer."""

    async def step(play: Play) -> None:
        try:
            await call(play.cluster.client.send, play)
            play.answer = "done"
        except SlurmFailure as failure:
            play.answer = type(failure).__name__

    return step


def drain(*nodes: str, reason: str = OURS) -> Step:
    return asked(lambda send, play: send.update_nodes("drain", nodes, DRAIN | {"reason": reason}))


def submitted(node: str) -> Step:
    return at_once(lambda play: play.jobs.append(play.cluster.submit(node)))


def urgent(node: str) -> Step:
    return at_once(lambda play: play.jobs.append(play.cluster.submit_urgent(node)))


def array(node: str) -> Step:
    def submit(play: Play) -> None:
        play.array = play.cluster.submit_array(node)

    return at_once(submit)


SCRIPT: list[tuple[str, Step]] = [
    ("a job starts", submitted("w-0")),
    ("its node is drained", drain("w-0")),
    ("and once more: the reason is replaced", drain("w-0", reason="slurm-operator: again")),
    ("a node with a job cannot be deleted", asked(lambda send, play: send.delete_nodes(["w-0"]))),
    ("the job is suspended", at_once(lambda play: play.cluster.suspend(play.jobs[0]))),
    ("it goes on", at_once(lambda play: play.cluster.wake(play.jobs[0]))),
    (
        "it is requeued, and its node takes no jobs",
        asked(lambda send, play: send.requeue_job(str(play.jobs[0]))),
    ),
    ("it is cancelled", at_once(lambda play: play.cluster.cancel(play.jobs[0]))),
    ("the idle node can be deleted", asked(lambda send, play: send.delete_nodes(["w-0"]))),
    ("and then it is unknown", drain("w-0")),
    ("one unknown name among others, and nobody is drained", drain("w-1", "w-0")),
    ("a job starts on the other node", submitted("w-1")),
    ("slurmctld restarts and remembers", at_once(lambda play: play.cluster.restart())),
    ("an urgent job preempts it, and it waits in the queue", urgent("w-1")),
    (
        "a node with an urgent job cannot be deleted either",
        asked(lambda send, play: send.delete_nodes(["w-1"])),
    ),
    (
        "the urgent one is cancelled, and the other starts again",
        at_once(lambda play: play.cluster.cancel(play.jobs[2])),
    ),
    ("slurmctld hangs", at_once(lambda play: play.cluster.hang())),
    ("a drain gets no answer", drain("w-1")),
    ("slurmctld wakes up and carries it out", at_once(lambda play: play.cluster.wake_up())),
    (
        "the drain is lifted",
        asked(lambda send, play: send.update_nodes("resume", ["w-1"], {"state": ["UNDRAIN"]})),
    ),
    ("the other job is cancelled too", at_once(lambda play: play.cluster.cancel(play.jobs[1]))),
    ("the tasks of an array start", array("w-1")),
    ("one is requeued, and starts again", asked(lambda send, play: send.requeue_job(f"{play.array}_1"))),
    ("the other is cancelled", asked(lambda send, play: send.cancel_job(f"{play.array}_0"))),
    ("and then the one", asked(lambda send, play: send.cancel_job(f"{play.array}_1"))),
    ("another array starts", array("w-1")),
    ("by its id all of it is requeued", asked(lambda send, play: send.requeue_job(str(play.array)))),
    ("and all of it is cancelled", asked(lambda send, play: send.cancel_job(str(play.array)))),
    ("a job starts again", submitted("w-1")),
    ("slurmctld loses its state", at_once(lambda play: play.cluster.lose_state())),
]


@pytest.mark.timeout(600)
async def test_the_simulated_slurmctld_does_what_the_real_one_does(
    new_slurm: Callable[..., SlurmDaemons],
) -> None:
    slurm = new_slurm(settings=PREEMPTS, lines=(*LINES, URGENT))
    slurm.reset(*WORKERS)
    imagined, real = Play(ImaginedCluster()), Play(RealCluster(slurm))
    for what, step in SCRIPT:
        await step(imagined)
        await step(real)
        if what != "slurmctld hangs" and not what.startswith("a drain gets no"):
            await _agree(what, imagined, real)
        assert imagined.answer == real.answer, what


async def _agree(what: str, imagined: Play, real: Play) -> None:
    """Soon both show the same; what takes time in one has happened at once in the other."""
    expected, found = None, None
    for _ in range(60):
        imagined.cluster.pass_time()
        try:
            expected, found = await imagined.facts(), await real.facts()
        except SlurmFailure:
            found = None
        if expected == found:
            return
        await asyncio.sleep(0.7)
    assert found == expected, what
