"""When is a write needed? A table of what the API server makes of what we sent."""

import pytest

from slurm_operator.manifests.compare.differences import APPLIED_DIGEST, changes, quantity, stamped
from slurm_operator.manifests.meta import Child, Meta


def live(body) -> Child:
    return Child(metadata=Meta(name="x"), body=body)


@pytest.mark.parametrize(
    ("desired", "there", "expected"),
    [
        pytest.param({"a": 1}, {"a": 1, "b": 2}, [], id="the server added a default"),
        pytest.param({"a": 1}, {"a": 2}, ["a"], id="somebody changed it"),
        pytest.param({"a": {"b": 1}}, {"a": {}}, ["a.b"], id="a field is missing"),
        pytest.param(
            {"apiVersion": "v1", "kind": "Service", "a": 1},
            {"a": 1},
            [],
            id="items of a list do not say their kind",
        ),
        pytest.param({"a": False}, {}, [], id="false is what Go leaves out"),
        pytest.param({"a": 0}, {}, [], id="and zero"),
        pytest.param({"a": True}, {}, ["a"], id="but true is not"),
        pytest.param({"a": None}, {}, [], id="null: we want it gone, and it is"),
        pytest.param({"a": None}, {"a": 1}, ["a"], id="null: we want it gone, and it is there"),
        pytest.param(
            {"limits": {"cpu": "1000m"}},
            {"limits": {"cpu": "1"}},
            [],
            id="equal quantities, written differently",
        ),
        pytest.param(
            {"limits": {"memory": "1Gi"}}, {"limits": {"memory": "1024Mi"}}, [], id="and binary ones"
        ),
        pytest.param(
            {"limits": {"cpu": "2"}}, {"limits": {"cpu": "1"}}, ["limits.cpu"], id="different quantities"
        ),
        pytest.param({"image": "1000m"}, {"image": "1"}, ["image"], id="an image is no quantity"),
        pytest.param({"args": ["a", "b"]}, {"args": ["a"]}, ["args"], id="a plain list of another length"),
        pytest.param(
            {"args": ["a", "b"]}, {"args": ["b", "a"]}, ["args[0]", "args[1]"], id="and another order"
        ),
        pytest.param(
            {"containers": [{"name": "slurmd", "image": "x"}]},
            {"containers": [{"name": "injected"}, {"name": "slurmd", "image": "x", "tty": False}]},
            [],
            id="an injected sidecar beside ours",
        ),
        pytest.param(
            {"containers": [{"name": "slurmd", "image": "y"}]},
            {"containers": [{"name": "slurmd", "image": "x"}]},
            ["containers[name=slurmd].image"],
            id="our container changed",
        ),
        pytest.param(
            {"ports": [{"port": 6817, "name": "a"}, {"port": 6818, "name": "b"}]},
            {"ports": [{"port": 6818, "name": "b"}, {"port": 6817, "name": "a"}]},
            [],
            id="named items in another order",
        ),
        pytest.param(
            {"kind": "Secret", "stringData": {"a": "x"}},
            {"kind": "Secret", "data": {"a": "eA=="}},
            [],
            id="a Secret's values are compared by digest, not here",
        ),
    ],
)
def test_only_what_the_live_object_lacks_is_a_change(desired, there, expected):
    assert changes(desired, live(there)) == expected


def test_an_absent_object_is_one_change():
    assert changes({"a": 1, "b": 2}, None) == ["the object"]


def test_a_field_that_we_no_longer_want_shows_in_the_digest():
    with_env = stamped({"metadata": {"name": "x"}, "spec": {"env": [{"name": "A"}]}})
    without = stamped({"metadata": {"name": "x"}, "spec": {"env": []}})

    assert changes(without, live(with_env)) == [f"metadata.annotations.{APPLIED_DIGEST}", "spec.env"]


@pytest.mark.parametrize(
    ("one", "other"), [("1", "1000m"), ("1Gi", "1073741824"), ("1k", "1000"), ("1e3", "1000"), (2, "2")]
)
def test_quantities_that_mean_the_same_are_equal(one, other):
    assert quantity(one) == quantity(other)


@pytest.mark.parametrize("text", ["", "abc", "1x", "Gi"])
def test_what_is_no_quantity_stays_text(text):
    assert quantity(text) == text
