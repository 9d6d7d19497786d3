"""Whether a worker, or a job, may be removed by what is known now: asked again right before."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import NamedTuple

from slurm_operator.api.shared.belonging import daemon_of
from slurm_operator.api.shared.meta import ObjectKey
from slurm_operator.manifests.objects import Pod
from slurm_operator.plan.actions import DeleteKubeNode, DeleteWorker, Fence
from slurm_operator.plan.world import KUBE_NODE_NAME
from slurm_operator.runtime.act.stages import ActionFailed
from slurm_operator.runtime.world.caches import Caches
from slurm_operator.safety.gate import SLURMD, Candidate, why_no_longer, why_not_fenced
from slurm_operator.safety.job_end_check import Ending, why_not_ended
from slurm_operator.safety.kube_node_removal import why_not_removed
from slurm_operator.slurm.snapshot import CLOCK_SLACK, Snapshot, Unreachable
from slurm_operator.slurm.writes import CancelJob, RequeueJob, SlurmWrite, subjects
from slurm_operator.slurmsync.remove_nodes import Guard

# With so much of a fence's life behind it, a pod that is still there shows that records go too fast.
FOLLOWS_WITHIN = timedelta(seconds=2)

# A job is ended so long after that was decided, and no later: what does not stand in the spec, such as the
# labels of a machine, may keep its worker by now.
ENDS_WITHIN = timedelta(seconds=10)


# What is known of Slurm, dated by the clock of a pass.
Told = Callable[[Snapshot | Unreachable], Snapshot | Unreachable]


def as_it_is(facts: Snapshot | Unreachable) -> Snapshot | Unreachable:
    return facts


class _Fenced(NamedTuple):
    pod: ObjectKey
    at: datetime


class Proofs:
    """Those of one pass, and when it removed the record of which worker.

    `is_wanted` says whether the object that the pass is about still asks for what it asked for. `now` cannot
    be set back, and `told` dates by it what is known of Slurm.
    """

    def __init__(
        self,
        known: Caches,
        now: Callable[[], datetime],
        is_wanted: Callable[[], bool],
        told: Told = as_it_is,
    ) -> None:
        self._told = told
        self._known = known
        self._now = now
        self._is_wanted = is_wanted
        self._decided_at = now()
        self._fenced: dict[str, _Fenced] = {}  # By the uid of the pod.

    def guard(self, write: SlurmWrite, fence: Fence) -> Guard:
        """What speaks against removing the record now. If nothing does, that is when the fence was put up."""
        [slurm_node], uid = subjects(write), fence.proof.pod_uid

        def objection(slurm: Snapshot | Unreachable) -> str | None:
            pod, now = self._known.records[Pod].get(ObjectKey(*fence.pod)), self._now()
            if pod is None or pod.metadata.uid != uid:
                return "its pod has gone"
            if self._are_pods_late(now):
                return "the pods of those before it have not gone yet"
            why = why_not_fenced(Candidate(pod, slurm_node, self._told(slurm)), now)
            if why is None:
                self._fenced[uid] = _Fenced(ObjectKey(*fence.pod), now)
            return why

        return objection

    def guard_of_job(self, write: CancelJob | RequeueJob, ending: Ending) -> Guard:
        """What speaks against ending the job now."""

        def objection(slurm: Snapshot | Unreachable) -> str | None:
            pod, now = self._known.records[Pod].get(ObjectKey(*ending.pod)), self._now()
            if pod is None or pod.metadata.uid != ending.pod_uid:
                return "the pod it is in has gone"
            if not self._is_wanted():
                return "something else was asked for since"
            if not -CLOCK_SLACK <= now - self._decided_at <= ENDS_WITHIN:
                return "that was decided a while ago, and is looked at again"
            return why_not_ended(
                ending, write.job_id, Candidate(pod, ending.slurm_node, self._told(slurm)), now
            )

        return objection

    def _are_pods_late(self, now: datetime) -> bool:
        """Whether pods do not keep up with their records: whose fence runs out would be known to nobody."""
        late = ((uid, fenced.pod) for uid, fenced in self._fenced.items() if now - fenced.at > FOLLOWS_WITHIN)
        return any(self._stays(uid, pod) for uid, pod in late)

    def _stays(self, uid: str, key: ObjectKey) -> bool:
        pod = self._known.records[Pod].get(key)
        return pod is not None and pod.metadata.uid == uid and not pod.metadata.is_terminating

    def objection(self, action: DeleteWorker) -> str | None:
        """What takes the proof of a deletion away by now. A thousand of them wait for each other."""
        pod = self._known.records[Pod].get(ObjectKey(*action.key))
        if pod is None:
            return None  # The request names the one it is about.
        facts = self._told(self._known.slurms.latest(ObjectKey(*action.controller)))
        worker = Candidate(pod, action.slurm_node, facts)
        fenced = self._fenced.get(action.proof.pod_uid) if action.is_fenced else None
        return why_no_longer(action.proof, worker, self._now(), fenced_at=fenced.at if fenced else None)

    async def hold(self, action: DeleteWorker) -> None:
        """Returns when the proof holds; Slurm is read again for that if need be. Raises ActionFailed."""
        if self.objection(action) is not None:
            await self._known.slurms.refresh(ObjectKey(*action.controller))
        if (changed := self.objection(action)) is not None:
            raise ActionFailed(f"{action.slurm_node} is not deleted after all: {changed}")

    def kube_node_objection(self, action: DeleteKubeNode) -> str | None:
        """What speaks by now against deleting a Kubernetes node, with the workers that are on it."""
        known = {one.uid: one for one in action.workers}
        candidates = []
        for pod in self._known.records[Pod].by_index(KUBE_NODE_NAME, action.name):
            if daemon_of(pod.metadata.labels) != SLURMD or pod.has_ended:
                continue
            worker = known.get(pod.metadata.uid)
            if worker is None:
                return f"worker {pod.metadata.name} is there by now"
            facts = self._told(self._known.slurms.latest(ObjectKey(*worker.controller)))
            candidates.append(Candidate(pod, worker.slurm_node, facts))
        return why_not_removed(candidates, self._now())

    async def hold_kube_node(self, action: DeleteKubeNode) -> None:
        """As `hold`, for a Kubernetes node."""
        if self.kube_node_objection(action) is not None:
            for controller in sorted({ObjectKey(*one.controller) for one in action.workers}):
                await self._known.slurms.refresh(controller)
        if (changed := self.kube_node_objection(action)) is not None:
            raise ActionFailed(f"Node {action.name} is not deleted after all: {changed}")
