"""Stories from a seed: a NodeSet, a Slurm cluster, what happens to them, and whether all promises were kept."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from simulation.apiserver import HUMAN
from simulation.deeds import Deeds, Happening
from simulation.promises import Promises, unrest
from simulation.world import World, live
from slurm_operator import operator
from slurm_operator.api.controller import Controller
from slurm_operator.api.meta import ObjectKey
from slurm_operator.api.nodeset import NodeSet
from slurm_operator.manifests import kinds
from slurm_operator.manifests.secrets import SecretHandle
from slurm_operator.plan.wiring import SlurmServer
from slurm_operator.runtime.settings import Settings

NAMESPACE = "ns"
KEY = ObjectKey(NAMESPACE, "gpu")
CONTROLLER = ObjectKey(NAMESPACE, "slurm")

# How often each deed is drawn, out of all of them together.
DEEDS = {
    "submit": 24,
    "submit_array": 4,
    "insist": 3,
    "suspend": 6,
    "wake": 5,
    "requeue": 2,
    "cancel": 2,
    "preempt": 2,
    "drain": 5,
    "drain_over": 2,
    "lift": 5,
    "restart_slurmctld": 2,
    "hang_slurmctld": 4,
    "lose_state": 1,
    "lose_slurmrestd": 2,
    "reconfigure": 2,
    "reserve": 2,
    "unreserve": 2,
    "crash_worker": 2,
    "fail_worker": 2,
    "lose_machine": 1,
    "cut_off_machine": 2,
    "cordon": 3,
    "uncordon": 4,
    "taint": 1,
    "delete_pod": 4,
    "policy_off": 1,
    "cordon_pod": 2,
    "uncordon_pod": 2,
    "scale": 8,
    "change_image": 5,
    "break_image": 1,
    "change_resources": 3,
    "switch_mode": 1,
    "widen_budget": 1,
    "delete_nodeset": 1,
    "crash_operator": 4,
    "stop_operator": 2,
    "lose_apiserver": 2,
    "calm": 6,
}

MACHINES = 5
RESTS_AFTER_SECONDS = 45.0  # Without a write for this long, everything has come to rest.
PATIENCE_SECONDS = 420.0  # And that happens within this time after the last trouble.

SECRET = {"metadata": {"name": "jwt", "namespace": NAMESPACE}, "data": {"key": "c2VjcmV0"}}

WHOLE = operator.program(Settings())
# What a NodeSet looks at is watched as the operator watches it; the Controller is there, and nobody changes it.
WORKERS_ONLY = replace(
    WHOLE,
    reconcilers=tuple(found for found in WHOLE.reconcilers if found.name == "nodeset"),
    slurm_servers=lambda world: {
        CONTROLLER: SlurmServer(
            ("http://simulated",), SecretHandle(namespace=NAMESPACE, name="jwt", key="key")
        )
    },
)


@dataclass(frozen=True)
class Story:
    """What is needed to see it again."""

    seed: int
    happenings: tuple[Happening, ...]
    roughness: float = 0.0
    spec: dict = field(default_factory=dict)

    @classmethod
    def of(cls, seed: int, length: int = 20) -> "Story":
        chance = random.Random(seed)
        deeds, weights = list(DEEDS), list(DEEDS.values())
        happenings = tuple(
            Happening(
                round(chance.uniform(0, 6) if chance.random() < 0.9 else chance.uniform(6, 40), 1),
                chance.choices(deeds, weights)[0],
                chance.randrange(12),
                chance.randrange(60),
            )
            for _ in range(length)
        )
        spec: dict = {"replicas": chance.randint(1, 4)}
        if chance.random() < 0.2:
            spec["scalingMode"] = "DaemonSet"
        return cls(seed, happenings, chance.choice([0.0, 0.0, 0.02, 0.08]), spec)


@dataclass(frozen=True)
class Ending:
    """How a story went: `broken` is the promise that was not kept, or None."""

    broken: str | None
    steps: int
    seconds: float
    lines: tuple[str, ...]


def play(story: Story) -> Ending:
    async def plot(world: World) -> None:
        deeds = _begin(world, story)
        Promises(world, deeds)
        await world.start_operator()
        await world.pass_seconds(12)
        for happening in story.happenings:
            await world.pass_seconds(happening.after)
            if world.violation is None:
                await deeds.do(happening)
        await deeds.make_good()
        await _come_to_rest(world, deeds, "when all trouble is over")
        if story.seed % 2 and world.violation is None:
            deeds.delete_nodeset(0, 0)
            await _come_to_rest(world, deeds, "after the NodeSet was deleted")

    world = live(story.seed, story.roughness, WORKERS_ONLY, plot)
    return Ending(world.violation, world.steps, world.loop.time(), tuple(world.lines))


def _begin(world: World, story: Story) -> Deeds:
    for number in range(MACHINES):
        world.machines.add(f"m{number}")
    meta = {"name": CONTROLLER.name, "namespace": NAMESPACE}
    world.server.create(Controller.KIND, {"metadata": meta, "spec": {}}, HUMAN)
    world.server.create(kinds.SECRET, SECRET, HUMAN)
    world.server.create(kinds.NAMESPACE, {"metadata": {"name": NAMESPACE}}, HUMAN)
    spec = {"controllerRef": {"name": CONTROLLER.name}, "slurmd": {"image": "slurmd:1"}, **story.spec}
    world.server.create(
        NodeSet.KIND, {"metadata": {"name": KEY.name, "namespace": NAMESPACE}, "spec": spec}, HUMAN
    )
    world.ctld.suspended_reads_idle = story.seed % 3 > 0
    return Deeds(world, KEY)


async def _come_to_rest(world: World, deeds: Deeds, when: str) -> None:
    """Every wish is met within bounded time, and then nothing is written any more."""
    end = world.loop.time() + PATIENCE_SECONDS
    while world.violation is None:
        await world.pass_seconds(5)
        why = unrest(world, deeds)
        is_calm = world.loop.time() - world.last_write_at >= RESTS_AFTER_SECONDS
        if why is None and is_calm:
            return
        if world.loop.time() > end:
            last = f"the last write was at {world.last_write_at:.0f} s"
            world.broken(f"it does not come to rest {when}: {why or 'it goes on writing'}; {last}")


def shrunk(story: Story, broken_like=lambda ending: ending.broken is not None, most: int = 400) -> Story:
    """A shorter story that ends as badly: pieces are left out for as long as it stays bad."""
    tries = 0
    happenings: Sequence[Happening] = story.happenings
    size = max(1, len(happenings) // 2)
    while size and tries < most:
        at, changed = 0, False
        while at < len(happenings) and tries < most:
            shorter = (*happenings[:at], *_delayed(happenings[at + size :], happenings[at : at + size]))
            tries += 1
            if broken_like(play(Story(story.seed, shorter, story.roughness, story.spec))):
                happenings, changed = shorter, True
            else:
                at += size
        size = size if changed and size == 1 else size // 2
    return Story(story.seed, tuple(happenings), story.roughness, story.spec)


def _delayed(rest: Sequence[Happening], left_out: Sequence[Happening]) -> tuple[Happening, ...]:
    """What comes after keeps its time."""
    if not rest:
        return ()
    first, seconds = rest[0], sum(happening.after for happening in left_out)
    return (Happening(round(first.after + seconds, 1), first.deed, first.pick, first.amount), *rest[1:])


def as_test(story: Story, ending: Ending) -> str:
    """The story as a test, ready to be kept."""
    lines = "\n".join(f"        {happening}," for happening in story.happenings)
    told = "\n".join(f"    # {line}" for line in ending.lines[-25:])
    return (
        f"# {ending.broken}\n{told}\n"
        f"Story(\n    seed={story.seed},\n    roughness={story.roughness},\n    spec={story.spec},\n"
        f"    happenings=(\n{lines}\n    ),\n)"
    )
