"""An apply beside fields of Slinky's operator: they are made ours first, where they are seen and where not."""

from types import SimpleNamespace

import pytest

from slurm_operator import wire
from slurm_operator.kube.errors import Conflict, Invalid, ServerError, Status
from slurm_operator.manifests.managers import has_theirs
from slurm_operator.plan.actions import Apply
from slurm_operator.runtime.act.perform import Performer
from slurm_operator.runtime.act.stages import ActionFailed
from slurm_operator.runtime.loop.retries import NEXT_PASS, Retries
from testing import slinky

BUDGET = slinky.named(slinky.recorded(), "PodDisruptionBudget", "slurm-workers-pdb-slurm")
OURS = {
    "apiVersion": "policy/v1",
    "kind": "PodDisruptionBudget",
    "metadata": {"name": "slurm-workers-pdb-slurm", "namespace": "a"},
    "spec": {"minAvailable": 1},
}


class Server:
    """Refuses an apply while somebody else's fields are in the object; tells what it was asked.

    `changes` are versions that others make of the object, one before each write.
    """

    def __init__(self, there: dict | None, *, is_strict: bool = True, changes: tuple[str, ...] = ()) -> None:
        self.there, self.is_strict, self.asked, self.changes = there, is_strict, [], list(changes)

    async def list_pages(self, selection):
        self.asked.append("look")
        assert selection.field_selector == "metadata.name=slurm-workers-pdb-slurm"
        found = [memoryview(wire.encode(self.there))] if self.there is not None else []
        yield SimpleNamespace(items=found)

    async def merge_patch(self, kind, key, patch):
        self.asked.append("take over")
        if self.changes:
            version = self.changes.pop(0)
            self.there = {**self.there, "metadata": {**self.there["metadata"], "resourceVersion": version}}
        theirs, ours = self.there["metadata"], patch["metadata"]
        if any(ours[name] != theirs[name] for name in ("uid", "resourceVersion")):
            raise Conflict(Status(code=409, reason="Conflict", message="it has changed"))
        self.there = {**self.there, "metadata": {**theirs, **ours}}

    async def apply(self, kind, manifest):
        self.asked.append("apply")
        if self.is_strict and self.there is not None and has_theirs(self.there["metadata"]["managedFields"]):
            raise Invalid(Status(code=422, reason="Invalid", message="both set"))
        return {**manifest, "metadata": {**manifest["metadata"], "resourceVersion": "2", "uid": "u"}}


async def asked(server: Server, *, takes_over: bool, retries: Retries = NEXT_PASS) -> list[str]:
    known = SimpleNamespace(note_answer=lambda *_: [])
    performer = Performer(server, known, lambda: None, retries, lambda: True)
    await performer.perform(Apply(manifest=OURS, reason="Updated", message="", takes_over=takes_over))
    return server.asked


async def test_fields_that_are_seen_are_ours_before_the_apply():
    assert await asked(Server(BUDGET), takes_over=True) == ["look", "take over", "apply"]


async def test_fields_that_are_not_seen_are_ours_before_the_apply_is_repeated():
    assert await asked(Server(BUDGET), takes_over=False) == ["apply", "look", "take over", "apply"]


async def test_an_object_that_changes_in_between_is_looked_at_again():
    look = ["look", "take over"]
    server = Server(BUDGET, changes=("91", "92"))
    assert await asked(server, takes_over=True) == [*look, *look, *look, "apply"]

    restless = Server(BUDGET, changes=("91", "92", "93"))
    with pytest.raises(ActionFailed, match="both set"):
        await asked(restless, takes_over=False)
    assert restless.asked == ["apply", *look, *look, *look]


async def test_an_apply_that_nobody_minds_costs_one_request():
    assert await asked(Server(None), takes_over=False) == ["apply"]


async def test_an_apply_that_is_refused_for_another_cause_is_not_repeated():
    ours = {**BUDGET, "metadata": {**BUDGET["metadata"], "managedFields": []}}
    server = Server(ours)

    async def refuse(kind, manifest):
        server.asked.append("apply")
        raise Invalid(Status(code=422, reason="Invalid", message="a wrong field"))

    server.apply = refuse
    with pytest.raises(ActionFailed, match="a wrong field"):
        await asked(server, takes_over=False)
    assert server.asked == ["apply", "look"]


async def test_a_refused_apply_is_not_repeated_because_the_look_at_its_fields_failed():
    server = Server(BUDGET)

    async def broken(selection):
        server.asked.append("look")
        raise ServerError(Status(code=500, reason="InternalError", message="something went wrong"))
        yield

    server.list_pages = broken
    with pytest.raises(ActionFailed, match="both set"):
        await asked(server, takes_over=False, retries=Retries(most=2, interval_seconds=0))
    assert server.asked == ["apply", "look"]
