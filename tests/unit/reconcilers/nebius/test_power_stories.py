"""Stories of ephemeral workers: Slurm's power saving, lost calls, pods that do not start, and no job lost."""

from contextlib import suppress
from datetime import timedelta
from functools import cache

import pytest

from slurm_operator import wire
from slurm_operator.api.nebius import NodeSet, NodeSetPowerState
from slurm_operator.api.schema import codec
from slurm_operator.api.shared.meta import ObjectKey, OwnerReference
from slurm_operator.api.slinky.nodeset import NodeSet as WorkerPart
from slurm_operator.plan.actions import PatchObject, WriteSlurm
from slurm_operator.reconcilers.nebius.powerstate import RECONCILER
from testing.fake_slurm import Refused
from testing.slurmclusters import manifest
from testing.story import Story

IDLE_SECONDS, WAITED_SECONDS = 15, 60


@cache
def ephemeral(replicas: int) -> NodeSet:
    body = manifest(
        "NodeSet", "gpu", spec__clusterName="slurm", spec__ephemeralNodes=True, spec__replicas=replicas
    )
    return codec.read(NodeSet, {**body, "metadata": {"name": "gpu", "namespace": "ns", "uid": "nebius-uid"}})


class PowerStory(Story):
    """`lost` is the share of slurmctld's calls that reach nobody."""

    lost: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        self.active: list[int] = list(self.spec.get("ordinals") or [])
        self.told: dict = {}
        self.idle_since: dict = {}
        self.waited_since: dict = {}

    def tick(self, seconds: int = 1) -> "PowerStory":
        for _ in range(seconds):
            self._save_power()
            super().tick()
            self._keep_power_state()
            wanted = [number for number in self.active if number < self.spec["replicas"]]
            if wanted != self.spec["ordinals"]:
                self.change(ordinals=wanted)
        return self

    # ---- slurmctld's power saving

    def _save_power(self) -> None:
        records = self.slurm.records
        for name, record in records.items():
            is_busy = any(job.runs and name in job.nodes for job in self.slurm.jobs.values())
            is_idle = not (
                record.is_off or record.is_powering_up or record.is_down or is_busy or record.is_drain
            )
            self.idle_since = {**self.idle_since, name: self.idle_since.get(name) or self.now} if is_idle else {
                one: since for one, since in self.idle_since.items() if one != name
            }  # fmt: skip
            if is_idle and self.now - self.idle_since[name] >= timedelta(seconds=IDLE_SECONDS):
                record.is_off = True
                self._call(name, on=False)
        self._wake()
        self._give_up()

    def _wake(self) -> None:
        waiting = sum(job.width for job in self.slurm.jobs.values() if job.state == "PENDING")
        there = sum(one.is_powering_up for one in self.slurm.records.values())
        off = [one for one in self.slurm.records.values() if one.is_off and not (one.is_down or one.is_drain)]
        for record in off[: max(0, waiting - there)]:
            record.is_off, record.is_powering_up = False, True
            self.waited_since[record.name] = self.now
            self._call(record.name, on=True)

    def _give_up(self) -> None:
        for record in self.slurm.records.values():
            since = self.waited_since.get(record.name, self.now)
            if record.is_powering_up and self.now - since >= timedelta(seconds=WAITED_SECONDS):
                record.is_powering_up, record.is_off, record.is_down = False, True, True
                record.reason, record.set_by, record.changed_at = "ResumeTimeout reached", "slurm", self.now
                self._call(record.name, on=False)

    def _call(self, name: str, *, on: bool) -> None:
        """What power-manager makes of it, if the call reaches it."""
        if self.chance.random() >= self.lost:
            number = int(name.rpartition("-")[2])
            self.active = sorted({*self.active, number} if on else {*self.active} - {number})

    # ---- The reconciler

    def _keep_power_state(self) -> None:
        seen = RECONCILER.observe(ObjectKey("ns", "gpu"), self._power_world())
        plan = RECONCILER.decide(seen, self.now)
        for action in plan.actions():
            if self.chance.random() < self.fails:
                continue
            if isinstance(action, PatchObject):
                self.active = list(action.operations[-1]["value"])
            elif isinstance(action, WriteSlurm):
                with suppress(Refused):  # It is decided again.
                    self.perform(action)
        self.told = RECONCILER.status(seen, plan, self._act(type(plan)())).fields

    def _power_world(self):
        made = self.world()
        owner = OwnerReference(
            api_version="slurm.nebius.ai/v1alpha1",
            kind="NodeSet",
            name="gpu",
            uid="nebius-uid",
            controller=True,
        )
        part = made.get(WorkerPart, "ns", "gpu")
        meta = {
            "name": "gpu",
            "namespace": "ns",
            "uid": "nebius-uid",
            "resourceVersion": "1",
            "generation": 1,
        }
        power = {"nodeSetRef": "gpu", "activeNodes": self.active}
        made.things = [
            *(one for one in made.things if one is not part),
            wire.replace(part, metadata=wire.replace(part.metadata, owner_references=[owner])),
            ephemeral(self.spec["replicas"]),
            codec.read(
                NodeSetPowerState, {"metadata": {**meta, "uid": "power"}, "spec": power, "status": self.told}
            ),
        ]
        return made


def story(**options) -> PowerStory:
    lost = options.pop("lost", 0.0)
    made = PowerStory({"records": "created", "replicas": 4, "ordinals": []}, machines=6, **options)
    made.lost = lost
    return made.tick(5)


def test_a_job_starts_one_worker_and_idle_time_removes_it_and_keeps_the_record():
    made = story()
    assert made.pods.pods == {}
    assert set(made.slurm.records) == {f"gpu-{number}" for number in range(4)}

    job = made.submit(5)
    made.tick(20)
    assert set(made.pods.pods) == {"gpu-0"}
    assert made.active == [0]

    made.tick(60)
    assert job.state == "COMPLETED"
    assert made.pods.pods == {}
    assert made.active == []
    assert set(made.slurm.records) == {f"gpu-{number}" for number in range(4)}
    assert not any(record.is_drain for record in made.slurm.records.values())
    assert made.broken == []


@pytest.mark.parametrize("seed", range(3))
def test_lost_calls_and_failures_cost_time_and_no_job(seed):
    made = story(seed=seed, fails=0.2, lazy=0.4, lost=0.5)
    jobs = [made.submit(20 + 10 * number) for number in range(4)]
    made.tick(60)
    jobs.append(made.submit(15, 2))
    made.tick(60).slurm_away(True).tick(20).slurm_away(False)
    made.fails, made.lost = 0.0, 0.0
    made.tick(600)

    assert {job.state for job in jobs} == {"COMPLETED"}
    assert made.pods.pods == {}, "nobody is left behind"
    assert made.active == []
    assert set(made.slurm.records) == {f"gpu-{number}" for number in range(4)}
    assert made.broken == []


def test_replicas_below_the_number_of_active_workers_wait_for_jobs():
    made = story()
    jobs = [made.submit(40) for _ in range(4)]
    made.tick(15)
    assert made.active == [0, 1, 2, 3]

    made.change(replicas=2).tick(5)
    assert made.active == [0, 1], "numbers beyond replicas are dropped"
    assert set(made.pods.pods) == {f"gpu-{number}" for number in range(4)}, "their jobs are waited for"
    made.tick(120)

    assert {job.state for job in jobs} == {"COMPLETED"}
    assert set(made.slurm.records) == {"gpu-0", "gpu-1"}
    assert made.broken == []


def test_a_worker_that_finds_no_machine_is_given_up_explained_and_tried_again():
    made = story()
    machines, made.pods.machines = made.pods.machines, []
    job = made.submit(5)
    made.tick(WAITED_SECONDS + 20)

    failed = [record for record in made.slurm.records.values() if record.reason]
    assert failed
    assert all("PowerUpFailed" in record.reason for record in failed)
    assert not {record.name for record in failed} & set(made.pods.pods), "no pod is left behind"

    made.pods.machines = machines
    made.tick(400)
    assert job.state == "COMPLETED"
    assert made.pods.pods == {}
    assert not any(record.is_down or record.reason for record in made.slurm.records.values())
    assert made.broken == []
