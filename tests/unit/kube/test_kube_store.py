"""Lists, watch events and answers to our own writes may come in any mixture: the newest state wins."""

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slurm_operator import wire
from slurm_operator.api.shared.meta import Meta, ObjectKey, key_of
from slurm_operator.kube.watch.indexes import Indexes
from slurm_operator.kube.watch.store import Store

NAMES = ("a", "b", "c")


class Pod(wire.Record):
    metadata: Meta
    place: str = ""


def pod(name: str, version: int | str, *, uid: str = "u1", place: str = "") -> Pod:
    return Pod(metadata=Meta(name=name, namespace="ns", uid=uid, resource_version=str(version)), place=place)


def key(name: str) -> ObjectKey:
    return ObjectKey("ns", name)


def by_place(thing: Pod) -> list[str]:
    return [thing.place] if thing.place else []


@dataclass
class Ledger:
    """Checks the callbacks as they come: each must start where the last one for that object ended."""

    known: dict[ObjectKey, Pod] = field(default_factory=dict)
    count: int = 0

    def heard(self, old: Pod | None, new: Pod | None) -> None:
        thing = new if new is not None else old
        assert thing is not None, "a change from nothing to nothing"
        where = key_of(thing)
        assert self.known.get(where) == old
        assert old != new
        self.count += 1
        if new is None:
            del self.known[where]
        else:
            self.known[where] = new


@dataclass
class Server:
    """What really happens: objects, a history that a watch replays, and answers still on their way."""

    version: int = 100
    objects: dict[ObjectKey, Pod] = field(default_factory=dict)
    history: list[tuple[str, Pod]] = field(default_factory=list)
    answers: list[Callable[[Store[Pod]], None]] = field(default_factory=list)
    born: int = 0

    def write(self, name: str, place: str, *, by_us: bool) -> None:
        """Create or change an object."""
        self.version += 1
        held = self.objects.get(key(name))
        if held is None:
            self.born += 1
        uid = held.metadata.uid if held else f"u{self.born}"
        thing = pod(name, self.version, uid=uid, place=place)
        self.objects[key(name)] = thing
        self.history.append(("ADDED" if held is None else "MODIFIED", thing))
        if by_us:
            self.answers.append(lambda store: store.put(thing))

    def delete(self, name: str, *, by_us: bool) -> None:
        held = self.objects.pop(key(name), None)
        if held is None:
            return
        self.version += 1
        meta = wire.replace(held.metadata, resource_version=str(self.version))
        self.history.append(("DELETED", wire.replace(held, metadata=meta)))
        if by_us:
            self.answers.append(lambda store: store.forget(key(name), held.metadata.uid))


@dataclass
class Watcher:
    """Feeds the store the way a reflector does: a list that takes a while, then the history after it."""

    store: Store[Pod]
    server: Server
    next_event: int = 0
    pending: tuple[int, dict[ObjectKey, Pod], int, int] | None = None

    def begin_list(self) -> None:
        begun = self.store.begin_list()
        self.pending = (begun, dict(self.server.objects), self.server.version, len(self.server.history))

    def end_list(self) -> None:
        if self.pending is None:
            return
        begun, things, version, self.next_event = self.pending
        self.pending = None
        self.store.replace("ns", things.values(), resource_version=str(version), begun=begun)

    def deliver(self) -> None:
        if self.pending is not None or self.next_event >= len(self.server.history):
            return  # Who lists does not watch.
        type_, thing = self.server.history[self.next_event]
        self.next_event += 1
        if type_ == "DELETED":
            meta = thing.metadata
            self.store.on_delete("ns", key_of(thing), meta.uid, meta.resource_version)
        else:
            self.store.on_upsert("ns", thing)


names = st.sampled_from(NAMES)
places = st.sampled_from(("", "here", "there"))
steps = st.one_of(
    st.tuples(st.just("write"), names, places, st.booleans()),
    st.tuples(st.just("delete"), names, st.booleans()),
    st.tuples(st.just("event")),
    st.tuples(st.just("answer"), st.integers(0, 5)),
    st.tuples(st.just("begin list")),
    st.tuples(st.just("end list")),
)


def play(step: tuple[object, ...], server: Server, watcher: Watcher) -> None:
    match step:
        case ("write", str(name), str(place), bool(by_us)):
            server.write(name, place, by_us=by_us)
        case ("delete", str(name), bool(by_us)):
            server.delete(name, by_us=by_us)
        case ("event",):
            watcher.deliver()
        case ("answer", int(which)) if server.answers:
            server.answers.pop(which % len(server.answers))(watcher.store)
        case ("begin list",):
            watcher.begin_list()
        case ("end list",):
            watcher.end_list()


@settings(max_examples=400, deadline=None)
@given(st.lists(steps, max_size=60), st.permutations(range(8)))
def test_any_mixture_of_list_watch_and_answers_ends_at_the_servers_state(
    story: list[tuple[object, ...]], order: list[int]
) -> None:
    server, ledger = Server(), Ledger()
    store: Store[Pod] = Store({"place": by_place})
    store.subscribe(ledger.heard)
    watcher = Watcher(store, server)
    watcher.begin_list()
    watcher.end_list()

    newest: dict[tuple[ObjectKey, str], int] = {}
    for step in story:
        play(step, server, watcher)
        for thing in store.values():
            seen = (key_of(thing), thing.metadata.uid)
            version = int(thing.metadata.resource_version)
            assert version >= newest.get(seen, 0), "an older word undid a newer one"
            newest[seen] = version

    watcher.end_list()
    for which in order:
        if server.answers:
            server.answers.pop(which % len(server.answers))(store)
    for _ in range(len(server.history)):
        watcher.deliver()
    while server.answers:
        server.answers.pop()(store)

    assert {key_of(thing): thing for thing in store.values()} == server.objects
    assert ledger.known == server.objects
    for place in ("here", "there"):
        recount = {key_of(thing) for thing in store.values() if thing.place == place}
        assert {key_of(thing) for thing in store.by_index("place", place)} == recount


def listed(*things: Pod, version: int = 100) -> Store[Pod]:
    store: Store[Pod] = Store()
    store.replace("ns", things, resource_version=str(version), begun=store.begin_list())
    return store


def held(store: Store[Pod]) -> dict[str, str]:
    return {thing.metadata.name: thing.metadata.resource_version for thing in store.values()}


def test_an_answer_that_arrives_after_the_watch_saw_the_object_go_is_ignored() -> None:
    store = listed()
    store.on_upsert("ns", pod("a", 101))
    store.on_delete("ns", key("a"), "u1", "102")

    store.put(pod("a", 101))

    assert held(store) == {}


def test_a_deleted_object_is_not_brought_back_by_a_late_event_but_its_successor_comes() -> None:
    store = listed(pod("a", 90))

    store.forget(key("a"), "u1")
    store.on_upsert("ns", pod("a", 105))
    after_the_late_event = held(store)
    store.on_delete("ns", key("a"), "u1", "110")
    store.on_upsert("ns", pod("a", 111, uid="u2"))

    assert after_the_late_event == {}
    assert held(store) == {"a": "111"}


def test_the_deletion_of_a_predecessor_does_not_take_the_successor_along() -> None:
    store = listed(pod("a", 90))
    store.put(pod("a", 120, uid="u2"))

    store.on_delete("ns", key("a"), "u1", "110")

    assert held(store) == {"a": "120"}


def test_a_stray_deletion_of_another_incarnation_is_not_believed() -> None:
    store = listed(pod("a", 90, uid="u2"))

    store.on_delete("ns", key("a"), "u1", "110")

    assert held(store) == {"a": "90"}


def test_what_left_the_selector_and_was_written_by_us_since_stays_until_the_watch_has_caught_up() -> None:
    store = listed(pod("a", 90))
    store.put(pod("a", 120))

    store.on_delete("ns", key("a"), "u1", "110")
    before_its_time = held(store)
    store.on_delete("ns", key("a"), "u1", "120")

    assert before_its_time == {"a": "120"}
    assert held(store) == {}


def test_a_list_that_began_before_our_write_does_not_undo_it() -> None:
    store = listed(pod("a", 90))
    begun = store.begin_list()
    store.put(pod("a", 120))
    store.put(pod("new", 121))

    store.replace("ns", [pod("a", 90)], resource_version="110", begun=begun)

    assert held(store) == {"a": "120", "new": "121"}


def test_a_list_that_began_after_our_write_is_right_even_with_lower_versions() -> None:
    """etcd was restored from a backup: what we wrote is lost, and versions start lower."""
    store = listed(pod("a", 900), version=1000)
    store.put(pod("a", 1010))

    store.replace("ns", [pod("a", 50)], resource_version="60", begun=store.begin_list())

    assert held(store) == {"a": "50"}
    assert not store.has_passed(key("a"), "1010")


def test_what_cannot_be_read_in_a_list_stays_as_it_was_known() -> None:
    store = listed(pod("a", 90), pod("b", 91))

    store.replace("ns", [], resource_version="110", begun=store.begin_list(), unreadable=[key("a")])

    assert held(store) == {"a": "90"}


def test_what_a_list_no_longer_has_goes_in_order() -> None:
    names = [f"p{number:02}" for number in range(12)]
    store = listed(*(pod(name, 90) for name in reversed(names)))
    gone: list[str] = []
    store.subscribe(lambda old, new: gone.append(old.metadata.name) if old and not new else None)

    store.replace("ns", [], resource_version="110", begun=store.begin_list())

    assert gone == names


def test_namespaces_of_one_cache_do_not_touch_each_other() -> None:
    store: Store[Pod] = Store()
    other = Pod(metadata=Meta(name="a", namespace="other", uid="x", resource_version="5"))
    store.replace("other", [other], resource_version="200", begun=store.begin_list())

    store.replace("ns", [pod("a", 90)], resource_version="100", begun=store.begin_list())
    store.replace("ns", [], resource_version="150", begun=store.begin_list())

    assert [key_of(thing) for thing in store.values()] == [ObjectKey("other", "a")]
    assert store.has_passed(ObjectKey("other", "a"), "200")
    assert not store.has_passed(key("a"), "200")


@pytest.mark.parametrize("version", ["", "abc", "-1", "1.5", "٣"])
def test_versions_that_are_no_numbers_are_never_waited_for_and_never_put(version: str) -> None:
    store = listed(pod("a", 90))

    store.put(pod("a", version))

    assert held(store) == {"a": "90"}
    assert store.has_passed(key("a"), version)


def test_the_watch_is_believed_where_versions_are_no_numbers() -> None:
    store: Store[Pod] = Store()
    store.replace("ns", [pod("a", "x1")], resource_version="x9", begun=store.begin_list())

    store.on_upsert("ns", pod("a", "x2"))
    store.on_delete("ns", key("a"), "u1", "x3")

    assert held(store) == {}


def test_who_subscribes_late_is_told_what_is_there() -> None:
    store = listed(pod("a", 90))
    told: list[tuple[Pod | None, Pod | None]] = []

    store.subscribe(lambda old, new: told.append((old, new)))

    assert told == [(None, pod("a", 90))]


def test_an_index_forgets_values_that_nobody_has() -> None:
    index: Indexes[Pod] = Indexes({"place": by_place})

    index.change(key("a"), None, pod("a", 1, place="here"))
    index.change(key("a"), pod("a", 1, place="here"), pod("a", 2, place="there"))
    index.change(key("b"), None, pod("b", 3, place="there"))
    index.change(key("a"), pod("a", 2, place="there"), None)

    assert list(index.keys("place", "here")) == []
    assert list(index.keys("place", "there")) == [key("b")]
    with pytest.raises(KeyError):
        index.keys("unheard of", "here")
