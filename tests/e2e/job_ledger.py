"""Jobs that write down their own lives, for tests that must not lose one.

A job writes when it starts, beats while it runs, and writes when it ends by itself. It ends when the test says so, so
that however slow the machine is, what is done to a worker meets a job there. The files are in a directory of this
machine: they can be read while no slurmctld and no pod is there to be asked.
"""

import uuid

from operator_rig import Slurm, until

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


class Ledger:
    """One job, running when this returns."""

    def __init__(self, slurm: Slurm, *options: str) -> None:
        self.slurm, name = slurm, uuid.uuid4().hex[:8]
        self._file, self._release = slurm.ledgers / name, slurm.ledgers / f"{name}.release"
        script = _SCRIPT.format(path=f"/ledgers/{name}", most=_MOST_BEATS)
        self.job = slurm.submit(script, "--no-requeue", *options)
        until(lambda: "start" in self.lines, 120, lambda: f"job {self.job} to run: {slurm.states()}")
        self.node = slurm.run("squeue", "--noheader", "--format=%N", f"--jobs={self.job}").strip()

    @property
    def lines(self) -> list[str]:
        """What it has written so far."""
        return self._file.read_text().split() if self._file.exists() else []

    def is_running(self) -> bool:
        """It beats: whatever Slurm thinks of it, its process is there."""
        before = len(self.lines)
        try:
            until(lambda: len(self.lines) > before, 10)
        except AssertionError:
            return False
        return "end" not in self.lines

    def release(self) -> None:
        """Lets it end."""
        self._release.touch()

    def wait_ended_by_itself(self) -> None:
        """The oracle: let go, it ends by itself, and it was started once."""
        self.release()
        until(lambda: "end" in self.lines, 120, lambda: f"job {self.job} to end: {self.lines[-3:]}")
        assert (self.lines.count("start"), self.lines.count("end"), self.lines[-1]) == (1, 1, "end")
