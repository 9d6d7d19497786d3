"""Kubernetes in a picture: the API server, its controllers and kubelets, as far as a plan meets them.

Everything goes well there: images are pulled, pods fit, volumes come. What does not is seen in the real one.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from slurm_operator import wire
from slurm_operator.api import registry
from slurm_operator.api.nebius import JailedConfig
from slurm_operator.api.nebius.names import POPULATE_PURPOSE
from slurm_operator.api.schema import codec
from slurm_operator.api.schema.kind import Kind
from slurm_operator.api.shared.meta import HasMeta, Meta, ObjectKey, key_of
from slurm_operator.insight.forecast import workloads
from slurm_operator.insight.forecast.patches import bare, merged, patched
from slurm_operator.insight.world_snapshot import Picture
from slurm_operator.manifests import kinds
from slurm_operator.manifests.compare.differences import changes
from slurm_operator.manifests.digests import digest
from slurm_operator.manifests.meta import Child, Manifest
from slurm_operator.manifests.objects import ConfigMap, Pod, Secret, Unread
from slurm_operator.manifests.secrets import CONTENT_DIGEST, content_digest
from slurm_operator.reconcilers.nebius.shared.root import is_finished

OUR_TYPES: dict[Kind, type[Any]] = {one.kind: one.model for one in registry.ALL}

# What does not exist yet has a uid of this kind.
NEW = "new-"


class Kubernetes:
    """Writes into a picture. `changes` counts what became different: when it stands still, all is quiet."""

    def __init__(self, picture: Picture) -> None:
        self.picture = picture
        self.populates = True  # Whether Jobs that populate a shared root succeed.
        self.changes = 0
        self._made = 0
        self._outdated: set[str] = set()  # Pods of a template that is no longer the one.

    # ---- What the API server takes

    def put(self, manifest: Manifest) -> None:
        """Apply, or create: afterwards the object has these fields."""
        kind = kinds.kind_of(manifest)
        if kind in OUR_TYPES:
            self._put_ours(OUR_TYPES[kind], manifest)
        elif kind == kinds.POD:
            body = self._born(manifest)
            body["spec"] = {**body["spec"], "nodeName": workloads.pinned_to(body["spec"])}
            self.put_pod(wire.convert(body, Pod))
        elif kind == kinds.SECRET:
            self._put_secret(manifest)
        elif kind in self.picture.parts or kind in self.picture.served or kind in workloads.CHILD_KINDS:
            self._put_child(kind, manifest)

    def put_thing(self, thing: HasMeta) -> None:
        old = self.picture.records.get(type(thing), {}).get(key_of(thing))
        if old != thing:
            self.changes += 1
            self.picture.put(thing)

    def put_pod(self, pod: Pod) -> None:
        self.put_thing(pod)

    def generate(self, manifest: Manifest, entries: Iterable[str]) -> None:
        """A Secret with content that nobody knows yet."""
        body = self._born(manifest)
        key = _key(body)
        if isinstance(self.picture.secrets.get(key), Secret):
            return
        digests = {entry: f"{NEW}{entry}" for entry in entries}
        self._put_named(Secret(metadata=_meta(body), digests=digests))

    def patch(self, kind: Kind, key: ObjectKey, operations: Iterable[Mapping[str, Any]]) -> None:
        """A JSON patch. One that takes the last finalizer from what is being deleted lets it go."""
        if kind == kinds.POD:
            pod = self.picture.get(Pod, *key)
            if pod is not None:
                self.put_pod(wire.convert(patched(bare(pod), operations), Pod))
        elif kind in OUR_TYPES:
            self._patch_ours(OUR_TYPES[kind], key, operations)
        elif kind != kinds.SECRET and (child := self.picture.child(kind, *key)) is not None:
            self._child(kind, patched(bare(child.body), operations))

    def delete(self, kind: Kind, key: ObjectKey, *, keeps_dependents: bool = False) -> None:
        """As the API server does it: what has a finalizer is only marked, and waits for who set it."""
        thing = self.thing(kind, key)
        if thing is None:
            return
        if kind in OUR_TYPES and thing.metadata.finalizers:
            if not thing.metadata.is_terminating:
                body = codec.plain(thing)
                body["metadata"]["deletionTimestamp"] = wire.plain(self.picture.now)
                self.put_thing(codec.read(OUR_TYPES[kind], body))
            return
        self._remove(kind, key, thing.metadata.uid, keeps_dependents=keeps_dependents)

    def thing(self, kind: Kind, key: ObjectKey) -> HasMeta | None:
        """An object of any kind that the picture has."""
        if kind == kinds.SECRET:
            found = self.picture.secrets.get(key)
            return found if isinstance(found, Secret) else None
        if kind == kinds.POD:
            return self.picture.get(Pod, *key)
        if kind in OUR_TYPES:
            ours: HasMeta | None = self.picture.get(OUR_TYPES[kind], *key)
            return ours
        return self.picture.child(kind, *key)

    def pass_time(self) -> None:
        """What controllers and kubelets do on their own."""
        for kind in (kinds.STATEFUL_SET, kinds.DEPLOYMENT):
            for child in list(self.picture.parts.get(kind, {}).values()):
                self._keep_workload(kind, child)
        for pod in self.picture.all(Pod):
            if pod.metadata.is_terminating:
                self._remove(kinds.POD, key_of(pod), pod.metadata.uid)
            elif pod.status.phase in ("", "Pending") and pod.metadata.uid.startswith(NEW):
                self.put_pod(workloads.running(pod, self.picture))
        self._fill_shared_roots()

    # ---- How it is done

    def _put_ours(self, type_: type[Any], manifest: Manifest) -> None:
        old = self.picture.get(type_, *_key(manifest))
        body = self._born(manifest)
        if old is None:
            body["metadata"] |= {"generation": 1}
            self.put_thing(codec.read(type_, body))
            return
        before = codec.plain(old)
        kept = {key: before["spec"][key] for key in ("replicas",) if key in before["spec"]}
        spec = {**kept, **body["spec"]}
        metadata = merged(before["metadata"], manifest["metadata"])
        new = codec.read(type_, {**before, "metadata": metadata, "spec": spec})
        self.put_thing(_next_generation(old, new))

    def _patch_ours(self, type_: type[Any], key: ObjectKey, operations: Iterable[Mapping[str, Any]]) -> None:
        old = self.picture.get(type_, *key)
        if old is None:
            return
        new = _next_generation(old, codec.read(type_, patched(bare(codec.plain(old)), operations)))
        self.put_thing(new)
        if new.metadata.is_terminating and not new.metadata.finalizers:
            self._remove(type_.KIND, key, new.metadata.uid)

    def _put_secret(self, manifest: Manifest) -> None:
        body = self._born(manifest)
        texts = body.get("stringData", {})
        digests = {entry: digest(text)[:16] for entry, text in texts.items()}
        noted = {**body["metadata"].get("annotations", {}), CONTENT_DIGEST: content_digest(digests, texts)}
        body["metadata"]["annotations"] = noted
        self._put_named(Secret(metadata=_meta(body), digests=digests))

    def _put_named(self, secret: Secret) -> None:
        self.changes += 1
        self.picture.secrets[key_of(secret)] = secret

    def _put_child(self, kind: Kind, manifest: Manifest) -> None:
        old = self.picture.child(kind, *_key(manifest))
        if old is None:
            self._child(kind, self._born(manifest))
            return
        body = merged(old.body, manifest, whole=("data", "binaryData"))
        if kind in workloads.WORKLOADS:
            body = self._rolled(kind, old, manifest, body)
        if body.get("spec") != old.body.get("spec"):
            body["metadata"] = {**body["metadata"], "generation": old.metadata.generation + 1}
        self._child(kind, body)

    def _rolled(self, kind: Kind, old: Child, manifest: Manifest, body: Manifest) -> Manifest:
        """A workload keeps its template, or has another one, and then its pods are outdated."""
        template = manifest["spec"]["template"]
        if not changes({"spec": {"template": template}}, old):
            return {**body, "spec": {**body["spec"], "template": old.body["spec"]["template"]}}
        body = {**body, "spec": {**body["spec"], "template": template}}
        self._outdated |= {pod.metadata.uid for pod in workloads.pods_of(kind, old, self.picture)}
        return {**body, "status": {**body.get("status", {}), "updateRevision": workloads.new_revision(body)}}

    def _child(self, kind: Kind, body: Manifest) -> None:
        child = Child(metadata=_meta(body), body=body)
        if self.picture.child(kind, *_key(body)) == child:
            return
        self.changes += 1
        self.picture.put_child(kind, child)
        if kind == kinds.CONFIG_MAP:
            self.picture.config_maps[key_of(child)] = ConfigMap(
                metadata=child.metadata, data=body.get("data", {}), binary_data=body.get("binaryData", {})
            )

    def _keep_workload(self, kind: Kind, child: Child) -> None:
        """The pods that it should have, and what it says about them."""
        pods = workloads.pods_of(kind, child, self.picture)
        revision = workloads.revision(child)
        if kind == kinds.DEPLOYMENT or workloads.is_rolling(child):
            for pod in pods:
                if pod.metadata.uid in self._outdated:
                    self._remove(kinds.POD, key_of(pod), pod.metadata.uid)
        for missing in workloads.missing_pods(kind, child, self.picture):
            self.put(missing)
        wanted = child.body["spec"].get("replicas", 1)
        for pod in workloads.surplus_pods(kind, child, self.picture):
            self._remove(kinds.POD, key_of(pod), pod.metadata.uid)
        ready = sum(pod.is_ready for pod in workloads.pods_of(kind, child, self.picture))
        self._child(kind, {**child.body, "status": workloads.status(child, wanted, ready, revision)})

    def _fill_shared_roots(self) -> None:
        """What runs in pods beside Slurm does: the Job that populates a root, and who writes files there."""
        for job in list(self.picture.parts.get(kinds.JOB, {}).values()):
            populates = POPULATE_PURPOSE in job.metadata.annotations
            if self.populates and populates and not is_finished(job):
                self._child(kinds.JOB, {**job.body, "status": {"succeeded": 1}})
        for jailed in self.picture.all(JailedConfig):
            source = ObjectKey(jailed.metadata.namespace, jailed.spec.config_map.name)
            if not jailed.status.is_written and self.picture.child(kinds.CONFIG_MAP, *source) is not None:
                written = {"type": "FilesWritten", "status": "True", "reason": "Success"}
                self.put_thing(
                    codec.read(JailedConfig, codec.plain(jailed) | {"status": {"conditions": [written]}})
                )

    def _remove(self, kind: Kind, key: ObjectKey, uid: str, *, keeps_dependents: bool = False) -> None:
        """Gone, and with it what it owned."""
        self.changes += 1
        if kind == kinds.SECRET:
            self.picture.secrets[key] = None
        elif kind == kinds.POD:
            self.picture.drop(Pod, key)
        elif kind in OUR_TYPES:
            self.picture.drop(OUR_TYPES[kind], key)
        else:
            self.picture.drop_child(kind, key)
            if kind == kinds.CONFIG_MAP:
                self.picture.config_maps[key] = None
        if not keeps_dependents:
            self._collect(kind, key, uid)

    def _collect(self, kind: Kind, key: ObjectKey, uid: str) -> None:
        for owned_kind, owned in list(self._owned(uid)):
            self.delete(owned_kind, key_of(owned))
        if kind == kinds.DEPLOYMENT or kind == kinds.STATEFUL_SET:
            for pod in workloads.pods_named_after(key, self.picture):
                self._remove(kinds.POD, key_of(pod), pod.metadata.uid)

    def _owned(self, uid: str) -> Iterable[tuple[Kind, HasMeta]]:
        for kind, type_ in OUR_TYPES.items():
            yield from ((kind, thing) for thing in self.picture.all(type_) if _is_owned(thing, uid))
        for kind in self.picture.parts:
            yield from ((kind, child) for child in self.picture.children(kind, uid))
        yield from ((kinds.POD, pod) for pod in self.picture.all(Pod) if _is_owned(pod, uid))
        secrets = [secret for secret in self.picture.secrets.values() if isinstance(secret, Secret)]
        yield from ((kinds.SECRET, secret) for secret in secrets if _is_owned(secret, uid))

    def _born(self, manifest: Manifest) -> Manifest:
        """As the API server would give it back: plain, with a uid and a date."""
        body = bare(manifest)
        kind, key = kinds.kind_of(manifest), _key(manifest)
        old = self.thing(kind, key)
        self._made += 1
        metadata = {
            "uid": old.metadata.uid if old is not None else f"{NEW}{self._made}",
            "creationTimestamp": wire.plain(old.metadata.creation_timestamp if old else self.picture.now),
            "resourceVersion": f"{self._made}",
            "generation": old.metadata.generation if old is not None else 1,
        }
        return {**body, "metadata": {**body["metadata"], **metadata}}


def _next_generation(old: Any, new: Any) -> Any:
    if old.spec == new.spec:
        return new
    return wire.replace(new, metadata=wire.replace(new.metadata, generation=old.metadata.generation + 1))


def _is_owned(thing: HasMeta | Unread, uid: str) -> bool:
    return not isinstance(thing, Unread) and any(o.uid == uid for o in thing.metadata.owner_references)


def _key(manifest: Manifest) -> ObjectKey:
    metadata = manifest["metadata"]
    return ObjectKey(metadata.get("namespace", ""), metadata.get("name", ""))


def _meta(body: Manifest) -> Meta:
    return codec.read(Meta, body["metadata"])
