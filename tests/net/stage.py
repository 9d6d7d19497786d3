"""A World over the simulated API server, and what becomes of a plan there: at once, without wires or weather."""

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from simulation.apiserver import HUMAN, OPERATOR, ApiServer, Object
from slurm_operator import operator, wire
from slurm_operator.api.schema import codec
from slurm_operator.api.schema.kind import Kind
from slurm_operator.api.shared.meta import Meta, ObjectKey, key_of
from slurm_operator.kube.errors import ApiError
from slurm_operator.manifests import kinds
from slurm_operator.manifests.digests import digest
from slurm_operator.manifests.labels import matches
from slurm_operator.manifests.meta import Child, decode_child
from slurm_operator.manifests.objects import ConfigMap, Secret, Unread
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
    WriteSlurm,
)
from slurm_operator.plan.plan import Failure, Outcome, Plan
from slurm_operator.plan.reconciler import Reconciler, StatusReport
from slurm_operator.plan.world import Protection, T
from slurm_operator.reconcilers.shared import spec_refusal
from slurm_operator.runtime.report.reporter import full_status
from slurm_operator.runtime.settings import Settings
from slurm_operator.slurm.snapshot import Snapshot, Unreachable
from testing.world import WorldOfThings

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
PROGRAM = operator.program(Settings())


@dataclass
class Clock:
    moment: datetime = NOW

    def now(self) -> datetime:
        return self.moment


@dataclass
class Stage(WorldOfThings):
    """Everything there is: objects in a server, and what is known of Slurm. Answers as the real World does."""

    alone_since = NOW

    chance: random.Random
    clock: Clock = field(default_factory=Clock)
    slurms: dict[ObjectKey, Snapshot | Unreachable] = field(default_factory=dict)
    protection: Protection = Protection.NOT_LOOKED
    hidden: set[Kind] = field(default_factory=set)  # Kinds that the server lacks, or keeps from us.
    unread: set[ObjectKey] = field(default_factory=set)  # Secrets and ConfigMaps that cannot be read.

    def __post_init__(self) -> None:
        self.server = ApiServer(self.clock)
        self._sources = {source.type: source for source in PROGRAM.sources.records}
        self._read: dict[tuple[type, str], Any] = {}

    # ---- The World

    @property
    def now(self) -> datetime:
        return self.clock.now()

    def unreadable(self, type_, namespace):
        return []

    def children(self, kind, owner_uid):
        found = (child for child in self.of_kind(kind) if owner_uid in _owners(child.metadata))
        return sorted(found, key=key_of)

    def secret(self, namespace, name):
        return self._named(kinds.SECRET, ObjectKey(namespace, name), _secret)

    def config_map(self, namespace, name):
        return self._named(kinds.CONFIG_MAP, ObjectKey(namespace, name), wire.decoder(ConfigMap))

    def revision(self, namespace, name):
        return self._named(kinds.CONTROLLER_REVISION, ObjectKey(namespace, name), decode_child)

    def job_end(self, namespace, controller, job_id):
        return Unread(why="nobody is asked here")

    def storage(self, pod_uid):
        return None

    def serves(self, kind):
        return kind not in self.hidden

    def of_type(self, type_: type[T]) -> Iterator[T]:
        source = self._sources[type_]
        if source.kind in self.hidden:
            return
        for found in self.server.all(source.kind):
            if not source.label_selector or matches(
                source.label_selector, found["metadata"].get("labels", {})
            ):
                yield self._decoded(type_, source.decode, found)

    def of_kind(self, kind: Kind) -> Iterator[Child]:
        source = PROGRAM.sources.child_source(kind)
        if kind in self.hidden:
            return
        for found in self.server.all(kind):
            if matches(source.label_selector, found["metadata"].get("labels", {})):
                yield self._decoded(Child, source.decode, found)

    def _decoded(self, type_: type, decode, found: Object):
        """Each version of an object is read once."""
        version = (type_, found["metadata"]["resourceVersion"])
        if version not in self._read:
            self._read[version] = decode(wire.encode(found))
        return self._read[version]

    def _named(self, kind: Kind, key: ObjectKey, decode):
        if key in self.unread:
            return Unread(why="the API server has not answered yet")
        found = self.server.objects[kind].get(key)
        return decode(wire.encode(found)) if found is not None else None

    # ---- A pass

    def passes(self, reconciler: Reconciler[Any]) -> Iterator[tuple[ObjectKey, Plan, StatusReport]]:
        """One pass over each object, carried out before the next."""
        for about in self.all(reconciler.about):
            key = key_of(about)
            seen = reconciler.observe(key, self)
            if seen is None:
                continue
            plan = spec_refusal.decide(reconciler, about, seen, self, self.now)
            outcome = self._carried_out(plan)
            report = spec_refusal.status(reconciler, seen, plan, outcome)
            yield key, plan, report
            self._write_status(reconciler, about, report)

    def _write_status(self, reconciler: Reconciler[Any], about, report: StatusReport) -> None:
        live = codec.plain(about.status) or {}
        status = full_status(report, live, generation=about.metadata.generation, now=self.now)
        if key_of(about) in self.server.objects[reconciler.kind]:
            meta = {"name": about.metadata.name, "namespace": about.metadata.namespace}
            self.server.apply_status(reconciler.kind, {"metadata": meta, "status": status})

    def _carried_out(self, plan: Plan) -> Outcome:
        """Some actions fail, and stop their lanes."""
        done: list[Action] = []
        failed: list[Failure] = []
        skipped: list[Action] = []
        for lane in plan.lanes:
            stopped = False
            for stage in lane.stages:
                if stopped:
                    skipped += stage
                    continue
                for action in stage:
                    error = self._error(action)
                    if error:
                        failed.append(Failure(action=action, error=error))
                        stopped = True
                    else:
                        done.append(action)
        return Outcome(done=tuple(done), failed=tuple(failed), skipped=tuple(skipped))

    def _error(self, action: Action) -> str:
        if self.chance.random() < 0.04:
            return "something went wrong"
        try:
            self._perform(action)
        except ApiError as error:
            return str(error)
        return ""

    def _perform(self, action: Action) -> None:
        server = self.server
        match action:
            case Apply(manifest=manifest):
                server.apply(kinds.kind_of(manifest), _with_data(manifest))
            case Create(manifest=manifest, may_exist=may_exist):
                kind, key = kinds.kind_of(manifest), _key(manifest)
                if not (may_exist and key in server.objects[kind]):
                    server.create(kind, manifest, OPERATOR)
            case PatchObject(kind=kind, key=key, operations=operations):
                server.patch(kind, ObjectKey(*key), operations, OPERATOR)
            case DeleteObject(kind=kind, key=key, uid=uid, keeps_dependents=keeps):
                server.delete(kind, ObjectKey(*key), OPERATOR, uid=uid, orphans=keeps)
            case DeleteDaemonPod(key=key, uid=uid):
                server.delete(kinds.POD, ObjectKey(*key), OPERATOR, uid=uid, grace=0)
            case DeleteKubeNode(name=name, uid=uid):
                server.delete(kinds.KUBE_NODE, ObjectKey("", name), OPERATOR, uid=uid)
            case DeleteWorker(key=key, proof=proof):
                server.delete(kinds.POD, ObjectKey(*key), OPERATOR, uid=proof.pod_uid, grace=0)
            case EndWorker(key=key, order=order):
                server.delete(kinds.POD, ObjectKey(*key), OPERATOR, uid=order.pod_uid, grace=0)
            case RestoreSecret(manifest=manifest, entries=entries):
                data = dict.fromkeys(entries, "YmFjaw==")
                server.create(kinds.SECRET, {**manifest, "data": data}, OPERATOR)
            case GenerateSecret(manifest=manifest, entry=entry):
                if _key(manifest) not in server.objects[kinds.SECRET]:
                    server.create(kinds.SECRET, {**manifest, "data": _made(entry)}, OPERATOR)
            case SignToken(manifest=manifest, entry=entry):
                server.apply(kinds.SECRET, {**manifest, "data": {entry: "c2lnbmVk"}})
            case WriteSlurm():
                pass  # What Slurm is like is drawn for each round.
            case _:
                pass

    # ---- What people do

    def put(self, kind: Kind, manifest: Object, status: Object | None = None) -> Object:
        made = self.server.create(kind, manifest, HUMAN)
        if status is not None:
            made = self.server.change(kind, _key(manifest), lambda it: it.update(status=status), HUMAN)
        return made


def _key(manifest: Object) -> ObjectKey:
    return ObjectKey(manifest["metadata"].get("namespace", ""), manifest["metadata"]["name"])


def _owners(meta: Meta) -> list[str]:
    return [owner.uid for owner in meta.owner_references] or [""]


def _with_data(manifest: Object) -> Object:
    """A Secret of which only handles are known, as if it had been filled."""
    if "stringData" not in manifest:
        return manifest
    entries = {entry: digest(wire.plain(value)) for entry, value in manifest["stringData"].items()}
    return {**{k: v for k, v in manifest.items() if k != "stringData"}, "data": entries}


def _made(entry: str) -> dict[str, str]:
    entries = [entry] if entry else ["ssh_host_ed25519_key", "ssh_host_ed25519_key.pub"]
    return dict.fromkeys(entries, "bWFkZQ==")


def _secret(body: bytes) -> Secret:
    found = wire.decode_any(body)
    meta = codec.read(Meta, found["metadata"])
    digests = {entry: digest(value) for entry, value in (found.get("data") or {}).items()}
    return Secret(metadata=meta, digests=digests, immutable=bool(found.get("immutable")))
