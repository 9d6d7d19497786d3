"""What the operator asked of the API server, by that server's own log."""

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from testing import rights

CREATED = 201


def asked_by_operator(logs: Iterable[Path], namespace: str) -> list[str]:
    """What it asked about this namespace, but for watches and what begins one."""
    return [_told(entry) for entry in _answered(logs, namespace)]


def made_by_operator(logs: Iterable[Path], namespace: str) -> list[str]:
    """The objects that it made in this namespace; events are no objects that anybody needs."""
    made = (entry for entry in _answered(logs, namespace) if entry["responseStatus"]["code"] == CREATED)
    return [_told(entry) for entry in made if entry["objectRef"]["resource"] != "events"]


def _answered(logs: Iterable[Path], namespace: str) -> Iterator[dict]:
    for log in logs:
        for entry in filter(rights.OPERATOR.made, rights.entries(log)):
            is_here = entry.get("objectRef", {}).get("namespace") == namespace
            is_complete = entry["stage"] == "ResponseComplete"
            if is_here and is_complete and entry["verb"] not in ("list", "watch"):
                yield entry


def _told(entry: dict) -> str:
    """`patch controllers/status slurm`."""
    about = entry["objectRef"]
    parts = [about["resource"], *([about["subresource"]] if "subresource" in about else [])]
    return f"{entry['verb']} {'/'.join(parts)} {about.get('name', '')}"


def by_kind(asked: list[str]) -> str:
    """For people: how many there were of each."""
    counts = Counter(one.rpartition(" ")[0] for one in asked)
    return ", ".join(f"{count} {kind}" for kind, count in counts.most_common())
