"""Every plan with its facts, kept in files; the same facts give the same plan."""

from datetime import timedelta
from pathlib import Path

import pytest

from slurm_operator import wire
from slurm_operator.api.images import PATTERN_VARIABLE, default_image, images_named
from slurm_operator.api.meta import ObjectKey, key_of
from slurm_operator.api.nodeset import NodeSet
from slurm_operator.kubectl.picture import Picture
from slurm_operator.kubectl.record import decided, read_files, recorded, replay, taken
from slurm_operator.manifests.objects import Pod
from slurm_operator.plan.actions import Wait
from slurm_operator.plan.plan import Plan, lane, plan
from slurm_operator.runtime.recording import Recorder
from slurm_operator.runtime.witness import NotRecorded, Retold, Witness
from support.pictures import NOON, NS, RECONCILERS, SLURM, job, slurm, state, working


@pytest.fixture(scope="module")
def busy() -> Picture:
    """A cluster in the middle of something: jobs run, and a worker is missing."""
    made = working()
    slurm(made, nodes={"demo-cpu-0": {"state": state("ALLOCATED")}}, jobs=(job(7, "demo-cpu-0"),))
    made.drop(Pod, ObjectKey(NS, "demo-cpu-1"))
    return made


def write(folder: Path, world: Picture, times: int = 1, **limits) -> None:
    recorder = Recorder(folder, **limits)
    recorder.start()
    for _ in range(times):
        for reconciler in RECONCILERS:
            for thing in world.all(reconciler.about):
                witness = Witness(world)
                found = decided(reconciler, key_of(thing), witness, world.now)
                later = world.now + timedelta(milliseconds=3)
                recorder.note(
                    reconciler.name,
                    key_of(thing),
                    witness.answers,
                    found,
                    seen_at=world.now,
                    decided_at=later,
                )
    recorder.close()


def test_a_replay_gives_the_identical_plans(tmp_path: Path, busy: Picture) -> None:
    write(tmp_path, busy)
    found = list(recorded(read_files(tmp_path)))

    assert {one.flight.reconciler for one in found} == {
        "accounting",
        "cluster",
        "controller",
        "loginset",
        "nodeset",
        "restapi",
    }
    assert any(action for one in found for lane_ in one.flight.plan["lanes"] for action in lane_["stages"])
    assert [replay(one, RECONCILERS) for one in found if not replay(one, RECONCILERS).is_same] == []


def test_a_recording_replays_where_nobody_names_the_images_of_that_operator(
    tmp_path: Path, busy: Picture
) -> None:
    with images_named({PATTERN_VARIABLE: "there/{daemon}:1"}):
        write(tmp_path, busy)
    found = list(recorded(read_files(tmp_path)))

    assert any("there/slurmd:1" in str(one.flight.plan) for one in found)
    assert [replay(one, RECONCILERS) for one in found if not replay(one, RECONCILERS).is_same] == []
    assert default_image("slurmd") != "there/slurmd:1"


def test_what_could_not_be_read_is_recorded_by_name(tmp_path: Path, busy: Picture) -> None:
    made = busy.copy()
    strange = {key_of(nodeset) for nodeset in made.all(NodeSet)}
    made.records[NodeSet], made.undecoded = {}, {NodeSet: strange}
    write(tmp_path, made)
    found = list(recorded(read_files(tmp_path)))

    assert any("NodeSetUnreadable" in str(one.flight.plan) for one in found)
    assert [replay(one, RECONCILERS) for one in found if not replay(one, RECONCILERS).is_same] == []


def test_a_recording_of_now_replays_too(busy: Picture) -> None:
    found = list(recorded([taken(busy, RECONCILERS)]))

    assert len(found) == 6
    assert all(replay(one, RECONCILERS).is_same for one in found)


def test_another_decision_is_noticed(tmp_path: Path, busy: Picture) -> None:
    write(tmp_path, busy)
    one = next(it for it in recorded(read_files(tmp_path)) if it.flight.reconciler == "nodeset")
    other = wire.replace(one, flight=wire.replace(one.flight, plan={"lanes": []}))

    assert not replay(other, RECONCILERS).is_same


def test_a_fact_stands_once_in_a_file(tmp_path: Path, busy: Picture) -> None:
    write(tmp_path, busy)
    lines = [wire.decode_any(line) for file in read_files(tmp_path) for line in file.splitlines()]
    facts = [line["digest"] for line in lines if line["type"] == "fact"]

    assert len(facts) == len(set(facts))
    assert (
        sum(
            "demo-cpu-0" in str(line.get("value")) and "nodes_asked_at" in str(line.get("value"))
            for line in lines
        )
        == 1
    )


def test_the_ring_is_bounded_and_every_file_can_be_read_by_itself(tmp_path: Path, busy: Picture) -> None:
    write(tmp_path, busy, times=6, file_bytes=20_000, files=3)
    files = sorted(tmp_path.iterdir())

    assert len(files) <= 3
    assert int(files[0].stem.rpartition("-")[2]) > 1
    for file in files:
        assert all(replay(one, RECONCILERS).is_same for one in recorded([file.read_bytes()]))


def test_a_file_that_breaks_off_is_read_up_to_there(tmp_path: Path, busy: Picture) -> None:
    whole = taken(busy, RECONCILERS)

    assert 0 < len(list(recorded([whole[:-200]]))) < len(list(recorded([whole])))


def test_an_idle_plan_is_kept_once(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path)
    recorder.start()
    for found in (
        Plan(),
        Plan(),
        plan(lane("a", [Wait(subject="x", reason="Because", message="of y")])),
        Plan(),
    ):
        recorder.note("nodeset", ObjectKey(NS, "a"), {}, found, seen_at=NOON, decided_at=NOON)
    recorder.close()

    assert len(list(recorded(read_files(tmp_path)))) == 3


def test_a_question_that_was_not_asked_then_is_no_fact() -> None:
    with pytest.raises(NotRecorded, match="secret ns a"):
        Retold(NOON, {}).secret("ns", "a")


def test_no_secret_is_in_a_recording(busy: Picture) -> None:
    """Secrets are digests everywhere before they get here; only their names and entries are told."""
    text = taken(busy, RECONCILERS).decode()

    assert '"digests":{"password":"d1"}' in text
    assert "stringData" not in text or "⟦secret" in text
    assert SLURM.name in text
