"""A hundred of them: twenty of each part, chosen by their names, which are as good as drawn."""

from itertools import islice, zip_longest
from typing import Final

from testing.mutation.edits import Mutant, compiles, mutants

EACH: Final = 20

# What keeps the promise, from what is decided to the bytes that leave.
AREAS: Final[dict[str, tuple[str, ...]]] = {
    "gate": ("safety/gate.py",),
    "safety": (
        "safety/job_end_check.py",
        "safety/kube_node_removal.py",
        "safety/record_removal.py",
        "safety/steps.py",
        "safety/write_screening.py",
        "runtime/act/recheck.py",
        "runtime/act/held_actions.py",
    ),
    "writer": (
        "slurmsync/execute.py",
        "slurmsync/pending_writes.py",
        "slurmsync/remove_nodes.py",
        "slurmsync/results.py",
        "slurmsync/writer.py",
    ),
    "lease": ("kube/lease.py", "kube/presence.py"),
    "client": (
        "kube/client.py",
        "kube/request.py",
        "kube/transport.py",
        "http/calls.py",
        "http/connection.py",
        "http/pool.py",
    ),
}


def chosen() -> list[Mutant]:
    """Of all parts in turn, so that any few in a row are of several."""
    rows = zip_longest(*(_of(area) for area in AREAS))
    return [mutant for row in rows for mutant in row if mutant is not None]


def named(name: str) -> Mutant:
    area = name.partition("-")[0]
    return next(mutant for mutant in _all(area) if mutant.name == name)


def _of(area: str) -> list[Mutant]:
    drawn = sorted(_all(area), key=lambda mutant: mutant.name)
    return list(islice((mutant for mutant in drawn if compiles(mutant)), EACH))


def _all(area: str) -> list[Mutant]:
    return [mutant for path in AREAS[area] for mutant in mutants(area, f"src/slurm_operator/{path}")]
