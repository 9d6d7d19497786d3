"""The actions of one pass, held against what was refused before."""

from dataclasses import dataclass

from slurm_operator.api.schema.kind import Kind
from slurm_operator.api.shared.meta import HasMeta, ObjectKey
from slurm_operator.manifests import kinds
from slurm_operator.manifests.meta import Manifest
from slurm_operator.plan.actions import (
    Action,
    Apply,
    Create,
    DeleteDaemonPod,
    DeleteKubeNode,
    DeleteObject,
    DeleteWorker,
    EndWorker,
    GenerateSecret,
    PatchObject,
    RestoreSecret,
    SignToken,
    Tell,
    Wait,
    WriteSlurm,
)
from slurm_operator.runtime.act.refused_writes import Asked, Owner, Refusals, content, state_of
from slurm_operator.runtime.act.stages import ActionFailed
from slurm_operator.runtime.world.caches import Caches
from slurm_operator.slurm.snapshot import Snapshot
from slurm_operator.slurm.writes import (
    CancelJob,
    DeleteNodes,
    Reconfigure,
    RequeueJob,
    SignalJob,
    subjects,
)

# What is counted, timed or guarded elsewhere: the removal of records, the end of jobs, a reconfigure.
_BY_OTHER_RULES = (CancelJob, DeleteNodes, Reconfigure, RequeueJob, SignalJob)


@dataclass(frozen=True)
class Hold:
    """What one pass about one object may send."""

    owner: Owner
    about: HasMeta
    refusals: Refusals
    known: Caches

    def check(self, action: Action) -> None:
        """Raises ActionFailed while the action was refused and nothing has changed since."""
        asked = self._asked(action)
        held = self.refusals.held(self.owner, asked) if asked is not None else None
        if held is not None:
            error, left = held
            raise ActionFailed(error, retry_after=left, is_refused=True, is_held=True)

    def refused(self, action: Action, error: str, *, passing: bool) -> ActionFailed:
        asked = self._asked(action)
        if asked is None:
            return ActionFailed(error)
        seconds = self.refusals.note(self.owner, asked, error, passing=passing)
        return ActionFailed(error, retry_after=seconds, is_refused=True)

    def taken(self, action: Action) -> None:
        if (asked := self._asked(action)) is not None:
            self.refusals.taken(self.owner, asked)

    def _asked(self, action: Action) -> Asked | None:
        match action:
            case Apply(manifest=manifest) | Create(manifest=manifest) | GenerateSecret(manifest=manifest):
                return self._object(action, kinds.kind_of(manifest), _key(manifest), manifest)
            case RestoreSecret(manifest=manifest, entries=entries):
                return self._object(action, kinds.SECRET, _key(manifest), [manifest, entries])
            case SignToken(manifest=manifest):
                return self._object(action, kinds.SECRET, _key(manifest), manifest)
            case PatchObject(kind=kind, key=key, operations=operations):
                paths = tuple(str(operation.get("path")) for operation in operations)
                return self._object(action, kind, ObjectKey(*key), [action.uid, *operations], paths)
            case DeleteObject(kind=kind, key=key, uid=uid):
                return self._object(action, kind, ObjectKey(*key), uid)
            case DeleteDaemonPod(key=key, uid=uid):
                return self._object(action, kinds.POD, ObjectKey(*key), uid)
            case DeleteKubeNode(name=name, uid=uid):
                return self._object(action, kinds.KUBE_NODE, ObjectKey("", name), uid)
            case DeleteWorker(key=key, proof=proof):
                return self._object(action, kinds.POD, ObjectKey(*key), proof.pod_uid)
            case EndWorker(key=key, order=order):
                return self._object(action, kinds.POD, ObjectKey(*key), order.pod_uid)
            case WriteSlurm(write=write, fence=fence):
                is_by_other_rules = fence is not None or isinstance(write, _BY_OTHER_RULES)
                return None if is_by_other_rules else self._slurm(action)
            case Wait() | Tell():
                return None

    def _object(
        self, action: Action, kind: Kind, key: ObjectKey, said: object, paths: tuple[str, ...] = ()
    ) -> Asked:
        def depends_on() -> str:
            return content(said, state_of(self.known.live(kind, key)), self._spec())

        return Asked((type(action).__name__, kind, key, paths), depends_on)

    def _slurm(self, action: WriteSlurm) -> Asked:
        """A refusal stands while Slurm shows the same nodes in the same states."""
        cluster, named = ObjectKey(*action.controller), subjects(action.write)

        def depends_on() -> str:
            facts = self.known.slurms.latest(cluster)
            nodes = facts.nodes if isinstance(facts, Snapshot) else {}
            found = [nodes.get(name) for name in named]
            states = [(one.name, sorted(one.state.words), one.reason) for one in found if one is not None]
            return content(action.write, states, self._spec())

        return Asked((type(action.write).__name__, cluster, named), depends_on)

    def _spec(self) -> list[object]:
        return [self.about.metadata.uid, self.about.metadata.generation, self.about.metadata.is_terminating]


def _key(manifest: Manifest) -> ObjectKey:
    metadata = manifest["metadata"]
    return ObjectKey(metadata.get("namespace", ""), metadata.get("name") or metadata.get("generateName", ""))
