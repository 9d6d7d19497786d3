"""So many at a time, and who is in a hurry first."""

import asyncio

import pytest

from slurm_operator.http.places import Places


async def rounds(count: int = 3) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


class Line:
    """Those who wait for the one place, and in which order they got it."""

    def __init__(self) -> None:
        self.places = Places(1)
        self.served: list[str] = []

    def enter(self, name: str, *, in_a_hurry: bool = False) -> asyncio.Task[None]:
        async def wait() -> None:
            await self.places.take(in_a_hurry=in_a_hurry)
            self.served.append(name)

        return asyncio.create_task(wait())


async def test_who_is_in_a_hurry_goes_before_those_who_came_first() -> None:
    line = Line()
    await line.places.take()
    waiting = [line.enter("a"), line.enter("b")]
    await rounds()
    waiting += [line.enter("c", in_a_hurry=True), line.enter("d", in_a_hurry=True)]
    for _ in range(4):
        await rounds()
        line.places.give()
    await asyncio.gather(*waiting)

    assert line.served == ["c", "d", "a", "b"]


async def test_nobody_waits_while_there_is_a_place() -> None:
    places = Places(2)

    async with asyncio.timeout(1):
        await places.take()
        await places.take()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0):
            await places.take()


@pytest.mark.parametrize("has_its_turn", [False, True])
async def test_who_stops_waiting_takes_no_place_along(has_its_turn: bool) -> None:
    line = Line()
    await line.places.take()
    leaving, staying = line.enter("leaving"), line.enter("staying")
    await rounds()
    if has_its_turn:
        line.places.give()
    leaving.cancel()
    if not has_its_turn:
        line.places.give()
    async with asyncio.timeout(1):
        await staying

    assert line.served == ["staying"]
    line.places.give()
    async with asyncio.timeout(1):
        await line.places.take()
