"""Every way in which a worker is taken from under a job, and what makes it cost the job.

A row is a case, what it does, and the one thing that keeps its job alive. `test_worker_faults.py` plays every case with
the operator as it is: no ledger breaks. `test_worker_controls.py` plays the same with that one thing taken out: a ledger
breaks, or the case would prove nothing.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import partial

import worker_changes as changes
import worker_troubles as troubles
from gateless import gate_without, policy_off
from operator_rig import PROCESS_CONF, Slurm

from slurm_local.cluster import Cluster

Play = Callable[[Slurm, float], None]  # With how many seconds to look on after the fault.
Hole = Callable[[Cluster], AbstractContextManager[None]]

HOLES: dict[str, Hole] = {
    "a drained worker may go, whatever runs there": partial(gate_without, reasons=("Draining",)),
    "nobody has to be asked": partial(gate_without, reasons=("SlurmUnreachable", "OldAnswer")),
    "what Slurm does not know has no job": partial(gate_without, reasons=("UnknownToSlurm",)),
    "the API server lets everybody delete workers": policy_off,
}
BUSY, UNSEEN, UNKNOWN, POLICY = HOLES

PREEMPTION = """\
PreemptType=preempt/partition_prio
PreemptMode=SUSPEND,GANG
PartitionName=low Nodes=ALL Default=YES State=UP PriorityTier=1 OverSubscribe=FORCE:1
PartitionName=high Nodes=ALL State=UP PriorityTier=10 OverSubscribe=FORCE:1
"""


@dataclass(frozen=True)
class Row:
    play: Play
    fault: str
    hole: str
    controller: dict[str, object] = field(default_factory=dict)  # What is special about its Controller.
    is_quick: bool = False  # Played by `make test` every time.

    def __str__(self) -> str:
        return self.play.__name__


TABLE = [
    Row(changes.four_one_four, "replicas 4, 1, 4 while three are busy", BUSY),
    Row(changes.rolling_update, "a new template", BUSY, is_quick=True),
    Row(changes.image_that_is_not_there, "an image that cannot be pulled, then a good one", BUSY),
    Row(changes.mode_switch, "StatefulSet to DaemonSet mode and back", BUSY),
    Row(changes.nodeset_deletion, "kubectl delete nodeset", BUSY),
    Row(changes.foreground_cascade, "kubectl delete nodeset --cascade=foreground", BUSY),
    Row(changes.kubectl_drain, "kubectl drain of the machine, in haste", BUSY),
    # The gate is not asked: the pod is somebody else's to delete, and the policy stands in the way.
    Row(changes.pod_deletion, "kubectl delete pod, in haste", POLICY),
    Row(changes.namespace_deletion, "kubectl delete namespace", UNSEEN),
    Row(troubles.suspended_job, "replicas 0 while the job is suspended", BUSY),
    Row(
        troubles.preempted_job,
        "replicas 0 while one job has suspended another",
        BUSY,
        {"extraConf": PROCESS_CONF + PREEMPTION},
    ),
    Row(troubles.machine_not_ready, "the kubelet stops; a new template", BUSY),
    Row(troubles.slurmctld_restart, "slurmctld restarts; replicas 0", UNSEEN),
    Row(troubles.lost_state, "slurmctld loses its state; replicas 0", UNKNOWN),
    Row(troubles.slurmrestd_hangs, "slurmrestd hangs; replicas 0", UNSEEN, is_quick=True),
    Row(troubles.slurmrestd_away, "no slurmrestd; replicas 0", UNSEEN),
    Row(troubles.restapi_deletion, "the RestApi is deleted by force; replicas 0", UNSEEN),
    Row(troubles.operator_killed, "the operator is killed at random; replicas 3, 0, 2, 0", BUSY),
]


def in_words() -> str:
    """The table for people, as it stands in docs/concepts/the-gate.md."""
    head = ["| Case | What is done while a job runs there | It costs the job once |", "|---|---|---|"]
    rows = [f"| {str(row).replace('_', ' ')} | {row.fault} | {row.hole} |" for row in TABLE]
    return "\n".join([*head, *rows])
