"""What people are told about passes: one event for each kind of news, and what is urgent at once."""

import asyncio

import pytest

from slurm_operator.api.shared.meta import ObjectKey
from slurm_operator.kube.events import Regarding
from slurm_operator.manifests import kinds
from slurm_operator.plan.actions import Action, Apply, Create, DeleteObject, PatchObject, Tell, WriteSlurm
from slurm_operator.plan.plan import Failure
from slurm_operator.runtime.report.event_batches import GATHERED_FOR_SECONDS, News, Words, of_pass
from slurm_operator.slurm.writes import Reconfigure

VIRTUAL_TIME = True

KEY = ObjectKey("ns", "gpu")
GPU = Regarding(api_version="v1", kind="NodeSet", name="gpu", namespace="ns", uid="u1", resource_version="5")
CPU = Regarding(api_version="v1", kind="NodeSet", name="cpu", namespace="ns", uid="u2", resource_version="6")


def created(name: str, *, is_housekeeping: bool = False) -> Create:
    message = f"created worker {name}"
    return Create(manifest={}, reason="ScalingUp", message=message, is_housekeeping=is_housekeeping)


def told(words: Words) -> tuple[str, str, str]:
    return words.reason, words.note, words.type


def test_a_thousand_new_workers_are_one_event():
    [words] = of_pass([created(f"gpu-{n}") for n in range(1000)], [])

    assert told(words) == (
        "ScalingUp",
        "created worker gpu-0; created worker gpu-1; created worker gpu-2; and 997 more of the kind",
        "Normal",
    )


def test_what_went_wrong_is_told_apart_from_what_went_well():
    done = [created("gpu-0"), Tell(subject="gpu-1", reason="Drained", message="ada drained it", warning=True)]
    failed = [Failure(action=created("gpu-2"), error="quota exceeded")]

    assert [told(words) for words in of_pass(done, failed)] == [
        ("ScalingUp", "created worker gpu-0", "Normal"),
        ("Drained", "ada drained it", "Warning"),
        ("ScalingUp", "created worker gpu-2: quota exceeded", "Warning"),
    ]


def test_housekeeping_is_news_only_when_it_fails():
    chore = created("gpu-0", is_housekeeping=True)

    assert of_pass([chore], []) == []
    [words] = of_pass([], [Failure(action=chore, error="quota exceeded")])
    assert told(words) == ("ScalingUp", "created worker gpu-0: quota exceeded", "Warning")


@pytest.mark.parametrize(
    ("action", "at_once"),
    [
        pytest.param(Apply(manifest={}, reason="Created", message=""), False, id="an object was made"),
        pytest.param(
            PatchObject(kind=kinds.POD, key=KEY, uid="u", operations=(), reason="FilesSent", message=""),
            False,
            id="a note was written",
        ),
        pytest.param(
            DeleteObject(kind=kinds.SERVICE, key=KEY, uid="u", reason="Deleted", message=""),
            True,
            id="something was deleted",
        ),
        pytest.param(
            WriteSlurm(controller=KEY, write=Reconfigure(), reason="Reconfigured", message=""),
            True,
            id="Slurm was told something",
        ),
        pytest.param(Tell(subject="gpu", reason="Drained", message=""), True, id="people should know"),
    ],
)
def test_what_may_end_something_or_touches_slurm_is_told_at_once(action: Action, at_once: bool):
    [words] = of_pass([action], [])

    assert words.at_once is at_once


def test_a_failure_is_told_at_once():
    [words] = of_pass([], [Failure(action=created("gpu-0"), error="quota exceeded")])

    assert words.at_once


class Heard:
    """What was recorded, and when."""

    def __init__(self) -> None:
        self.events: list[tuple[float, str, str, str]] = []

    def record(self, about: Regarding, reason: str, note: str, *, type_: str) -> None:
        self.events.append((asyncio.get_running_loop().time(), about.name, reason, note))

    @property
    def said(self) -> list[tuple[str, str, str]]:
        return [event[1:] for event in self.events]


async def test_what_is_done_for_one_reason_on_the_way_is_one_event():
    heard = Heard()
    news = News(heard)
    began = asyncio.get_running_loop().time()
    news.tell(GPU, Words("Created", ("created Service a",)))
    news.tell(CPU, Words("Created", ("created Service c",)))
    await asyncio.sleep(GATHERED_FOR_SECONDS / 2)
    news.tell(GPU, Words("KeyGenerated", ("made a key",)))
    news.tell(GPU, Words("Created", ("created Service b",)))
    await asyncio.sleep(GATHERED_FOR_SECONDS)

    assert sorted(heard.said) == [
        ("cpu", "Created", "created Service c"),
        ("gpu", "Created", "created Service a; created Service b"),
        ("gpu", "KeyGenerated", "made a key"),
    ]
    assert {round(event[0] - began, 6) for event in heard.events} == {GATHERED_FOR_SECONDS}


async def test_what_was_gathered_is_told_when_its_object_has_arrived():
    heard = Heard()
    news = News(heard)
    news.tell(GPU, Words("Created", ("created Service a",)))
    news.tell(CPU, Words("Created", ("created Service c",)))
    news.arrived(GPU.uid)
    news.arrived(GPU.uid)

    assert heard.said == [("gpu", "Created", "created Service a")]


async def test_what_comes_after_that_is_gathered_for_as_long():
    heard = Heard()
    news = News(heard)
    news.tell(GPU, Words("Created", ("created Service a",)))
    await asyncio.sleep(GATHERED_FOR_SECONDS / 2)
    news.arrived(GPU.uid)
    news.tell(GPU, Words("Created", ("created Service b",)))
    await asyncio.sleep(0.9 * GATHERED_FOR_SECONDS)
    assert len(heard.said) == 1
    await asyncio.sleep(0.2 * GATHERED_FOR_SECONDS)

    assert [note for _, _, note in heard.said] == ["created Service a", "created Service b"]


async def test_what_comes_later_is_another_event():
    heard = Heard()
    news = News(heard)
    for name in ("a", "b"):
        news.tell(GPU, Words("Created", (f"created Service {name}",)))
        await asyncio.sleep(GATHERED_FOR_SECONDS + 0.1)

    assert [note for _, _, note in heard.said] == ["created Service a", "created Service b"]


async def test_what_is_urgent_waits_for_nothing_and_what_went_before_it_is_told_before_it():
    heard = Heard()
    news = News(heard)
    news.tell(GPU, Words("ScalingUp", ("created worker gpu-0",)))
    news.tell(CPU, Words("ScalingUp", ("created worker cpu-0",)))
    news.tell(GPU, Words("Failed", ("gpu-0 failed",), "Warning", at_once=True))

    assert heard.said == [
        ("gpu", "ScalingUp", "created worker gpu-0"),
        ("gpu", "Failed", "gpu-0 failed"),
    ]


async def test_a_sentence_is_said_once():
    heard = Heard()
    news = News(heard)
    for _ in range(3):
        news.tell(GPU, Words("Available", ("2 of 2 workers are available",)))
    news.flush()

    assert heard.said == [("gpu", "Available", "2 of 2 workers are available")]


async def test_nothing_is_lost_at_the_end_and_nothing_is_told_twice():
    heard = Heard()
    news = News(heard)
    news.tell(GPU, Words("Created", ("created Service a",)))
    news.flush()
    await asyncio.sleep(2 * GATHERED_FOR_SECONDS)

    assert heard.said == [("gpu", "Created", "created Service a")]
