"""What slurmctld calls to power nodes up and down: it leaves a note for power-manager, and returns at once.

slurmctld gives its programs no environment but SLURM_CONF, and for a resume the path of a file that says
which jobs wait. So nothing is done here that could take long, or that needs to know where the API server is:
power-manager has all that, in the same pod.
"""

import json
import os
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

CALLS = Path("/run/slurm-power")
VERBS = ("resume", "suspend", "resume-fail")

_JOBS = "SLURM_RESUME_FILE"


def power(arguments: Sequence[str], environment: Mapping[str, str], calls: Path = CALLS) -> int:
    """`power VERB HOSTLIST`: 0 when the note is there, whole and by its name."""
    if len(arguments) != 2 or arguments[0] not in VERBS:
        print(f"usage: power {'|'.join(VERBS)} HOSTLIST", file=sys.stderr)
        return 2
    verb, nodes = arguments
    note = {"verb": verb, "nodes": nodes, "jobs": _jobs(environment.get(_JOBS, ""))}
    name = f"{time.time_ns():020d}-{os.getpid()}-{verb}"
    try:
        unfinished = calls / f".{name}"
        with unfinished.open("w") as file:
            json.dump(note, file)
            file.flush()
            os.fsync(file.fileno())
        unfinished.chmod(0o644)
        unfinished.rename(calls / f"{name}.json")
    except OSError as error:
        print(f"cannot hand over {verb} {nodes} to power-manager: {error}", file=sys.stderr)
        return 1
    return 0


def _jobs(path: str) -> list[int]:
    """Ids of the jobs that wait for the nodes. They are for the log alone, so a bad file is passed over."""
    try:
        told = json.loads(Path(path).read_text()) if path else {}
        return [int(job["job_id"]) for job in told.get("jobs", ())]
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return []
