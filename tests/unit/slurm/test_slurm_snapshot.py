from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slurm_operator import wire
from slurm_operator.safety.record_removal import may_delete_record
from slurm_operator.slurm.health import ControllerPing
from slurm_operator.slurm.jobs.job import SlurmJob
from slurm_operator.slurm.node import SlurmNode, Vitals
from slurm_operator.slurm.reservation import Reservation
from slurm_operator.slurm.snapshot import Changes, Snapshot, Unreachable, changes, jobs_by_node
from slurm_operator.slurm.states import JobState, NodeState

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def node(name: str, *words: str, **fields: object) -> SlurmNode:
    return wire.replace(SlurmNode(name=name, state=NodeState.of(*words or ("IDLE",))), **fields)


def job(job_id: int, *nodes: str, state: str = "RUNNING", **fields: object) -> SlurmJob:
    return wire.replace(SlurmJob(job_id=job_id, state=JobState.of(state), nodes=nodes), **fields)


def snapshot(*records: SlurmNode | SlurmJob, **fields: object) -> Snapshot:
    nodes = {record.name: record for record in records if isinstance(record, SlurmNode)}
    jobs = {record.job_id: record for record in records if isinstance(record, SlurmJob)}
    made = Snapshot(
        nodes=nodes,
        jobs=jobs,
        jobs_by_node=jobs_by_node(jobs.values()),
        nodes_asked_at=NOON,
        jobs_asked_at=NOON + timedelta(seconds=1),
    )
    return wire.replace(made, **fields)


@pytest.mark.parametrize(
    ("old", "new", "changed"),
    [
        pytest.param(node("a"), node("a"), set(), id="the same"),
        pytest.param(node("a"), node("a", "DOWN"), {"a"}, id="another state"),
        pytest.param(node("a"), node("a", comment="x"), {"a"}, id="another comment"),
        pytest.param(node("a"), node("b"), {"a", "b"}, id="one gone, one new"),
        pytest.param(node("a"), node("a", vitals=Vitals(cpu_load=9.0)), set(), id="load"),
        pytest.param(node("a"), node("a", vitals=Vitals(free_memory_mb=9)), set(), id="free memory"),
        pytest.param(
            node("a"), node("a", vitals=Vitals(cpu_load=9.0), reason="x"), {"a"}, id="load and something else"
        ),
    ],
)
def test_a_node_has_changed_when_more_than_its_load_has(
    old: SlurmNode, new: SlurmNode, changed: set[str]
) -> None:
    assert changes(snapshot(old), snapshot(new)) == Changes(nodes=frozenset(changed))


@pytest.mark.parametrize(
    ("old", "new", "nodes"),
    [
        pytest.param([], [job(1, "a")], {"a"}, id="started"),
        pytest.param([job(1, "a", "b")], [], {"a", "b"}, id="ended"),
        pytest.param([job(1, "a")], [job(1, "a", state="SUSPENDED")], {"a"}, id="suspended"),
        pytest.param([job(1, "a")], [job(1, "b")], {"a", "b"}, id="moved"),
        pytest.param([], [job(1, state="PENDING", required_nodes=("a",))], {"a"}, id="insists on a node"),
    ],
)
def test_a_changed_job_is_news_about_its_nodes(
    old: list[SlurmJob], new: list[SlurmJob], nodes: set[str]
) -> None:
    found = changes(snapshot(*old), snapshot(*new))

    assert found == Changes(nodes=frozenset(nodes), jobs=frozenset({1}))


def test_a_cluster_that_comes_into_sight_is_news_about_everything() -> None:
    away = Unreachable(since=NOON, why="no route")

    assert changes(away, snapshot()).everything
    assert changes(snapshot(), away).everything
    assert changes(away, Unreachable(since=NOON, why="other words")).is_empty


def test_how_long_a_ping_took_is_no_news() -> None:
    first = ControllerPing(hostname="c", is_primary=True, is_responding=True, latency_us=5)

    slower = snapshot(pings=(wire.replace(first, latency_us=7),))
    silent = snapshot(pings=(wire.replace(first, is_responding=False),))

    assert changes(snapshot(pings=(first,)), slower).is_empty
    assert changes(snapshot(pings=(first,)), silent).everything


def test_a_reservation_that_ends_is_news() -> None:
    held = snapshot(reservations={"r": Reservation(name="r", nodes=("a",))})

    assert changes(held, snapshot()) == Changes(reservations=frozenset({"r"}))
    assert held.reservations_naming("a")
    assert not held.reservations_naming("b")


names = st.sampled_from(["a", "b", "c", "d"])
records = st.one_of(
    st.builds(node, names, st.sampled_from(["IDLE", "MIXED", "DOWN"])),
    st.builds(job, st.integers(1, 4), names, state=st.sampled_from(["RUNNING", "SUSPENDED"])),
)


@settings(deadline=None)
@given(st.lists(records, max_size=8), st.lists(records, max_size=8))
def test_what_is_not_named_as_changed_is_the_same_in_both(
    old: list[SlurmNode | SlurmJob], new: list[SlurmNode | SlurmJob]
) -> None:
    before, after = snapshot(*old), snapshot(*new)

    found = changes(before, after)

    for name in {"a", "b", "c", "d"} - found.nodes:
        assert before.nodes.get(name) == after.nodes.get(name)
        assert before.jobs_naming(name) == after.jobs_naming(name)


def test_a_pending_job_names_a_node_but_is_not_on_it() -> None:
    seen = snapshot(node("a"), job(1, "a", state="SUSPENDED"), job(2, state="PENDING", required_nodes=("a",)))

    assert [found.job_id for found in seen.jobs_on("a")] == [1]
    assert [found.job_id for found in seen.jobs_naming("a")] == [1, 2]
    assert seen.jobs_on("b") == []


@pytest.mark.parametrize("nodes", [(), ("b",)], ids=["an empty list", "another list"])
def test_a_job_that_its_batch_host_names_is_on_that_node(nodes: tuple[str, ...]) -> None:
    seen = snapshot(node("a"), node("b"), job(1, *nodes, batch_host="a"))

    for on in ("a", *nodes):
        assert [found.job_id for found in seen.jobs_naming(on)] == [1]
        assert [found.job_id for found in seen.jobs_on(on)] == [1]
    assert seen.jobs[1].own_nodes == ("a", *nodes)
    assert changes(snapshot(node("a"), node("b")), seen).nodes == {"a", *nodes}
    assert not may_delete_record("a", seen)


def test_jobs_of_a_partition_include_those_that_wait_for_one_of_several() -> None:
    seen = snapshot(job(1, partition="gpu"), job(2, partition="cpu,gpu"), job(3, partition="cpu"))

    assert [found.job_id for found in seen.jobs_in("gpu")] == [1, 2]


def test_a_snapshot_is_as_old_as_its_oldest_part() -> None:
    assert snapshot().asked_at == NOON


def test_a_snapshot_survives_being_recorded() -> None:
    seen = snapshot(node("a", "IDLE", "DRAIN", reason="x"), job(7, "a"), behind=frozenset({"a"}))

    again = wire.decode(wire.encode(seen), Snapshot | Unreachable)  # type: ignore[arg-type]

    assert again == seen
    assert not seen.is_current("a")


@pytest.mark.parametrize(
    ("began", "limit", "ends"),
    [
        pytest.param(NOON, timedelta(hours=1), NOON + timedelta(hours=1), id="an hour"),
        pytest.param(None, timedelta(hours=1), None, id="not begun"),
        pytest.param(NOON, None, None, id="no limit"),
        pytest.param(NOON, timedelta(minutes=4294967000), None, id="thousands of years: for ever"),
    ],
)
def test_a_job_ends_when_its_time_is_up(
    began: datetime | None, limit: timedelta | None, ends: datetime | None
) -> None:
    assert job(1, "a", start_time=began, time_limit=limit).deadline == ends
