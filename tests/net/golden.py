"""The digests that are kept, and how they are made: `python -m net` writes them again."""

import json
from collections.abc import Callable, Collection
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from net import days, worlds
from net.ledger import Ledger

GOLDEN = Path(__file__).with_name("digests.json")
WORLDS, AT_A_TIME = 1800, 100
CHUNKS = range(0, WORLDS, AT_A_TIME)
QUICK_DAYS = (0, 1)
DAYS = (2, 3, 4, *range(6, 17), 18, 20, 22, 23)
# Days with ten to fifty thousand passes, where all others have fewer than five thousand.
LONG_DAYS = (5, 17, 19)

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


MADE: dict[str, tuple[Callable[[int], Digests], Collection[int]]] = {
    "worlds": (of_worlds, CHUNKS),
    "days": (of_day, (*QUICK_DAYS, *DAYS, *LONG_DAYS)),
}


def kept(what: str, number: int) -> Digests:
    return _all_kept()[what][str(number)]


def write(what: str = "", numbers: Collection[int] = ()) -> None:
    """All digests, those of worlds or of days, or some of these. The others stay as they are."""
    found = _all_kept()
    with ProcessPoolExecutor() as processes:
        for one in [what] if what else MADE:
            digests, of_all = MADE[one]
            chosen = numbers or of_all
            found[one].update(zip(map(str, chosen), processes.map(digests, chosen), strict=True))
    ordered = {one: dict(sorted(made.items(), key=lambda it: int(it[0]))) for one, made in found.items()}
    GOLDEN.write_text(json.dumps(ordered, indent=1) + "\n")


def _all_kept() -> dict[str, dict[str, Digests]]:
    found: dict[str, dict[str, Digests]] = json.loads(GOLDEN.read_text())
    return found


def _digests(ledger: Ledger) -> Digests:
    return {"passes": str(ledger.passes), "decisions": ledger.decisions, "texts": ledger.texts}
