"""What can go wrong on the way, and what it is called."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import jwt
import pytest
from fake_slurmrestd import DROP, HANG, FakeSlurmrestd, answer, body_of, http

from slurm_operator.slurm.writes import Reserve
from slurm_operator.slurmrest import errors
from slurm_operator.slurmrest.client import SlurmRest
from slurm_operator.slurmrest.tokens import ReadyToken
from slurm_operator.slurmrest.versions import Capability
from testing.virtual_time import FakeClock

pytestmark = pytest.mark.both_loops

NODES = "GET /slurm/{v}/nodes/"
UPDATE = "POST /slurm/{v}/nodes/"


def lost(number: int, status: int) -> bytes:
    return http(status, {"errors": [{"error_number": number, "error": "x"}], "warnings": []})


@pytest.mark.parametrize(
    ("reply", "error", "text"),
    [
        pytest.param(answer("nodes-slurmctld-hung"), errors.SlurmTimedOut, "Socket timed out", id="hung"),
        pytest.param(answer("nodes-slurmctld-gone"), errors.SlurmUnreachable, "Unable to contact", id="gone"),
        pytest.param(answer("token-refused"), errors.SlurmUnauthorised, "authentication", id="511"),
        pytest.param(answer("token-missing"), errors.SlurmUnauthorised, "Authentication failure", id="401"),
        pytest.param(answer("state-unknown"), errors.SlurmRefused, "Unknown flag", id="500 with errors"),
        pytest.param(lost(1800, 502), errors.SlurmUnreachable, "1800", id="slurmctld is not there"),
        pytest.param(lost(7000, 502), errors.SlurmUnreachable, "7000", id="slurmdbd is not there"),
        pytest.param(lost(1801, 502), errors.SlurmCutOff, "1801", id="it may have been sent in part"),
        pytest.param(
            lost(1802, 502), errors.SlurmCutOff, "1802", id="it was sent, and its answer not received"
        ),
        pytest.param(
            lost(5005, 502), errors.SlurmCutOff, "5005", id="the connection ended without an answer"
        ),
        pytest.param(lost(5005, 500), errors.SlurmCutOff, "5005", id="whatever the status says"),
        pytest.param(lost(0, 500), errors.SlurmCutOff, "x", id="500 without a number"),
        pytest.param(
            lost(2180, 500), errors.SlurmRefused, "2180", id="a number of slurmctld that we have no name for"
        ),
        pytest.param(http(500, "oops"), errors.SlurmCutOff, "oops", id="500 without JSON"),
        pytest.param(http(500, "[" * 5000), errors.SlurmCutOff, r"\[\[", id="500, nested deep"),
        pytest.param(http(404, '{"errors":' * 1500), errors.SlurmRefused, "errors", id="404, nested deep"),
        pytest.param(http(503, None), errors.SlurmCutOff, "503", id="no body"),
        pytest.param(http(502, "bad gateway"), errors.SlurmCutOff, "bad gateway", id="a proxy's 502"),
        pytest.param(http(200, "hello"), errors.SlurmAnswerUnreadable, "JSON", id="not JSON"),
        pytest.param(
            http(200, {"nodes": {"w": 1}}), errors.SlurmAnswerUnreadable, "Expected", id="other shape"
        ),
        pytest.param(
            http(200, body_of("nodes"), cut=900),
            errors.SlurmCutOff,
            "stops in the middle",
            id="cut in the middle",
        ),
        pytest.param(DROP, errors.SlurmCutOff, "no answer came", id="dropped without an answer"),
        pytest.param(b"what?\r\n\r\n", errors.SlurmAnswerUnreadable, "begins with", id="not even HTTP"),
    ],
)
async def test_each_kind_of_trouble_has_its_name_and_keeps_slurms_words(
    slurmrestd: FakeSlurmrestd, client: SlurmRest, reply: bytes, error: type[Exception], text: str
) -> None:
    slurmrestd.on(NODES, reply)

    with pytest.raises(error, match=text) as raised:
        await client.read.nodes()

    assert "read the nodes" in str(raised.value)


@pytest.mark.parametrize(
    ("reply", "error", "maybe"),
    [
        pytest.param(answer("node-unknown-post"), errors.UnknownNode, False, id="unknown node"),
        pytest.param(answer("not-allowed"), errors.SlurmNotAllowed, False, id="not allowed"),
        pytest.param(answer("nodes-slurmctld-gone"), errors.SlurmUnreachable, False, id="slurmctld gone"),
        pytest.param(answer("nodes-slurmctld-hung"), errors.SlurmTimedOut, True, id="slurmctld hung"),
        pytest.param(DROP, errors.SlurmCutOff, True, id="connection lost"),
        pytest.param(http(200, body_of("reconfigure"), cut=9), errors.SlurmCutOff, True, id="answer cut"),
        pytest.param(http(200, "?"), errors.SlurmAnswerUnreadable, True, id="answer unreadable"),
    ],
)
async def test_a_failed_write_says_whether_it_may_have_happened(
    slurmrestd: FakeSlurmrestd, client: SlurmRest, reply: bytes, error: type[Exception], maybe: bool
) -> None:
    slurmrestd.on(UPDATE, reply)

    with pytest.raises(error) as raised:
        await client.send.update_nodes("drain w-0", ["w-0"], {"state": ["DRAIN"]})

    assert isinstance(raised.value, errors.SlurmFailure)
    assert raised.value.may_have_happened is maybe
    assert len(slurmrestd.calls(UPDATE)) == 1, "a write is never repeated"


async def test_the_other_refusals_have_names_too(slurmrestd: FakeSlurmrestd, client: SlurmRest) -> None:
    slurmrestd.on("DELETE /slurm/{v}/node/w-1", answer("node-delete-busy"))
    slurmrestd.on("DELETE /slurm/{v}/job/99999", answer("job-unknown"))
    slurmrestd.on("DELETE /slurm/{v}/reservation/op-maint", answer("reservation-unknown"))

    with pytest.raises(
        errors.NodesBusy, match="Slurm refused to delete the node w-1: Requested nodes are busy"
    ):
        await client.send.delete_nodes(["w-1"])
    with pytest.raises(errors.UnknownJob):
        await client.send.cancel_job("99999")
    with pytest.raises(errors.UnknownReservation):
        await client.send.unreserve("op-maint")


async def test_a_field_that_slurmrestd_passes_over_is_not_taken_for_done(
    slurmrestd: FakeSlurmrestd, client: SlurmRest
) -> None:
    slurmrestd.on(UPDATE, answer("field-unknown"))

    with pytest.raises(errors.NotServed, match="Ignoring unknown field"):
        await client.send.update_nodes("mark w-0", ["w-0"], {"bogus_field": 1})


async def test_silence_ends_at_the_deadline(
    slurmrestd: FakeSlurmrestd, connect: Callable[..., SlurmRest]
) -> None:
    slurmrestd.on(NODES, HANG)
    client = connect(deadline_s=0.05)

    with pytest.raises(errors.SlurmTimedOut, match=r"silent for 0\.05 s"):
        await client.read.nodes()


async def test_nobody_listening_is_unreachable(
    slurmrestd: FakeSlurmrestd, connect: Callable[..., SlurmRest]
) -> None:
    client = connect(urls=["http://127.0.0.1:1"])

    with pytest.raises(errors.SlurmUnreachable) as raised:
        await client.send.reconfigure()

    assert not raised.value.may_have_happened


async def test_an_endless_answer_is_cut_short(
    slurmrestd: FakeSlurmrestd, connect: Callable[..., SlurmRest]
) -> None:
    slurmrestd.on(NODES, http(200, {"nodes": [], "errors": [], "x": "y" * 5000}))
    client = connect(max_answer_bytes=4000)

    with pytest.raises(errors.SlurmAnswerUnreadable, match="4000 are allowed"):
        await client.read.nodes()


@pytest.mark.parametrize(
    "reply",
    [
        pytest.param(answer("nodes") + b"Connection: Close\r\n", id="a header behind the body"),
        pytest.param(answer("nodes") + http(502, "Unable"), id="a second answer to the same request"),
        pytest.param(b"HTTP/1.1 100 Continue\r\n\r\n" + answer("nodes"), id="an interim answer"),
        pytest.param(
            b"HTTP/1.1 200 OK\r\n\r\n" + answer("nodes").split(b"\r\n\r\n", 1)[1],
            id="no length: until it ends",
        ),
        pytest.param(
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
            + b"".join(
                b"%x;x=y\r\n%s\r\n" % (len(part), part)
                for part in answer("nodes").split(b"\r\n\r\n", 1)[1].splitlines(keepends=True)
            )
            + b"0\r\n\r\n",
            id="in chunks, as a proxy may send it",
        ),
    ],
)
async def test_exactly_one_answer_is_read(
    slurmrestd: FakeSlurmrestd, client: SlurmRest, reply: bytes
) -> None:
    slurmrestd.on(NODES, reply)

    listing = await client.read.nodes()

    assert listing is not None
    assert len(listing.records) == len(body_of("nodes")["nodes"])


@pytest.mark.parametrize(
    "reply",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nnonsense\r\n",
        b"HTTP/1.1 OK\r\n\r\n",
        b"SSH-2.0-OpenSSH\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX: " + b"y" * 200_000,
    ],
)
async def test_nonsense_is_called_so(slurmrestd: FakeSlurmrestd, client: SlurmRest, reply: bytes) -> None:
    slurmrestd.on(NODES, reply)

    with pytest.raises(errors.SlurmAnswerUnreadable):
        await client.read.nodes()


# -- tokens


async def test_a_refused_token_is_signed_anew_once(slurmrestd: FakeSlurmrestd, client: SlurmRest) -> None:
    slurmrestd.on(NODES, answer("token-refused"), answer("nodes"))

    assert await client.read.nodes()

    first, second = (heard.token for heard in slurmrestd.calls(NODES))
    assert first != second


async def test_a_token_refused_twice_is_given_up(slurmrestd: FakeSlurmrestd, client: SlurmRest) -> None:
    slurmrestd.on(NODES, answer("token-missing"))

    with pytest.raises(errors.SlurmUnauthorised):
        await client.read.nodes()

    assert len(slurmrestd.calls(NODES)) == 2


async def test_a_new_key_is_picked_up_when_the_old_one_is_refused(
    slurmrestd: FakeSlurmrestd, connect: Callable[..., SlurmRest]
) -> None:
    keys = [b"new" * 11, b"old" * 11]
    slurmrestd.on(NODES, answer("token-refused"), answer("nodes"))
    client = connect(key=lambda: keys.pop() if len(keys) > 1 else keys[0])

    await client.read.nodes()

    jwt.decode(slurmrestd.heard[-1].token, b"new" * 11, algorithms=["HS256"], options={"verify_exp": False})


async def test_without_a_key_there_is_nothing_to_say(connect: Callable[..., SlurmRest]) -> None:
    with pytest.raises(errors.SlurmUnauthorised, match="no key"):
        await connect(key=lambda: b"").read.nodes()


@pytest.mark.parametrize("text", ["signed elsewhere", "SLURM_JWT=signed elsewhere\n"])
async def test_a_token_that_somebody_else_signed_is_shown_as_it_is(
    slurmrestd: FakeSlurmrestd, connect: Callable[..., SlurmRest], text: str
) -> None:
    slurmrestd.on(NODES, answer("nodes"))

    await connect(key=ReadyToken(text)).read.nodes()

    assert [heard.token for heard in slurmrestd.calls(NODES)] == ["signed elsewhere"]


async def test_an_empty_token_is_not_shown(
    slurmrestd: FakeSlurmrestd, connect: Callable[..., SlurmRest]
) -> None:
    with pytest.raises(errors.SlurmUnauthorised, match="empty"):
        await connect(key=ReadyToken(" \n")).read.nodes()

    assert slurmrestd.heard == []


# -- versions


@pytest.mark.parametrize(
    ("serves", "chosen"),
    [
        (("v0.0.42", "v0.0.43", "v0.0.44", "v0.0.45"), "v0.0.45"),
        (("v0.0.41", "v0.0.42", "v0.0.43"), "v0.0.43"),
        (("v0.0.40", "v0.0.41", "v0.0.42"), "v0.0.42"),
        (("v0.0.44", "v0.0.45", "v0.0.46", "v0.0.47"), "v0.0.45"),
    ],
)
async def test_the_newest_version_that_both_know_is_spoken(
    slurmrestd: FakeSlurmrestd, client: SlurmRest, serves: tuple[str, ...], chosen: str
) -> None:
    slurmrestd.serves = serves
    slurmrestd.on(NODES, answer("nodes"))

    await client.read.nodes()
    await client.read.nodes()

    assert client.version == chosen
    assert [heard.path for heard in slurmrestd.calls(NODES)] == [f"/slurm/{chosen}/nodes/"] * 2


async def test_no_common_version_is_said_so(slurmrestd: FakeSlurmrestd, client: SlurmRest) -> None:
    slurmrestd.serves = ("v0.0.39",)

    with pytest.raises(errors.VersionUnknown, match=r"v0\.0\.45"):
        await client.read.nodes()


async def test_a_downgraded_slurmrestd_is_understood_at_the_next_call(
    slurmrestd: FakeSlurmrestd, client: SlurmRest
) -> None:
    slurmrestd.on(NODES, answer("nodes"))
    await client.read.nodes()
    slurmrestd.serves = ("v0.0.42", "v0.0.43")

    with pytest.raises(errors.NotServed):
        await client.read.nodes()

    assert await client.read.nodes()
    assert client.version == "v0.0.43"


@pytest.mark.parametrize("capability", Capability)
async def test_what_a_version_cannot_do_is_not_even_tried(
    slurmrestd: FakeSlurmrestd, client: SlurmRest, clock: FakeClock, capability: Capability
) -> None:
    slurmrestd.serves = ("v0.0.42",)
    calls: dict[Capability, Callable[[], Any]] = {
        Capability.REQUEUE_JOB: lambda: client.send.requeue_job("1"),
        Capability.READ_CONFIG: client.read.slurmctld_parameters,
        Capability.ADD_NODES: lambda: client.send.add_nodes(["x"], "State=CLOUD"),
        Capability.SET_TOPOLOGY: lambda: client.send.update_nodes(
            "move", ["x"], {"topology_str": "default:s1"}
        ),
        Capability.RESERVE: lambda: client.send.reserve(
            Reserve(name="x", nodes=("n",), start_time=clock.now(), duration=timedelta(hours=1))
        ),
    }

    with pytest.raises(errors.NotServed, match=capability.value.since):
        await calls[capability]()

    assert len(slurmrestd.heard) == len(slurmrestd.calls("GET /slurm/{v}/ping/"))


async def test_another_url_is_taken_up_and_asked_for_its_version(
    slurmrestd: FakeSlurmrestd, connect: Callable[..., SlurmRest]
) -> None:
    slurmrestd.on(NODES, answer("nodes"))
    client = connect(urls=["http://127.0.0.1:1", slurmrestd.url])
    with pytest.raises(errors.SlurmUnreachable):
        await client.read.nodes()

    client.next_url()

    assert await client.read.nodes()


async def test_the_url_in_use_stays_so_when_others_come_or_go(connect: Callable[..., SlurmRest]) -> None:
    client = connect(urls=["http://one", "http://two"])
    client.next_url()

    client.use(["http://zero", "http://one", "http://two/"])
    assert client.url == "http://two"
    client.use(["http://zero", "http://one"])
    assert client.url == "http://zero"
    client.next_url()
    assert client.url == "http://one"


async def test_a_database_that_slurmrestd_was_started_without_is_said_so(client: SlurmRest) -> None:
    with pytest.raises(errors.NotServed, match="slurmdb"):
        await client.database.accounts()
