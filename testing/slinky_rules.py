"""What Slinky's operator does to workers in one pass, by its description: who is condemned, who is kept.

As data, so that a stand-in on a live cluster and one in a story do the same.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from slurm_operator.api.shared.names import LABEL_HASH, POD_CORDON

PREFIX = "slurm-operator: "


@dataclass(frozen=True)
class Node:
    """What Slurm says of a worker."""

    is_drain: bool = False
    is_busy: bool = False
    reason: str = ""


@dataclass(frozen=True)
class Turn:
    """Names of pods, but for how many it makes."""

    make: int
    delete: tuple[str, ...]
    drain: tuple[str, ...]  # And mark with `pod-cordon`, over any reason that there is.
    keep: tuple[str, ...]  # Take the mark away and lift the drain, if that is its own.


def turn(pods: Sequence[Any], nodes: Mapping[str, Node], newest: str, replicas: int) -> Turn:
    """For pods as the API server has them, with RollingUpdate and a quarter that may be away."""
    surplus = len(pods) - replicas
    order = sorted(pods, key=lambda pod: _rank(pod, nodes))
    victims = order[:surplus] if surplus > 0 else _outdated(order, newest) if not surplus else []
    condemned = [_name(pod) for pod in victims if not is_leaving(pod)]
    kept = [_name(pod) for pod in pods if not is_leaving(pod) and _name(pod) not in condemned]
    return Turn(
        make=max(0, -surplus),
        delete=tuple(name for name in condemned if _is_drained(nodes.get(name))),
        drain=tuple(name for name in condemned if not _is_drained(nodes.get(name))),
        keep=tuple(name for name in kept if _is_its_own(nodes.get(name))),
    )


def drain_reason(namespace: str, name: str) -> str:
    return f"{PREFIX}Pod ({namespace}/{name}) is pending termination for scale-in"


def is_leaving(pod: Any) -> bool:
    return "deletionTimestamp" in pod["metadata"]


def is_ready(pod: Any) -> bool:
    conditions = pod.get("status", {}).get("conditions", ())
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)


def is_marked(pod: Any) -> bool:
    return bool((pod["metadata"].get("annotations") or {}).get(POD_CORDON) == "true")


def _outdated(order: Sequence[Any], newest: str) -> list[Any]:
    """Those that the update replaces now. Who is not ready goes outside the budget."""
    there = [pod for pod in order if not is_leaving(pod)]
    old = [pod for pod in there if pod["metadata"]["labels"].get(LABEL_HASH) != newest]
    away = len(order) - len(there) + sum(1 for pod in there if pod not in old and not is_ready(pod))
    budget = max(1, -(-len(order) // 4))
    healthy = [pod for pod in old if is_ready(pod)]
    return [pod for pod in old if not is_ready(pod)] + healthy[: max(0, budget - away)]


def _rank(pod: Any, nodes: Mapping[str, Node]) -> tuple[object, ...]:
    """Who is condemned first."""
    name = _name(pod)
    is_busy = nodes.get(name, Node()).is_busy
    return (not is_leaving(pod), is_ready(pod), is_busy, not is_marked(pod), -int(name.rpartition("-")[2]))


def _name(pod: Any) -> str:
    return str(pod["metadata"]["name"])


def _is_drained(node: Node | None) -> bool:
    """It has nothing to ask about a worker that Slurm does not know."""
    return node is None or (node.is_drain and not node.is_busy)


def _is_its_own(node: Node | None) -> bool:
    return node is not None and (not node.reason or node.reason.startswith(PREFIX))
