import asyncio
import contextlib
import copy
from collections.abc import Callable
from datetime import timedelta

import pytest
from fake_slurmrestd import FakeSlurmrestd, answer, body_of, http
from slurmrest_replies import CONF, JOBS, NODES, PING, RESERVATIONS, jobs, nodes, reservations, serve
from structlog.testing import capture_logs

from slurm_operator.slurm.snapshot import Changes, Snapshot, Unreachable
from slurm_operator.slurmrest.client import SlurmRest
from slurm_operator.slurmsync import poller as slurm_poller
from slurm_operator.slurmsync.lists import ASKED_EARLIER_SECONDS, WHOLE_EVERY_SECONDS
from slurm_operator.slurmsync.pending_writes import MESSAGE_TIMEOUT_SECONDS, Ledger
from slurm_operator.slurmsync.poller import SlurmPoller, failed_pause_seconds, pause_seconds
from testing.virtual_time import FakeClock

EARLIER = str(1000 - ASKED_EARLIER_SECONDS)  # Before the mark of most lists here.


@pytest.fixture
def ledger() -> Ledger:
    return Ledger()


@pytest.fixture
def poller(client: SlurmRest, clock: FakeClock, ledger: Ledger) -> SlurmPoller:
    return SlurmPoller(client, clock, ledger)


@pytest.fixture
def heard(poller: SlurmPoller) -> list[Changes]:
    found: list[Changes] = []
    poller.subscribe(found.append)
    return found


def known(poller: SlurmPoller) -> Snapshot:
    facts = poller.latest()
    assert isinstance(facts, Snapshot), facts
    return facts


async def rounds(poller: SlurmPoller, count: int) -> None:
    """Lets the poller run alone for so many rounds."""
    done = asyncio.Event()
    left = count

    def counted(_: Changes) -> None:
        nonlocal left
        left -= 1
        if left <= 0:
            done.set()

    stop = poller.subscribe(counted)
    task = asyncio.create_task(poller.run())
    await done.wait()
    stop()
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task


async def test_nothing_read_is_unreachable_and_not_empty(poller: SlurmPoller, clock: FakeClock) -> None:
    assert poller.latest() == Unreachable(since=clock.now(), why="not read yet")


async def test_nodes_are_read_before_jobs(slurmrestd: FakeSlurmrestd, poller: SlurmPoller) -> None:
    serve(slurmrestd, node_lists=[nodes(a="IDLE")])

    await poller.poll()

    read = [heard.path.rsplit("/", 2)[-2] for heard in slurmrestd.heard]
    assert read[1:5] == ["nodes", "jobs", "reservations", "partitions"]
    snapshot = known(poller)
    assert snapshot.nodes_asked_at <= snapshot.jobs_asked_at
    assert snapshot.api_version == "v0.0.45"
    assert snapshot.url == slurmrestd.url
    assert snapshot.slurmctld_parameters == ("enable_configless",)
    assert [ping.is_responding for ping in snapshot.pings] == [True]


async def test_the_first_word_about_a_cluster_is_whole(
    slurmrestd: FakeSlurmrestd, poller: SlurmPoller, heard: list[Changes]
) -> None:
    """Told in two pieces, every restart of ours would write into the status that nobody is in charge, and take it back."""
    serve(slurmrestd, node_lists=[nodes(a="IDLE")])
    poller.subscribe(lambda found: pings.append(len(known(poller).pings)))
    pings: list[int] = []

    await poller.poll()

    assert pings == [1]
    assert [found.everything for found in heard] == [True]


async def test_an_unchanged_queue_keeps_its_jobs(
    slurmrestd: FakeSlurmrestd, poller: SlurmPoller, clock: FakeClock, heard: list[Changes]
) -> None:
    unchanged = [answer("nodes-unchanged")]
    serve(
        slurmrestd,
        node_lists=[nodes(a="MIXED"), *unchanged],
        job_lists=[jobs(500, j7="a"), answer("jobs-unchanged")],
    )
    await poller.poll()
    first = known(poller)
    clock.advance(1)
    await poller.poll()
    clock.advance(1)
    await poller.poll()

    assert [job.job_id for job in known(poller).jobs_on("a")] == [7]
    assert known(poller).jobs_asked_at > first.jobs_asked_at, "unchanged is news about now"
    marks = [heard.query.get("update_time") for heard in slurmrestd.calls(JOBS)]
    assert marks == [None, "495", "495"], "the 0 of an unchanged list is never stored"
    assert heard[-1].is_empty


async def test_a_change_wakes_with_the_names_it_is_about(
    slurmrestd: FakeSlurmrestd, poller: SlurmPoller, heard: list[Changes]
) -> None:
    serve(
        slurmrestd,
        node_lists=[nodes(a="IDLE", b="IDLE", c="IDLE"), nodes(a="IDLE", b="DOWN", c="IDLE")],
        job_lists=[jobs(), jobs(j7="a")],
    )
    await poller.poll()
    assert heard[0].everything

    await poller.poll()

    assert heard[-1] == Changes(nodes=frozenset({"a", "b"}), jobs=frozenset({7}))


async def test_a_stopped_subscription_is_silent(slurmrestd: FakeSlurmrestd, poller: SlurmPoller) -> None:
    serve(slurmrestd, node_lists=[nodes(a="IDLE")])
    found: list[Changes] = []
    stop = poller.subscribe(found.append)
    stop()

    await poller.poll()

    assert found == []


async def test_an_answer_that_is_too_old_is_unreachable(
    slurmrestd: FakeSlurmrestd, poller: SlurmPoller, clock: FakeClock
) -> None:
    serve(slurmrestd, node_lists=[nodes(a="IDLE")])
    await poller.poll()
    read_at = known(poller).asked_at

    clock.advance(300)

    facts = poller.latest()
    assert isinstance(facts, Unreachable)
    assert facts.since == read_at


async def test_who_answers_and_refuses_our_token_is_told_from_one_who_is_away(
    slurmrestd: FakeSlurmrestd, poller: SlurmPoller, heard: list[Changes]
) -> None:
    away, refused = answer("nodes-slurmctld-gone"), answer("token-refused")
    serve(slurmrestd, node_lists=[away, *[refused] * 4, nodes(a="IDLE")])  # Each is tried twice.
    told = []
    for _ in range(3):
        await poller.poll()
        facts = poller.latest()
        told.append((isinstance(facts, Unreachable) and facts.is_refused, len(heard)))

    assert told == [(False, 1), (True, 2), (True, 2)], "people are told once of each"
    assert isinstance(poller.latest(), Unreachable)


async def test_a_failure_leaves_the_old_facts_until_they_are_too_old(
    slurmrestd: FakeSlurmrestd, poller: SlurmPoller, clock: FakeClock, heard: list[Changes]
) -> None:
    serve(slurmrestd, node_lists=[nodes(a="IDLE"), answer("nodes-slurmctld-gone")])
    await poller.poll()
    before = known(poller)

    await poller.poll()
    assert known(poller) == before
    clock.advance(300)
    await poller.poll()

    facts = poller.latest()
    assert isinstance(facts, Unreachable)
    assert "Unable to contact slurm controller" in facts.why
    assert heard[-1].everything


async def test_connecting_to_and_losing_a_slurmrestd_is_logged_once_each_as_slurm_client(
    slurmrestd: FakeSlurmrestd, poller: SlurmPoller
) -> None:
    away, there = answer("nodes-slurmctld-gone"), nodes(a="IDLE")
    serve(slurmrestd, node_lists=[away, there, there, away, away, there])
    with capture_logs() as logged:
        for _ in range(6):
            await poller.poll()

    assert [line["event"] for line in logged if "slurm client" in line["event"]] == [
        "slurm client cannot connect",
        "slurm client connected",
        "slurm client lost slurmrestd",
        "slurm client connected again",
    ]


async def test_nodes_without_their_jobs_are_not_published(
    slurmrestd: FakeSlurmrestd, poller: SlurmPoller
) -> None:
    serve(
        slurmrestd,
        node_lists=[nodes(a="MIXED"), nodes(a="IDLE")],
        job_lists=[jobs(j7="a"), http(500, "oops")],
    )
    await poller.poll()

    await poller.poll()

    assert str(known(poller).nodes["a"].state) == "MIXED"


async def test_after_a_failure_the_lists_are_read_whole(
    slurmrestd: FakeSlurmrestd, poller: SlurmPoller, heard: list[Changes]
) -> None:
    serve(slurmrestd, node_lists=[nodes(a="IDLE"), answer("nodes-slurmctld-hung"), nodes(b="IDLE")])
    await poller.poll()
    await poller.poll()

    await poller.poll()

    assert [heard.query for heard in slurmrestd.calls(NODES)] == [{}, {"update_time": EARLIER}, {}]
    assert set(known(poller).nodes) == {"b"}
    assert heard[-1].nodes == {"a", "b"}


async def test_once_in_a_while_the_lists_are_read_whole(
    slurmrestd: FakeSlurmrestd, poller: SlurmPoller, clock: FakeClock
) -> None:
    serve(slurmrestd, node_lists=[nodes(a="IDLE")])
    await poller.poll()
    clock.advance(WHOLE_EVERY_SECONDS)

    await poller.poll()

    assert [heard.query for heard in slurmrestd.calls(NODES)] == [{}, {}]


@pytest.mark.parametrize(
    ("passed", "clock_says", "queries"),
    [
        pytest.param(20, 1020, [{}, {"update_time": EARLIER}], id="it goes on as ours does"),
        pytest.param(20, 1019, [{}, {"update_time": EARLIER}], id="it tells whole seconds"),
        pytest.param(20, 900, [{}, {"update_time": EARLIER}, {}], id="it was set back by two minutes"),
        pytest.param(
            20, 1010, [{}, {"update_time": EARLIER}, {}], id="by less than the time that has passed"
        ),
        pytest.param(
            1, 9000, [{}, {"update_time": EARLIER}], id="it was set forward: more counts as changed"
        ),
    ],
)
async def test_when_slurmctlds_clock_was_set_back_unchanged_is_not_believed(
    slurmrestd: FakeSlurmrestd,
    poller: SlurmPoller,
    clock: FakeClock,
    passed: float,
    clock_says: int,
    queries: list[dict],
) -> None:
    """What changed since has an earlier time than the mark by which we ask."""
    serve(
        slurmrestd,
        node_lists=[nodes(a="IDLE+DRAIN"), answer("nodes-unchanged"), nodes(clock_says, a="MIXED")],
        job_lists=[jobs(1000), answer("jobs-unchanged"), jobs(clock_says, j7="a")],
    )
    slurmrestd.on(RESERVATIONS, reservations(1000), reservations(clock_says))
    await poller.poll()
    clock.advance(passed)

    await poller.poll()

    assert [heard.query for heard in slurmrestd.calls(NODES)] == queries
    is_read_anew = len(queries) == 3
    assert str(known(poller).nodes["a"].state) == ("MIXED" if is_read_anew else "IDLE+DRAIN")
    assert [job.job_id for job in known(poller).jobs_on("a")] == ([7] if is_read_anew else [])


@pytest.mark.parametrize("seconds", [0, 3600, -3600], ids=["as ours", "behind", "ahead"])
async def test_how_far_slurmctlds_clock_is_behind_is_known(
    slurmrestd: FakeSlurmrestd, poller: SlurmPoller, clock: FakeClock, seconds: int
) -> None:
    serve(slurmrestd, node_lists=[nodes(a="IDLE")])
    slurmrestd.on(RESERVATIONS, reservations(int(clock.now().timestamp()) - seconds))

    await poller.poll()

    assert known(poller).clock_behind == timedelta(seconds=seconds)


async def test_a_clock_that_is_set_back_again_and_again_leaves_nothing_known(
    slurmrestd: FakeSlurmrestd, poller: SlurmPoller, clock: FakeClock
) -> None:
    serve(slurmrestd, node_lists=[nodes(a="IDLE")])
    slurmrestd.on(RESERVATIONS, reservations(900))

    await poller.poll()

    facts = poller.latest()
    assert isinstance(facts, Unreachable)
    assert "clock" in facts.why


async def test_another_slurmrestd_is_tried_after_a_failure(
    slurmrestd: FakeSlurmrestd, connect: Callable[..., SlurmRest], clock: FakeClock, ledger: Ledger
) -> None:
    serve(slurmrestd, node_lists=[nodes(a="IDLE")])
    client = connect(urls=["http://127.0.0.1:1", slurmrestd.url])
    poller = SlurmPoller(client, clock, ledger)

    await rounds(poller, 2)

    assert client.url == slurmrestd.url
    assert known(poller).nodes


# -- our own writes


async def test_a_node_written_to_is_behind_until_it_is_read_again(
    slurmrestd: FakeSlurmrestd, poller: SlurmPoller, clock: FakeClock, ledger: Ledger, heard: list[Changes]
) -> None:
    serve(slurmrestd, node_lists=[nodes(a="IDLE", b="IDLE")])
    await poller.poll()
    assert known(poller).is_current("a")

    ledger.begin(["a"])
    clock.advance(1)
    ledger.end(["a"], clock.monotonic(), sure=True)
    assert not known(poller).is_current("a")
    assert known(poller).is_current("b")
    await poller.poll()

    assert known(poller).is_current("a")
    assert heard[-1].nodes == {"a"}, "whoever waited for the reading hears of it, though nothing differs"


async def test_what_is_known_counts_as_old_until_the_new_reading_is_published(
    slurmrestd: FakeSlurmrestd,
    poller: SlurmPoller,
    ledger: Ledger,
    clock: FakeClock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """We have resumed it. What thousands of records say is compared in a thread, and meanwhile others decide."""
    serve(slurmrestd, node_lists=[nodes(a="IDLE+DRAIN"), nodes(a="IDLE")])
    await poller.poll()
    ledger.begin(["a"])
    ledger.end(["a"], at=clock.monotonic(), sure=True)
    seen: list[tuple[bool, bool]] = []

    async def meanwhile(function, *arguments):
        seen.append((known(poller).nodes["a"].state.is_drain, known(poller).is_current("a")))
        return function(*arguments)

    monkeypatch.setattr(slurm_poller, "_COMPARED_ON_LOOP", 0)
    monkeypatch.setattr(asyncio, "to_thread", meanwhile)
    clock.advance(1)
    await poller.poll()

    assert seen == [(True, False)], "the drain that we lifted is no proof any more"
    assert not known(poller).nodes["a"].state.is_drain
    assert known(poller).is_current("a")


async def test_a_job_that_only_its_batch_host_names_is_on_that_node(
    slurmrestd: FakeSlurmrestd, poller: SlurmPoller
) -> None:
    serve(slurmrestd, node_lists=[nodes(a="IDLE+DRAIN")], job_lists=[jobs(500, is_listed=False, j7="a")])
    await poller.poll()

    assert known(poller).jobs[7].nodes == ()
    assert [job.job_id for job in known(poller).jobs_on("a")] == [7]


async def test_a_new_operator_waits_for_what_the_one_before_may_have_written(
    slurmrestd: FakeSlurmrestd, poller: SlurmPoller, clock: FakeClock
) -> None:
    serve(slurmrestd, node_lists=[nodes(a="IDLE+DRAIN")])
    settled = []
    for _ in range(3):
        await poller.poll()
        settled.append(known(poller).is_settled)
        clock.advance(MESSAGE_TIMEOUT_SECONDS / 2)

    assert settled == [False, False, True]


@pytest.mark.parametrize("after", [0, MESSAGE_TIMEOUT_SECONDS], ids=["meanwhile", "later"])
async def test_it_waits_no_longer_when_its_clock_is_set_back(
    slurmrestd: FakeSlurmrestd, poller: SlurmPoller, clock: FakeClock, after: float
) -> None:
    serve(slurmrestd, node_lists=[nodes(a="IDLE+DRAIN")])
    await poller.poll()
    clock.advance(after)
    await poller.poll()
    clock.ahead = timedelta(hours=-1)
    clock.advance(MESSAGE_TIMEOUT_SECONDS)

    await poller.poll()

    assert known(poller).is_settled


async def test_while_a_write_may_yet_come_true_everything_is_read_whole(
    slurmrestd: FakeSlurmrestd, poller: SlurmPoller, clock: FakeClock, ledger: Ledger
) -> None:
    serve(slurmrestd, node_lists=[nodes(a="IDLE")])
    await poller.poll()
    ledger.begin(["a"])
    ledger.end(["a"], clock.monotonic(), sure=False)

    await poller.poll()
    assert not known(poller).is_current("a")
    clock.advance(10)
    await poller.poll()

    assert known(poller).is_current("a")
    assert [heard.query for heard in slurmrestd.calls(NODES)] == [{}, {}, {}]
    await poller.poll()
    assert slurmrestd.calls(NODES)[-1].query == {"update_time": EARLIER}


async def test_the_writer_gets_nodes_of_a_request_of_its_own(
    slurmrestd: FakeSlurmrestd, poller: SlurmPoller
) -> None:
    serve(slurmrestd, node_lists=[nodes(a="IDLE"), answer("nodes-unchanged"), nodes(a="DOWN")])
    await poller.poll()

    unchanged = await poller.nodes_now()
    changed = await poller.nodes_now(whole=True)

    assert str(unchanged["a"].state) == "IDLE"
    assert str(changed["a"].state) == "DOWN"
    assert [heard.query for heard in slurmrestd.calls(NODES)] == [{}, {"update_time": EARLIER}, {}]


# -- pace


@pytest.mark.parametrize(
    ("cost_s", "soon", "pause_s"),
    [
        (0.01, True, slurm_poller.SOON_SECONDS),
        (0.01, False, slurm_poller.IDLE_SECONDS),
        (0.5, True, 7.5),
        (4.0, True, 60.0),
        (4.0, False, 60.0),
    ],
)
def test_the_dearer_a_look_the_rarer_it_is(cost_s: float, soon: bool, pause_s: float) -> None:
    assert pause_seconds(cost_s, soon=soon) == pause_s


def test_after_failures_it_waits_longer_but_never_long() -> None:
    assert [failed_pause_seconds(failures) for failures in range(1, 7)] == [1, 2, 4, 8, 10, 10]


def test_a_slurm_that_is_away_for_hours_is_asked_as_often_as_after_a_minute() -> None:
    assert failed_pause_seconds(2_000) == failed_pause_seconds(7)


async def test_it_looks_every_second_while_somebody_waits(
    slurmrestd: FakeSlurmrestd, poller: SlurmPoller, clock: FakeClock
) -> None:
    serve(slurmrestd, node_lists=[nodes(a="IDLE")])
    poller.request_polling("gpu", soon=True)
    poller.request_polling("cpu", soon=True)
    poller.request_polling("cpu", soon=False)
    await rounds(poller, 4)
    assert {round(wait, 3) for wait in clock.waits} == {slurm_poller.SOON_SECONDS}

    poller.request_polling("gpu", soon=False)
    clock.waits.clear()
    await rounds(poller, 4)
    assert max(clock.waits) == slurm_poller.IDLE_SECONDS


async def test_one_slow_round_is_bad_luck_and_two_are_a_large_cluster(
    slurmrestd: FakeSlurmrestd, poller: SlurmPoller, clock: FakeClock
) -> None:
    serve(slurmrestd, node_lists=[nodes(a="IDLE")])
    slurmrestd.before_answer = lambda: clock.advance(2)

    await rounds(poller, 6)

    first, *others = clock.waits
    calls_a_round = 4
    assert first == slurm_poller.IDLE_SECONDS, "slurmctld was just starting"
    assert set(others) == {slurm_poller.COST_FACTOR * 2.0 * calls_a_round}


async def test_after_our_own_write_it_looks_at_once(
    slurmrestd: FakeSlurmrestd, poller: SlurmPoller, clock: FakeClock
) -> None:
    serve(slurmrestd, node_lists=[nodes(a="IDLE")])
    stop = poller.subscribe(lambda _: poller.read_again())

    await rounds(poller, 5)

    stop()
    assert clock.waits == []


async def test_never_more_than_one_reading_is_in_flight(
    slurmrestd: FakeSlurmrestd, poller: SlurmPoller
) -> None:
    serve(slurmrestd, node_lists=[nodes(a="IDLE")])

    await asyncio.gather(rounds(poller, 3), poller.nodes_now(), poller.nodes_now(whole=True))

    assert slurmrestd.most_in_flight == 1


async def test_who_answers_and_what_is_configured_is_asked_seldom(
    slurmrestd: FakeSlurmrestd, poller: SlurmPoller, clock: FakeClock
) -> None:
    serve(slurmrestd, node_lists=[nodes(a="IDLE")])
    for _ in range(10):
        await poller.poll()
        clock.advance(1)
    assert len(slurmrestd.calls(CONF)) == 1

    poller.read_again(head=True)
    await poller.poll()

    assert len(slurmrestd.calls(CONF)) == 2
    assert len(slurmrestd.calls(PING)) == 3, "one more was to find the version"


async def test_a_ping_that_fails_spoils_nothing(slurmrestd: FakeSlurmrestd, poller: SlurmPoller) -> None:
    serve(slurmrestd, node_lists=[nodes(a="IDLE")])
    slurmrestd.on(PING, answer("ping"), http(500, "oops"))

    await poller.poll()

    assert set(known(poller).nodes) == {"a"}
    assert known(poller).pings == ()


async def test_a_ping_without_answer_does_not_hide_what_slurmctld_runs_with(
    slurmrestd: FakeSlurmrestd, poller: SlurmPoller
) -> None:
    serve(slurmrestd, node_lists=[nodes(a="IDLE")])
    slurmrestd.on(PING, answer("ping"), http(500, "a standby hangs"))

    await poller.poll()

    assert known(poller).slurmctld_parameters == ("enable_configless",)
    assert known(poller).is_config_known


async def test_a_configuration_that_could_not_be_read_yet_is_no_version_that_never_shows_it(
    slurmrestd: FakeSlurmrestd, poller: SlurmPoller, heard: list[Changes]
) -> None:
    serve(slurmrestd, node_lists=[nodes(a="IDLE")])
    slurmrestd.on(CONF, http(500, "oops"), answer("conf"))

    await poller.poll()
    assert not known(poller).is_config_known

    poller.read_again(head=True)
    await poller.poll()
    assert known(poller).is_config_known
    assert known(poller).slurmctld_parameters == ("enable_configless",)
    assert heard[-1].everything


async def test_an_older_version_leaves_the_configuration_unknown(
    slurmrestd: FakeSlurmrestd, poller: SlurmPoller
) -> None:
    slurmrestd.serves = ("v0.0.44",)
    serve(slurmrestd, node_lists=[nodes(a="IDLE")])

    await poller.poll()

    assert known(poller).slurmctld_parameters is None
    assert known(poller).is_config_known, "and nothing more will be known"
    assert known(poller).pings
    assert slurmrestd.calls(CONF) == []


async def test_since_when_slurmctld_has_forgotten_the_start_of_a_slurmd_is_kept_until_it_registers(
    slurmrestd: FakeSlurmrestd, poller: SlurmPoller, clock: FakeClock
) -> None:
    """As it does at every reconfigure (tests/slurm/test_rest_behaviour.py)."""

    def listing(mark: int, start: int) -> bytes:
        body = copy.deepcopy(body_of("nodes"))
        body["nodes"] = [
            {**body["nodes"][0], "name": "a", "slurmd_start_time": {"set": True, "number": start}}
        ]
        return http(200, body | {"last_update": {"set": True, "number": mark}})

    lists = [listing(1000, 900), listing(1010, 0), listing(1011, 0), listing(1020, 1015)]
    serve(slurmrestd, node_lists=lists)
    await poller.poll()
    assert known(poller).unstarted_since == {}
    clock.advance(15)
    forgotten_at = clock.steady()
    await poller.poll()
    clock.advance(1)
    await poller.poll()
    assert known(poller).unstarted_since == {"a": forgotten_at}

    clock.advance(1)
    await poller.poll()
    assert known(poller).unstarted_since == {}
