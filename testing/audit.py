"""What an API server's own log says was asked of it."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

AuditLevel = Literal["Metadata", "RequestResponse"]


def audit_flags(directory: Path, level: AuditLevel) -> list[str]:
    """Flags that write one JSON line per answered request to `directory`/audit.log."""
    policy = directory / "audit-policy.yaml"
    policy.write_text(
        "apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived]\n"
        f"omitManagedFields: true\nrules: [{{level: {level}}}]\n"
    )
    return [f"--audit-policy-file={policy}", f"--audit-log-path={directory / 'audit.log'}"]


def entries(log: Path, about: str = "") -> Iterator[dict[str, Any]]:
    """The lines with `about` in them, in the order in which requests ended.

    One that is still being written is left out. Of a server that never came up there are none.
    """
    text = log.read_text() if log.exists() else ""
    whole, _, _ = text.rpartition("\n")
    yield from (json.loads(line) for line in whole.splitlines() if about in line)


def user(entry: dict[str, Any]) -> str:
    """Who asked; empty for somebody the server did not know."""
    name: str = entry["user"].get("username", "")
    return name


def asked_by(log: Path, name: str) -> list[dict[str, Any]]:
    return [entry for entry in entries(log, name) if user(entry) == name]


def changes_by(log: Path, name: str) -> list[dict[str, Any]]:
    """Whatever this user asked for that was no mere question."""
    return [entry for entry in asked_by(log, name) if entry["verb"] not in ("get", "list", "watch")]
