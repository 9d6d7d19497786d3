"""What people and bad days do to a cluster, at random: for stories in which nothing may go wrong all the same."""

from typing import TypeVar

from slurm_operator.api.shared import names
from slurm_operator.api.slinky.nodeset_updates import UpdateType
from testing.story import Story

T = TypeVar("T")

HUMAN = "bad disk, ask Ada"


class Mischief:
    """One thing a second. Remembers what a human said about a node, because that has to stand."""

    def __init__(self, story: Story) -> None:
        self.story = story
        self.chance = story.chance
        self.drained: set[str] = set()
        self.deeds = {
            self.submit: 12,
            self.suspend: 3,
            self.wake: 4,
            self.drain: 2,
            self.lift: 2,
            self.cordon: 1,
            self.uncordon: 3,
            self.scale: 3,
            self.retouch: 2,
            self.spoil: 1,
            self.grow: 1,
            self.delete_by_hand: 2,
            self.cut_off: 1,
            self.connect: 4,
            self.forget_everything: 1,
            self.rest: 20,
        }

    def strike(self) -> None:
        [deed] = self.chance.choices(list(self.deeds), weights=list(self.deeds.values()))
        deed()

    def submit(self) -> None:
        self.story.submit(self.chance.randint(3, 40), self.chance.choice([1, 1, 2]))

    def suspend(self) -> None:
        for job in self._some([job for job in self.story.slurm.jobs.values() if job.state == "RUNNING"]):
            job.state = "SUSPENDED"

    def wake(self) -> None:
        for job in self._some([job for job in self.story.slurm.jobs.values() if job.state == "SUSPENDED"]):
            job.state = "RUNNING"

    def drain(self) -> None:
        records = self.story.slurm.records.values()
        for record in self._some([r for r in records if not r.is_drain and not r.reason]):
            self.story.slurm.drain(record.name, HUMAN, "root")
            self.drained.add(record.name)

    def lift(self) -> None:
        """Not in the very second in which the worker ends: where a human's drain is the fence, it is theirs."""
        for name in self._some(sorted(self.drained - self._ending())):
            self.story.slurm.resume(name)
            self.drained.discard(name)

    def _ending(self) -> set[str]:
        return {
            pod["metadata"]["labels"][names.LABEL_POD_HOSTNAME]
            for pod in self.story.pods.pods.values()
            if "deletionTimestamp" in pod["metadata"]
        }

    def cordon(self) -> None:
        self.chance.choice(self.story.pods.machines).is_cordoned = True

    def uncordon(self) -> None:
        for machine in self.story.pods.machines:
            machine.is_cordoned = False

    def scale(self) -> None:
        self.story.change(replicas=self.chance.randint(0, 5))

    def retouch(self) -> None:
        self.story.change(slurmd={"image": f"slurmd:{self.chance.randint(1, 9)}"})

    def spoil(self) -> None:
        self.story.pods.bad_images.add("slurmd:broken")
        self.story.change(slurmd={"image": "slurmd:broken"})

    def grow(self) -> None:
        self.story.change(extraConf=f"CPUs={self.chance.randint(1, 9)}")

    def delete_by_hand(self) -> None:
        for name, pod in self._some(sorted(self.story.pods.pods.items())):
            if "deletionTimestamp" not in pod["metadata"]:
                self.story.pods.delete(name, pod["metadata"]["uid"], grace=3600, waits=True)

    def cut_off(self) -> None:
        self.story.slurm_away(True)

    def connect(self) -> None:
        self.story.slurm_away(False)

    def forget_everything(self) -> None:
        self.story.slurm.lose_state()
        self.drained.clear()

    def rest(self) -> None:
        pass

    def make_good(self) -> None:
        """Everybody goes home: nothing is held back any more, and the wishes are ones that can be met."""
        story = self.story
        story.fails = story.lazy = 0.0
        story.slurm_away(False)
        self.uncordon()
        while self.drained & self._ending():
            story.tick()
        for name in sorted(self.drained):
            story.slurm.resume(name)
        self.drained.clear()
        for job in story.slurm.jobs.values():
            job.state = "RUNNING" if job.state == "SUSPENDED" else job.state
        image = story.spec.get("slurmd", {}).get("image", "slurmd:1")
        kind = story.spec.get("updateStrategy", {}).get("type", UpdateType.ROLLING_UPDATE)
        if image in story.pods.bad_images or kind != UpdateType.ROLLING_UPDATE:
            story.change(slurmd={"image": "slurmd:good"})

    def _some(self, choices: list[T]) -> list[T]:
        return [self.chance.choice(choices)] if choices else []
