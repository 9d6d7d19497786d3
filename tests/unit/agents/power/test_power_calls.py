"""What slurmctld's calls come to, and how power-manager carries them out."""

import asyncio
import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from images.entry.power import power
from slurm_operator.agents.power.calls import CallError, Change, changes, pending, read_notes, split
from slurm_operator.agents.power.program import Server
from slurm_operator.agents.power.states import Skipped, States
from slurm_operator.api.nebius import NodeSet, NodeSetPowerState
from slurm_operator.cli.power_manager import power_manager
from slurm_operator.kube.errors import Conflict, NotFound, Status, Unreachable
from testing.slurmclusters import manifest


@pytest.mark.parametrize(
    ("nodes", "found"),
    [
        ("gpu-3", {"gpu": {3}}),
        ("gpu-[2-3],cpu-0", {"gpu": {2, 3}, "cpu": {0}}),
        ("a-b-12", {"a-b": {12}}),
    ],
)
def test_nodes_by_nodeset(nodes, found):
    assert split(nodes) == found


@pytest.mark.parametrize("nodes", ["", "gpu", "gpu-[1-", "gpu-x", "gpu-007"])
def test_names_of_nobody_are_refused(nodes):
    with pytest.raises(CallError):
        split(nodes)


def test_a_call_that_does_not_exist():
    with pytest.raises(CallError, match="reboot"):
        changes("reboot", "gpu-1")


@pytest.mark.parametrize(
    ("calls", "active"),
    [
        pytest.param([("resume", "gpu-3")], [0, 3], id="on"),
        pytest.param([("suspend", "gpu-0")], [], id="off"),
        pytest.param([("resume-fail", "gpu-0")], [], id="did not start: off"),
        pytest.param([("resume", "gpu-3"), ("suspend", "gpu-3")], [0], id="the later call counts: off"),
        pytest.param([("suspend", "gpu-0"), ("resume", "gpu-0")], [0], id="the later call counts: on"),
        pytest.param([("resume", "gpu-[1-2]"), ("suspend", "gpu-1")], [0, 2], id="one of two"),
    ],
)
def test_calls_in_a_row(calls, active):
    change = Change()
    for verb, nodes in calls:
        change = change.then(changes(verb, nodes)["gpu"])

    assert change.applied([0]) == active
    assert [*pending(active, change)] == []


def test_a_program_leaves_a_whole_note_and_returns(tmp_path):
    told = tmp_path / "resume.json"
    told.write_text(
        json.dumps({"jobs": [{"job_id": 7, "nodes_resume": "gpu-3"}], "all_nodes_resume": "gpu-3"})
    )
    notes = tmp_path / "notes"
    notes.mkdir()

    assert power(["resume", "gpu-3"], {"SLURM_RESUME_FILE": str(told)}, notes) == 0
    assert power(["suspend", "gpu-1"], {}, notes) == 0
    assert [json.loads(path.read_text()) for path in sorted(notes.iterdir())] == [
        {"verb": "resume", "nodes": "gpu-3", "jobs": [7]},
        {"verb": "suspend", "nodes": "gpu-1", "jobs": []},
    ]
    assert read_notes(notes).changes == {"gpu": Change(frozenset({3}), frozenset({1}))}


@pytest.mark.parametrize(
    ("arguments", "code"), [(["resume"], 2), (["reboot", "gpu-1"], 2), (["resume", "gpu-1"], 1)]
)
def test_a_program_that_cannot_hand_over_says_so(arguments, code, tmp_path, capsys):
    assert power(arguments, {}, tmp_path / "not-there") == code
    assert capsys.readouterr().err


def test_a_bad_file_of_jobs_holds_up_nothing(tmp_path):
    bad = tmp_path / "bad"
    bad.write_text('{"jobs": [1]}')
    notes = tmp_path / "notes"
    notes.mkdir()

    assert power(["resume", "gpu-1"], {"SLURM_RESUME_FILE": str(bad)}, notes) == 0
    assert len(read_notes(notes).files) == 1


class Api:
    """An API server's memory of two kinds; away when told so, and with somebody else who writes."""

    def __init__(self, *, active=(0,), is_ephemeral=True) -> None:
        self.active, self.version, self.is_ephemeral = list(active), 1, is_ephemeral
        self.is_away = False
        self.others: list[list[int]] = []  # What somebody else writes right before us.

    async def read(self, kind, key, decode):
        if self.is_away:
            raise Unreachable("no answer")
        if key.name != "gpu":
            raise NotFound(Status(message="no such thing"))
        body = manifest("NodeSet", "gpu", spec__ephemeralNodes=self.is_ephemeral)
        if kind == NodeSetPowerState.KIND:
            spec = {"nodeSetRef": "gpu", "activeNodes": self.active}
            body = {"metadata": {"name": "gpu", "resourceVersion": str(self.version)}, "spec": spec}
        assert kind in (NodeSetPowerState.KIND, NodeSet.KIND)
        return decode(json.dumps(body).encode())

    async def merge_patch(self, kind, key, patch):
        if self.others:
            self.active, self.version = self.others.pop(0), self.version + 1
        if patch["metadata"]["resourceVersion"] != str(self.version):
            raise Conflict(Status(message="another version"))
        self.active, self.version = patch["spec"]["activeNodes"], self.version + 1


def server(api: Api, notes: Path) -> Server:
    return Server(States(api, "ns"), notes)


async def test_notes_are_carried_out_and_removed(tmp_path):
    api = Api()
    power(["resume", "gpu-3"], {}, tmp_path)
    power(["resume", "gpu-[1-2]"], {}, tmp_path)
    power(["suspend", "gpu-2"], {}, tmp_path)

    assert await server(api, tmp_path).one_look()
    assert api.active == [0, 1, 3]
    assert api.version == 2, "one write for all of them"
    assert [*tmp_path.iterdir()] == []


async def test_notes_stay_while_the_api_server_is_away_and_for_the_next_process(tmp_path):
    api = Api()
    api.is_away = True
    power(["resume", "gpu-3"], {}, tmp_path)
    assert not await server(api, tmp_path).one_look()
    assert not await server(api, tmp_path).one_look()
    assert len([*tmp_path.iterdir()]) == 1

    api.is_away = False
    assert await server(api, tmp_path).one_look()
    assert api.active == [0, 3]


async def test_what_somebody_else_writes_is_kept(tmp_path):
    api = Api()
    api.others = [[0, 5], [0, 5, 6]]
    power(["resume", "gpu-3"], {}, tmp_path)

    assert await server(api, tmp_path).one_look()
    assert api.active == [0, 3, 5, 6]


async def test_nodes_that_are_not_ephemeral_or_of_nobody_are_skipped(tmp_path):
    api = Api(is_ephemeral=False)
    power(["suspend", "gpu-0"], {}, tmp_path)
    power(["suspend", "other-0"], {}, tmp_path)

    assert await server(api, tmp_path).one_look()
    assert api.active == [0]
    assert isinstance(await States(api, "ns").active("gpu"), Skipped)


async def test_a_note_that_says_nothing_is_removed(tmp_path):
    (tmp_path / "1.json").write_text("{")
    (tmp_path / "2.json").write_text('{"verb": "resume", "nodes": "nobody"}')

    assert await server(Api(), tmp_path).one_look()
    assert [*tmp_path.iterdir()] == []


async def test_it_ends_when_asked(tmp_path):
    ending = asyncio.Event()
    working = asyncio.create_task(server(Api(), tmp_path).run(ending, look_seconds=0.01))
    await asyncio.sleep(0.05)
    ending.set()
    await asyncio.wait_for(working, 5)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["resume"], "--nodes"),
        (["resume", "-nodes", "gpu", "-timeout", "soon"], "--timeout"),
        (["serve", "--calls", "/not/there"], "does not exist"),
    ],
)
def test_bad_flags_are_explained(arguments, words):
    result = CliRunner().invoke(power_manager, arguments)

    assert result.exit_code == 2
    assert words in result.output


def test_commands_and_flags_are_those_of_the_scripts():
    assert {"resume", "suspend", "wait-added", "wait-removed", "serve"} == set(power_manager.commands)
