"""The cluster that is tormented: real machines, the operator in a pod, a Slurm cluster with accounting."""

import random
import shlex
import signal
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

from chaos import jobs
from chaos.impact import ALL, WORKERS, Missed
from chaos.jobs import Job
from chaos.kube import NAMESPACE, Kube, Named, Unwilling
from chaos.operators import Operator
from chaos.picture import picture
from chaos.processes import Processes, files_of, in_container_of, is_alive
from chaos.subjects import Subject
from slurm_local import stop
from slurm_local.cluster import Cluster
from slurm_local.errors import LocalError
from slurm_local.paths import Paths
from slurm_local.progress import PlainProgress
from slurm_local.start import Wanted, up
from slurm_operator.slurmrest.tokens import signed


class Stage:
    """What faults and runs work with. Workers are called cpu-0, cpu-1 and so on."""

    def __init__(self, cluster: Cluster, operator: Operator, subject: Subject) -> None:
        self.cluster, self.operator, self.subject = cluster, operator, subject
        self.kube = Kube(cluster, subject.worker_label)
        self.processes = Processes(cluster.name, operator.process)
        self.jobs: list[Job] = []
        self.undo: list[Callable[[], None]] = []
        self._count = 0

    # What it is made of

    @property
    def clock(self) -> Path:
        return self.cluster.directory / "clock"

    def set_up(self) -> None:
        self._make_state_volume()
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
        self.cluster.apply([namespace, *self.subject.surroundings(self.cluster, self._state)])
        self.wish()
        self.settle()
        self._end_slurmctld_in_peace()
        self.settle()

    def _end_slurmctld_in_peace(self) -> None:
        """Once. Until then it has no file of past usage, and after a kill it refuses to start without one."""
        old = self.processes.slurmctld()
        self.processes.signal("slurmctld", signal.SIGTERM)
        end = time.monotonic() + 60
        while (is_alive(old) or not self._state_files("assoc_usage")) and time.monotonic() < end:
            time.sleep(0.5)

    def wish(self) -> None:
        """Everything is in order. A changed label of the template stays: it is nobody's trouble."""
        for each in self.subject.objects(self.cluster):
            self.kube.apply(each)

    @property
    def _state(self) -> Path:
        return self.cluster.directory / "state"

    def _make_state_volume(self) -> None:
        """Among the cluster's own mounts, so that it ends with the cluster."""
        self._state.mkdir(exist_ok=True)
        self.cluster.state.cell.run(
            "mount", "-t", "tmpfs", "-o", "size=24m,mode=777", "chaos", str(self._state)
        )

    def _state_files(self, name: str) -> list[Path]:
        return list(self.cluster.state.cell.path(str(self._state)).rglob(name))

    def on_state_volume(self, script: str) -> None:
        self.cluster.state.cell.run("sh", "-c", f"cd {shlex.quote(str(self._state))}; {script}")

    # Slurm

    @property
    def _ledgers(self) -> Path:
        """Jobs run as anybody."""
        found = self.subject.ledgers(self.cluster)
        found.mkdir(mode=0o777, exist_ok=True)
        return found

    def client(self, *command: str) -> str:
        """What a Slurm client prints beside slurmctld."""
        try:
            return in_container_of(self.processes.slurmctld(), *command)
        except (LocalError, OSError) as error:
            raise Unwilling(str(error)) from error

    def submit(self, seconds: Sequence[int]) -> None:
        """More jobs, several as an array, if slurmctld takes them right now.

        It may do so though we never hear its answer, so their ledgers are watched in any case.
        """
        made = [jobs.new(self._ledgers, each) for each in seconds]
        self.jobs += made
        array = [f"--array=0-{len(made) - 1}"] if len(made) > 1 else []
        options = [
            "--no-requeue",
            "--cpus-per-task=1",
            "--mem=1",
            "--output=/dev/null",
            "--chdir=/tmp",
            *array,
        ]
        with suppress(Missed):
            self.client("sbatch", *options, f"--wrap={jobs.script(made)}")

    def busy(self) -> frozenset[str]:
        return jobs.busy(self.jobs)

    def excuse(self, workers: Collection[str], why: str) -> None:
        for job in self.jobs:
            if job.node in workers:
                job.excuses.append(why)

    def wait_saved(self) -> None:
        """Until slurmctld has written down every job that has started, and none is about to start.

        It writes every few seconds.
        """
        end = time.monotonic() + 8
        while time.monotonic() < end and (not self._is_saved() or self._may_start_one()):
            time.sleep(0.2)

    def _is_saved(self) -> bool:
        files = self._state_files("job_state")
        started = max((job.started_at for job in self.jobs), default=0.0)
        return bool(files) and files[0].stat().st_mtime > started + 1

    def _may_start_one(self) -> bool:
        try:
            return bool(self.client("squeue", "--noheader", "--states=PENDING", "--format=%i").strip())
        except Missed:
            return True  # Nobody can tell.

    def expired_token(self) -> str:
        """Signed with the right key, an hour ago."""
        key = (files_of(self.processes.of("slurmctld")[0]) / "etc/slurm/jwt.key").read_bytes()
        past = datetime.now(UTC) - timedelta(hours=1)
        return signed(key, user="slurm", now=past, lifetime=timedelta(minutes=5))

    def one_worker(self, chance: random.Random) -> str:
        return chance.choice(sorted(ALL))

    # Runs

    def count(self) -> int:
        """Another number each time."""
        self._count += 1
        return self._count

    def undo_all(self) -> None:
        while self.undo:
            with suppress(LocalError):  # Whom it was done to is gone.
                self.undo.pop()()

    def settle(self, deadline_s: float = 300) -> float:
        """Until everything is as the manifests say and no job runs any more; how long that took."""
        start = time.monotonic()
        while trouble := self.trouble():
            if time.monotonic() - start > deadline_s:
                raise TimeoutError(f"does not settle: {trouble}")
            time.sleep(0.7)
        return time.monotonic() - start

    def trouble(self) -> str:
        """What is not in order yet; empty when all is well. What was deleted is made again."""
        try:
            # All of them: any may be gone, and without some there is no slurmctld to ask.
            if lacks := [lack for each in self.subject.watched if (lack := self._lack(each))]:
                return lacks[0]
            shown = self.client("sh", "-c", "sinfo -h -N -o '%N %T'; squeue -h -o 'job %i %T'").splitlines()
            if strangers := self._strangers(shown):
                self._send_away(strangers)
                return f"{sorted(strangers)} leave, so that the next run finds {sorted(ALL)}"
        except Missed as error:
            return f"cannot look: {error}"
        if sorted(shown) != [f"{worker} idle" for worker in sorted(ALL)]:
            self._cancel_dead()
            return f"Slurm has {shown}"
        beating = [job.number for job in self.jobs if job.is_beating()]
        return f"jobs run: {beating}" if beating else ""

    def _strangers(self, shown: list[str]) -> set[str]:
        """Idle workers with other numbers: a NodeSet that is scaled in keeps whoever has a job then."""
        idle = {line.removesuffix(" idle") for line in shown}
        is_calm = len(idle) == WORKERS and idle == set(self.kube.workers())
        return idle - ALL if is_calm else set()

    def _send_away(self, strangers: set[str]) -> None:
        """As nobody has a job, those with the highest numbers leave first."""
        self.kube.patch(self.subject.scaled(WORKERS - len(strangers)))
        end = time.monotonic() + 60
        while strangers & set(self.kube.workers()) and time.monotonic() < end:
            time.sleep(0.7)
        self.wish()

    def _cancel_dead(self) -> None:
        """Slurm may go on counting jobs whose processes are gone. Their fate is sealed."""
        dead = [str(job.number) for job in self.jobs if job.node is not None and not job.is_beating()]
        if dead:
            with suppress(Missed):
                self.client("scancel", *dead)

    def _lack(self, of: Named) -> str:
        try:
            return self.subject.lack(self.kube, of, self.kube.get(of))
        except Unwilling as error:
            if "404" in str(error):
                self.wish()
            raise

    def picture(self) -> str:
        where = (self.operator.namespace, self.operator.deployment)
        return picture(self.cluster, self.subject, where)


@contextmanager
def stage(name: str, operator: Operator, subject: Subject) -> Iterator[Stage]:
    """A cluster of its own, from nothing to nothing."""
    paths, progress = Paths.of(), PlainProgress()
    archives = tuple(archive(paths, progress) for archive in subject.archives)
    try:
        cluster, _ = up(Wanted(name, subject.machines, archives=archives), paths, progress)
        made = Stage(cluster, operator, subject)
        operator.install(cluster, subject.kinds, made.clock, progress)
        made.set_up()
        yield made
    finally:
        stop.down(name, paths, progress)
