"""Recordings and archives that the version before wrote are read, or refused with a sentence that says what to do.

`before/` was written by that version about a made-up cluster, and has what its `kubectl slurm` said about it.
"""

import gzip
import json
import tarfile
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from slurm_operator import __version__, wire
from slurm_operator.api.shared import names
from slurm_operator.cli.kubectl import kubectl_slurm
from slurm_operator.insight.bundle.archive import ABOUT, SLURM, pack, unpack
from slurm_operator.insight.recording.replay import read_files, recorded
from slurm_operator.manifests.builders import hardening, logs
from testing.pictures import NOON

BEFORE = Path(__file__).with_name("before")
BUNDLE = str(BEFORE / "bundle.tar.gz")
FILES = ["child", "ConfigMap", "ns", "demo-config"]
ABSENT = ["child", "ConfigMap", "ns", "demo-cpu-ssh-config"]
MONITORS = ["serves", "ServiceMonitor.monitoring.coreos.com"]
CLAIMS = ["serves", "PersistentVolumeClaim"]
KINDS_OF_EXPORTER = ("Service", "Deployment.apps", "ServiceMonitor.monitoring.coreos.com")
EXPORTER = [["child", kind, "ns", "demo-metrics"] for kind in KINDS_OF_EXPORTER]


def run(*command: str) -> Result:
    done = CliRunner().invoke(kubectl_slurm, command)
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done


@pytest.fixture
def plans(tmp_path: Path) -> Path:
    path = tmp_path / "plans-00000001.jsonl"
    path.write_bytes(gzip.decompress((BEFORE / "plans.jsonl.gz").read_bytes()))
    return path


def changed(plans: Path, change: dict, *, about: str) -> Path:
    """The recording with these fields in every line of a type."""
    lines = [wire.decode_any(line) for line in plans.read_bytes().splitlines()]
    found = [{**line, **change} if line["type"] == about else line for line in lines]
    plans.write_bytes(b"".join(wire.encode(line) + b"\n" for line in found))
    return plans


def with_the_files_seen(plans: Path) -> Path:
    """The recording, as if everybody had looked at the files of slurmctld, and not its Controller alone.

    Which authentication the daemons have stands there, and all who make pods have looked at it since. A RestApi
    has also looked for an exporter since, and finds none, and a Controller whether claims can be seen: they cannot.
    """
    lines = [wire.decode_any(line) for line in plans.read_bytes().splitlines()]
    made = [line for line in lines if line["type"] == "plan"]
    known = {tuple(fact[0]): fact[1] for line in made for fact in line["facts"]}
    files, none = [FILES, known[tuple(FILES)]], known[tuple(ABSENT)]
    exporter = [[MONITORS, known[tuple(MONITORS)]], *([child, none] for child in EXPORTER)]
    for line in made:
        line["facts"] = [*(fact for fact in line["facts"] if fact[0] != FILES), files]
        line["facts"] += exporter if line["reconciler"] == "restapi" else []
        line["facts"] += [[CLAIMS, known[tuple(MONITORS)]]] if line["reconciler"] == "controller" else []
    facts_first = sorted(lines, key=lambda line: line["type"] == "plan")
    plans.write_bytes(b"".join(wire.encode(line) + b"\n" for line in facts_first))
    return plans


def with_pods_as_they_are_made_now(plans: Path) -> Path:
    """The recording, as if pods had been as confined then as new ones are."""
    lines = [wire.decode_any(line) for line in plans.read_bytes().splitlines()]
    planned = [line["plan"]["lanes"] for line in lines if line["type"] == "plan"]
    actions = [one for lanes in planned for lane in lanes for stage in lane["stages"] for one in stage]
    for action in actions:
        if action["type"] == "Create" and action["manifest"]["kind"] == "Pod":
            pod = action["manifest"]
            pod["metadata"]["annotations"][names.POD_SECURITY] = names.POD_SECURITY_NOW
            pod["spec"] = hardening.confined(pod["spec"], (logs.NAME,), without_root=(logs.NAME,))
            for sidecar in pod["spec"]["initContainers"]:
                sidecar["command"][-1] = logs.FOLLOW
    plans.write_bytes(b"".join(wire.encode(line) + b"\n" for line in lines))
    return plans


def test_a_recording_without_something_that_is_looked_at_now_says_so(plans: Path) -> None:
    done = run("record", "replay", str(plans), "-o", "json")

    others = {one["why"] for one in json.loads(done.stdout) if not one["is_same"]}
    assert others == {
        "it looks at something that was not looked at then: child ConfigMap ns demo-config",
        "it looks at something that was not looked at then: serves PersistentVolumeClaim",
    }


def test_a_recording_is_decided_again_as_it_was(plans: Path) -> None:
    types = {
        action["type"]
        for one in recorded(read_files(plans))
        for lane in one.flight.plan["lanes"]
        for stage in lane["stages"]
        for action in stage
    }
    done = run(
        "record", "replay", str(with_pods_as_they_are_made_now(with_the_files_seen(plans))), "-o", "json"
    )

    assert types == {"Create", "DeleteWorker", "PatchObject", "WriteSlurm"}
    # An Accounting notes beside slurmdbd.conf now which password its pods were made for.
    others = [one["reconciler"] for one in json.loads(done.stdout) if not one["is_same"]]
    assert (others, len(json.loads(done.stdout))) == (["accounting"], 8)


def test_a_recording_is_listed_as_it_was(plans: Path) -> None:
    done = run("record", "list", str(plans), "-o", "json")

    assert json.loads(done.stdout) == json.loads((BEFORE / "list.json").read_text())


@pytest.mark.parametrize(
    "command", [("status",), ("explain", "nodeset/demo-cpu")], ids=lambda words: words[0]
)
def test_an_archive_is_shown_as_it_was(command: tuple[str, ...]) -> None:
    done = run(*command, "--bundle", BUNDLE, "-o", "json")

    assert (
        _kept(json.loads(done.stdout), before := json.loads((BEFORE / f"{command[0]}.json").read_text()))
        == before
    )
    assert done.exit_code == 0


def test_no_secret_is_in_either(plans: Path) -> None:
    with tarfile.open(BUNDLE) as archive:
        files = [archive.extractfile(one) for one in archive if one.isreg()]
        texts = [file.read().decode() for file in files if file is not None]

    assert not any("stringData" in text or "BEGIN" in text for text in [*texts, plans.read_text()])


def test_a_recording_of_another_form_is_refused_with_the_version_to_use(plans: Path) -> None:
    changed(plans, {"facts": {"by": "name"}, "version": "9.9"}, about="plan")
    done = run("record", "replay", str(plans))

    assert done.exit_code == 1
    assert f"does not fit this version, {__version__}" in done.output
    assert "Read it with kubectl-slurm of version 9.9." in done.output


def test_lines_of_another_kind_are_refused_and_not_taken_for_the_end(plans: Path) -> None:
    changed(plans, {"type": "guess"}, about="fact")
    done = run("record", "list", str(plans))

    assert done.exit_code == 1
    assert "Read it with kubectl-slurm of the version that made it." in done.output


def test_a_fact_of_another_form_is_told_for_its_decision(plans: Path) -> None:
    lines = [wire.decode_any(line) for line in plans.read_bytes().splitlines()]
    for line in lines:
        if line["type"] == "fact" and isinstance(line["value"], dict) and line["value"]["type"] == "Snapshot":
            line["value"]["value"]["nodes"] = "many"
    plans.write_bytes(b"".join(wire.encode(line) + b"\n" for line in lines))
    done = run("record", "replay", str(plans), "--about", "nodeset/demo-cpu")

    assert done.exit_code == 1
    assert done.output.count(f"a fact of version 0.1.0 does not fit this version, {__version__}") == 3


def test_an_archive_of_another_form_is_refused_with_the_version_to_use(tmp_path: Path) -> None:
    files = unpack(Path(BUNDLE))
    about = wire.decode_any(files[ABOUT]) | {"version": "9.9"}
    pack({**files, ABOUT: wire.encode(about), SLURM: b'{"demo": 1}'}, tmp_path / "other.tar.gz", NOON)
    done = run("status", "--bundle", str(tmp_path / "other.tar.gz"))

    assert done.exit_code == 1
    assert f"does not fit this version, {__version__}" in done.output
    assert "Read it with kubectl-slurm of version 9.9." in done.output


def _kept(now: Any, before: Any) -> Any:
    """What is told now, without the fields that the version before did not have."""
    if isinstance(now, dict) and isinstance(before, dict):
        return {name: _kept(value, before[name]) for name, value in now.items() if name in before}
    if isinstance(now, list) and isinstance(before, list) and len(now) == len(before):
        return [_kept(*pair) for pair in zip(now, before, strict=True)]
    return now
