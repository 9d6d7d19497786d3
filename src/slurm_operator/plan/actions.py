"""What a plan can be made of: one small type per verb, each with its reason.

Actions are data. They can be printed, recorded, replayed and compared, and nothing happens until the runtime
performs them. The reason is one CamelCase word, as in events; the message is a sentence for people.
"""

from datetime import datetime, timedelta
from typing import Literal

from slurm_operator import wire
from slurm_operator.api.schema.kind import Kind
from slurm_operator.api.shared.meta import ObjectKey
from slurm_operator.conditions import Reason
from slurm_operator.manifests import kinds
from slurm_operator.manifests.meta import Manifest
from slurm_operator.manifests.secrets import SecretHandle
from slurm_operator.plan.order import Order
from slurm_operator.safety.gate import Drained, Proof
from slurm_operator.safety.job_end_check import Ending
from slurm_operator.slurm.writes import CancelJob, RequeueJob, SlurmWrite, subjects


class Apply(wire.Record, tag="Apply"):
    """Server-side apply: afterwards the object has these fields, and they are ours.

    With `takes_over`, so are those that the Slinky operator wrote: what is not among these is gone.
    """

    manifest: Manifest
    reason: Reason
    message: str
    is_housekeeping: bool = False
    takes_over: bool = False


class Create(wire.Record, tag="Create"):
    """Make an object that must not exist yet; never overwrites one that does.

    With `may_exist` one that is there already, whoever made it, is as good.
    """

    manifest: Manifest
    reason: Reason
    message: str
    may_exist: bool = False
    is_housekeeping: bool = False


class PatchObject(wire.Record, tag="PatchObject"):
    """A JSON patch, carried out only if the object is still the one it was decided about."""

    kind: Kind
    key: ObjectKey
    uid: str
    operations: tuple[dict[str, object], ...]
    reason: Reason
    message: str
    subresource: str = ""
    is_housekeeping: bool = False


class DeleteObject(wire.Record, tag="DeleteObject"):
    """Delete one of our children, if it is still the one it was decided about. Never a pod: see the gate.

    With `keeps_dependents` its own children stay, and wait for whoever adopts them.
    """

    kind: Kind
    key: ObjectKey
    uid: str
    reason: Reason
    message: str
    keeps_dependents: bool = False
    is_housekeeping: bool = False

    def __post_init__(self) -> None:
        if self.kind == kinds.POD:
            raise ValueError("a pod is only ever deleted by DeleteWorker, with a proof from the gate")
        if self.kind == kinds.KUBE_NODE:
            raise ValueError(
                "its pods are deleted with a Kubernetes node: it is only ever deleted by DeleteKubeNode"
            )


class DeleteWorker(wire.Record, tag="DeleteWorker"):
    """Delete a worker's pod. The proof that no job is on it is checked once more when it is sent.

    Without `grace_seconds` the pod has its whole grace period, in which slurmd waits for its jobs.
    `is_fenced`: the stage before removes its record from Slurm, which slurmctld refuses while a job is there.
    """

    controller: ObjectKey
    key: ObjectKey
    slurm_node: str
    proof: Proof
    grace_seconds: int | None
    reason: Reason
    message: str
    is_fenced: bool = False


class EndWorker(wire.Record, tag="EndWorker"):
    """Delete a worker's pod although jobs may run in it, because a person ordered exactly that.

    It has its whole grace period, in which slurmd waits for its jobs. The order is checked once more when it
    is sent, and the request names a version of the pod that is marked as leaving: when the order is taken
    back, the mark is taken away, and a delete that nobody answered is void.
    """

    key: ObjectKey
    slurm_node: str
    order: Order
    reason: Reason
    message: str


# Pods in which no job can run, by their app label.
JOBLESS_APPS = frozenset({"slurmctld"})


class DeleteDaemonPod(wire.Record, tag="DeleteDaemonPod"):
    """Delete the pod of a daemon that runs no jobs, so that its workload makes a new one."""

    key: ObjectKey
    uid: str
    app: str
    reason: Reason
    message: str

    def __post_init__(self) -> None:
        if self.app not in JOBLESS_APPS:
            raise ValueError(f"jobs may run in a pod of {self.app!r}: only DeleteWorker, with a proof, may")


class WorkerOnNode(wire.Record):
    """A worker's pod that Kubernetes removes with its Kubernetes node, and what Slurm calls it."""

    key: ObjectKey
    uid: str
    slurm_node: str
    controller: ObjectKey


class DeleteKubeNode(wire.Record, tag="DeleteKubeNode"):
    """Delete a Kubernetes node, so that its provider makes another one. Its pods are removed with it.

    `workers` are those on it: that no job is in any of them, and that there are no others, is asked again
    right before. Good only for this version of the Kubernetes node.
    """

    name: str
    uid: str
    resource_version: str
    workers: tuple[WorkerOnNode, ...]
    reason: Reason
    message: str


class GenerateSecret(wire.Record, tag="GenerateSecret"):
    """Create a Secret with fresh random content, unless there is one. The bytes are made while performing."""

    manifest: Manifest
    recipe: Literal["random", "ssh-host-keys", "password"]
    entry: str
    size: int
    reason: Reason
    message: str


class RestoreSecret(wire.Record, tag="RestoreSecret"):
    """Create a Secret again from our copies of what was in it, unless there is one."""

    manifest: Manifest
    entries: dict[str, SecretHandle]
    reason: Reason
    message: str


class SignToken(wire.Record, tag="SignToken"):
    """Put a Slurm JWT, signed with the key behind `key`, into the Secret that `manifest` describes."""

    manifest: Manifest
    entry: str
    key: SecretHandle
    username: str
    issued_at: datetime
    lifetime: timedelta
    reason: Reason
    message: str


class Fence(wire.Record):
    """The worker whose record goes before its pod does, and the proof by which that was decided."""

    pod: ObjectKey
    proof: Drained


class WriteSlurm(wire.Record, tag="WriteSlurm"):
    """Ask something of the Slurm cluster behind a Controller. Equal wishes of one moment are sent as one.

    With a `fence` it removes a worker's record. Slurm is read right before, and the gate asked again. What
    ends a job says in `ending` for whose sake, and that is asked again too.
    """

    controller: ObjectKey
    write: SlurmWrite
    reason: Reason
    message: str
    fence: Fence | None = None
    ending: Ending | None = None

    def __post_init__(self) -> None:
        if isinstance(self.write, CancelJob | RequeueJob) and self.ending is None:
            raise ValueError("a job is only ever ended for a worker that leaves; say which")


class Wait(wire.Record, tag="Wait"):
    """Deliberately nothing, for now. A plan also says what it is not doing yet, and which jobs hold it up."""

    subject: str
    reason: Reason
    message: str
    jobs: tuple[int, ...] = ()


class Tell(wire.Record, tag="Tell"):
    """Something people should know that changes nothing: an event and a log line."""

    subject: str
    reason: Reason
    message: str
    warning: bool = False


Action = (
    Apply
    | Create
    | PatchObject
    | DeleteObject
    | DeleteDaemonPod
    | DeleteKubeNode
    | DeleteWorker
    | EndWorker
    | GenerateSecret
    | RestoreSecret
    | SignToken
    | WriteSlurm
    | Wait
    | Tell
)


def subject(action: Action) -> str:
    """What the action is about, as people call it: `Service demo/slurm-controller`."""
    match action:
        case Apply(manifest=manifest) | Create(manifest=manifest):
            return _manifest_name(manifest)
        case GenerateSecret(manifest=manifest) | RestoreSecret(manifest=manifest):
            return _manifest_name(manifest)
        case SignToken(manifest=manifest):
            return _manifest_name(manifest)
        case PatchObject(kind=kind, key=key) | DeleteObject(kind=kind, key=key):
            return f"{kind.kind} {ObjectKey(*key)}"
        case DeleteWorker(slurm_node=name) | EndWorker(slurm_node=name):
            return name
        case DeleteKubeNode(name=name):
            return f"Node {name}"
        case DeleteDaemonPod(key=key):
            return f"Pod {ObjectKey(*key)}"
        case WriteSlurm(write=write):
            return ", ".join(subjects(write))
        case Wait(subject=name) | Tell(subject=name):
            return name


def _manifest_name(manifest: Manifest) -> str:
    metadata = manifest["metadata"]
    name = metadata.get("name") or metadata.get("generateName", "") + "…"
    return f"{manifest['kind']} {ObjectKey(metadata.get('namespace', ''), name)}"


def does_nothing(action: Action) -> bool:
    return isinstance(action, Wait | Tell)


def is_housekeeping(action: Action) -> bool:
    """Whether it is no news to people when it works: a condition says all that matters, or nothing does.

    The log has a line for it all the same.
    """
    return isinstance(action, Apply | Create | PatchObject | DeleteObject) and action.is_housekeeping
