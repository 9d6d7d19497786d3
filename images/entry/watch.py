"""Notices that slurmctld has forgotten this worker, and registers it again.

slurmctld forgets dynamic nodes when it loses its state or somebody deletes them. A living slurmd does not
find out and would idle for ever, with its jobs unseen.

While a job runs here the worker stays unknown: a slurmctld that does not know the job calls it an orphan as
soon as the worker registers, and ends it (seen with 26.05).
"""

import random
import signal
import sys
import time
from pathlib import Path

from .follow import Main
from .slurmctld import NodeRecord, node_record
from .steps import steps_here

# Made by the command that runs before the pod ends: whoever leaves must not come back.
LEAVING = Path("/run/slurm-operator-leaving")

# The operator removes the record of a worker that goes, and the pod within five seconds: until then nobody
# must be back. After this long it has either gone or stays.
SURE_AFTER_S = 30.0


def watch(name: str, every_s: float, main: Main) -> None:
    """Never comes back; meant for a thread."""
    while True:
        # Workers that were started together must not ask together.
        time.sleep(every_s * random.uniform(0.8, 1.2))  # noqa: S311
        if _is_forgotten(name):
            time.sleep(SURE_AFTER_S)
            if _is_forgotten(name) and not steps_here():
                print(
                    f"slurmctld does not know {name} any more: registering again", file=sys.stderr, flush=True
                )
                main.signal(signal.SIGHUP)


def _is_forgotten(name: str) -> bool:
    return not LEAVING.exists() and node_record(name) == NodeRecord(known=False)
