"""Words that two versions exchange: an operator of one and a `kubectl-slurm` of another, objects, files, scripts.

They are read from the code and kept in `exchanged.json`, so that a review sees each that changes: an older
program goes on using the one it knows. SLURM_OPERATOR_GOLDEN=write writes the file again.
"""

import ast
import inspect
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from slurm_operator.api import registry
from slurm_operator.api.shared import conditions, names
from slurm_operator.cli.kubectl.bundle import Packed
from slurm_operator.cli.kubectl.record import Kept
from slurm_operator.insight import operator_pods
from slurm_operator.insight.bundle import archive
from slurm_operator.insight.doctor.finding import Finding
from slurm_operator.insight.drain.decide import Outcome
from slurm_operator.insight.explain import objects, remedies
from slurm_operator.insight.explain.chain import Explanation
from slurm_operator.insight.forecast.outcome import Forecast
from slurm_operator.insight.recording.replay import Replayed
from slurm_operator.insight.status.cluster_status import Status
from slurm_operator.manifests import managers
from slurm_operator.plan.plan import Plan
from slurm_operator.runtime.report import recording
from slurm_operator.runtime.world.recording_world import RecordingWorld
from slurm_operator.slurm import reasons
from testing.reach import Modules, modules

KEPT = Path(__file__).with_name("exchanged.json")

# What each command prints with `-o json`, one or a list of it.
PRINTED = {
    "bundle": Packed, "doctor": Finding, "drain": Outcome, "explain": Explanation, "plan": Forecast,
    "record fetch": Kept, "record replay": Replayed, "status": Status,
}  # fmt: skip

_MARK = re.compile(r"[a-z.-]*(slinky\.slurm\.net|slurm\.nebius\.ai)/[\w.-]+")


def exchanged() -> dict[str, Any]:
    ours = {name: module for name, module in modules().items() if name.startswith("slurm_operator.")}
    known = (
        remedies._BY_REASON,
        objects.TRIED,
        objects._OF_THE_CONTROLLER,
        objects._OF_ITS_PODS,
        objects._HELD_BACK,
    )
    return {
        "labels, annotations and finalizers": sorted(set(_marks(ours))),
        "field manager": managers.OURS,
        "kinds": {str(one.kind): sorted(one.model.CRD.short_names) for one in registry.ALL},
        "names of objects": dict(sorted(_names())),
        "entries of Secrets": [names.SLURM_KEY_FILE, names.JWT_KEY_FILE, names.JWKS_FILE, names.KEY_RING_FILE, names.TOKEN_KEY],
        "condition types": [conditions.READY, conditions.PROGRESSING, conditions.DEGRADED, conditions.PROTECTED],
        "pod conditions": names.POD_CONDITION_PREFIX,
        "reasons that kubectl-slurm knows": sorted({*_compared(ours), *(reason for some in known for reason in some)}),
        "reasons in Slurm": str(reasons.OurReason("Cause", "text", "0000-1")),
        "the operator's pods": [operator_pods.OPERATOR, operator_pods.RECORD_FLAG],
        "recording": {
            "files": recording.PATTERN,
            "lines": _fields(recording.Line),
            "questions": sorted(name for name in vars(RecordingWorld) if not name.startswith("_") and name != "now"),
            "plans": _fields(Plan),
        },
        "bundle": {
            "files": [archive.ROOT, archive.ABOUT, archive.SECRETS, archive.CONFIG_MAPS, archive.SLURM, archive.EVENTS],
            "objects": archive.object_path(registry.ALL.kinds[0].kind),
            "fields": {**_fields(archive.About), **_fields(archive.Named), **_fields(archive.Facts)},
        },
        "-o json": {command: _fields(type_) for command, type_ in PRINTED.items()},
        "exit codes": {name: codes for name, one in ours.items() if (codes := sorted(set(_exit_codes(one.tree))))},
    }  # fmt: skip


def _marks(ours: Modules) -> Iterator[str]:
    for module in ours.values():
        for node in ast.walk(module.tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and _MARK.fullmatch(node.value):
                yield node.value


def _names() -> Iterator[tuple[str, str]]:
    """What every function of `names` makes of the names of its own arguments."""
    for name, make in inspect.getmembers(names, inspect.isfunction):
        if name.startswith("_"):
            continue
        parameters = inspect.signature(make).parameters.values()
        yield name, str(make(*(0 if one.annotation is int else one.name for one in parameters)))


def _compared(ours: Modules) -> Iterator[str]:
    """Reasons that explanations compare with one by one."""
    for name, module in ours.items():
        for node in ast.walk(module.tree) if name.startswith("slurm_operator.insight.explain.") else ():
            match node:
                case ast.Compare(
                    left=ast.Attribute(attr="reason"), comparators=[ast.Constant(value=str(text))]
                ):
                    yield text


def _fields(type_: Any) -> dict[str, list[str]]:
    """The fields of a record and of all that is in it, as they are written."""
    _, found = msgspec.json.schema_components([type_], schema_hook=lambda _: {"title": "any"})
    return {name: sorted(one["properties"]) for name, one in sorted(found.items()) if "properties" in one}


def _exit_codes(tree: ast.Module) -> Iterator[int]:
    """Beside 0 and those of click."""
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id="sys"), attr="exit"), args=[code]):
                yield from _numbers(code)
            case ast.Assign(targets=[ast.Name(id="exit_code")], value=code):
                yield from _numbers(code)


def _numbers(code: ast.expr) -> Iterator[int]:
    for node in ast.walk(code):
        if isinstance(node, ast.Constant) and type(node.value) is int and node.value:
            yield node.value


def test_words_that_two_versions_exchange_stay() -> None:
    text = json.dumps(exchanged(), indent=1, ensure_ascii=False) + "\n"
    if os.environ.get("SLURM_OPERATOR_GOLDEN") == "write":
        KEPT.write_text(text)

    assert text == KEPT.read_text(), f"SLURM_OPERATOR_GOLDEN=write writes {KEPT}; look at what changed in it"
