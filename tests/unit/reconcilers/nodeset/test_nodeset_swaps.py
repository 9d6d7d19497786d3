"""Two operators that take turns over the same workers: ours, and what the description of Slinky's says that it does.

They are swapped at any moment, in the middle of updates and scale-ins, there and back, while jobs run. No job is taken
along by a pod, and whoever is last finishes what the other one began.
"""

from dataclasses import dataclass
from typing import Any

import pytest

from slurm_operator.api.shared import names
from slurm_operator.manifests.kinds import CONTROLLER_REVISION
from slurm_operator.manifests.meta import Manifest
from slurm_operator.reconcilers.nodeset.creation.slinky_hash import patch, their_hash
from testing.slinky_rules import Node, drain_reason, is_marked, turn
from testing.story import Story

OURS, SLINKY, NOBODY = "ours", "slinky", "nobody"
SPEC = {"replicas": 3, "slurmd": {"image": "slurmd:1"}}
MARK = f"/metadata/annotations/{names.POD_CORDON.replace('/', '~1')}"
OWNER = {
    "apiVersion": "slinky.slurm.net/v1beta1", "kind": "NodeSet", "name": "gpu", "uid": "set-uid",
    "controller": True, "blockOwnerDeletion": True,
}  # fmt: skip


@dataclass
class Swapped(Story):
    """Whose turn it is, and whether Slinky's operator asks before it deletes."""

    whose: str = SLINKY
    asks: bool = True

    def _pass(self) -> None:
        if self.whose == OURS:
            super()._pass()
        elif self.whose == SLINKY:
            self._slinkys_pass()

    def _slinkys_pass(self) -> None:
        newest, pods = self.newest(), self.pods.pods
        steps = turn(list(pods.values()), self.nodes(), newest, self.nodeset().spec.replicas or 0)
        free = [number for number in range(20) if f"gpu-{number}" not in pods]
        for number in free[: steps.make]:
            self.pods.create(self.pod(number, newest))
        for name in steps.delete if self.asks else (*steps.delete, *steps.drain):
            self.pods.delete(name, pods[name]["metadata"]["uid"], grace=30)
        for name in steps.drain if self.asks else ():
            self.mark(name, is_marked=True)
            self.slurm.drain(name, drain_reason("ns", name), "slurm")
        for name in steps.keep:
            if is_marked(pods[name]):
                self.mark(name, is_marked=False)
            if self.slurm.records[name].is_drain:
                self.slurm.resume(name, from_down=False)

    def nodes(self) -> dict[str, Node]:
        busy = {name for job in self.slurm.jobs.values() if job.runs for name in job.nodes}
        return {
            name: Node(record.is_drain, name in busy, record.reason)
            for name, record in self.slurm.records.items()
        }

    def mark(self, name: str, *, is_marked: bool) -> None:
        change: dict[str, Any] = {"op": "add", "value": "true"} if is_marked else {"op": "remove"}
        self.pods.patch(name, self.pods.pods[name]["metadata"]["uid"], [{"path": MARK, **change}])

    def newest(self) -> str:
        """The revision of the spec as it is, made where it is missing."""
        nodeset = self.nodeset()
        hash_ = their_hash(nodeset)
        if f"gpu-{hash_}" not in {child.metadata.name for child in self.children[CONTROLLER_REVISION]}:
            metadata = {
                "name": f"gpu-{hash_}", "namespace": "ns", "labels": {names.LABEL_HASH: hash_},
                "ownerReferences": [OWNER], "creationTimestamp": f"{self.now:%Y-%m-%dT%H:%M:%SZ}",
            }  # fmt: skip
            self._put({
                "apiVersion": "apps/v1", "kind": "ControllerRevision", "metadata": metadata, "revision": 1,
                "data": patch(nodeset.spec),
            })  # fmt: skip
        return hash_

    def pod(self, number: int, hash_: str) -> Manifest:
        name = f"gpu-{number}"
        labels = {
            names.APP_NAME: "slurmd", names.APP_INSTANCE: "gpu", "app.kubernetes.io/component": "worker",
            names.LABEL_CLUSTER: "slurm", names.LABEL_HASH: hash_,
            "nodeset.slinky.slurm.net/pod-name": name, "nodeset.slinky.slurm.net/pod-index": str(number),
            names.LABEL_POD_HOSTNAME: name, "nodeset.slinky.slurm.net/scaling-mode": "StatefulSet",
        }  # fmt: skip
        return {
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {
                "name": name, "namespace": "ns", "labels": labels, "annotations": {}, "ownerReferences": [OWNER],
            },
            "spec": {
                "hostname": name, "containers": [{"name": "slurmd", "image": "slurmd:1"}],
                "terminationGracePeriodSeconds": 30,
            },
        }  # fmt: skip

    def is_settled(self) -> bool:
        """As many as are wanted, all from the spec as it is, all in service, and no mark of anybody left."""
        pods, newest = self.pods.pods, self.newest()
        return (
            len(pods) == self.spec["replicas"]
            and all(pod["metadata"]["labels"].get(names.LABEL_HASH) == newest for pod in pods.values())
            and not any(map(is_marked, pods.values()))
            and not any(self.slurm.records[name].is_drain for name in pods if name in self.slurm.records)
            and set(pods) <= set(self.slurm.records)
        )


def played(seed: int, last: str, *, asks: bool = True) -> Swapped:
    """Two minutes in which everything happens at any moment, and then enough time to finish."""
    story = Swapped(SPEC, seed=seed, machines=8, asks=asks)
    dice = story.chance
    story.tick(10)
    for _ in range(24):
        if dice.random() < 0.5:
            story.submit(dice.randint(3, 40))
        match dice.choice(["update", "scale", "scale", "swap", "swap", "swap", "nothing"]):
            case "update":
                story.change(slurmd={"image": f"slurmd:{dice.randint(1, 4)}"})
            case "scale":
                story.change(replicas=dice.randint(1, 5))
            case "swap":
                story.whose = dice.choice([OURS, SLINKY, NOBODY])
        story.tick(dice.randint(1, 8))
    story.whose = last
    return story.tick(240)


@pytest.mark.parametrize("last", [OURS, SLINKY])
@pytest.mark.parametrize("seed", range(8))
def test_operators_are_swapped_at_any_moment_and_no_job_is_lost(seed, last):
    story = played(seed, last)

    assert story.broken == []
    assert {job.state for job in story.slurm.jobs.values()} <= {"COMPLETED"}
    assert story.is_settled(), story.transcript[-3000:]


def test_an_operator_that_does_not_ask_loses_jobs_in_these_stories():
    assert any(played(seed, SLINKY, asks=False).broken for seed in range(5))


@pytest.mark.parametrize(("begins", "ends"), [(SLINKY, OURS), (OURS, SLINKY)])
@pytest.mark.parametrize(
    "change", [{"slurmd": {"image": "slurmd:2"}}, {"replicas": 1}], ids=["update", "scale-in"]
)
def test_what_one_began_under_running_jobs_the_other_one_finishes(begins, ends, change):
    story = Swapped(SPEC, whose=begins).tick(10)
    jobs = [story.submit(60) for _ in range(3)]
    story.tick(3)
    story.change(**change).tick(4)
    assert any(record.is_drain for record in story.slurm.records.values()), "in the middle"
    before = set(story.pods.pods)

    story.whose = ends
    story.tick(20)
    assert set(story.pods.pods) == before
    assert all(job.state == "RUNNING" for job in jobs)

    story.tick(240)
    assert (story.broken, {job.state for job in jobs}) == ([], {"COMPLETED"})
    assert story.is_settled(), story.transcript
