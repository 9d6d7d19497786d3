"""Jobs that write down their own lives, for tests that must not lose one.

A job writes when it starts, beats while it runs, and writes when it reaches its end. It ends when the test says so, so
that however slow the machine is, what is done to a worker meets a job there. The files are in a directory of this
machine: they can be read while no slurmctld and no pod is there to be asked. Where the cluster keeps books, they have
to say the same.
"""

import time
import uuid
from collections import defaultdict

from operator_rig import Slurm, until

from slurm_local.errors import LocalError

# A job beats twice a second; on a busy machine it may be late, but not by this much.
_SILENCE_S = 20

# A job that nobody lets go, because its test has failed, does not stay for ever. It has no end in its ledger.
_MOST_BEATS = 3600

_SCRIPT = """\
echo "start $SLURM_JOB_ID" >> {path}
for beat in $(seq {most}); do
  echo beat >> {path}
  if [ -e {path}.release ]; then echo end >> {path}; exit 0; fi
  sleep 0.5
done
"""


class JobLost(AssertionError):  # noqa: N818 - it tells what happened
    """A job was ended by somebody else, or started twice."""


class Ledger:
    """One job, running when this returns. It is not requeued unless the options say so."""

    of: defaultdict[str, list["Ledger"]] = defaultdict(
        list
    )  # All of them, by the namespace of their cluster.

    def __init__(self, slurm: Slurm, *options: str) -> None:
        self.slurm, name = slurm, uuid.uuid4().hex[:8]
        self._file, self._release = slurm.ledgers / name, slurm.ledgers / f"{name}.release"
        script = _SCRIPT.format(path=f"/ledgers/{name}", most=_MOST_BEATS)
        self.job = slurm.submit(script, "--no-requeue", *options)
        until(lambda: "start" in self.lines, 120, lambda: f"job {self.job} to run: {slurm.states()}")
        self.node = slurm.run("squeue", "--noheader", "--format=%N", f"--jobs={self.job}").strip()
        self.of[slurm.namespace].append(self)

    @property
    def lines(self) -> list[str]:
        """What it has written so far."""
        return self._file.read_text().split() if self._file.exists() else []

    def seen_by_slurm(self) -> str:
        """Its state and where it is, as the queue has it."""
        return self.slurm.run("squeue", "--noheader", "--format=%T %N", f"--jobs={self.job}").strip()

    def is_running(self) -> bool:
        """It beats: whatever Slurm thinks of it, its process is there."""
        before = len(self.lines)
        end = time.monotonic() + _SILENCE_S
        while len(self.lines) == before and time.monotonic() < end:
            time.sleep(0.2)
        return len(self.lines) > before and "end" not in self.lines

    def is_lost(self) -> bool:
        """It has started, and neither runs nor has reached its end; a suspended one may yet."""
        if self.lines.count("start") > 1:
            return True
        return "end" not in self.lines and not self.is_running() and not self._is_suspended()

    def _is_suspended(self) -> bool:
        try:
            return self.slurm.job_state(self.job) == "SUSPENDED"
        except LocalError:
            return False

    def outlives(self, seconds: float) -> None:
        """Looks on for a while: it must go on beating."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if not self.is_running():
                raise JobLost(f"job {self.job} on {self.node} does not beat any more: {self.lines[-3:]}")

    def release(self) -> None:
        """Lets it end."""
        self._release.touch()

    def wait_ended_by_itself(self, *, is_booked: bool = True) -> None:
        """The oracle: released, it runs to its end, and it was started once; and slurmdbd has heard the same."""
        self.release()
        until(lambda: "end" in self.lines, 120, lambda: f"job {self.job} to end: {self.lines[-3:]}")
        counted = (self.lines.count("start"), self.lines.count("end"), self.lines[-1])
        if counted != (1, 1, "end"):
            raise JobLost(f"job {self.job} on {self.node}: {counted}")
        if is_booked and self.slurm.keeps_books:
            until(lambda: self.booked() == ["COMPLETED|0:0"], 60, lambda: f"job {self.job}: {self.booked()}")

    def booked(self) -> list[str]:
        """Each run of it in the books, with how it ended; nothing while slurmdbd cannot be asked."""
        shown = ("--format=State,ExitCode", "--allocations", "--duplicates", "--noheader", "--parsable2")
        try:
            return self.slurm.run("sacct", f"--jobs={self.job}", *shown).splitlines()
        except LocalError:
            return []
