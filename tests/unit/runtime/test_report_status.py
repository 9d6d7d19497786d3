"""When a status is written: at once, or with more of the same two seconds later."""

import asyncio
from datetime import UTC, datetime
from types import SimpleNamespace

import pytest
import structlog
import structlog.testing

from slurm_operator.api.schema.codec import read
from slurm_operator.api.slinky.restapi import RestApi
from slurm_operator.kube.errors import ApiError, Status, from_status
from slurm_operator.manifests.meta import Manifest
from slurm_operator.plan.actions import Apply, Wait
from slurm_operator.plan.conditions import DEGRADED, PROGRESSING, READY, false, true
from slurm_operator.plan.plan import Outcome, Plan, lane, plan
from slurm_operator.plan.reconciler import StatusReport
from slurm_operator.reconcilers.restapi import RECONCILER
from slurm_operator.runtime.report.reporter import Reporter
from slurm_operator.runtime.report.status_throttle import TOLD_EVERY_SECONDS

VIRTUAL_TIME = True

NOON = datetime(2026, 11, 16, 12, tzinfo=UTC)


class Client:
    """One RestApi, as the API server has it."""

    def __init__(self) -> None:
        self.statuses: list[Manifest] = []
        self.refuses = False
        self.forbids = False
        self.undeclared = 0  # The code with which a field is refused that the schema lacks.
        self.asked = 0

    async def apply_status(self, kind, manifest: Manifest) -> Manifest:
        self.asked += 1
        if self.undeclared and "inUse" in manifest["status"]:
            message = "failed to create typed patch object: .status.inUse: field not declared in schema"
            raise from_status(Status(code=self.undeclared, message=message))
        if self.forbids:
            raise from_status(Status(code=422, reason="Invalid", message="status.inUse: no such field"))
        if self.refuses:
            raise ApiError(Status(code=500, message="etcd is away"))
        self.statuses.append(manifest["status"])
        version = str(len(self.statuses))
        return {**manifest, "metadata": {**manifest["metadata"], "resourceVersion": version}}

    @property
    def there(self) -> RestApi:
        metadata = {"name": "slurm", "namespace": "ns", "uid": "u", "generation": 1, "resourceVersion": "x"}
        spec = {"controllerRef": {"name": "slurm"}}
        status = self.statuses[-1] if self.statuses else {}
        return read(RestApi, {"metadata": metadata, "spec": spec, "status": status})


def on_its_way(ready_replicas: int) -> StatusReport:
    conditions = [
        false(READY, "PodsNotReady", f"{ready_replicas} of 9 slurmrestd pods are ready."),
        true(PROGRESSING, "RollingOut"),
        false(DEGRADED, "AsExpected"),
    ]
    return StatusReport(conditions, fields(ready_replicas))


def fields(ready_replicas: int) -> Manifest:
    return {"observedGeneration": 1, "replicas": 9, "readyReplicas": ready_replicas, "inUse": False}


ARRIVED = StatusReport(
    [true(READY, "Serving"), false(PROGRESSING, "UpToDate"), false(DEGRADED, "AsExpected")],
    fields(9),
)


class Story:
    def __init__(self) -> None:
        self.client = Client()
        known = SimpleNamespace(note_written=lambda *_: None)
        self.told: list[str] = []
        recorder = SimpleNamespace(record=lambda about, reason, note, **_: self.told.append(note))
        self.reporter = Reporter(self.client, known, recorder)

    def did(self, message: str) -> None:
        made = Apply(manifest={"kind": "Service", "metadata": {}}, reason="Created", message=message)
        self.reporter.tell(RECONCILER, self.client.there, Plan(), Outcome(done=(made,)))

    async def tell(self, report: StatusReport) -> float:
        """How long it waits."""
        told = await self.reporter.write_status(RECONCILER, self.client.there, report, NOON)
        assert told.trouble is None
        return told.waits_seconds

    @property
    def counted(self) -> list[int]:
        return [status.get("readyReplicas", 0) for status in self.client.statuses]


async def test_progress_waits_for_more_and_the_newest_is_written():
    story = Story()
    await story.tell(on_its_way(0))

    assert await story.tell(on_its_way(1)) == TOLD_EVERY_SECONDS
    await asyncio.sleep(TOLD_EVERY_SECONDS / 2)
    assert await story.tell(on_its_way(2)) == TOLD_EVERY_SECONDS / 2
    await asyncio.sleep(TOLD_EVERY_SECONDS / 2)
    assert await story.tell(on_its_way(3)) == 0
    assert story.counted == [0, 3]
    assert await story.tell(on_its_way(4)) == TOLD_EVERY_SECONDS, "and then the next one waits as long"


async def test_what_has_arrived_is_told_at_once_with_all_that_waited():
    story = Story()
    await story.tell(on_its_way(0))
    await story.tell(on_its_way(8))

    assert await story.tell(ARRIVED) == 0
    assert story.counted == [0, 9]


async def test_what_was_done_on_the_way_is_told_as_one_event_on_arrival():
    story = Story()
    story.did("created Service a")
    await story.tell(on_its_way(0))
    story.did("created Deployment b")
    await story.tell(on_its_way(1))
    assert story.told == []
    await story.tell(ARRIVED)

    assert story.told == ["created Service a; created Deployment b"]


async def test_nothing_that_was_done_is_lost_at_the_end_of_the_process():
    story = Story()
    story.did("created Service a")
    await story.tell(on_its_way(0))
    story.reporter.flush()

    assert story.told == ["created Service a"]


async def test_progress_that_was_taken_back_is_not_told_and_the_next_waits_anew():
    story = Story()
    await story.tell(on_its_way(0))
    await story.tell(on_its_way(1))
    assert await story.tell(on_its_way(0)) == 0
    await asyncio.sleep(TOLD_EVERY_SECONDS)

    assert await story.tell(on_its_way(1)) == TOLD_EVERY_SECONDS
    assert story.counted == [0]


async def test_progress_that_could_not_be_written_is_tried_again_without_waiting():
    story = Story()
    await story.tell(on_its_way(0))
    await story.tell(on_its_way(1))
    await asyncio.sleep(TOLD_EVERY_SECONDS)
    story.client.refuses = True
    told = await story.reporter.write_status(RECONCILER, story.client.there, on_its_way(1), NOON)
    assert told.trouble is not None
    story.client.refuses = False

    assert await story.tell(on_its_way(1)) == 0
    assert story.counted == [0, 1]


async def test_a_status_that_is_refused_is_repeated_ever_more_seldom_and_written_in_the_end():
    story = Story()
    story.client.forbids = True
    for second in range(60):
        waits = await story.tell(on_its_way(second % 9))
        assert waits > 0
        await asyncio.sleep(1)
    assert 5 <= story.client.asked <= 9

    story.client.forbids = False
    await asyncio.sleep(300)
    assert await story.tell(ARRIVED) == 0
    assert story.counted == [9]


class Served:
    """The CRDs as the server has them; `newer` are those that it gets when somebody looks again."""

    def __init__(self, now: dict, newer: dict | None = None) -> None:
        self.now, self.newer = now, newer

    async def status_of(self, kind, ours) -> dict:
        return self.now

    async def has_changed(self, kind) -> bool:
        before, self.now = self.now, self.newer or self.now
        return self.now != before


FEW = {"properties": {"conditions": {}, "replicas": {}, "secret": {"type": "string"}}, "required": ["secret"]}


async def test_a_status_has_what_the_served_schema_has_and_is_written_once():
    story = Story()
    story.reporter._served = Served(FEW)
    for _ in range(3):
        assert await story.tell(ARRIVED) == 0

    [status] = story.client.statuses
    assert set(status) == {"conditions", "replicas", "secret"}
    assert (status["replicas"], status["secret"]) == (9, "")


@pytest.mark.parametrize("code", [400, 500])
async def test_when_the_crds_have_lost_a_field_the_status_is_written_again_without_it(code):
    story = Story()
    story.reporter._served = Served({"properties": {"inUse": {}, **FEW["properties"]}}, newer=FEW)
    story.client.undeclared = code
    assert await story.tell(StatusReport(ARRIVED.conditions, {"replicas": 9, "inUse": True})) == 0

    assert [set(status) for status in story.client.statuses] == [{"conditions", "replicas", "secret"}]
    assert story.client.asked == 2


REFUSED = Wait(subject="configuration", reason="ConfigRefused", message="slurm.conf:3: there is no key X")


async def test_a_refused_configuration_is_one_warning_in_events_and_log():
    story, types = Story(), []
    story.reporter = Reporter(
        story.client,
        SimpleNamespace(note_written=lambda *_: None),
        SimpleNamespace(record=lambda about, reason, note, type_: types.append((reason, note, type_))),
    )
    with structlog.testing.capture_logs() as logged:
        for _ in range(2):
            story.reporter.tell(RECONCILER, story.client.there, plan(lane("x", [REFUSED])), Outcome())

    assert types == [("ConfigRefused", REFUSED.message, "Warning")]
    assert [(line["log_level"], line["event"]) for line in logged] == [("warning", REFUSED.message)]


async def test_a_refusal_that_stands_in_the_status_is_no_event_after_a_restart():
    story = Story()
    told = [false(READY, "Waits"), true(DEGRADED, "ConfigRefused", f"{REFUSED.message} slurmctld goes on.")]
    await story.tell(StatusReport(told, fields(0)))
    before = list(story.told)
    restarted = Story()
    restarted.client = story.client
    restarted.reporter.tell(RECONCILER, story.client.there, plan(lane("x", [REFUSED])), Outcome())

    assert restarted.told == []
    assert before == story.told


async def test_waiting_for_something_that_comes_is_no_event():
    story = Story()
    wait = Wait(subject="x", reason="Draining", message="waiting for job 7")
    with structlog.testing.capture_logs() as logged:
        story.reporter.tell(RECONCILER, story.client.there, plan(lane("x", [wait])), Outcome())

    assert story.told == []
    assert [line["log_level"] for line in logged] == ["info"]
