"""The objects of the light API server: versions, uids, patches, graceful deletion, and who watches."""

import uuid
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, NamedTuple

from slurm_operator import wire
from slurm_operator.manifests.labels import matches

Object = dict[str, Any]
Key = tuple[str, str]


class Refused(Exception):  # noqa: N818  It is an answer.
    """What the server says no to: a code and a word for it."""

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(reason)
        self.code, self.reason = code, reason


@dataclass(frozen=True)
class Selector:
    """Which objects of a kind. Of fields only the name is looked at; what asks for others gets nothing."""

    namespace: str
    labels: str
    fields: str

    def sees(self, thing: Object) -> bool:
        meta = thing["metadata"]
        is_here = self.namespace in ("", meta.get("namespace", ""))
        is_meant = self.fields in ("", f"metadata.name={meta['name']}")
        return is_here and is_meant and matches(self.labels, meta.get("labels") or {})


class Watcher(NamedTuple):
    selector: Selector
    tell: Callable[[str, bytes], None]


@dataclass
class Collection:
    """All objects of one kind."""

    things: dict[Key, Object] = field(default_factory=dict)
    encoded: dict[Key, bytes] = field(default_factory=dict)
    watchers: list[Watcher] = field(default_factory=list)


class Store:
    """Everything, by the name of its kind in URLs."""

    def __init__(self) -> None:
        self.version = 1
        self.kinds: defaultdict[str, Collection] = defaultdict(Collection)
        self.hears: Callable[[str, Object], None] = lambda kind, thing: None

    def get(self, kind: str, key: Key) -> Object:
        found = self.kinds[kind].things.get(key)
        if found is None:
            raise Refused(404, "NotFound")
        return found

    def listed(self, kind: str, selector: Selector) -> Iterator[bytes]:
        for key, thing in self.kinds[kind].things.items():
            if selector.sees(thing):
                yield self.kinds[kind].encoded[key]

    def create(self, kind: str, namespace: str, thing: Object) -> Object:
        meta = thing["metadata"]
        if "name" not in meta:
            meta["name"] = f"{meta['generateName']}{uuid.uuid4().hex[:8]}"
        key = (namespace, meta["name"])
        if key in self.kinds[kind].things:
            raise Refused(409, "AlreadyExists")
        meta |= {
            "namespace": namespace,
            "uid": str(uuid.uuid4()),
            "creationTimestamp": now(),
            "generation": 1,
        }
        if kind == "pods":
            thing["status"] = {"phase": "Pending"}
        return self.put(kind, key, thing, "ADDED")

    def put(self, kind: str, key: Key, thing: Object, type_: str = "MODIFIED") -> Object:
        """The next version of an object, for everybody to see."""
        self.version += 1
        thing["metadata"]["resourceVersion"] = str(self.version)
        collection = self.kinds[kind]
        collection.things[key] = thing
        collection.encoded[key] = wire.encode(thing)
        self._tell(kind, key, thing, type_)
        return thing

    def remove(self, kind: str, key: Key) -> None:
        thing = self.get(kind, key)
        self.version += 1
        thing["metadata"]["resourceVersion"] = str(self.version)
        self.kinds[kind].encoded[key] = wire.encode(thing)
        self._tell(kind, key, thing, "DELETED")
        del self.kinds[kind].things[key], self.kinds[kind].encoded[key]

    def _tell(self, kind: str, key: Key, thing: Object, type_: str) -> None:
        collection = self.kinds[kind]
        for watcher in collection.watchers:
            if watcher.selector.sees(thing):
                watcher.tell(type_, collection.encoded[key])
        if type_ != "DELETED":
            self.hears(kind, thing)

    def update(self, kind: str, key: Key, changed: Object) -> Object:
        """A changed object in place of the one that is there; without the last finalizer it may be gone."""
        old = self.get(kind, key)
        if changed.get("spec") != old.get("spec"):
            changed["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1
        if changed == old:
            return old
        self.put(kind, key, changed)
        meta = changed["metadata"]
        if "deletionTimestamp" in meta and not meta.get("finalizers") and kind != "pods":
            self.remove(kind, key)
        return changed

    def delete(self, kind: str, key: Key, options: Object) -> Object | None:
        thing = self.get(kind, key)
        meta, wanted = thing["metadata"], options.get("preconditions") or {}
        if wanted.get("uid", meta["uid"]) != meta["uid"]:
            raise Refused(409, "Conflict")
        grace = options.get("gracePeriodSeconds", 30 if kind == "pods" else 0)
        if (kind == "pods" and grace) or meta.get("finalizers"):
            leaving = {"deletionTimestamp": now(), "deletionGracePeriodSeconds": grace}
            return self.put(kind, key, {**thing, "metadata": {**meta, **leaving}})
        self.remove(kind, key)
        return None


def merged(old: Any, patch: Any) -> Any:
    """RFC 7386."""
    if not isinstance(patch, dict) or not isinstance(old, dict):
        return patch
    kept = {key: merged(old.get(key), value) for key, value in patch.items() if value is not None}
    return {key: value for key, value in old.items() if key not in patch} | kept


def patched(old: Object, operations: list[Object]) -> Object:
    """RFC 6902, as far as we use it."""
    thing: Object = wire.decode_any(wire.encode(old))
    for operation in operations:
        *way, last = [part.replace("~1", "/").replace("~0", "~") for part in operation["path"].split("/")[1:]]
        place: Any = thing
        for part in way:
            place = place[int(part)] if isinstance(place, list) else place.setdefault(part, {})
        _carry_out(operation, place, last)
    return thing


def _carry_out(operation: Object, place: Any, last: str) -> None:
    name: Any = last if isinstance(place, dict) or last == "-" else int(last)
    match operation["op"]:
        case "test":
            there = place.get(name) if isinstance(place, dict) else place[name]
            if there != operation["value"]:
                raise Refused(422, "Invalid")
        case "remove":
            del place[name]
        case "add" if isinstance(place, list):
            place.insert(len(place) if name == "-" else name, operation["value"])
        case _:
            place[name] = operation["value"]


def now() -> str:
    return f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
