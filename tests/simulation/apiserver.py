"""An API server in memory: versions, uids, finalizers, owners, graceful deletion, apply, patches, watches."""

from collections import defaultdict
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from typing import Any

from slurm_operator import wire
from slurm_operator.api.schema.kind import Kind
from slurm_operator.api.shared.meta import ObjectKey
from slurm_operator.api.shared.names import ALLOW_DELETION, LABEL_POD_PROTECT
from slurm_operator.kube import errors
from slurm_operator.kube.request import Selection
from slurm_operator.manifests import kinds
from slurm_operator.manifests.labels import matches
from testing.virtual_time import VirtualClock

Object = dict[str, Any]

OPERATOR = "operator"
HUMAN = "human"
COLLECTOR = "garbage collector"
KUBELET = "kubelet"


def refused(code: int, reason: str, message: str) -> errors.ApiError:
    return errors.from_status(errors.Status(code=code, reason=reason, message=message))


def text(moment: datetime) -> str:
    return f"{moment.replace(tzinfo=None).isoformat(timespec='seconds')}Z"


class ApiServer:
    """Objects by kind and key. Every change has a version; `hears` is called with each of them."""

    def __init__(self, clock: VirtualClock) -> None:
        self.clock = clock
        self.objects: dict[Kind, dict[ObjectKey, Object]] = defaultdict(dict)
        self.history: dict[Kind, list[tuple[int, Object | None, Object | None]]] = defaultdict(list)
        self.version = 100
        self.hears: list[Callable[[Kind, Object | None, Object | None, str], None]] = []
        self.watchers: dict[Kind, list[Callable[[tuple[int, Object | None, Object | None]], None]]] = (
            defaultdict(list)
        )
        self.protects = True  # Whether the admission policy of workers is installed.
        self._applied: dict[tuple[str, str], Object] = {}
        self._uids = 0
        self._collected_at = 0

    # ---- Reading

    def get(self, kind: Kind, key: ObjectKey) -> Object:
        found = self.objects[kind].get(key)
        if found is None:
            raise refused(404, "NotFound", f"{kind.plural} {key.name!r} not found")
        return found

    def all(self, kind: Kind) -> list[Object]:
        return list(self.objects[kind].values())

    def listed(self, selection: Selection) -> list[Object]:
        return [found for found in self.all(selection.kind) if is_selected(selection, found)]

    # ---- Writing

    def create(self, kind: Kind, manifest: Object, who: str) -> Object:
        key = key_of(manifest)
        if key in self.objects[kind]:
            raise refused(409, "AlreadyExists", f"{kind.plural} {key.name!r} already exists")
        made = copied(manifest)
        made.setdefault("apiVersion", kind.api_version)
        made.setdefault("kind", kind.kind)
        self._uids += 1
        made["metadata"] |= {
            "uid": f"{self._uids:08x}-0000",
            "creationTimestamp": text(self.clock.now()),
            "generation": 1,
        }
        if kind == kinds.POD:
            made["status"] = {"phase": "Pending", "conditions": [], "containerStatuses": []}
        return self._store(kind, key, made, who)

    def apply(self, kind: Kind, manifest: Object, who: str = OPERATOR) -> Object:
        """What the same manager applied before and leaves out now goes; the rest is laid over."""
        key, manifest = key_of(manifest), copied(manifest)
        old = self.objects[kind].get(key)
        if old is None:
            made = self.create(kind, manifest, who)
        else:
            last = self._applied.get((old["metadata"]["uid"], ""), {})
            made = self._change(kind, key, laid_over(without(copied(old), last, manifest), manifest), who)
        self._applied[made["metadata"]["uid"], ""] = manifest
        return made

    def replace(self, kind: Kind, manifest: Object, who: str) -> Object:
        """The whole object, over the version that it names alone."""
        key, meta = key_of(manifest), manifest["metadata"]
        if self.get(kind, key)["metadata"]["resourceVersion"] != meta.get("resourceVersion"):
            raise refused(409, "Conflict", f"{kind.plural} {key.name!r} has changed")
        return self._change(kind, key, copied(manifest), who)

    def apply_status(self, kind: Kind, manifest: Object, who: str = OPERATOR) -> Object:
        old, wanted = self.get(kind, key_of(manifest)), manifest["metadata"].get("uid")
        if wanted not in (None, old["metadata"]["uid"]):
            raise refused(409, "Conflict", "the uid is that of another object")
        return self._change(kind, key_of(manifest), {**old, "status": copied(manifest["status"])}, who)

    def patch(self, kind: Kind, key: ObjectKey, operations: Iterable[Object], who: str) -> Object:
        changed = copied(self.get(kind, key))
        for operation in operations:
            carry_out(changed, copied(operation))
        return self._change(kind, key, changed, who)

    def change(self, kind: Kind, key: ObjectKey, edit: Callable[[Object], None], who: str) -> Object:
        """Whatever `edit` does to a copy of the object."""
        changed = copied(self.get(kind, key))
        edit(changed)
        return self._change(kind, key, changed, who)

    def delete(
        self,
        kind: Kind,
        key: ObjectKey,
        who: str,
        *,
        uid: str = "",
        resource_version: str = "",
        grace: int | None = None,
        orphans: bool = False,
    ) -> Object | None:
        """The object while it is still there, None when it is gone."""
        found = self.get(kind, key)
        meta = found["metadata"]
        if uid not in ("", meta["uid"]) or resource_version not in ("", meta["resourceVersion"]):
            raise refused(409, "Conflict", f"{kind.plural} {key.name!r} has changed")
        if kind == kinds.POD:
            return self._delete_pod(key, found, who, grace)
        if orphans:
            self._orphan(meta["uid"])
        if not meta.get("finalizers"):
            return self._remove(kind, key, who)
        if "deletionTimestamp" in meta:
            return found
        leaving = {**meta, "deletionTimestamp": text(self.clock.now()), "deletionGracePeriodSeconds": 0}
        return self._store(kind, key, {**found, "metadata": leaving}, who)

    def _delete_pod(self, key: ObjectKey, pod: Object, who: str, grace: int | None) -> Object | None:
        meta, is_over = pod["metadata"], pod["status"].get("phase") in ("Failed", "Succeeded")
        if self.protects and who not in (OPERATOR, KUBELET) and self.is_protected(pod):
            raise refused(403, "Forbidden", f"{key.name} may run jobs")
        if is_over or not pod["spec"].get("nodeName") or grace == 0:
            return self._remove(kinds.POD, key, who)
        seconds = pod["spec"].get("terminationGracePeriodSeconds", 30) if grace is None else grace
        ends = self.clock.now() + timedelta(seconds=seconds)
        if "deletionTimestamp" in meta and text(ends) >= meta["deletionTimestamp"]:
            return pod
        leaving = {**meta, "deletionTimestamp": text(ends), "deletionGracePeriodSeconds": seconds}
        return self._store(kinds.POD, key, {**pod, "metadata": leaving}, who)

    @staticmethod
    def is_protected(pod: Object) -> bool:
        meta = pod["metadata"]
        is_allowed = meta.get("annotations", {}).get(ALLOW_DELETION) == "true"
        is_labelled = meta.get("labels", {}).get(LABEL_POD_PROTECT) == "true"
        return is_labelled and not is_allowed and "deletionTimestamp" not in meta

    def remove(self, kind: Kind, key: ObjectKey, who: str) -> None:
        """Gone at once, as when a kubelet confirms the end of a pod."""
        if key in self.objects[kind]:
            self._remove(kind, key, who)

    def collect(self) -> None:
        """Delete what all owners have left; where nothing has changed, there is nothing new to find."""
        if self._collected_at == self.version:
            return
        self._collected_at = self.version
        uids = {found["metadata"]["uid"] for store in self.objects.values() for found in store.values()}
        for kind, store in list(self.objects.items()):
            for key, found in list(store.items()):
                owners = found["metadata"].get("ownerReferences") or ()
                is_orphan = owners and not any(owner["uid"] in uids for owner in owners)
                if is_orphan and "deletionTimestamp" not in found["metadata"]:
                    try:
                        self.delete(kind, key, COLLECTOR)
                    except errors.Forbidden:
                        self._collected_at = 0  # A protected worker: tried again later.

    def _orphan(self, uid: str) -> None:
        for kind, store in list(self.objects.items()):
            for key, found in list(store.items()):
                owners = found["metadata"].get("ownerReferences") or []
                kept = [owner for owner in owners if owner["uid"] != uid]
                if len(kept) != len(owners):
                    meta = {**found["metadata"], "ownerReferences": kept}
                    self._store(kind, key, {**found, "metadata": meta}, COLLECTOR)

    def _change(self, kind: Kind, key: ObjectKey, new: Object, who: str) -> Object:
        old = self.objects[kind][key]
        if new == old:
            return old
        if kind != kinds.POD and new.get("spec") != old.get("spec"):
            new["metadata"] = {**new["metadata"], "generation": old["metadata"].get("generation", 1) + 1}
        if (
            "deletionTimestamp" in new["metadata"]
            and kind != kinds.POD
            and not new["metadata"].get("finalizers")
        ):
            self._store(kind, key, new, who)
            self._remove(kind, key, who)
            return new
        return self._store(kind, key, new, who)

    def _store(self, kind: Kind, key: ObjectKey, new: Object, who: str) -> Object:
        self.version += 1
        new["metadata"] = {**new["metadata"], "resourceVersion": str(self.version)}
        old = self.objects[kind].get(key)
        self.objects[kind][key] = new
        self._tell(kind, old, new, who)
        return new

    def _remove(self, kind: Kind, key: ObjectKey, who: str) -> None:
        self.version += 1
        old = self.objects[kind].pop(key)
        self._tell(
            kind, {**old, "metadata": {**old["metadata"], "resourceVersion": str(self.version)}}, None, who
        )

    def _tell(self, kind: Kind, old: Object | None, new: Object | None, who: str) -> None:
        change = (self.version, old, new)
        self.history[kind].append(change)
        for watcher in tuple(self.watchers[kind]):
            watcher(change)
        for hear in self.hears:
            hear(kind, old, new, who)


def event(selection: Selection, change: tuple[int, Object | None, Object | None]) -> bytes | None:
    """The line that a watch of this selection gets to read; None when it is not about it."""
    _, old, new = change
    was, is_in = (thing is not None and is_selected(selection, thing) for thing in (old, new))
    if is_in:
        type_, shown = "MODIFIED" if was else "ADDED", new
    elif was:
        type_, shown = "DELETED", new or old
    else:
        return None
    return wire.encode({"type": type_, "object": narrowed(selection, shown or {})})


def narrowed(selection: Selection, found: Object) -> Object:
    return {"metadata": found["metadata"]} if selection.metadata_only else found


def is_selected(selection: Selection, found: Object) -> bool:
    meta = found["metadata"]
    if selection.namespace and meta.get("namespace") != selection.namespace:
        return False
    if selection.field_selector and selection.field_selector != f"metadata.name={meta['name']}":
        return False
    return not selection.label_selector or matches(selection.label_selector, meta.get("labels", {}))


def key_of(manifest: Object) -> ObjectKey:
    return ObjectKey(manifest["metadata"].get("namespace", ""), manifest["metadata"]["name"])


def copied(manifest: Any) -> Any:
    """As JSON would carry it."""
    return wire.decode_any(wire.encode(manifest))


def without(found: Any, last: Any, new: Any) -> Any:
    """`found` without what was in `last` and is not in `new`."""
    if not (isinstance(found, dict) and isinstance(last, dict) and isinstance(new, dict)):
        return found
    kept = {}
    for key, value in found.items():
        if key in last and key not in new and key not in ("metadata", "apiVersion", "kind"):
            continue
        kept[key] = without(value, last.get(key), new.get(key))
    return kept


def laid_over(found: Any, new: Any) -> Any:
    if not (isinstance(found, dict) and isinstance(new, dict)):
        return new
    return {**found, **{key: laid_over(found.get(key), value) for key, value in new.items()}}


def carry_out(thing: Any, operation: Object) -> None:
    """One step of a JSON patch. Raises Invalid, as the server does."""
    *path, last = [part.replace("~1", "/").replace("~0", "~") for part in operation["path"].split("/")[1:]]
    try:
        where = thing
        for part in path:
            where = where[int(part)] if isinstance(where, list) else where[part]
        if isinstance(where, list):
            _in_list(where, last, operation)
        else:
            _in_map(where, last, operation)
    except (KeyError, IndexError, ValueError) as error:
        raise refused(422, "Invalid", f"{operation['op']} of {operation['path']} failed") from error


def _in_list(where: list, last: str, operation: Object) -> None:
    at = len(where) if last == "-" else int(last)
    match operation["op"]:
        case "add":
            where.insert(at, operation["value"])
        case "replace":
            where[at] = operation["value"]
        case "remove":
            del where[at]
        case "test" if where[at] != operation["value"]:
            raise ValueError("not as tested")


def _in_map(where: dict, last: str, operation: Object) -> None:
    match operation["op"]:
        case "add":
            where[last] = operation["value"]
        case "replace":
            where[last], _ = operation["value"], where[last]
        case "remove":
            del where[last]
        case "test" if where[last] != operation["value"]:
            raise ValueError("not as tested")
