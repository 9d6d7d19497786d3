"""The page about metrics, from the metrics themselves."""

from collections.abc import Iterator, Mapping

from prometheus_client import CollectorRegistry
from prometheus_client.registry import Collector

_HEAD = """\
# Metrics

Served at `/metrics` in Prometheus' text format; the [monitoring guide](../guides/monitoring.md) says how to
collect them. Names carry their unit: `_seconds` are seconds, `_total` only grows, all else is a number of
things. A histogram has `_bucket`, `_sum` and `_count` behind its name.
"""


def page(parts: Mapping[str, CollectorRegistry]) -> str:
    """Every metric of these registries, under the title of each."""
    texts = [_HEAD]
    for title, registry in parts.items():
        rows = "\n".join(sorted(_rows(registry)))
        texts.append(f"## {title}\n\n| Name | Type | Labels | Meaning |\n|---|---|---|---|\n{rows}\n")
    return "\n".join(texts)


def _rows(registry: CollectorRegistry) -> Iterator[str]:
    # Only collectors know the labels of a metric that has never been set.
    for collector in list(registry._collector_to_names):
        labels = ", ".join(f"`{name}`" for name in _labels(collector))
        for metric in collector.collect():
            name = f"{metric.name}_total" if metric.type == "counter" else metric.name
            yield f"| `{name}` | {metric.type} | {labels} | {metric.documentation} |"


def _labels(collector: Collector) -> tuple[str, ...]:
    return tuple(getattr(collector, "_labelnames", ()))
