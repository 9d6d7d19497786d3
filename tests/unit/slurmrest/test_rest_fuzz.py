"""Whatever slurmrestd sends, it is read or refused as a whole: no job is ever dropped on the way."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slurm_operator import wire
from slurm_operator.slurm.hostlist import HostlistError
from slurm_operator.slurmrest.answers import lists
from slurm_operator.slurmrest.answers.envelope import Envelope
from slurm_operator.slurmrest.answers.jobs import JobsReply, WireJob, slurm_job
from slurm_operator.slurmrest.answers.nodes import Nodes, NodesReply
from slurm_operator.slurmrest.answers.values import hosts
from slurm_operator.slurmrest.errors import SlurmAnswerUnreadable
from slurm_operator.slurmrest.exchange import Reply
from slurm_operator.slurmrest.incoming import MAX_LIST_BYTES, decoded
from slurm_operator.slurmrest.session import Session

RECORDED = Path(__file__).parents[2] / "slurm" / "recorded"


READS: dict[str, Callable[[bytes], Any]] = {
    "jobs": lambda entry: slurm_job(wire.decode(entry, WireJob)),
    "nodes": lambda entry: Nodes().one(entry),
    "reservations": lambda entry: lists.reservation(wire.decode(entry, lists.WireReservation)),
    "partitions": lambda entry: lists.partition(wire.decode(entry, lists.WirePartition)),
}
REPLIES: dict[str, type[Envelope]] = {
    "jobs": JobsReply,
    "nodes": NodesReply,
    "reservations": lists.ReservationsReply,
    "partitions": lists.PartitionsReply,
}


def _made(name: str) -> Callable[[list[Any], bytes], list[Any]]:
    """As the reader has it: a missing list is not an empty one, and there is one of it."""

    def made(found: list[Any], rest: bytes) -> list[Any]:
        beside = getattr(decoded(rest, wire.decoder(REPLIES[name])), name)
        if beside is None or beside:
            raise ValueError("there is no list, or more than one")
        return found

    return made


def recordings(what: str) -> list[bytes]:
    """Bodies as real daemons sent them."""
    found = []
    for file in sorted(RECORDED.glob(f"{what}*.json")):
        whole = json.loads(file.read_bytes())
        body = whole.get("body", whole)
        found.append(body.encode() if isinstance(body, str) else json.dumps(body).encode())
    return found


@st.composite
def damaged(draw: st.DrawFn, what: str) -> bytes:
    """A recorded answer with a piece cut out, repeated or replaced."""
    body = draw(st.sampled_from(recordings(what)))
    start = draw(st.integers(0, max(0, len(body) - 1)))
    end = min(len(body), start + draw(st.integers(0, 60)))
    piece = draw(
        st.one_of(st.binary(max_size=12), st.just(body[start:end] * 2), st.just(b"[[[["), st.just(b"null"))
    )
    return body[:start] + piece + body[end:]


class Answering(Session):
    """Without a connection: only the reading is of interest."""

    def __init__(self, body: bytes) -> None:
        self._body = body
        self._max_list_bytes = MAX_LIST_BYTES

    async def call(self, *_args: object, **_options: object) -> Reply:
        return Reply(200, self._body)


def _read(body: bytes, what: str) -> list[Any]:
    """What the session makes of a body; it awaits nothing for small ones."""
    try:
        Answering(body).listed("read", "/", what, READS[what], _made(what)).send(None)
    except StopIteration as done:
        found: list[Any] = done.value
        return found
    raise AssertionError("it waits")


@pytest.mark.parametrize("what", sorted(READS))
@settings(max_examples=150, deadline=None)
@given(st.data())
def test_a_damaged_answer_is_read_whole_or_refused(what: str, data: st.DataObject) -> None:
    body = data.draw(damaged(what))
    try:
        found = _read(body, what)
    except SlurmAnswerUnreadable:
        return

    assert len(found) == len(json.loads(body.decode(errors="replace"))[what])


@pytest.mark.parametrize(
    "nodes", ["gpu-[0-", "gpu-[3-1]", "gpu-[0-99999999]", "gpu-99999999999999999999", "a]b"]
)
@pytest.mark.parametrize("field", ["nodes", "required_nodes"])
def test_a_job_whose_nodes_cannot_be_read_spoils_the_whole_list(field: str, nodes: str) -> None:
    body = json.dumps({"jobs": [{"job_id": 1, "nodes": "a1"}, {"job_id": 2, field: nodes}]}).encode()

    with pytest.raises(SlurmAnswerUnreadable):
        _read(body, "jobs")


def test_an_answer_nested_too_deep_is_refused_like_any_other() -> None:
    with pytest.raises(SlurmAnswerUnreadable):
        _read(b'{"jobs":' + b"[" * 100_000, "jobs")


def test_a_plain_name_with_a_number_that_slurm_cannot_hold_is_no_name() -> None:
    with pytest.raises(HostlistError):
        hosts("gpu-18446744073709551615")
    assert hosts("gpu-1844674407370955161") == ("gpu-1844674407370955161",)


@given(
    st.text(
        st.characters(codec="ascii", categories=["Ll", "Nd"], include_characters="-."),
        min_size=1,
        max_size=30,
    )
)
def test_a_plain_name_is_itself_or_refused(name: str) -> None:
    try:
        assert hosts(name) == (name,)
    except HostlistError:
        assert len(name) - len(name.rstrip("0123456789")) > 18
