"""Chance, as a function of the seed and of what it is about.

Each thing that depends on chance has a series of its own, so leaving one happening out of a story leaves the
luck of all others as it was. That is what makes a long story that fails shrink to a short one.
"""

from collections import Counter
from collections.abc import Sequence
from typing import TypeVar
from zlib import crc32

T = TypeVar("T")


class Weather:
    """`roughness` is the share of calls that go wrong, from 0 to 1; delays stay when it is 0.

    `late` is the share of writes that are carried out after whoever asked for them has given up.
    """

    def __init__(self, seed: int, roughness: float = 0.0, late: float = 0.0) -> None:
        self.seed = seed
        self.roughness = roughness
        self.late = late
        self._drawn: Counter[str] = Counter()

    def share(self, about: str) -> float:
        """A number from 0 up to 1."""
        self._drawn[about] += 1
        return _mixed(crc32(f"{self.seed}/{about}/{self._drawn[about]}".encode())) / 2**32

    def seconds(self, about: str, most: float, least: float = 0.0) -> float:
        """Mostly short, seldom long."""
        return least + (most - least) * self.share(about) ** 3

    def strikes(self, about: str, share: float = 1.0) -> bool:
        """Whether something goes wrong now; `share` makes it rarer than the roughness."""
        return self.roughness > 0 and self.share(about) < self.roughness * share

    def delays(self, about: str) -> bool:
        """Whether this write is carried out late."""
        return self.late > 0 and self.share(f"late {about}") < self.late

    def choice(self, about: str, among: Sequence[T]) -> T:
        return among[int(self.share(about) * len(among))]


def _mixed(value: int) -> int:
    """Neighbouring texts have neighbouring checksums; this tears them apart (Murmur's last step)."""
    value = (value ^ (value >> 16)) * 0x85EBCA6B & 0xFFFFFFFF
    value = (value ^ (value >> 13)) * 0xC2B2AE35 & 0xFFFFFFFF
    return value ^ (value >> 16)
