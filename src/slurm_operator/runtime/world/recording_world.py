"""A World that remembers what it was asked and what it answered, so that a decision can be made once more."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, TypeVar

from slurm_operator import wire
from slurm_operator.api.registry import name_of
from slurm_operator.api.schema import codec
from slurm_operator.api.schema.kind import Kind
from slurm_operator.api.schema.model import is_model
from slurm_operator.api.shared.meta import HasMeta
from slurm_operator.manifests.meta import Child, Manifest
from slurm_operator.manifests.objects import ConfigMap, Secret, Unread
from slurm_operator.manifests.storage import StorageUse
from slurm_operator.plan.world import KUBE_NODE_NAME, OWNER_NAME, Protection, World
from slurm_operator.slurm.jobs.ended import EndedJob
from slurm_operator.slurm.snapshot import Snapshot, Unreachable

T = TypeVar("T", bound=HasMeta)

A = TypeVar("A")

Question = tuple[str, ...]


def _name(type_: type[Any]) -> str:
    """What a recording calls a type of record. Kinds of two groups may have the same name."""
    kind: Kind | None = getattr(type_, "KIND", None)
    return type_.__name__ if kind is None else name_of(kind)


class RecordingWorld:
    """Passes every question on, and keeps the answers. They are frozen, so keeping them costs nothing."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.answers: dict[Question, Any] = {}

    @property
    def now(self) -> datetime:
        return self._world.now

    @property
    def protection(self) -> Protection:
        return self._keep(("protection",), self._world.protection)

    def get(self, type_: type[T], namespace: str, name: str) -> T | None:
        return self._keep(("get", _name(type_), namespace, name), self._world.get(type_, namespace, name))

    def all(self, type_: type[T], namespace: str = "") -> Sequence[T]:
        return self._keep(("all", _name(type_), namespace), self._world.all(type_, namespace))

    def unreadable(self, type_: type[T], namespace: str) -> Sequence[str]:
        question = ("unreadable", _name(type_), namespace)
        return self._keep(question, self._world.unreadable(type_, namespace))

    def find(self, type_: type[T], index: str, value: str) -> Sequence[T]:
        return self._keep(("find", _name(type_), index, value), self._world.find(type_, index, value))

    def child(self, kind: Kind, namespace: str, name: str) -> Child | None:
        return self._keep(("child", str(kind), namespace, name), self._world.child(kind, namespace, name))

    def children(self, kind: Kind, owner_uid: str) -> Sequence[Child]:
        return self._keep(("children", str(kind), owner_uid), self._world.children(kind, owner_uid))

    def secret(self, namespace: str, name: str) -> Secret | Unread | None:
        return self._keep(("secret", namespace, name), self._world.secret(namespace, name))

    def config_map(self, namespace: str, name: str) -> ConfigMap | Unread | None:
        return self._keep(("config_map", namespace, name), self._world.config_map(namespace, name))

    def revision(self, namespace: str, name: str) -> Child | Unread | None:
        return self._keep(("revision", namespace, name), self._world.revision(namespace, name))

    def slurm(self, namespace: str, controller: str) -> Snapshot | Unreachable:
        return self._keep(("slurm", namespace, controller), self._world.slurm(namespace, controller))

    def job_end(self, namespace: str, controller: str, job_id: int) -> Sequence[EndedJob] | Unread:
        question = ("job_end", namespace, controller, str(job_id))
        return self._keep(question, self._world.job_end(namespace, controller, job_id))

    def storage(self, pod_uid: str) -> StorageUse | None:
        return self._keep(("storage", pod_uid), self._world.storage(pod_uid))

    def serves(self, kind: Kind) -> bool:
        return self._keep(("serves", str(kind)), self._world.serves(kind))

    def _keep(self, question: Question, answer: A) -> A:
        self.answers[question] = answer
        return answer


class NotRecorded(Exception):  # noqa: N818 - it says what is the case
    """A question that was not asked when this was recorded: the program has changed since."""


class Answer:
    """A recorded answer as it stands in the file, read once. Whoever asks knows what types it can have."""

    def __init__(self, value: Any) -> None:
        self._value = value
        self._read: dict[tuple[type[Any], ...], Any] = {}

    def of(self, *types: type[Any]) -> Any:
        if types not in self._read:
            self._read[types] = read(self._value, *types)
        return self._read[types]


class ReplayWorld:
    """A World that gives the recorded answers again, and no others."""

    def __init__(self, now: datetime, answers: Mapping[Question, Answer]) -> None:
        self.now = now
        self._answers = answers

    @property
    def protection(self) -> Protection:
        question = ("protection",)  # An earlier program did not ask.
        return Protection(self._answer(question)) if question in self._answers else Protection.NOT_LOOKED

    def get(self, type_: type[T], namespace: str, name: str) -> T | None:
        found: T | None = self._answer(("get", _name(type_), namespace, name), type_)
        return found

    def all(self, type_: type[T], namespace: str = "") -> Sequence[T]:
        found: Sequence[T] = self._answer(("all", _name(type_), namespace), type_)
        return found

    def unreadable(self, type_: type[T], namespace: str) -> Sequence[str]:
        found: Sequence[str] = self._answer(("unreadable", _name(type_), namespace))
        return found

    def find(self, type_: type[T], index: str, value: str) -> Sequence[T]:
        question = ("find", _name(type_), index, value)
        if index in (OWNER_NAME, KUBE_NODE_NAME) and question not in self._answers:
            return ()  # An earlier program did not ask.
        found: Sequence[T] = self._answer(question, type_)
        return found

    def child(self, kind: Kind, namespace: str, name: str) -> Child | None:
        found: Child | None = self._answer(("child", str(kind), namespace, name), Child)
        return found

    def children(self, kind: Kind, owner_uid: str) -> Sequence[Child]:
        found: Sequence[Child] = self._answer(("children", str(kind), owner_uid), Child)
        return found

    def secret(self, namespace: str, name: str) -> Secret | Unread | None:
        found: Secret | Unread | None = self._answer(("secret", namespace, name), Secret, Unread)
        return found

    def config_map(self, namespace: str, name: str) -> ConfigMap | Unread | None:
        found: ConfigMap | Unread | None = self._answer(("config_map", namespace, name), ConfigMap, Unread)
        return found

    def revision(self, namespace: str, name: str) -> Child | Unread | None:
        found: Child | Unread | None = self._answer(("revision", namespace, name), Child, Unread)
        return found

    def slurm(self, namespace: str, controller: str) -> Snapshot | Unreachable:
        found: Snapshot | Unreachable = self._answer(("slurm", namespace, controller), Snapshot, Unreachable)
        return found

    def job_end(self, namespace: str, controller: str, job_id: int) -> Sequence[EndedJob] | Unread:
        question = ("job_end", namespace, controller, str(job_id))
        found: Sequence[EndedJob] | Unread = self._answer(question, EndedJob, Unread)
        return found

    def storage(self, pod_uid: str) -> StorageUse | None:
        found: StorageUse | None = self._answer(("storage", pod_uid), StorageUse)
        return found

    def serves(self, kind: Kind) -> bool:
        return bool(self._answer(("serves", str(kind))))

    def _answer(self, question: Question, *types: type[Any]) -> Any:
        if question not in self._answers:
            raise NotRecorded(" ".join(question))
        return self._answers[question].of(*types)


def plain_answer(answer: Any) -> Manifest | list[Manifest | str] | bool | str | None:
    """An answer as plain data that says of what type it is; names and yes or no speak for themselves."""
    if answer is None or isinstance(answer, bool | str):
        return answer
    if isinstance(answer, list | tuple):
        return [item if isinstance(item, str) else _one(item) for item in answer]
    return _one(answer)


def _one(thing: Any) -> Manifest:
    type_ = type(thing)
    value = codec.plain(thing) if is_model(type_) else thing
    return {"type": _name(type_), "value": wire.decode_any(wire.encode(value))}


def read(answer: Any, *types: type[Any]) -> Any:
    """The answer that was written, which is of one of these types."""
    if answer is None or isinstance(answer, bool | str):
        return answer
    if isinstance(answer, list):
        return [read(item, *types) for item in answer]
    type_ = {_name(one): one for one in types}.get(answer["type"])
    if type_ is None:
        raise NotRecorded(f"a record of type {answer['type']}, which it no longer looks at")
    if is_model(type_):
        return codec.read(type_, answer["value"])
    return wire.decode(wire.encode(answer["value"]), type_)
