"""The user's overrides over our pods, rule by rule."""

import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm_operator.manifests.merge import merged, merged_container, merged_pod

HTTP = {"httpGet": {"path": "/livez"}, "periodSeconds": 10}


@pytest.mark.parametrize(
    ("base", "patch", "expected"),
    [
        pytest.param({"a": 1, "b": 2}, {"b": 3}, {"a": 1, "b": 3}, id="a value"),
        pytest.param({"a": True}, {"a": False}, {"a": False}, id="false counts"),
        pytest.param({"runAsUser": 401}, {"runAsUser": 0}, {"runAsUser": 0}, id="zero counts"),
        pytest.param({"a": "x"}, {"a": ""}, {"a": ""}, id="an empty string counts"),
        pytest.param({"a": 1, "b": 2}, {"a": None}, {"b": 2}, id="null removes"),
        pytest.param({"a": {"b": 1}}, {"a": {"c": 2}}, {"a": {"b": 1, "c": 2}}, id="maps merge"),
        pytest.param({"a": {"b": 1}}, {"a": {"$patch": "replace", "c": 2}}, {"a": {"c": 2}}, id="unless replaced"),
        pytest.param({"command": ["a", "b"]}, {"command": ["c"]}, {"command": ["c"]}, id="plain lists are replaced"),
        pytest.param(
            {"env": [{"name": "A", "value": "1"}]}, {"env": [{"name": "B", "value": "2"}]},
            {"env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]}, id="variables by name",
        ),
        pytest.param(
            {"env": [{"name": "A", "value": "1"}]}, {"env": [{"name": "A", "valueFrom": {"fieldRef": {}}}]},
            {"env": [{"name": "A", "valueFrom": {"fieldRef": {}}}]}, id="a variable has one source",
        ),
        pytest.param(
            {"env": [{"name": "A", "value": "1"}]}, {"env": [{"name": "A", "$patch": "delete"}]}, {"env": []},
            id="an item is removed by name",
        ),
        pytest.param(
            {"ports": [{"containerPort": 22, "name": "ssh"}]}, {"ports": [{"containerPort": 22, "hostPort": 2222}]},
            {"ports": [{"containerPort": 22, "name": "ssh", "hostPort": 2222}]}, id="ports by number",
        ),
        pytest.param(
            {"ports": [{"containerPort": 53, "protocol": "UDP"}]}, {"ports": [{"containerPort": 53}]},
            {"ports": [{"containerPort": 53, "protocol": "UDP"}, {"containerPort": 53}]}, id="and protocol",
        ),
        pytest.param(
            {"volumes": [{"name": "run", "emptyDir": {"medium": "Memory"}}]}, {"volumes": [{"name": "run", "hostPath": {"path": "/run"}}]},
            {"volumes": [{"name": "run", "hostPath": {"path": "/run"}}]}, id="a volume has one source",
        ),
        pytest.param(
            {"volumes": [{"name": "run", "emptyDir": {"medium": "Memory"}}]}, {"volumes": [{"name": "run", "emptyDir": {"sizeLimit": "1Gi"}}]},
            {"volumes": [{"name": "run", "emptyDir": {"medium": "Memory", "sizeLimit": "1Gi"}}]}, id="which can be refined",
        ),
        pytest.param(
            {"livenessProbe": HTTP}, {"livenessProbe": {"periodSeconds": 60}},
            {"livenessProbe": {**HTTP, "periodSeconds": 60}}, id="a probe's timing without losing its handler",
        ),
        pytest.param(
            {"livenessProbe": HTTP}, {"livenessProbe": {"exec": {"command": ["true"]}}},
            {"livenessProbe": {"exec": {"command": ["true"]}, "periodSeconds": 10}}, id="a probe's handler, without its timing",
        ),
        pytest.param({"livenessProbe": HTTP}, {"livenessProbe": None}, {}, id="no probe"),
        pytest.param(
            {"tolerations": [{"key": "worker"}]}, {"tolerations": [{"key": "gpu"}]},
            {"tolerations": [{"key": "worker"}, {"key": "gpu"}]}, id="tolerations join ours",
        ),
        pytest.param(
            {"dnsConfig": {"searches": ["ours"]}}, {"dnsConfig": {"searches": ["yours", "ours"]}},
            {"dnsConfig": {"searches": ["ours", "yours"]}}, id="search domains join ours",
        ),
        pytest.param({}, {"a": {"b": None, "c": 1}}, {"a": {"c": 1}}, id="null where there was nothing"),
    ],
)  # fmt: skip
def test_what_the_user_says_counts(base, patch, expected):
    before = copy.deepcopy((base, patch))

    assert merged(base, patch) == expected
    assert (base, patch) == before


def test_arguments_are_added_to_ours():
    assert merged_container({"name": "slurmd", "args": ["-Z"]}, {"args": ["-v"], "image": "x"}) == {
        "name": "slurmd",
        "args": ["-Z", "-v"],
        "image": "x",
    }


@pytest.mark.parametrize(
    "patch",
    [
        {"containers": [{"name": "slurmd", "$patch": "delete"}]},
        {"containers": None},
        {"$patch": "replace", "containers": [{"name": "mine"}]},
        {"containers": [{"nameless": True}]},
    ],
)
def test_a_container_that_a_daemon_needs_cannot_be_lost(patch):
    pod = merged_pod({"containers": [{"name": "slurmd", "image": "x"}]}, patch, required={"slurmd"})

    assert pod["containers"][0] == {"name": "slurmd", "image": "x"}


def test_users_containers_come_after_ours_and_refine_them_by_name():
    pod = merged_pod(
        {"containers": [{"name": "slurmd", "image": "x"}]},
        {"containers": [{"name": "mine"}, {"name": "slurmd", "tty": True}]},
        required={"slurmd"},
    )

    assert pod["containers"] == [{"name": "slurmd", "image": "x", "tty": True}, {"name": "mine"}]


json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["a", "env", "volumes", "ports", "name", "tolerations"]), inner, max_size=3
        )
    ),
    max_leaves=12,
)


@given(json, json)
def test_any_json_merges_and_merging_again_changes_nothing(base, patch):
    once = merged(base, patch)

    assert merged(once, patch) == once
