"""Workers that slurmctld has forgotten and that do not register again: is a step still running in them?

Our own entry point registers again. With other images nobody does, and the worker would wait for good. With
the optional right to `pods/exec` its processes are looked at. Where no step runs, the pod is marked.
"""

import asyncio
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

import structlog

from slurm_operator.api.shared import belonging, names
from slurm_operator.api.shared.meta import ObjectKey, key_of
from slurm_operator.kube.client import Client
from slurm_operator.kube.errors import Forbidden, KubeError
from slurm_operator.manifests.kinds import POD
from slurm_operator.manifests.objects import Pod
from slurm_operator.manifests.worker_names import slurm_node_name
from slurm_operator.runtime.world.caches import Caches
from slurm_operator.safety.gate import PROOF_LIFETIME, SLURMD, has_no_steps, no_steps_mark, slurmd_of
from slurm_operator.safety.steps import COMMAND, saw_no_step
from slurm_operator.slurm.snapshot import Snapshot, Unreachable

log = structlog.get_logger(__name__)

LOOK_SECONDS: Final = 30.0
# By then our own entry point has registered several times.
PATIENCE: Final = timedelta(minutes=3)
# Where we may not look.
REFUSED_SECONDS: Final = 600.0
_AT_ONCE: Final = 5


def is_forgotten(pod: Pod, slurm: Snapshot | Unreachable, now: datetime) -> bool:
    """A worker that has been ready for long, of which Slurm, freshly asked, knows nothing."""
    is_fresh = isinstance(slurm, Snapshot) and slurm.is_fresh(now, PROOF_LIFETIME)
    return is_fresh and may_be_forgotten(pod, slurm, now)


def may_be_forgotten(pod: Pod, slurm: Snapshot | Unreachable, now: datetime) -> bool:
    """The same by the last answer, however old."""
    if belonging.daemon_of(pod.metadata.labels) != SLURMD or pod.metadata.is_terminating or not pod.is_ready:
        return False
    if not isinstance(slurm, Snapshot):
        return False
    slurmd, ready = slurmd_of(pod), pod.status.condition("Ready")
    running = slurmd.state.running if slurmd is not None else None
    times = [running.started_at if running else None, ready.last_transition_time if ready else None]
    is_old = all(moment is not None and now - moment >= PATIENCE for moment in times)
    return is_old and slurm_node_name(pod) not in slurm.nodes


def cluster_of(pod: Pod) -> ObjectKey:
    return ObjectKey(pod.metadata.namespace, pod.metadata.labels.get(names.LABEL_CLUSTER, ""))


class StepWatch:
    """Looks into forgotten workers, a few at a time."""

    def __init__(self, client: Client, known: Caches) -> None:
        self._client = client
        self._known = known
        self._refused_until = 0.0

    async def run(self) -> None:
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            if asyncio.get_running_loop().time() >= self._refused_until:
                await self.look()

    async def look(self) -> None:
        # While nobody waits for it, Slurm is read so seldom that its last answer would never be new enough.
        for cluster in sorted({cluster_of(pod) for pod in self._found(may_be_forgotten)}):
            await self._known.slurms.refresh(cluster)
        found = self._found(is_forgotten)
        for pod in found[:_AT_ONCE]:
            try:
                await self._look_into(pod)
            except Forbidden as error:
                self._refused_until = asyncio.get_running_loop().time() + REFUSED_SECONDS
                log.warning("may not look for steps in workers that Slurm has forgotten", why=str(error))
                return
            except KubeError as error:
                log.info("could not look for steps", pod=str(key_of(pod)), why=str(error))

    def _found(self, is_one: Callable[[Pod, Snapshot | Unreachable, datetime], bool]) -> list[Pod]:
        """Workers nobody has looked into yet."""
        view = self._known.view()
        pods = sorted(self._known.records[Pod].values(), key=key_of)
        return [
            pod
            for pod in pods
            if cluster_of(pod).name
            and not has_no_steps(pod)
            and is_one(pod, view.slurm(*cluster_of(pod)), view.now)
        ]

    async def _look_into(self, pod: Pod) -> None:
        key = key_of(pod)
        if not saw_no_step(await self._client.printed(key, SLURMD, COMMAND)):
            log.info("a step may run in a worker that Slurm has forgotten; it stays", pod=str(key))
            return
        path = f"/metadata/annotations/{names.POD_NO_STEPS.replace('/', '~1')}"
        mark = {"op": "add", "path": path, "value": no_steps_mark(pod)}
        made = (
            [] if pod.metadata.annotations else [{"op": "add", "path": "/metadata/annotations", "value": {}}]
        )
        version = {"op": "test", "path": "/metadata/resourceVersion", "value": pod.metadata.resource_version}
        written = await self._client.json_patch(POD, key, [version, *made, mark], uid=pod.metadata.uid)
        self._known.note_written(POD, written)
        log.info("no step runs in a worker that Slurm has forgotten; it is replaced", pod=str(key))
