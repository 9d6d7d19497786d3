"""Real slurmctld, slurmd, slurmdbd, MariaDB and slurmrestd on this machine, without Kubernetes.

What Slurm does in pods, it does here: every worker has its own network address, host name, processes and
files, registers as a dynamic node, and takes its configuration from slurmctld. The machine reaches slurmrestd
through one link; nothing else leaves the boxes. See `boxed/box.py` for how everything ends.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import jwt

from slurm_local.machine.cell import wait_until
from testing.boxed import conf
from testing.boxed.box import Box, box_in
from testing.boxed.daemon import Daemon
from testing.boxed.head import TESTER, Head
from testing.boxed.reset import reset
from testing.boxed.series import has_http


@dataclass(frozen=True)
class Worker:
    """One slurmd in a box of its own, as it would be in a pod."""

    name: str
    address: str
    box: Box
    slurmd: Daemon

    def close(self) -> None:
        """The pod is gone: slurmd and its jobs end at once, and nobody tells slurmctld."""
        self.box.close()
        self.slurmd.close()


class SlurmDaemons:
    """A Slurm cluster in boxes, from `start` to `close`; or `with SlurmDaemons(rootfs, directory) as slurm`.

    `directory` keeps the logs. `settings` and `lines` are slurm.conf's, see `write_config`. `beside` starts what
    runs beside the daemons of a box. With `confined` all daemons but slurmd have no capabilities.
    """

    def __init__(
        self,
        rootfs: Path,
        directory: Path,
        *,
        accounting: bool = False,
        confined: bool = False,
        settings: Mapping[str, str] | None = None,
        lines: Sequence[str] = conf.LINES,
        beside: Callable[[Box], None] = lambda box: None,
    ) -> None:
        self.directory = directory
        self._beside = beside
        self.accounting = accounting
        self.workers: dict[str, Worker] = {}
        self.rootfs = rootfs
        self.head = Head(rootfs, directory, accounting=accounting, confined=confined)
        self.slurmctld = self.head.slurmctld
        self.slurmrestd = self.head.slurmrestd
        self.slurmdbd = self.head.slurmdbd
        self.mariadbd = self.head.mariadbd
        self.jwt_key = self.head.jwt_key
        self.rest_url = f"http://{self.head.address}:6820"
        self.write_config(settings, lines)

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def start(self) -> None:
        """Thaws what is frozen and starts what does not run, workers aside; comes back when they answer."""
        if not self.slurmctld.is_running:
            self._beside(self.head.box)
        self.head.start()

    def close(self) -> None:
        for name in list(self.workers):
            self.remove_worker(name)
        self.head.close()

    def reset(self, *names: str) -> None:
        """Ends all jobs and reservations and leaves just these workers, registered and idle."""
        reset(self, names)

    def write_config(
        self, settings: Mapping[str, str] | None = None, lines: Sequence[str] = conf.LINES
    ) -> None:
        """Writes slurm.conf: these settings over ours, then these lines. `reconfigure` makes it count."""
        lacking = {} if has_http(self.rootfs) else {"MetricsType": ""}
        wanted = lacking | (conf.ACCOUNTING if self.accounting else {}) | dict(settings or {})
        self.head.box.path("/etc/slurm/slurm.conf").write_text(
            conf.slurm_conf(self.head.address, wanted, lines)
        )

    def reconfigure(self) -> None:
        self.run("scontrol", "reconfigure")

    def token(self, user: str = "slurm", lifetime_s: int = 3600) -> str:
        """What slurmrestd wants in `X-SLURM-USER-TOKEN`."""
        now = int(time.time())
        return jwt.encode({"sun": user, "iat": now, "exp": now + lifetime_s}, self.jwt_key, algorithm="HS256")

    def run(
        self, *argv: str, user: tuple[int, int] | None = None, stdin: str = "", timeout_s: float = 60
    ) -> str:
        """What a command beside slurmctld prints, such as `run("squeue", "--noheader")`; as root."""
        return self.head.box.run(*argv, user=user, stdin=stdin, timeout_s=timeout_s).stdout

    def submit(self, script: str, *options: str, user: tuple[int, int] = TESTER) -> int:
        """Submits a shell script as a batch job and gives the job's id."""
        command = ["sbatch", "--parsable", "--chdir=/tmp", "--output=/dev/null", *options]
        return int(self.run(*command, user=user, stdin=f"#!/bin/sh\n{script}\n").split(";")[0])

    def job_state(self, job_id: int) -> str:
        """Slurm's word for it (`PENDING`, `RUNNING`, ...), or `GONE` when slurmctld no longer knows it."""
        return self._shown("job", str(job_id), "JobState")

    def node_states(self, name: str) -> frozenset[str]:
        """Base state and flags such as IDLE and DRAIN, or `GONE` when slurmctld does not know the node."""
        return frozenset(self._shown("node", name, "State").split("+"))

    def wait_for(self, condition: Callable[[], bool], what: str, deadline_s: float = 60) -> None:
        """Comes back when the condition holds; raises with `what` when it takes too long."""
        wait_until(condition, what, deadline_s)

    def add_worker(
        self, name: str, *, conf: str = "Features=all", arguments: Sequence[str] | None = None
    ) -> Worker:
        """A new slurmd; comes back when slurmctld has its address. With a used name: a recreated pod.

        `arguments` say otherwise how it introduces itself, and nothing of where slurmctld is.
        """
        box = box_in(self.directory, self.rootfs, name)
        address = self.head.switch.plug_in(box)
        box.write_secret("/etc/slurm/slurm.key", self.head.slurm_key, (0, 0))
        slurmd = Daemon(
            box,
            [
                *("slurmd", "-D", "--conf-server", f"{self.head.address}:6817"),
                *(arguments if arguments is not None else ["-Z", "--conf", conf]),
            ],
            log=self.directory / f"slurmd-{name}.log",
            ready=lambda: self._shown("node", name, "NodeAddr") == address,
        )
        worker = self.workers[name] = Worker(name, address, box, slurmd)
        self._beside(box)
        slurmd.start()
        return worker

    def remove_worker(self, name: str) -> None:
        """Takes the worker away without telling slurmctld, as a lost pod would go."""
        self.workers.pop(name).close()

    def _shown(self, kind: str, name: str, key: str) -> str:
        shown = self.head.box.run("scontrol", "--oneliner", "show", kind, name, check=False).stdout
        values = (word.removeprefix(f"{key}=") for word in shown.split() if word.startswith(f"{key}="))
        return next(values, "GONE")
