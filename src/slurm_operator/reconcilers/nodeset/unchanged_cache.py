"""Workers that need nothing: most of them, nearly always. One that has not changed is not looked at again.

A NodeSet of thousands is looked at whenever one of them changes. What a worker that stays needs follows from
its pod, its machine, its place, its record and its jobs in Slurm, and from the spec: while these are the
same, so is the answer, whatever the time. Nothing depends on this memory but how long a pass takes.
"""

from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple

from slurm_operator.api.slinky.nodeset import NodeSetSpec
from slurm_operator.manifests.objects import KubeNode, Pod
from slurm_operator.reconcilers.nodeset.observe import Seen
from slurm_operator.reconcilers.nodeset.worker.drain_causes import staying_cause
from slurm_operator.reconcilers.nodeset.worker.unresponsive import silent_since
from slurm_operator.reconcilers.nodeset.workers import Worker
from slurm_operator.slurm.node import SlurmNode
from slurm_operator.slurm.snapshot import Snapshot


class _Looks(NamedTuple):
    """What there was to see of a worker when it needed nothing."""

    pod: Pod
    kube_node: KubeNode | None
    record: SlurmNode
    deadline: datetime | None
    place: str = ""  # Where topology.conf has it.

    def fit(self, worker: Worker, place: str) -> bool:
        """Records are read again all the time, often without a difference; pods and machines are not."""
        record = worker.record
        return (
            self.pod is worker.pod
            and self.kube_node is worker.kube_node
            and record is not None
            and not record.differs_from(self.record)
            and self.deadline == worker.deadline
            and self.place == place
        )


class Settled:
    """The workers of each NodeSet that needed nothing when they were last looked at."""

    def __init__(self) -> None:
        self._specs: dict[str, NodeSetSpec] = {}
        self._looks: dict[str, dict[str, _Looks]] = {}

    def among(self, seen: Seen) -> frozenset[str]:
        """Those of them, by uid, who look as they did. Claims are looked at every time."""
        spec, set_uid = seen.nodeset.spec, seen.nodeset.metadata.uid
        if self._specs.get(set_uid) != spec or spec.volume_claim_templates:
            return frozenset()
        looks = self._looks.get(set_uid, {})
        return frozenset(
            one.uid
            for one in seen.workers
            if one.uid in looks and looks[one.uid].fit(one, seen.places.get(one.slurm_node, ""))
        )

    def note(self, seen: Seen, still: Iterable[str], others: Iterable[Worker]) -> None:
        """Who is at rest: `still`, by uid, and `others` who needed nothing when they were looked at now."""
        set_uid = seen.nodeset.metadata.uid
        if seen.nodeset.metadata.is_terminating:
            self._specs.pop(set_uid, None)
            self._looks.pop(set_uid, None)
            return
        before = self._looks.get(set_uid, {})
        self._specs[set_uid] = seen.nodeset.spec
        self._looks[set_uid] = {uid: before[uid] for uid in still} | {
            worker.uid: _Looks(
                worker.pod,
                worker.kube_node,
                worker.record,
                worker.deadline,
                seen.places.get(worker.slurm_node, ""),
            )
            for worker in others
            if worker.record is not None and _is_calm(worker, seen)
        }


def _is_calm(worker: Worker, seen: Seen) -> bool:
    """Slurm was read since we last wrote there, nobody waits for it to be free of jobs, and slurmd answers:
    what becomes of one that does not is a question of time.
    """
    is_current = isinstance(seen.slurm, Snapshot) and seen.slurm.is_current(worker.slurm_node)
    if not is_current or silent_since(worker) is not None:
        return False
    args = (seen.nodeset, seen.propagated_conditions, seen.slurmctld_since, seen.now)
    return staying_cause(worker, *args) is None
