"""What the objects say about themselves, as metrics: conditions, and how long tokens are good for.

Read from the caches when somebody asks, so that a restart loses nothing and nothing has to be kept.
"""

import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

# What metrics call a resource, and one object of it.
Objects = Callable[[], Iterable[tuple[str, Any]]]

_TRUTHS: Final = {"True": 1.0, "False": 0.0}


class Conditions(Collector):
    """1 is True, 0 is False, NaN is Unknown."""

    _labelnames: Final = ("resource", "namespace", "name", "type", "reason")

    def __init__(self, objects: Objects) -> None:
        self._objects = objects

    def collect(self) -> Iterator[GaugeMetricFamily]:
        family = GaugeMetricFamily(
            "slurm_operator_condition",
            "What an object says about itself: 1 is True, 0 is False, NaN is Unknown.",
            labels=self._labelnames,
        )
        for resource, thing in self._objects():
            meta = thing.metadata
            for condition in getattr(thing.status, "conditions", ()):
                labels = (resource, meta.namespace, meta.name, condition.type, condition.reason)
                family.add_metric(labels, _TRUTHS.get(str(condition.status), math.nan))
        yield family


class TokenTimes(Collector):
    """Of Tokens that were signed."""

    _labelnames: Final = ("namespace", "name")

    def __init__(self, objects: Objects, name: str, about: str, field: str) -> None:
        self._objects, self._name, self._about, self._field = objects, name, about, field

    def collect(self) -> Iterator[GaugeMetricFamily]:
        family = GaugeMetricFamily(self._name, self._about, labels=self._labelnames)
        for _, thing in self._objects():
            moment = getattr(thing.status, self._field, None)
            if moment is not None:
                family.add_metric((thing.metadata.namespace, thing.metadata.name), moment.timestamp())
        yield family


def collectors(objects: Objects) -> list[Collector]:
    return [
        Conditions(objects),
        TokenTimes(
            objects,
            "slurm_operator_token_expires_timestamp_seconds",
            "Unix time at which the token of a Token runs out.",
            "expires_at",
        ),
        TokenTimes(
            objects,
            "slurm_operator_token_renews_timestamp_seconds",
            "Unix time at which the token of a Token is renewed, where it is.",
            "renews_at",
        ),
    ]
