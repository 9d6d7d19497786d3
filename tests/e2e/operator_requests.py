"""What the operator asked of the API server, by that server's own log."""

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from testing import rights


def asked_by_operator(logs: Iterable[Path], namespace: str) -> list[str]:
    """What it asked about this namespace, but for watches and what begins one."""
    return [
        _told(entry["verb"], entry["objectRef"])
        for log in logs
        for entry in filter(rights.OPERATOR.made, rights.entries(log))
        if entry["stage"] == "ResponseComplete"
        and entry.get("objectRef", {}).get("namespace") == namespace
        and entry["verb"] not in ("list", "watch")
    ]


def _told(verb: str, about: dict) -> str:
    """`patch controllers/status slurm`."""
    parts = [about["resource"], *([about["subresource"]] if "subresource" in about else [])]
    return f"{verb} {'/'.join(parts)} {about.get('name', '')}"


def by_kind(asked: list[str]) -> str:
    """For people: how many there were of each."""
    counts = Counter(one.rpartition(" ")[0] for one in asked)
    return ", ".join(f"{count} {kind}" for kind, count in counts.most_common())
