"""Stories from a seed: a NodeSet, a Slurm cluster, what happens to them, and whether all promises were kept."""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from simulation import kube_nodes, shared_root, whole_promises
from simulation.daemons import Daemons
from simulation.deeds import Deeds, Happening
from simulation.promises import Promises, unrest
from simulation.scenes import PASSWORD, SLURMCLUSTER, WIDE, Scene
from simulation.secrets_made import made_secrets
from simulation.whole_deeds import WHOLE_DEEDS, WholeDeeds
from simulation.whole_promises import WholePromises
from simulation.wide_deeds import PROLOG_SECONDS, WIDE_DEEDS, WideDeeds
from simulation.workloads import Workloads
from simulation.world import World, live
from slurm_operator.runtime.manager import Program

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
    "hang_worker": 2,
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
    "refuse_writes": 2,
    "allow_writes": 1,
    "calm": 6,
}

MACHINES = 5
RESTS_AFTER_SECONDS = 45.0  # Without a write for this long, everything has come to rest.
PATIENCE_SECONDS = 420.0  # And that happens within this time after the last trouble.
WHOLE_PATIENCE_SECONDS = 1500.0  # A rotation of the Slurm key alone takes six minutes.


WORKERS_ALONE = Scene()


@dataclass(frozen=True)
class Story:
    """What is needed to see it again."""

    seed: int
    happenings: tuple[Happening, ...]
    roughness: float = 0.0
    scene: Scene = WORKERS_ALONE
    steps: bool = False  # Whether the operator's clock is set all the time.
    late: float = 0.0  # The share of writes that are carried out after the operator has given up on them.

    @classmethod
    def of(
        cls, seed: int, length: int = 0, scene: str = "", late: float = 0.0, steps: bool = False
    ) -> "Story":
        """With so many happenings; 0 draws their number, too, and short stories more often than long ones."""
        chance = random.Random(seed)
        length = length or 3 + int(18 * chance.random() ** 2)
        setting = Scene.of(chance, scene)
        more = {SLURMCLUSTER: shared_root.FRONT_DEEDS, WIDE: WIDE_DEEDS}.get(setting.name, {})
        drawn = {**DEEDS, **WHOLE_DEEDS} if setting.is_whole else {**DEEDS, **more}
        happenings = tuple(
            Happening(
                round(chance.uniform(0, 6) if chance.random() < 0.9 else chance.uniform(6, 40), 1),
                chance.choices(list(drawn), list(drawn.values()))[0],
                chance.randrange(12),
                chance.randrange(60),
            )
            for _ in range(length)
        )
        return cls(seed, happenings, chance.choice([0.0, 0.0, 0.02, 0.08]), setting, steps, late)


def set_back(seed: int) -> Story:
    """People drain two workers and lift that again while nobody can see Slurm; jobs come, and the operator's
    clock is set back by as much as an old answer takes to look new, or more, or less.
    """
    chance = random.Random(seed)

    def some(least: float, most: float) -> float:
        return round(chance.uniform(least, most), 1)

    happenings = (
        Happening(8, "drain", 0, 0),
        Happening(6, "drain", 0, 0),
        Happening(some(6, 12), "lose_slurmrestd", 0, 30),
        Happening(1, "submit", 1, 39),
        Happening(0, "submit", 1, 39),
        Happening(1, "lift"),
        Happening(0, "lift"),
        Happening(some(9, 16), "step_clock", 1, chance.randrange(59)),
        Happening(some(0, 2), "scale", 0, 0),
        Happening(10, "step_clock", 0, chance.randrange(59)),
    )
    return Story(seed, happenings)


@dataclass(frozen=True)
class Ending:
    """How a story went: `broken` is the promise that was not kept, or None."""

    broken: str | None
    steps: int
    seconds: float
    lines: tuple[str, ...]


def play(story: Story, change: Callable[[Program], Program] = lambda program: program) -> Ending:
    """The story from its beginning to its end. `change` is done to the operator that lives in it."""
    workers = _on_a_root if story.scene.name == SLURMCLUSTER else _workers
    plot = _whole if story.scene.is_whole else workers
    program = change(story.scene.program)
    told, operators = partial(plot, story), story.scene.operators
    world = live(story.seed, story.roughness, program, told, story.late, operators)
    return Ending(world.violation, world.steps, world.loop.time(), tuple(world.lines))


async def _workers(story: Story, world: World) -> None:
    """A NodeSet and its Slurm cluster, which is there and stays."""
    _set(world, story)
    deeds = (WideDeeds if story.scene.name == WIDE else Deeds)(world, story.scene.worker_set)
    Promises(world, deeds)
    await _happen(world, deeds, story)
    await _come_to_rest(world, lambda: unrest(world, deeds), "when all trouble is over")
    await _wake_in_peace(world)
    if story.seed % 2 and world.violation is None:
        deeds.delete_nodeset(0, 0)
        await _come_to_rest(world, lambda: unrest(world, deeds), "after the NodeSet was deleted")


async def _on_a_root(story: Story, world: World) -> None:
    """The same workers behind a SlurmCluster and its NodeSet, on a root that somebody has to populate."""
    _set(world, story)
    world.on_tick += [
        shared_root.Stagehands(world.server, world.weather).tick,
        kube_nodes.Rebooter(world).tick,
    ]
    deeds = shared_root.FrontDeeds(world, story.scene.worker_set)
    Promises(world, deeds)
    shared_root.RootPromises(world)
    kube_nodes.NodePromises(world, deeds)
    unrest_now = partial(shared_root.unrest, world, deeds)
    with made_secrets(world.weather):
        await _happen(world, deeds, story)
        await _come_to_rest(world, unrest_now, "when all trouble is over", 2 * PATIENCE_SECONDS)
        await _wake_in_peace(world)
        if story.seed % 2 and world.violation is None:
            deeds.delete_nodeset(0, 0)
            await _come_to_rest(world, unrest_now, "after the NodeSet was deleted")


async def _whole(story: Story, world: World) -> None:
    """All kinds, from nothing: they come in any order, and in the end they may go in any order."""
    _set(world, story)
    workloads = Workloads(world.server, world.weather)
    daemons = Daemons(world)
    if story.scene.accounting == "elsewhere":
        daemons.database_elsewhere = PASSWORD
    world.on_tick += [workloads.tick, daemons.tick]
    deeds = WholeDeeds(world, story.scene, story.seed)
    Promises(world, deeds)
    WholePromises(world, deeds, daemons)
    with made_secrets(world.weather):
        await _happen(world, deeds, story)
        if not deeds.is_leaving:
            whole = partial(whole_promises.unrest, world, deeds, daemons)
            await _come_to_rest(world, whole, "when all trouble is over", WHOLE_PATIENCE_SECONDS)
            deeds.excuses.clear()
            await _wake_in_peace(world)
        if (story.seed % 2 or deeds.is_leaving) and world.violation is None:
            await deeds.delete_everything(story.seed)
            await world.pass_seconds(15)
            left = partial(whole_promises.leftovers, world, deeds)
            await _come_to_rest(world, left, "after everything was deleted", WHOLE_PATIENCE_SECONDS)


def _set(world: World, story: Story) -> None:
    for number in range(MACHINES):
        world.machines.add(f"m{number}")
    story.scene.set(world.server)
    world.ctld.suspended_reads_idle = story.seed % 3 > 0
    if story.scene.name == WIDE:
        world.ctld.configures_for = PROLOG_SECONDS
        world.machines.has_ipv6 = story.seed % 2 == 0


async def _happen(world: World, deeds: Deeds, story: Story) -> None:
    await world.start_operator()
    await world.pass_seconds(12)
    for happening in story.happenings:
        await world.pass_seconds(happening.after)
        if world.violation is None:
            await deeds.do(happening)
        if world.violation is None and story.steps:
            chance = world.weather.share
            after = round(4 * chance("step of the clock"), 1)
            await world.pass_seconds(after)
            await deeds.do(Happening(after, "step_clock", int(3 * chance("back")), int(59 * chance("by"))))
    await deeds.make_good()


async def _come_to_rest(
    world: World, unrest: Callable[[], str | None], when: str, patience: float = PATIENCE_SECONDS
) -> None:
    """Every wish is met within bounded time, and then nothing is written any more."""
    end = world.loop.time() + patience
    led_since = world.loop.time()
    while world.violation is None:
        await world.pass_seconds(5)
        why = unrest()
        if world.operator is None or not world.operator.is_leader:
            led_since = (
                world.loop.time()
            )  # Where nobody acts, there is nothing to say that nothing is to be done.
        now = world.loop.time()
        is_led = now - led_since >= RESTS_AFTER_SECONDS or world.replicas == 1
        is_calm = now - world.last_write_at >= RESTS_AFTER_SECONDS and is_led
        if why is None and is_calm and not world.client.late:
            return
        if world.loop.time() > end:
            last = f"the last write was at {world.last_write_at:.0f} s"
            world.broken(f"it does not come to rest {when}: {why or 'it goes on writing'}; {last}")


async def _wake_in_peace(world: World) -> None:
    """An operator that starts where all is well, and where no job comes or goes, writes nothing."""
    if world.violation is None and all(job.is_over for job in world.ctld.jobs.values()):
        await world.pass_seconds(RESTS_AFTER_SECONDS - world.ctld.unchanged_for)  # Slurm is read seldom now.
        before = world.writes
        await world.crash_operator()
        await world.start_operator()
        await world.pass_seconds(20 * world.replicas)  # A Lease has to run out first.
        if world.writes != before:
            world.broken(f"an operator that starts where all is well writes: {world.lines[-1]}")


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
            if broken_like(play(replace(story, happenings=tuple(shorter)))):
                happenings, changed = shorter, True
            else:
                at += size
        size = size if changed and size == 1 else size // 2
    return replace(story, happenings=tuple(happenings))


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
        f"Story(\n    seed={story.seed},\n    roughness={story.roughness},\n    steps={story.steps},\n    late={story.late},\n    scene={story.scene},\n"
        f"    happenings=(\n{lines}\n    ),\n)"
    )
