"""What goes wrong, as a table. Each fault hits, and is repaired when its time is over.

`hit` gives back which Slurm nodes it is about: a job that runs on one of them could be lost by it. It raises
Missed when there was nothing to hit.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from chaos import clock, daemons, disk, machines, people, spec_changes
from chaos import network_faults as network
from chaos.daemons import OPERATOR, WRITER, killed, stopped, woken
from chaos.impact import Blow
from chaos.network_faults import cut, spoilt
from chaos.spec_changes import deleted
from chaos.stage import Stage
from chaos.subjects import COMPONENTS, EVERY, PLAIN, SHARED_ROOT, Subject

Hit = Callable[[Stage, random.Random], Blow]
Repair = Callable[[Stage], None]


class Sort(Enum):
    MASS = "is about all workers"
    WISH = "is about one worker, or a few"
    WEATHER = "breaks something around them"
    DEADLY = "ends jobs by its nature, whatever the operator does"


def _nothing(stage: Stage) -> None:
    return None


@dataclass(frozen=True)
class Fault:
    name: str
    sort: Sort
    hit: Hit
    repair: Repair = _nothing
    # Two that share one are never drawn together: Slurm itself would lose jobs, or one undoes the other.
    about: frozenset[str] = frozenset()
    lasts_s: float = 0.0  # At least so long; most are over as soon as somebody has noticed.
    subjects: tuple[Subject, ...] = EVERY  # Whom it can happen to.

    def clashes(self, other: "Fault") -> bool:
        return self is other or bool(self.about & other.about)


def _table(*faults: Fault) -> dict[str, Fault]:
    return {fault.name: fault for fault in faults}


def about(*things: str) -> frozenset[str]:
    return frozenset(things)


# A slurmctld that dies while it cannot write its state has forgotten the jobs that started since.
STATE = about("slurmctld's state")
RESTD = about("slurmrestd's port")

_COMPONENTS, _ROOT = (COMPONENTS, PLAIN), (SHARED_ROOT,)

STOPPED_SLURMD = "slurmd stopped for two minutes"

FAULTS = _table(
    Fault("scale in", Sort.MASS, spec_changes.scaled_in),
    Fault("scale out and in again", Sort.WISH, spec_changes.scaled_out),
    Fault("template changed", Sort.MASS, spec_changes.changed_template),
    Fault("image broken", Sort.MASS, spec_changes.broken_image),
    Fault("mode switched", Sort.MASS, spec_changes.switched_mode, subjects=_COMPONENTS),
    Fault("NodeSet deleted", Sort.MASS, spec_changes.deleted_nodeset),
    Fault("worker pod deleted by hand", Sort.WISH, people.deleted_worker),
    Fault("all worker pods deleted by hand", Sort.MASS, people.deleted_workers),
    Fault("machine drained", Sort.WISH, people.drained_machine, people.uncordoned),
    Fault("worker drained by a human", Sort.WISH, people.drained_by_hand, people.resumed_by_hand),
    Fault("operator killed", Sort.WEATHER, killed(OPERATOR)),
    Fault("operator stopped and woken", Sort.WEATHER, stopped(OPERATOR), woken(OPERATOR)),
    Fault("operator's clock wrong", Sort.WEATHER, clock.skewed, clock.righted),
    Fault("API server restarted", Sort.WEATHER, daemons.restarted_api_server, daemons.awaited_api_server),
    Fault("slurmctld killed", Sort.WEATHER, daemons.killed_slurmctld, about=STATE),
    Fault("slurmctld hangs", Sort.WEATHER, stopped("slurmctld"), woken("slurmctld")),
    Fault("slurmctld pod deleted", Sort.WEATHER, people.deleted_slurmctld, about=STATE),
    Fault("disk full for slurmctld", Sort.WEATHER, disk.filled, disk.emptied, about=STATE),
    Fault("slurmrestd killed", Sort.WEATHER, killed("slurmrestd"), about=RESTD),
    Fault("slurmrestd hangs", Sort.WEATHER, stopped("slurmrestd"), woken("slurmrestd"), about=RESTD),
    Fault("slurmrestd slow", Sort.WEATHER, spoilt("slow"), network.unspoilt, about=RESTD),
    Fault("slurmrestd truncates answers", Sort.WEATHER, spoilt("truncated"), network.unspoilt, about=RESTD),
    Fault("slurmrestd answers errors", Sort.WEATHER, spoilt("errors"), network.unspoilt, about=RESTD),
    Fault("tokens expired", Sort.WEATHER, spoilt("expired"), network.unspoilt, about=RESTD),
    Fault("RestApi deleted", Sort.WEATHER, spec_changes.deleted_restapi),
    Fault("bad configuration pushed", Sort.WEATHER, spec_changes.bad_config),
    Fault("database hangs", Sort.WEATHER, stopped("mariadbd"), woken("mariadbd")),
    Fault("slurmdbd killed", Sort.WEATHER, killed("slurmdbd")),
    Fault("operator cut off from slurmrestd", Sort.WEATHER, cut("slurmrestd", OPERATOR), network.joined),
    Fault("operator cut off from the API server", Sort.WEATHER, network.cut_operator, network.joined),
    Fault("slurmrestd cut off from slurmctld", Sort.WEATHER, cut("slurmctld", "slurmrestd"), network.joined),
    Fault("worker cut off from slurmctld", Sort.WEATHER, network.cut_worker, network.joined),
    Fault(STOPPED_SLURMD, Sort.WEATHER, daemons.stopped_slurmd, woken("slurmd"), lasts_s=120),
    Fault("slurmctld cut off from slurmdbd", Sort.WEATHER, cut("slurmdbd", "slurmctld"), network.joined),
    Fault("slurmdbd cut off from the database", Sort.WEATHER, cut("mariadbd", "slurmdbd"), network.joined),
    Fault("machine cut off from the API server", Sort.WEATHER, network.cut_machine, network.joined),
    Fault("machine unplugged", Sort.DEADLY, machines.unplugged, machines.plugged_in, about=STATE),
    Fault("slurmd killed", Sort.DEADLY, daemons.killed_slurmd, subjects=_COMPONENTS),
    Fault("maintenance", Sort.MASS, spec_changes.maintenance, subjects=_ROOT),
    Fault("part of the NodeSet deleted", Sort.MASS, deleted(SHARED_ROOT.worker_part), subjects=_ROOT),
    Fault("SlurmCluster deleted", Sort.MASS, deleted(SHARED_ROOT.cluster), subjects=_ROOT),
    Fault("slurmd killed under supervisord", Sort.WISH, daemons.killed_supervised_slurmd, subjects=_ROOT),
    Fault("munged killed", Sort.WEATHER, killed("munged"), subjects=_ROOT),
    Fault("writer of the root killed", Sort.WEATHER, killed(WRITER), subjects=_ROOT),
)  # fmt: skip


def faults_of(subject: Subject) -> dict[str, Fault]:
    """What can happen to it."""
    return _table(*(fault for fault in FAULTS.values() if subject in fault.subjects))
