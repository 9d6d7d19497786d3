"""Lanes, stages and slow start, under every mixture of failures that hypothesis thinks of."""

import asyncio
from collections import defaultdict

from hypothesis import given, settings
from hypothesis import strategies as st

from slurm_operator.plan.actions import Apply, Tell, Wait
from slurm_operator.plan.plan import lane, plan
from slurm_operator.runtime.act.stages import AT_ONCE, ActionFailed, Pointless, act


def apply(name: str) -> Apply:
    manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "ns", "name": name}}
    return Apply(manifest=manifest, reason="Test", message="because")


def name_of(action: Apply) -> str:
    return action.manifest["metadata"]["name"]


class Stage:
    """Performs actions named `lane/stage/number`, and remembers who ran beside whom."""

    def __init__(self, failing: set[str] = frozenset()) -> None:
        self.failing = failing
        self.running: set[str] = set()
        self.seen_together: list[set[str]] = []
        self.tried: list[str] = []

    async def perform(self, action: Apply) -> None:
        name = name_of(action)
        self.tried.append(name)
        self.running.add(name)
        self.seen_together.append(set(self.running))
        await asyncio.sleep(0)
        self.running.discard(name)
        if name in self.failing:
            raise ActionFailed(f"{name} refused")


shapes = st.lists(st.lists(st.integers(1, 9), max_size=4), max_size=4)


@given(shapes, st.data())
@settings(max_examples=200, deadline=None)
def test_stages_never_overlap_and_a_failure_stops_only_its_own_lane(shape, data):
    names = [
        f"{lane_number}/{stage_number}/{number}"
        for lane_number, stages in enumerate(shape)
        for stage_number, size in enumerate(stages)
        for number in range(size)
    ]
    failing = set(data.draw(st.lists(st.sampled_from(names), max_size=4))) if names else set()
    stage = Stage(failing)
    whole = plan(
        *(
            lane(
                str(lane_number),
                *(
                    [apply(f"{lane_number}/{stage_number}/{number}") for number in range(size)]
                    for stage_number, size in enumerate(stages)
                ),
            )
            for lane_number, stages in enumerate(shape)
        )
    )

    outcome = asyncio.run(act(whole, stage.perform))

    for together in stage.seen_together:
        stages_by_lane = defaultdict(set)
        for name in together:
            lane_number, stage_number, _ = name.split("/")
            stages_by_lane[lane_number].add(stage_number)
        assert all(len(stages) == 1 for stages in stages_by_lane.values())

    done = {name_of(action) for action in outcome.done}
    failed = {name_of(failure.action) for failure in outcome.failed}
    skipped = {name_of(action) for action in outcome.skipped}
    assert done | failed | skipped == set(names)
    assert len(outcome.done) + len(outcome.failed) + len(outcome.skipped) == len(names)
    assert failed == failing & set(stage.tried)
    assert len(stage.tried) == len(set(stage.tried))
    lanes_with_failure = {name.split("/")[0] for name in failed}
    assert {name.split("/")[0] for name in skipped} <= lanes_with_failure
    for name in skipped:
        first_failed = min(int(f.split("/")[1]) for f in failed if f.split("/")[0] == name.split("/")[0])
        assert int(name.split("/")[1]) >= first_failed


async def test_slow_start_meets_a_refusal_with_one_request():
    stage = Stage(failing={"0"})

    outcome = await act(plan(lane("pods", [apply(str(number)) for number in range(100)])), stage.perform)

    assert stage.tried == ["0"]
    assert len(outcome.skipped) == 99


async def test_slow_start_begins_one_more_with_each_that_works_and_never_more_than_connections():
    stage = Stage()
    pods = [apply(str(number)) for number in range(AT_ONCE * 8)]

    await act(plan(lane("pods", pods)), stage.perform)

    begun_before_done = [
        (begun, begun - len(together)) for begun, together in enumerate(stage.seen_together, 1)
    ]
    assert all(begun <= 2 * done + 1 for begun, done in begun_before_done)
    assert max(map(len, stage.seen_together)) == AT_ONCE
    assert {len(together) for together in stage.seen_together[AT_ONCE * 4 :]} == {AT_ONCE}


async def test_the_slowest_of_a_stage_holds_up_nobody():
    never, reached = asyncio.Event(), asyncio.Event()

    async def perform(action: Apply) -> None:
        match name_of(action):
            case "1":
                await never.wait()
            case "99":
                reached.set()

    acting = asyncio.create_task(act(plan(lane("pods", [apply(str(n)) for n in range(100)])), perform))
    async with asyncio.timeout(10):
        await reached.wait()
    never.set()

    assert len((await acting).done) == 100


async def test_after_a_refusal_nothing_new_is_begun_and_what_is_under_way_ends():
    go_on, tried = asyncio.Event(), []

    async def perform(action: Apply) -> None:
        tried.append(name_of(action))
        match name_of(action):
            case "1":
                await go_on.wait()
            case "2":
                go_on.set()
                raise ActionFailed("quota exceeded")

    outcome = await act(plan(lane("pods", [apply(str(n)) for n in range(100)], [apply("behind")])), perform)

    assert tried == ["0", "1", "2"]
    assert [name_of(action) for action in outcome.done] == ["0", "1"]
    assert len(outcome.skipped) == 98


async def test_notes_that_there_is_no_time_for_are_left_to_the_next_pass_and_hold_up_nothing_else():
    stage = Stage()
    notes = [lane(f"note {number}", [apply(str(number))], is_note=True) for number in range(AT_ONCE * 2)]
    urgent = lane("urgent", [apply("first")], [apply("second")])

    outcome = await act(plan(*notes, urgent), stage.perform, notes_seconds=0)

    assert {"first", "second"} <= set(stage.tried)
    assert len(outcome.done) == AT_ONCE + 2
    assert [name_of(action) for action in outcome.skipped] == [
        str(number) for number in range(AT_ONCE, AT_ONCE * 2)
    ]


async def test_notes_are_all_written_while_there_is_time_and_never_more_at_once_than_connections():
    stage = Stage()
    notes = [lane(f"note {number}", [apply(str(number))], is_note=True) for number in range(AT_ONCE * 4)]

    outcome = await act(plan(*notes), stage.perform, notes_seconds=600)

    assert len(outcome.done) == AT_ONCE * 4
    assert max(map(len, stage.seen_together)) == AT_ONCE


async def test_waiting_and_telling_send_nothing_and_count_as_done():
    stage = Stage()
    quiet = plan(lane("x", [Wait(subject="gpu-3", reason="Draining", message="2 jobs are left")],
                      [Tell(subject="gpu-3", reason="Seen", message="by a human")]))  # fmt: skip

    outcome = await act(quiet, stage.perform)

    assert stage.tried == []
    assert len(outcome.done) == 2


async def test_a_bug_in_one_action_is_an_outcome_too():
    async def perform(action):
        raise KeyError("no such thing")

    outcome = await act(plan(lane("x", [apply("a")]), lane("y", [apply("b")])), perform)

    assert [failure.error for failure in outcome.failed] == ["KeyError: 'no such thing'"] * 2


async def test_what_nobody_needs_any_more_is_no_failure_and_what_rests_on_it_is_left():
    async def perform(action: Apply) -> None:
        if name_of(action) == "in a namespace that ends":
            raise Pointless

    ending, behind, beside = apply("in a namespace that ends"), apply("behind it"), apply("beside it")

    outcome = await act(plan(lane("a", [ending], [behind]), lane("b", [beside])), perform)

    assert (outcome.done, outcome.failed) == ((beside,), ())
    assert set(map(name_of, outcome.skipped)) == {name_of(ending), name_of(behind)}
