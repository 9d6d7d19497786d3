"""One action, carried out: the only place that writes to Kubernetes on behalf of a plan."""

import asyncio
import base64
import contextlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Unpack

from slurm_operator import wire
from slurm_operator.api.schema.kind import Kind
from slurm_operator.api.shared.belonging import daemon_of
from slurm_operator.api.shared.meta import Meta, ObjectKey
from slurm_operator.kube import envelope
from slurm_operator.kube.client import Client, Deletion, Propagation
from slurm_operator.kube.errors import (
    AlreadyExists,
    ApiError,
    Conflict,
    Invalid,
    KubeError,
    NamespaceEnding,
    NotFound,
    NotLeader,
)
from slurm_operator.kube.takeover import take_over
from slurm_operator.kube.watch.cache import Cache
from slurm_operator.kube.watch.named_objects import read_secret, value_digest
from slurm_operator.manifests import kinds
from slurm_operator.manifests.defaults import NO_DEFAULTS, WORKLOADS, Defaults, with_defaults
from slurm_operator.manifests.meta import Child, Manifest
from slurm_operator.manifests.objects import Pod
from slurm_operator.manifests.secrets import (
    CONTENT_DIGEST,
    SSH_FINGERPRINTS,
    SecretHandle,
    bytes_of,
    content_digest,
    filled,
    handles_in,
    text_of,
)
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
from slurm_operator.plan.order import why_not_ordered
from slurm_operator.runtime.act.held_actions import Hold
from slurm_operator.runtime.act.recheck import Proofs, Told, as_it_is
from slurm_operator.runtime.act.refused_writes import is_passing, is_refusal
from slurm_operator.runtime.act.secret_generators import fingerprints, make
from slurm_operator.runtime.act.stages import ActionFailed, NotSentToSlurm, OutOfTime, Pointless
from slurm_operator.runtime.loop.retries import Retries
from slurm_operator.runtime.world.caches import Caches
from slurm_operator.safety.gate import OF_ONE_VERSION, SLURMD, Forgotten, marked_version, version_to_delete
from slurm_operator.safety.steps import COMMAND, saw_no_step
from slurm_operator.slurm.writes import CancelJob, RequeueJob, Verdict
from slurm_operator.slurmrest.tokens import signed
from slurm_operator.slurmsync.remove_nodes import Guard

# A proof may run out while a deletion waits for a connection; it is renewed, and put in line again. And a
# kubelet may write to the pod in the moment in which it is deleted.
DELETE_TRIES = 4

# A worker whose record is gone registers again after half a minute. By then a delete that nobody answered has
# to be void.
ANSWERED_WITHIN_SECONDS = 5.0


@dataclass(frozen=True)
class Written:
    """A write the API server has answered: the watch of `cache` will show it at this version or later."""

    cache: Cache[object]  # type: ignore[type-var]
    key: ObjectKey
    resource_version: str


class Performer:
    """Carries out the actions of one pass, and remembers what it wrote. `now` and `told` are its clock's."""

    def __init__(
        self,
        client: Client,
        known: Caches,
        now: Callable[[], datetime],
        retries: Retries,
        is_wanted: Callable[[], bool],
        about: Callable[[], Meta | None] = lambda: None,
        *,
        told: Told = as_it_is,
        hold: Hold | None = None,
        defaults: Defaults = NO_DEFAULTS,
    ) -> None:
        """`about` gives the metadata, as known now, of the object that the pass is about."""
        self._client = client
        self._known = known
        self._now = now
        self._retries = retries
        self._about = about
        self._hold = hold
        self._defaults = defaults
        self._proofs = Proofs(known, now, is_wanted, told)
        self.written: list[Written] = []

    async def perform(self, action: Action) -> None:
        """Do it. Raises ActionFailed, in words for people, or Pointless when there is nobody to do it for.

        What was refused before is not sent again before its time, and fails in the same words.
        """
        if self._hold is not None:
            self._hold.check(action)
        try:
            await self._retries.of(lambda: self._dispatch(action))
        except KubeError as error:
            if _is_pointless(action, error):
                raise Pointless from error
            if is_refusal(error):
                raise self._refused(action, str(error), passing=is_passing(error)) from error
            retry_after = error.retry_after if isinstance(error, ApiError) else None
            raise ActionFailed(str(error), retry_after=retry_after) from error
        if self._hold is not None:
            self._hold.taken(action)

    def _refused(self, action: Action, error: str, *, passing: bool) -> ActionFailed:
        if self._hold is None:
            return ActionFailed(error)
        return self._hold.refused(action, error, passing=passing)

    async def _dispatch(self, action: Action) -> None:
        match action:
            case Apply(manifest=manifest, takes_over=takes_over):
                await self._apply(manifest, takes_over=takes_over)
            case Create(manifest=manifest, may_exist=may_exist):
                with contextlib.suppress(*([AlreadyExists] if may_exist else [])):
                    kind, whole = kinds.kind_of(manifest), with_defaults(manifest, self._defaults)
                    self._note_answer(kind, await self._client.create_undecoded(kind, whole))
            case PatchObject(kind=kind, key=key):
                patched = await self._client.json_patch_undecoded(
                    kind,
                    ObjectKey(*key),
                    action.operations,
                    uid=action.uid,
                    subresource=action.subresource,
                    deadline_seconds=ANSWERED_WITHIN_SECONDS if _is_mark(action) else None,
                )
                self._note_answer(kind, patched)
            case DeleteObject(kind=kind, key=key, uid=uid, keeps_dependents=keeps):
                propagation: Propagation = "Orphan" if keeps else "Background"
                await self._delete(kind, ObjectKey(*key), uid, propagation=propagation)
            case DeleteDaemonPod():
                await self._delete_daemon_pod(action)
            case DeleteKubeNode():
                await self._delete_kube_node(action)
            case DeleteWorker():
                await self._delete_worker(action)
            case EndWorker():
                await self._end_worker(action)
            case GenerateSecret():
                await self._generate(action)
            case RestoreSecret():
                await self._restore(action)
            case SignToken():
                await self._sign(action)
            case WriteSlurm():
                await self._write_slurm(action)
            case Wait() | Tell():
                pass

    async def _apply(self, manifest: Manifest, *, takes_over: bool) -> None:
        if "stringData" in manifest:
            manifest = await self._filled(manifest)
        kind = kinds.kind_of(manifest)
        key = ObjectKey(manifest["metadata"].get("namespace", ""), manifest["metadata"]["name"])
        manifest = with_defaults(manifest, self._defaults, self._workload(kind, key))
        if takes_over:
            await take_over(self._client, kind, key)
        try:
            made = await self._client.apply(kind, manifest)
        except Invalid as refusal:
            # It may be beside fields that we could not see: our caches only have what is labelled as ours.
            if takes_over or not await self._took_over(kind, key, refusal):
                raise
            made = await self._client.apply(kind, manifest)
        self._note(kind, made)

    def _workload(self, kind: Kind, key: ObjectKey) -> Child | None:
        """The StatefulSet or Deployment of this name as it is; None for all other kinds."""
        found = self._known.live(kind, key) if kind in WORKLOADS else None
        return found if isinstance(found, Child) else None

    async def _took_over(self, kind: Kind, key: ObjectKey, refusal: Invalid) -> bool:
        """As `take_over`. Where that fails, the write was refused all the same, and backs off as such."""
        try:
            return await take_over(self._client, kind, key)
        except KubeError as error:
            raise refusal from error

    async def _filled(self, manifest: Manifest) -> Manifest:
        """A Secret with its values, and a note by which a foreign edit of them shows."""
        values = {handle: text_of(handle, await self._value(handle)) for handle in handles_in(manifest)}
        whole = filled(manifest, values)
        entries = {key: text.encode() for key, text in whole.pop("stringData").items()}
        digests = {key: value_digest(value) for key, value in entries.items()}
        noted = _with_annotations(whole, {CONTENT_DIGEST: content_digest(digests, entries)})
        return _with_data(noted, entries)

    async def _delete(self, kind: Kind, key: ObjectKey, uid: str, **how: Unpack[Deletion]) -> None:
        try:
            left = await self._client.delete_undecoded(kind, key, uid=uid, **how)
        except NotFound:
            left = None
        if left is None:
            self._known.note_deleted(kind, key, uid)
        else:
            self._note_answer(kind, left)

    async def _delete_daemon_pod(self, action: DeleteDaemonPod) -> None:
        """What the plan takes for a daemon without jobs must be one: workers leave through the gate alone."""
        key = ObjectKey(*action.key)
        pod = self._known.records[Pod].get(key)
        if pod is not None and daemon_of(pod.metadata.labels) != action.app:
            raise ActionFailed(f"pod {key.name} is not one of {action.app}; it is left alone")
        await self._delete(kinds.POD, key, action.uid)

    async def _delete_kube_node(self, action: DeleteKubeNode) -> None:
        """Slurm is read again if need be. What changed since is for the next pass to see."""
        await self._proofs.hold_kube_node(action)
        try:
            await self._delete(
                kinds.KUBE_NODE,
                ObjectKey("", action.name),
                action.uid,
                resource_version=action.resource_version,
                still=lambda: self._proofs.kube_node_objection(action) is None,
                deadline_seconds=ANSWERED_WITHIN_SECONDS,
            )
        except NotLeader:
            if self._proofs.kube_node_objection(action) is None:
                raise
            raise OutOfTime from None
        except Conflict:
            raise OutOfTime from None

    async def _delete_worker(self, action: DeleteWorker) -> None:
        """The one way a worker's pod is deleted: with a proof, checked again when it is sent.

        It names a version of the pod, so that it cannot be carried out when the pod has changed since.
        """
        key, proof = ObjectKey(*action.key), action.proof
        for _ in range(DELETE_TRIES):
            await self._proofs.hold(action)
            pod = self._known.records[Pod].get(key)
            if pod is None or pod.metadata.uid != proof.pod_uid:
                return  # It has gone already; one of the same name is another worker.
            version = version_to_delete(proof, pod)
            if version is None:
                raise OutOfTime
            if isinstance(proof, Forgotten):
                await self._see_no_step(key)
            try:
                await self._delete(
                    kinds.POD,
                    key,
                    proof.pod_uid,
                    resource_version=version,
                    grace_seconds=action.grace_seconds,
                    still=lambda: self._proofs.objection(action) is None,
                    deadline_seconds=ANSWERED_WITHIN_SECONDS,
                )
            except NotLeader:
                if self._proofs.objection(action) is None:
                    raise
            except Conflict:
                if isinstance(proof, OF_ONE_VERSION):
                    raise OutOfTime from None  # What is so now is for the next pass to see.
                await self._look_at(kinds.POD, key)
            else:
                return
        raise OutOfTime

    async def _see_no_step(self, key: ObjectKey) -> None:
        """Look into it once more: Slurm may have known it since, and forgotten a job there."""
        if not saw_no_step(await self._client.printed(key, SLURMD, COMMAND)):
            raise ActionFailed(f"{key.name} is not deleted after all: a step may run there")

    async def _look_at(self, kind: Kind, key: ObjectKey) -> None:
        """As it is now, ahead of the watch."""
        with contextlib.suppress(NotFound):  # Then its watch tells in a moment.
            self._note(kind, await self._client.get(kind, key))

    async def _end_worker(self, action: EndWorker) -> None:
        """Besides the gate the one way to delete a worker's pod: by a person's order, while that stands."""
        for _ in range(DELETE_TRIES):
            if await self._try_to_end(action):
                return
        raise OutOfTime

    async def _try_to_end(self, action: EndWorker) -> bool:
        """It names a marked version of the pod, too: an order may be taken back while nobody answers."""
        key, uid = ObjectKey(*action.key), action.order.pod_uid
        pod = self._known.records[Pod].get(key)
        if pod is None or pod.metadata.uid != uid:
            return True  # It has gone already.

        def objection() -> str | None:
            return why_not_ordered(action.order, self._about(), pod.metadata)

        if (changed := objection()) is not None:
            raise ActionFailed(f"{action.slurm_node} is not deleted after all: {changed}")
        version = marked_version(pod.metadata)
        if version is None:
            raise OutOfTime
        how: Deletion = {
            "resource_version": version,
            "still": lambda: objection() is None,
            "deadline_seconds": ANSWERED_WITHIN_SECONDS,
        }
        try:
            await self._delete(kinds.POD, key, uid, **how)
        except NotLeader:
            if objection() is None:
                raise
            return False
        except Conflict:
            await self._look_at(kinds.POD, key)
            return False
        return True

    async def _restore(self, action: RestoreSecret) -> None:
        entries = {entry: bytes_of(await self._value(copy)) for entry, copy in action.entries.items()}
        with contextlib.suppress(AlreadyExists):  # Then the one that somebody made is the one.
            manifest = with_defaults(_with_data(action.manifest, entries), self._defaults)
            made = await self._client.create(kinds.SECRET, manifest)
            self._note(kinds.SECRET, made)

    async def _generate(self, action: GenerateSecret) -> None:
        entries = await make(action.recipe, action.entry, action.size)
        manifest = with_defaults(_with_data(action.manifest, entries), self._defaults)
        if told := fingerprints(entries):
            manifest = _with_annotations(manifest, {SSH_FINGERPRINTS: ", ".join(told)})
        # Somebody made it in the meantime: then theirs is the one, and the next pass sees it.
        with contextlib.suppress(AlreadyExists):
            self._note(kinds.SECRET, await self._client.create(kinds.SECRET, manifest))

    async def _sign(self, action: SignToken) -> None:
        key = await self._value(action.key)
        token = signed(key, user=action.username, now=action.issued_at, lifetime=action.lifetime)
        manifest = with_defaults(_with_data(action.manifest, {action.entry: token.encode()}), self._defaults)
        self._note(kinds.SECRET, await self._client.apply(kinds.SECRET, manifest))

    async def _write_slurm(self, action: WriteSlurm) -> None:
        controller = ObjectKey(*action.controller)
        result = await self._known.slurms.write(controller, action.write, self._guard(action))
        if result is None:
            raise ActionFailed(f"the Slurm cluster of Controller {controller.name!r} is not connected")
        if result.is_late:
            raise OutOfTime
        if not result.is_good:
            told = "; ".join(f"{subject}: {answer.message}" for subject, answer in result.problems.items())
            verdicts = {answer.verdict for answer in result.problems.values()}
            if Verdict.REFUSED in verdicts:
                raise self._refused(action, told, passing=True)
            raise (NotSentToSlurm if verdicts == {Verdict.NOT_SENT} else ActionFailed)(told)

    def _guard(self, action: WriteSlurm) -> Guard | None:
        """Who is asked once more, right before it is sent."""
        if action.fence is not None:
            return self._proofs.guard(action.write, action.fence)
        if action.ending is not None and isinstance(action.write, CancelJob | RequeueJob):
            return self._proofs.guard_of_job(action.write, action.ending)
        return None

    async def _value(self, handle: SecretHandle) -> bytes:
        """The secret value behind a handle, if it is still the one that was decided about.

        A signing key that was in use when its Secret went is still in our memory.
        """
        try:
            values = await read_secret(self._client, ObjectKey(handle.namespace, handle.name))
        except NotFound:
            values = {}
        value = values.get(handle.key)
        if value is None and handle.digest:
            value = self._known.slurms.remembered(handle.digest)
        if value is None:
            raise ActionFailed(f"{handle} does not exist")
        if handle.digest and value_digest(value) != handle.digest:
            raise ActionFailed(f"{handle} changed while we were at it; looking again")
        return value

    def _note(self, kind: Kind, manifest: Manifest) -> None:
        self._note_answer(kind, wire.encode(manifest))

    def _note_answer(self, kind: Kind, body: bytes) -> None:
        """Our own write is visible to the next pass at once, whatever the watch is doing."""
        written = envelope.labelled(body)
        for cache in self._known.note_answer(kind, body, written.labels):
            self.written.append(Written(cache, written.key, written.resource_version))


def _is_mark(action: PatchObject) -> bool:
    """On a worker's pod. What is noted in its status may take longer."""
    return action.kind == kinds.POD and not action.subresource


def _is_pointless(action: Action, error: KubeError) -> bool:
    """Whether the whole namespace ends, or what was to be changed is gone, as its watch says in a moment."""
    is_gone = isinstance(error, NotFound) and isinstance(action, PatchObject)
    return is_gone or isinstance(error, NamespaceEnding)


def _with_annotations(manifest: Manifest, notes: dict[str, str]) -> Manifest:
    metadata = manifest["metadata"]
    annotations = {**metadata.get("annotations", {}), **notes}
    return manifest | {"metadata": {**metadata, "annotations": annotations}}


def _with_data(manifest: Manifest, entries: dict[str, bytes]) -> Manifest:
    return manifest | {"data": {key: base64.b64encode(value).decode() for key, value in entries.items()}}


async def wait_until_seen(written: Iterable[Written], seconds: float) -> None:
    """Until the watches have shown our last writes. Bounded, and harmless to lose: the caches have them."""
    clock = asyncio.get_running_loop().time
    ends = clock() + seconds
    for write in written:
        if not await write.cache.wait_passed(write.key, write.resource_version, ends - clock()):
            return
