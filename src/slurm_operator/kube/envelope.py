"""What the API server wraps around objects: lists, watch events, and the name every object has.

The objects themselves stay undecoded, so that one that does not fit spoils nothing but itself.
"""

from slurm_operator import wire
from slurm_operator.api.shared.meta import ObjectKey
from slurm_operator.kube import errors
from slurm_operator.kube.watch import json_split

# Not JSON, the wrong shape, or nested too deep to be read.
UNREADABLE = (wire.DecodeError, RecursionError, ValueError, KeyError)


class Page(wire.Record):
    """Part of a list: undecoded objects, the version of the whole list, and where the next part begins."""

    items: list[memoryview]
    resource_version: str
    next_page: str = ""


class Event(wire.Record):
    """One line of a watch."""

    type: str
    object: memoryview


class Name(wire.CamelRecord):
    """What even an unreadable object tells about itself."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""

    @property
    def key(self) -> ObjectKey:
        return ObjectKey(self.namespace, self.name)


class Labelled(Name):
    """Who an object is, and what selectors look at."""

    labels: dict[str, str] = {}


class _Leaving(wire.CamelRecord):
    deletion_timestamp: str | None = None
    deletion_grace_period_seconds: int | None = None
    finalizers: list[str] | None = None


class _Deleted(wire.Record):
    kind: str = ""
    metadata: _Leaving = _Leaving()


class _ListMeta(wire.CamelRecord):
    resource_version: str = ""
    continue_: str = wire.field(name="continue", default="")


class _List(wire.Record):
    metadata: _ListMeta
    items: list[wire.Raw] | None = None


class _Event(wire.Record):
    type: str
    object: wire.Raw


class _Named(wire.Record):
    metadata: Name


class _Labelled(wire.Record):
    metadata: Labelled


_decode_list = wire.decoder(_List)
_decode_event = wire.decoder(_Event)
_decode_named = wire.decoder(_Named)
_decode_labelled = wire.decoder(_Labelled)
_decode_deleted = wire.decoder(_Deleted)
_decode_list_meta = wire.decoder(_ListMeta)
_decode_string = wire.decoder(str)


def page(body: bytes) -> Page:
    """Raises Unreadable when this is no list."""
    try:
        whole = _decode_list(body)
        items = [memoryview(item) for item in whole.items or ()]
        meta = whole.metadata
    except (wire.DecodeError, UnicodeDecodeError, RecursionError):
        meta, items = _page_by_parts(body)
    return Page(items=items, resource_version=meta.resource_version, next_page=meta.continue_)


def _page_by_parts(body: bytes) -> tuple[_ListMeta, list[memoryview]]:
    try:
        parts = json_split.members(body)
        return _decode_list_meta(parts["metadata"]), json_split.elements(parts["items"])
    except UNREADABLE as error:
        raise errors.Unreadable(f"the answer is no list: {error!r}") from error


def event(line: bytes) -> Event:
    """Raises Unreadable when this is no watch event."""
    try:
        whole = _decode_event(line)
        return Event(type=whole.type, object=memoryview(whole.object))
    except (wire.DecodeError, UnicodeDecodeError, RecursionError):
        return _event_by_parts(line)


def _event_by_parts(line: bytes) -> Event:
    try:
        parts = json_split.members(line)
        return Event(type=_decode_string(parts["type"]), object=parts["object"])
    except UNREADABLE as error:
        raise errors.Unreadable(f"the line is no watch event: {error!r}") from error


def name(body: memoryview) -> Name:
    """Who an object is, whatever else is wrong with it. Raises Unreadable when it does not even say that."""
    try:
        return _decode_named(body).metadata
    except (wire.DecodeError, UnicodeDecodeError, RecursionError):
        return _name_by_parts(body)


def _name_by_parts(body: memoryview) -> Name:
    try:
        parts = json_split.members(json_split.members(body)["metadata"])
        said = {
            field: _decode_string(parts[field]) for field in ("name", "namespace", "uid") if field in parts
        }
        return Name(**said, resource_version=_decode_string(parts["resourceVersion"]))
    except UNREADABLE as error:
        raise errors.Unreadable(f"the object has no name: {error!r}") from error


def labelled(body: bytes) -> Labelled:
    """Who the object in the answer to a write is. Raises Unreadable when that cannot be read."""
    try:
        return _decode_labelled(body).metadata
    except UNREADABLE as error:
        raise errors.Unreadable(f"the answer is no object that we can read: {error}") from error


def is_terminating(answer: bytes) -> bool:
    """Whether a delete left something: a Status says it did not, and so does an object with no time left."""
    try:
        found = _decode_deleted(answer)
    except UNREADABLE as error:
        raise errors.Unreadable(f"the answer is no object that we can read: {error}") from error
    meta = found.metadata
    waits = meta.finalizers or meta.deletion_grace_period_seconds
    return bool(found.kind != "Status" and meta.deletion_timestamp and waits)
