"""A person's order to end workers: who makes one, and what takes it back."""

import ast
from datetime import UTC, datetime
from pathlib import Path

import pytest

import slurm_operator
from slurm_operator.api.shared.meta import Meta, OwnerReference
from slurm_operator.api.shared.names import FORCE_DELETION
from slurm_operator.plan.order import Order, order, why_not_ordered

GOING = datetime(2026, 1, 1, tzinfo=UTC)
ORDER = Order(owner_uid="set", pod_uid="pod")


def owner(*, uid="set", going=True, forced="true") -> Meta:
    notes = {FORCE_DELETION: forced} if forced else {}
    return Meta(name="gpu", uid=uid, deletion_timestamp=GOING if going else None, annotations=notes)


def pod(*, uid="pod", of="set") -> Meta:
    refs = (
        (OwnerReference(api_version="v1", kind="NodeSet", name="gpu", uid=of, controller=True),) if of else ()
    )
    return Meta(name="gpu-0", uid=uid, owner_references=refs)


@pytest.mark.parametrize(
    ("whose", "which", "given"),
    [
        pytest.param(owner(), pod(), ORDER, id="deleted, and forced"),
        pytest.param(owner(going=False), pod(), None, id="forced, but nobody deletes it"),
        pytest.param(owner(forced=""), pod(), None, id="deleted, but not forced"),
        pytest.param(owner(forced="false"), pod(), None, id="force is off"),
        pytest.param(owner(), pod(of="other"), None, id="a pod of another NodeSet"),
        pytest.param(owner(), pod(of=""), None, id="a pod that nobody owns"),
    ],
)
def test_an_order_is_about_the_pods_of_a_nodeset_that_is_deleted_by_force(whose, which, given):
    assert order(whose, which) == given


@pytest.mark.parametrize(
    ("whose", "which", "says"),
    [
        pytest.param(owner(), pod(), None, id="it stands"),
        pytest.param(owner(forced=""), pod(), "nobody forces", id="somebody took the annotation away"),
        pytest.param(None, pod(), "is gone", id="there is no such NodeSet any more"),
        pytest.param(owner(uid="new"), pod(), "is gone", id="or another one of its name"),
        pytest.param(owner(), pod(uid="new"), "another pod", id="another pod of its name"),
    ],
)
def test_an_order_is_looked_at_again_when_it_is_carried_out(whose, which, says):
    found = why_not_ordered(ORDER, whose, which)

    assert found is None if says is None else says in found


def test_nobody_else_makes_orders():
    source = Path(slurm_operator.__file__).parent
    makers = {
        str(path.relative_to(source))
        for path in source.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Order"
    }
    assert makers == {"plan/order.py"}
