"""null on a real API server: taken in every field in which Slinky's CRDs take it, however it is written."""

import copy
import zlib

import pytest
from crd_rig import APPLY, MODELS, Api, api, collection

from slurm_operator.api.schema.codec import read
from testing.nulls import EMPTY_FIELDS, FIELDS, manifest

__all__ = ["api"]

ROWS = [pytest.param(kind, path, value, id=f"{kind}.{path}") for kind, path, value in FIELDS]


def named(path: str) -> str:
    """A short name of its own for each field."""
    return f"n{zlib.crc32(path.encode()):x}"


def apply(api: Api, namespace: str, wanted: dict):
    where = collection(wanted).path(namespace, wanted["metadata"]["name"])
    return api.send("PATCH", f"{where}?fieldManager=helm&fieldValidation=Strict", wanted, APPLY)


def as_read(wanted: dict):
    return read(MODELS[wanted["kind"]], {"spec": wanted["spec"]})


@pytest.mark.parametrize(("kind", "path", "value"), ROWS)
def test_null_is_taken_and_read_as_absent(api: Api, namespace: str, kind: str, path: str, value) -> None:
    """By create, by server-side apply, and by a typed client that reads an object and writes it back with nulls."""
    null, absent = (manifest(kind, named(path), path, given) for given in (None, ...))

    created = api.create(namespace, null)
    assert created.status == 201, created.body
    assert as_read(created.body) == as_read(absent)

    applied = apply(api, namespace, {**null, "metadata": {"name": named(path) + "-b"}})
    assert applied.status == 201, applied.body
    assert as_read(applied.body) == as_read(absent)

    typed = with_null(applied.body, path)
    where = collection(null).path(namespace, typed["metadata"]["name"])
    written = api.send("PUT", f"{where}?fieldValidation=Strict", typed)
    assert written.status == 200, written.body
    assert as_read(written.body) == as_read(absent)


@pytest.mark.parametrize(("kind", "path", "value"), ROWS)
def test_from_absent_to_null_and_back_nothing_changes(
    api: Api, namespace: str, kind: str, path: str, value
) -> None:
    null, absent, given = (manifest(kind, named(path), path, one) for one in (None, ..., value))

    for wanted in (absent, null, absent, null):
        answer = apply(api, namespace, wanted)
        assert answer.status in (200, 201), answer.body["message"]
        assert as_read(answer.body) == as_read(absent)

    set_ = apply(api, namespace, given)
    if path.endswith("volumeClaimTemplates"):
        assert "volumeClaimTemplates cannot change" in set_.body["message"]
    else:
        assert as_read(set_.body) == as_read(given)


EMPTY_ROWS = [pytest.param(*row, id=f"{row[0]}.{row[1]}") for row in EMPTY_FIELDS]


@pytest.mark.parametrize(("kind", "path", "value"), EMPTY_ROWS)
def test_what_is_emptied_by_server_side_apply_is_absent(
    api: Api, namespace: str, kind: str, path: str, value
) -> None:
    """The API server makes null of an object when its last entry is applied no more; that must not refuse the change."""
    given, empty, absent = (manifest(kind, named(path), path, one) for one in (value, {}, ...))

    for wanted in (given, empty, given, absent):
        answer = apply(api, namespace, wanted)
        assert answer.status in (200, 201), answer.body["message"]
        assert as_read(answer.body) == as_read(wanted)


def with_null(body: dict, path: str) -> dict:
    changed = copy.deepcopy(body)
    *parents, last = path.split(".")
    place = changed["spec"]
    for parent in parents:
        place = place[int(parent)] if parent.isdecimal() else place.setdefault(parent, {})
    place[last] = None
    return changed


def test_claims_of_workers_cannot_be_taken_away_by_null(api: Api, namespace: str) -> None:
    [(kind, path, value)] = [row for row in FIELDS if row[:2] == ("NodeSet", "volumeClaimTemplates")]
    api.create(namespace, manifest(kind, "claims", path, value))

    answer = api.merge(namespace, manifest(kind, "claims", path, value), {"spec": {path: None}})
    typed = with_null(api.get(namespace, manifest(kind, "claims", path, value)).body, path)
    where = collection(typed).path(namespace, "claims")

    assert "volumeClaimTemplates cannot change" in answer.complaint
    assert "volumeClaimTemplates cannot change" in api.send("PUT", where, typed).complaint


def test_a_status_that_slinky_writes_with_null_is_taken(api: Api, namespace: str) -> None:
    nodeset = api.create(namespace, manifest("NodeSet", "w", "replicas", 1)).body
    status = {"nodeSetHash": "a", "selector": "b", "ordinalToNode": None}
    where = collection(nodeset).path(namespace, "w", "status")

    answer = api.send("PUT", where, {**nodeset, "status": status})

    assert answer.status == 200, answer.body
    assert read(MODELS["NodeSet"], answer.body).status.ordinal_to_node == {}
