"""What the operator's own metrics say about passes, calls, the Lease and the objects themselves."""

import math
from datetime import UTC, datetime

from prometheus_client.parser import text_string_to_metric_families

from slurm_operator.api.shared.conditions import Condition, Truth
from slurm_operator.api.shared.meta import Meta
from slurm_operator.api.slinky.controller import Controller
from slurm_operator.api.slinky.controller_status import ControllerStatus
from slurm_operator.api.slinky.token import Token, TokenSpec, TokenStatus
from slurm_operator.kube.client import Call
from slurm_operator.runtime.metrics import Metrics


def values(metrics: Metrics) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    families = text_string_to_metric_families(metrics.text().decode())
    return {
        (one.name, frozenset(one.labels.items())): one.value for family in families for one in family.samples
    }


def key(called: str, /, **labels: str) -> tuple[str, frozenset[tuple[str, str]]]:
    return called, frozenset(labels.items())


def test_generic_dashboards_find_passes_queues_calls_and_the_lease():
    metrics = Metrics(host="10.0.0.1:6443", lease="slurm-operator")
    for result in ("done", "acted", "waiting", "failed"):
        metrics.reconciled("nodeset", result, 0.2)
    metrics.queued("nodeset", 3)
    metrics.leads(True)
    for verb, code in (("list", 200), ("patch", 409), ("get", 0)):
        metrics.called(Call(verb=verb, group="", resource="pods", code=code, seconds=0.1))

    found = values(metrics)

    assert found[key("controller_runtime_reconcile_total", controller="nodeset", result="success")] == 2
    assert found[key("controller_runtime_reconcile_total", controller="nodeset", result="requeue_after")] == 1
    assert found[key("controller_runtime_reconcile_total", controller="nodeset", result="error")] == 1
    assert found[key("controller_runtime_reconcile_errors_total", controller="nodeset")] == 1
    assert found[key("controller_runtime_reconcile_time_seconds_count", controller="nodeset")] == 4
    assert found[key("workqueue_depth", name="nodeset", controller="nodeset")] == 3
    assert found[key("leader_election_master_status", name="slurm-operator")] == 1
    host = {"host": "10.0.0.1:6443"}
    assert found[key("rest_client_requests_total", code="200", method="GET", **host)] == 1
    assert found[key("rest_client_requests_total", code="409", method="PATCH", **host)] == 1
    assert found[key("rest_client_requests_total", code="<error>", method="GET", **host)] == 1
    assert found[key("slurm_operator_queue_depth", reconciler="nodeset")] == 3, "our own names stay"


def test_conditions_and_tokens_follow_the_objects():
    def condition(type_: str, status: Truth, reason: str) -> Condition:
        return Condition(type=type_, status=status, reason=reason)

    conditions = [
        condition("Ready", Truth.TRUE, "Serving"),
        condition("Degraded", Truth.FALSE, "AsExpected"),
        condition("Progressing", Truth.UNKNOWN, "Starting"),
    ]
    controller = Controller(
        metadata=Meta(name="slurm", namespace="ns"), status=ControllerStatus(conditions=conditions)
    )
    token = Token(
        metadata=Meta(name="t", namespace="ns"),
        spec=TokenSpec(username="ada"),
        status=TokenStatus(expires_at=datetime(2026, 1, 1, tzinfo=UTC)),
    )
    there = [("controllers", controller), ("tokens", token)]
    metrics = Metrics(objects=lambda: there)

    found = values(metrics)
    there.clear()

    where = {"resource": "controllers", "namespace": "ns", "name": "slurm"}
    assert found[key("slurm_operator_condition", type="Ready", reason="Serving", **where)] == 1
    assert found[key("slurm_operator_condition", type="Degraded", reason="AsExpected", **where)] == 0
    assert math.isnan(found[key("slurm_operator_condition", type="Progressing", reason="Starting", **where)])
    assert (
        found[key("slurm_operator_token_expires_timestamp_seconds", namespace="ns", name="t")] == 1767225600
    )
    assert not any(name == "slurm_operator_token_renews_timestamp_seconds" for name, _ in found)
    assert not any(name == "slurm_operator_condition" for name, _ in values(metrics)), "objects that are gone"
