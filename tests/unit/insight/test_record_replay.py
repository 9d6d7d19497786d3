"""Every plan with its facts, kept in files; the same facts give the same plan."""

import json
from datetime import timedelta
from pathlib import Path

import pytest

from slurm_operator import wire
from slurm_operator.api.shared.images import PATTERN_VARIABLE, default_image, images_named
from slurm_operator.api.shared.meta import Meta, ObjectKey, key_of
from slurm_operator.api.slinky.controller import Controller
from slurm_operator.api.slinky.nodeset import NodeSet
from slurm_operator.insight.recording.replay import decided, read_files, recorded, replay, taken
from slurm_operator.insight.world_snapshot import Picture
from slurm_operator.manifests.digests import digest
from slurm_operator.manifests.meta import Child
from slurm_operator.manifests.objects import Pod
from slurm_operator.manifests.platform import VolumeClaim, VolumeClaimSpec
from slurm_operator.operator import program
from slurm_operator.plan.actions import Wait
from slurm_operator.plan.plan import Plan, lane, plan
from slurm_operator.redaction.recorded import RecordRedactor
from slurm_operator.runtime.report.recording import Flight, Recorder, lines
from slurm_operator.runtime.settings import Settings
from slurm_operator.runtime.world.recording_world import Answer, NotRecorded, RecordingWorld, ReplayWorld
from slurm_operator.runtime.world.sources import OWNER, Source
from testing.pictures import NOON, NS, RECONCILERS, SLURM, SPEC, job, slurm, state, working


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
                witness = RecordingWorld(world)
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


def test_a_mariadb_of_our_own_replays_though_its_template_speaks_of_a_password(tmp_path: Path) -> None:
    made = working({**SPEC, "accounting": {"managed": {}}})
    write(tmp_path, made)
    found = list(recorded(read_files(tmp_path)))

    [one] = [one for one in found if one.flight.reconciler == "accounting"]
    assert b"database-password-hash" in b"".join(read_files(tmp_path))
    assert json.loads(one.plan)["lanes"] == []
    assert [replay(one, RECONCILERS) for one in found if not replay(one, RECONCILERS).is_same] == []


def test_a_controller_with_a_standby_on_a_volume_of_its_user_replays(tmp_path: Path, busy: Picture) -> None:
    """Its claim is a fact that no other kind of object needs."""
    made = busy.copy()
    [controller] = made.all(Controller)
    spec = controller.spec
    shared = wire.replace(spec.persistence, existing_claim="state")
    made.put(
        wire.replace(
            controller,
            spec=wire.replace(spec, ha=wire.replace(spec.ha, enabled=True), persistence=shared),
        )
    )
    claim = VolumeClaimSpec(access_modes=("ReadWriteMany",))
    made.put(VolumeClaim(metadata=Meta(name="state", namespace=NS, uid="claim"), spec=claim))
    write(tmp_path, made)
    found = list(recorded(read_files(tmp_path)))

    [one] = [one for one in found if one.flight.reconciler == "controller"]
    assert ("get", "VolumeClaim", NS, "state") in one.answers
    assert [replay(one, RECONCILERS) for one in found if not replay(one, RECONCILERS).is_same] == []


SOURCES = program(Settings()).sources


@pytest.mark.parametrize("source", SOURCES.records, ids=lambda source: source.type.__name__)
def test_every_record_that_the_operator_watches_can_be_recorded_and_read_again(source: Source) -> None:
    made = Picture(now=NOON, is_whole=True)
    meta = {"name": "one", "namespace": NS, "uid": "1", "ownerReferences": [OWNED]}
    thing = source.decode(wire.encode({"metadata": meta, **LEAST.get(source.type.__name__, {})}))
    made.put(thing)
    questions = [
        lambda world: world.get(source.type, NS, "one"),
        lambda world: world.get(source.type, NS, "none"),
        lambda world: world.all(source.type),
        lambda world: world.find(source.type, OWNER, "owner"),
        lambda world: world.unreadable(source.type, NS),
    ]
    told, [one] = recording(made, questions)

    world = ReplayWorld(NOON, one.answers)
    assert [question(world) for question in questions] == told == [thing, None, [thing], [thing], []]


@pytest.mark.parametrize("kind", SOURCES.children, ids=lambda kind: kind.kind)
def test_every_child_that_the_operator_watches_can_be_recorded_and_read_again(kind) -> None:
    made = Picture(now=NOON, is_whole=True)
    meta = {"name": "one", "namespace": NS, "uid": "1", "ownerReferences": [OWNED]}
    body = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": meta}
    child: Child = SOURCES.child_source(kind).decode(wire.encode(body))
    made.put_child(kind, child)
    questions = [lambda world: world.child(kind, NS, "one"), lambda world: world.children(kind, "owner")]
    told, [one] = recording(made, questions)

    world = ReplayWorld(NOON, one.answers)
    assert [question(world) for question in questions] == told == [child, [child]]


def test_a_record_of_a_type_that_nobody_asks_for_any_more_is_told() -> None:
    with pytest.raises(NotRecorded, match="type Former"):
        Answer({"type": "Former", "value": {}}).of(Pod)


OWNED = {"apiVersion": "slinky.slurm.net/v1beta1", "kind": "NodeSet", "name": "n", "uid": "owner"}

# What a record cannot do without.
LEAST: dict[str, dict] = {
    "Event": {"reason": "FailedCreate", "involvedObject": {"kind": "StatefulSet", "name": "x"}},
    "NodeSet": {"spec": {"controllerRef": {"name": "demo"}}},
    "LoginSet": {"spec": {"controllerRef": {"name": "demo"}, "sssdConfRef": {"name": "a", "key": "b"}}},
    "RestApi": {"spec": {"controllerRef": {"name": "demo"}}},
    "Token": {"spec": {"username": "slurm", "jwtKeyRef": {"name": "a", "key": "b"}}},
}


def recording(world: Picture, questions: list) -> tuple[list, list]:
    """The answers to some questions, and the one decision of a file that was made from them."""
    witness = RecordingWorld(world)
    told = [question(witness) for question in questions]
    flight = Flight(
        reconciler="any", key=ObjectKey(NS, "one"), seen_at=NOON, decided_at=NOON, facts=(), plan=Plan()
    )
    return told, list(recorded([lines(flight, witness.answers, {}, RecordRedactor())]))


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
        ReplayWorld(NOON, {}).secret("ns", "a")


HARDLY_HIDDEN = {
    "under a name": {"name": "DB_PASSWORD", "value": "Tr0ub4dor&3"},
    "in a URL": {"name": "PROXY", "value": "http://me:Tr0ub4dor&3@proxy:3128"},
    "in a script": {"name": "INIT", "value": "mysql -u root -pTr0ub4dor&3 slurm_acct_db"},
}


@pytest.mark.parametrize("variable", HARDLY_HIDDEN.values(), ids=HARDLY_HIDDEN)
def test_a_password_that_somebody_wrote_into_a_manifest_is_not_recorded(variable: dict[str, str]) -> None:
    plain = {"name": "MODE", "value": "fast"}
    manifest = {"spec": {"containers": [{"name": "x", "env": [variable, plain]}]}}
    child = {"type": "Child", "metadata": {}, "manifest": manifest}
    flight = Flight(
        reconciler="any",
        key=ObjectKey(NS, "one"),
        seen_at=NOON,
        decided_at=NOON,
        facts=(),
        plan={"lanes": [{"manifest": manifest}]},
    )
    known: dict[str, str] = {}
    witness = RecordingWorld(working())
    witness.answers[("child",)] = json.dumps(child)
    text = lines(flight, witness.answers, known, RecordRedactor()).decode()

    assert "Tr0ub4dor" not in text
    assert "fast" in text, "it is needed to decide once more"
    assert digest(json.dumps(child)) not in text, "a short password could be guessed from it"
    assert lines(flight, witness.answers, known, RecordRedactor()).decode().count('"type":"fact"') == 0


def test_no_secret_is_in_a_recording(busy: Picture) -> None:
    """Secrets are digests everywhere before they get here; only their names and entries are told."""
    text = taken(busy, RECONCILERS).decode()

    assert '"digests":{"password":"d1"}' in text
    assert "stringData" not in text or "⟦secret" in text
    assert SLURM.name in text
