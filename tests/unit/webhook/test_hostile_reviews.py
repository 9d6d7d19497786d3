"""Whatever is sent to the webhook gets a clear answer: no exception, no 500, no endless work."""

import asyncio
import copy
import json
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from slurm_operator.api.schema.problems import References
from slurm_operator.runtime.settings import Address
from slurm_operator.webhook.metrics import Metrics
from slurm_operator.webhook.process import Settings, answerers
from slurm_operator.webhook.review import VERSIONS
from slurm_operator.webhook.server import Admission, Reply
from testing.examples import EXAMPLES

OFF = Address("127.0.0.1", 0)
MANIFESTS = [yaml.safe_load(file.read_text()) for file in sorted(EXAMPLES.glob("*.yaml"))]


class NothingKnown:
    """A cluster of which nothing can be read."""

    async def references(self, thing: Any) -> References:
        return References()

    async def exists(self, kind: Any, key: Any) -> bool:
        return False

    async def metadata(self, kind: Any, key: Any) -> None:
        return None


ADMISSION = Admission(answerers(NothingKnown(), Settings(server=OFF, health=OFF, metrics=OFF)), Metrics())
PATHS = sorted(answerers(NothingKnown(), Settings(server=OFF, health=OFF, metrics=OFF)))

SCALARS = (
    st.none() | st.booleans() | st.integers(-(2**63), 2**64) | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=20) | st.sampled_from(["", "0%", "-5m", "1h", "CREATE", "../..", "a\nb", "\u0000", "9" * 400])
)  # fmt: skip
KEYS = st.text(max_size=8) | st.sampled_from(
    ["metadata", "spec", "status", "name", "namespace", "labels", "annotations", "deletionTimestamp", "target",
     "configFileRefs", "persistence", "template", "hostname", "service", "updateStrategy", "ownerReferences"]
)  # fmt: skip
JSON: SearchStrategy[Any] = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=5),
    max_leaves=12,
)


def reply(path: str, body: bytes) -> Reply:
    return asyncio.run(ADMISSION.reply(path, body))


def check(path: str, body: bytes) -> Reply:
    """What holds for every answer, whatever the question."""
    answer = reply(path, body)
    assert answer.status in (200, 400)
    assert answer.word != "unchecked", "an exception was caught at the last moment"
    if answer.status == 400:
        assert answer.body.decode().endswith("\n")
        return answer
    response = json.loads(answer.body)["response"]
    assert response["uid"]
    assert isinstance(response["allowed"], bool)
    assert response["allowed"] or response["status"]["message"]
    return answer


@settings(deadline=None)
@given(path=st.sampled_from(PATHS), body=st.binary(max_size=200))
def test_bytes_that_are_nothing(path, body):
    check(path, body)


@settings(deadline=None)
@given(path=st.sampled_from(PATHS), value=JSON)
def test_json_that_is_no_review(path, value):
    check(path, json.dumps(value).encode())


@st.composite
def reviews(draw: Any) -> dict[str, Any]:
    """Reviews of the right outline with anything inside."""
    request = {
        "uid": draw(st.just("u1") | SCALARS),
        "kind": draw(st.fixed_dictionaries({"group": st.just("slinky.slurm.net"),
                                            "kind": st.sampled_from(["Controller", "NodeSet", "Cluster", "Secret"])}) | JSON),
        "operation": draw(st.sampled_from(["CREATE", "UPDATE", "DELETE", "CONNECT"]) | SCALARS),
        "namespace": draw(st.just("lab") | SCALARS),
        "name": draw(st.just("slurm") | SCALARS),
        "object": draw(JSON), "oldObject": draw(JSON),
    }  # fmt: skip
    kept = draw(st.sets(st.sampled_from(sorted(request)), min_size=3)) | {"uid"}
    version = draw(st.sampled_from([*VERSIONS, "admission.k8s.io/v2", "apiextensions.k8s.io/v1"]))
    kind = draw(st.sampled_from(["AdmissionReview", "AdmissionReview", "ConversionReview"]))
    return {"apiVersion": version, "kind": kind, "request": {key: request[key] for key in kept}}


@settings(max_examples=100, deadline=None)
@given(path=st.sampled_from(PATHS), review=reviews())
def test_reviews_with_anything_inside(path, review):
    check(path, json.dumps(review).encode())


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in a JSON value."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(found for key, item in inner for found in places(item, (*path, key)))]


def planted(value: Any, path: tuple[Any, ...], thing: Any) -> Any:
    if not path:
        return thing
    result = copy.deepcopy(value)
    parent = result
    for key in path[:-1]:
        parent = parent[key]
    parent[path[-1]] = thing
    return result


@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_good_manifests_with_something_strange_in_any_place(data):
    manifest = data.draw(st.sampled_from(MANIFESTS))
    strange = planted(manifest, data.draw(st.sampled_from(places(manifest)[1:])), data.draw(JSON))
    group, _, version = manifest["apiVersion"].partition("/")
    request = {
        "uid": "u1", "operation": data.draw(st.sampled_from(["CREATE", "UPDATE"])), "namespace": "lab",
        "kind": {"group": group, "version": version, "kind": manifest["kind"]}, "object": strange,
        "oldObject": data.draw(st.sampled_from([None, manifest, strange])),
    }  # fmt: skip
    path = f"/validate-slinky-slurm-net-{version}-{manifest['kind'].lower()}"

    answer = check(
        path, json.dumps({"apiVersion": VERSIONS[0], "kind": "AdmissionReview", "request": request}).encode()
    )

    assert answer.status == 200


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        pytest.param(b"", "This is no AdmissionReview: Input data was truncated", id="nothing"),
        pytest.param(b"[" * 100_000, "This is no AdmissionReview", id="brackets without end"),
        pytest.param(b'{"request":' * 50_000, "This is no AdmissionReview", id="nested without end"),
        pytest.param(b'{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"}', "no request with a uid", id="no request"),
        pytest.param(b'{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":""}}', "no request with a uid", id="an empty uid"),
        pytest.param(b'{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{}}', "missing required field `uid`", id="no uid"),
        pytest.param(b'{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":7}}', "Expected `str`, got `int` - at `$.request.uid`", id="a number for a uid"),
        pytest.param(b'{"apiVersion":"admission.k8s.io/v9","kind":"AdmissionReview"}', "Only AdmissionReviews of admission.k8s.io/v1 and admission.k8s.io/v1beta1", id="a version of the future"),
        pytest.param(b'{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview"}', "not 'ConversionReview' of 'apiextensions.k8s.io/v1'", id="a conversion"),
        pytest.param(b'{"kind":"AdmissionReview"}', "missing required field `apiVersion`", id="no version"),
    ],
)  # fmt: skip
def test_what_is_no_review_is_told_why(body, complaint):
    answer = reply(PATHS[0], body)

    assert (answer.status, answer.word) == (400, "malformed")
    assert complaint in answer.body.decode()


def test_an_object_that_is_nested_without_end_is_refused_and_no_worse():
    deep = "[" * 900 + "]" * 900
    body = (
        '{"apiVersion":"admission.k8s.io/v1beta1","kind":"AdmissionReview","request":{"uid":"u","operation":'
        '"CREATE","namespace":"lab","kind":{"group":"slinky.slurm.net","kind":"NodeSet"},"object":{"metadata":'
        f'{{"name":"x"}},"spec":{{"controllerRef":{{"name":"s"}},"selector":{deep}}}}}}}}}'
    )

    answer = check("/validate-slinky-slurm-net-v1beta1-nodeset", body.encode())

    assert answer.status in (200, 400)
