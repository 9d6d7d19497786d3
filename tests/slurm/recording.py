"""Replies of the real slurmrestd that unit tests are fed with, kept beside this file.

A test compares each live reply with the recorded one: the same status, the same keys, the same kinds of values. When
Slurm changes, that test fails; SLURM_OPERATOR_RECORD=1 then writes the new replies.
"""

import json
import os
import re
from pathlib import Path
from typing import Any

RECORDED = Path(__file__).parent / "recorded"


def check(name: str, request: str, status: int, body: Any) -> None:
    """Compares with what is recorded under this name, or records it."""
    path = RECORDED / f"{name}.json"
    if os.environ.get("SLURM_OPERATOR_RECORD"):
        recording = {"request": request, "status": status, "body": _without_machine(body)}
        path.write_text(json.dumps(recording, indent=1) + "\n")
    recorded = json.loads(path.read_text())
    assert status == recorded["status"], request
    differences = list(_differences(recorded["body"], body, "body"))
    assert not differences, f"{request}: unit tests are fed with another shape: {differences}"


def _differences(old: Any, new: Any, where: str) -> list[str]:
    """Where the two differ in more than their values. Null and empty lists fit everything."""
    if old is None or new is None or old == [] or new == []:
        return []
    if isinstance(old, dict) and isinstance(new, dict):
        missing = [f"{where}.{key} only in one" for key in old.keys() ^ new.keys()]
        return missing + [
            found
            for key in old.keys() & new.keys()
            for found in _differences(old[key], new[key], f"{where}.{key}")
        ]
    if isinstance(old, list) and isinstance(new, list):
        return _differences(old[0], new[0], f"{where}[0]")
    return [] if _kind(old) == _kind(new) else [f"{where} was {_kind(old)}, is {_kind(new)}"]


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return "boolean"
    return "number" if isinstance(value, int | float) else type(value).__name__


def _without_machine(value: Any) -> Any:
    """The same without what tells about the machine it was recorded on."""
    if isinstance(value, dict):
        return {
            key: "Linux" if key == "operating_system" else _without_machine(v) for key, v in value.items()
        }
    if isinstance(value, list):
        return [_without_machine(item) for item in value]
    if isinstance(value, str):
        return re.sub(r"\(fd:\d+\)", "", value)
    return value
