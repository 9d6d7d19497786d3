"""What the API server says was done to it."""

import json
from typing import Any

from slurm_operator.local.controlplane import Plane


def audited(server: Plane) -> list[dict[str, Any]]:
    """Every request so far, in the order of their ends; a line that is still being written is left out."""
    whole, _, _ = server.audit_log.read_text().rpartition("\n")
    return [json.loads(line) for line in whole.splitlines()]


def user(entry: dict[str, Any]) -> str:
    """Who asked; empty for somebody the server did not know."""
    name: str = entry["user"].get("username", "")
    return name
