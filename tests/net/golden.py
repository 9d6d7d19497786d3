"""The digests that are kept, and how they are made: `python -m net` writes them again."""

import json
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from net import days, worlds
from net.ledger import Ledger

GOLDEN = Path(__file__).with_name("digests.json")
WORLDS, AT_A_TIME = 1500, 100
CHUNKS = range(0, WORLDS, AT_A_TIME)
QUICK_DAYS, DAYS = range(2), range(20)

Digests = dict[str, str]


def of_worlds(first: int) -> Digests:
    ledger = Ledger()
    for number in range(first, first + AT_A_TIME):
        worlds.lived(number, ledger)
    return _digests(ledger)


def of_day(number: int) -> Digests:
    ledger = Ledger()
    ending = days.lived(number, ledger)
    assert ending.broken is None, ending.broken
    return _digests(ledger)


def kept(what: str, number: int) -> Digests:
    found: Digests = json.loads(GOLDEN.read_text())[what][str(number)]
    return found


def write() -> None:
    made: dict[str, dict[str, Digests]] = {}
    chosen: list[tuple[str, range, Callable[[int], Digests]]] = [
        ("worlds", CHUNKS, of_worlds),
        ("days", DAYS, of_day),
    ]
    with ProcessPoolExecutor() as processes:
        for what, numbers, digests in chosen:
            made[what] = dict(zip(map(str, numbers), processes.map(digests, numbers), strict=True))
    GOLDEN.write_text(json.dumps(made, indent=1) + "\n")


def _digests(ledger: Ledger) -> Digests:
    return {"passes": str(ledger.passes), "decisions": ledger.decisions, "texts": ledger.texts}
