"""The API server of the light benchmarks: enough like the real one for what the operator does with it."""

import pytest

from bench.light_store import Refused, Selector, Store, Watcher, merged, patched

KEY = ("slurm", "gpu-0")


def pod(**meta: object) -> dict:
    return {"metadata": {"name": "gpu-0", **meta}, "spec": {"containers": []}}


def heard(store: Store, selector: Selector) -> list[str]:
    told: list[str] = []
    store.kinds["pods"].watchers.append(Watcher(selector, lambda type_, body: told.append(type_)))
    return told


def test_every_change_has_a_version_of_its_own_and_is_told_to_those_who_watch():
    store = Store()
    here, elsewhere = (
        heard(store, Selector("slurm", "app=slurmd", "")),
        heard(store, Selector("other", "", "")),
    )

    made = store.create("pods", "slurm", pod(labels={"app": "slurmd"}))
    first = made["metadata"]["resourceVersion"]
    store.update("pods", KEY, merged(made, {"metadata": {"labels": {"more": "words"}}}))
    store.remove("pods", KEY)

    assert here == ["ADDED", "MODIFIED", "DELETED"]
    assert elsewhere == []
    assert int(first) < store.version
    assert list(store.listed("pods", Selector("", "", ""))) == []


def test_a_pod_with_time_left_terminates_first_and_one_without_is_gone():
    store = Store()
    made = store.create("pods", "slurm", pod())

    left = store.delete("pods", KEY, {"gracePeriodSeconds": 5})
    assert left is not None
    assert "deletionTimestamp" in left["metadata"]
    assert store.delete("pods", KEY, {"gracePeriodSeconds": 0}) is None
    with pytest.raises(Refused):
        store.get("pods", KEY)
    assert made["metadata"]["uid"]


def test_what_waits_for_a_finalizer_goes_with_the_last_one():
    store = Store()
    store.create("nodesets", "slurm", {"metadata": {"name": "gpu-0", "finalizers": ["ours"]}, "spec": {}})
    leaving = store.delete("nodesets", KEY, {})

    store.update("nodesets", KEY, merged(leaving, {"metadata": {"finalizers": None}}))

    with pytest.raises(Refused):
        store.get("nodesets", KEY)


def test_nothing_is_deleted_under_another_uid():
    store = Store()
    store.create("pods", "slurm", pod())

    with pytest.raises(Refused) as no:
        store.delete("pods", KEY, {"preconditions": {"uid": "another"}})

    assert no.value.code == 409


def test_a_json_patch_is_carried_out_step_by_step_and_a_failed_test_refuses_all_of_it():
    old = {"metadata": {"annotations": {"a/b": "1"}}, "status": {"conditions": [{"type": "Ready"}]}}

    new = patched(
        old,
        [
            {"op": "test", "path": "/metadata/annotations/a~1b", "value": "1"},
            {"op": "remove", "path": "/metadata/annotations/a~1b"},
            {"op": "add", "path": "/status/conditions/-", "value": {"type": "Idle"}},
            {"op": "replace", "path": "/status/conditions/0", "value": {"type": "NotReady"}},
        ],
    )

    assert new == {
        "metadata": {"annotations": {}},
        "status": {"conditions": [{"type": "NotReady"}, {"type": "Idle"}]},
    }
    assert old["status"]["conditions"] == [{"type": "Ready"}]
    with pytest.raises(Refused):
        patched(old, [{"op": "test", "path": "/metadata/annotations/a~1b", "value": "2"}])
