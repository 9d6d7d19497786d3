"""The stub of the benchmarks answers as slurmrestd does: held against the recorded replies."""

import json

import pytest

from bench.stub_slurm import StubSlurm
from slurm.recording import check
from slurm_operator import wire
from slurm_operator.api.shared import names
from slurm_operator.manifests.objects import Pod
from slurm_operator.slurmrest.answers.nodes import Nodes, NodesReply

V = "/slurm/v0.0.45"


@pytest.fixture
def stub() -> StubSlurm:
    made = StubSlurm(now=lambda: 1_800_000_000.0)
    made.register("gpu-0", "10.0.0.1", "gpu")
    made.register("gpu-1", "10.0.0.2", "gpu")
    made.start_job(7, "gpu-1")
    return made


def ask(stub: StubSlurm, method: str, path: str, body: object = None) -> tuple[int, object]:
    status, text = stub.answer(method, V + path, json.dumps(body).encode())
    return status, json.loads(text) if text else None


@pytest.mark.parametrize(
    ("name", "method", "path", "body"),
    [
        ("nodes", "GET", "/nodes/", None),
        ("jobs", "GET", "/jobs/?flags=ALL", None),
        ("partitions", "GET", "/partitions/", None),
        ("reservations", "GET", "/reservations/", None),
        ("ping", "GET", "/ping/", None),
        ("conf", "GET", "/conf", None),
        ("reconfigure", "GET", "/reconfigure/", None),
        ("jobs-unchanged", "GET", "/jobs/?flags=ALL&update_time=1800000009", None),
        ("nodes-unchanged", "GET", "/nodes/?update_time=1800000009", None),
        (
            "node-unknown-post",
            "POST",
            "/nodes/",
            {"name": ["gpu-0", "nope"], "state": ["DRAIN"], "reason": "x"},
        ),
        ("node-delete-busy", "DELETE", "/node/gpu-1", None),
    ],
)
def test_every_reply_has_the_shape_of_the_recorded_one(stub, name, method, path, body):
    status, found = ask(stub, method, path, body)

    check(name, f"{method} {path}", status, found)


def test_a_drain_of_many_nodes_shows_in_the_list_and_a_resume_lifts_it(stub):
    ask(
        stub,
        "POST",
        "/nodes/",
        {"name": ["gpu-0", "gpu-1"], "state": ["DRAIN"], "reason": "slurm-operator: x"},
    )
    assert {(n.state.is_drain, n.reason) for n in nodes(stub)} == {(True, "slurm-operator: x")}

    ask(stub, "POST", "/nodes/", {"name": ["gpu-0"], "state": ["UNDRAIN"]})
    assert [n.name for n in nodes(stub) if n.state.is_drain] == ["gpu-1"]


def test_a_node_with_a_job_stays_and_an_idle_one_goes(stub):
    assert ask(stub, "DELETE", "/node/gpu-1")[0] == 422
    assert ask(stub, "DELETE", "/node/gpu-0")[0] == 200
    stub.end_job(7)
    assert [n.name for n in nodes(stub) if n.state.is_idle] == ["gpu-1"]


def test_a_worker_that_finds_itself_forgotten_registers_again_once():
    stub, pod = StubSlurm(), ready_pod("gpu-3")
    stub.follow(None, pod)
    stub.take_back([pod])
    assert [n.name for n in nodes(stub)] == ["gpu-3"]
    ask(stub, "DELETE", "/node/gpu-3")
    stub.follow(None, pod)
    assert nodes(stub) == []

    stub.take_back([pod])

    assert [n.name for n in nodes(stub)] == ["gpu-3"]


def ready_pod(name: str) -> Pod:
    slurmd = {"name": "slurmd", "ready": True, "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}}}
    labels = {names.LABEL_POD_HOSTNAME: name, names.APP_INSTANCE: "gpu"}
    ready = {"type": "Ready", "status": "True"}
    pod = {
        "metadata": {"namespace": "bench", "name": name, "uid": "u", "labels": labels},
        "status": {
            "phase": "Running",
            "podIP": "10.0.0.3",
            "conditions": [ready],
            "containerStatuses": [slurmd],
        },
    }
    return wire.decode(wire.encode(pod), Pod)


def nodes(stub: StubSlurm):
    _, text = stub.answer("GET", f"{V}/nodes/")
    return [Nodes().one(bytes(entry)) for entry in wire.decode(text, NodesReply).nodes]
