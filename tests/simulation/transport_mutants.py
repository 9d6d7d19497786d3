"""The transport with one condition taken out, for a run of its unit tests: a plugin of pytest.

`TRANSPORT_MUTANT=name` says which.
"""

import os
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from simulation.mutants import mutated
from slurm_operator.http.calls import CallConnection
from slurm_operator.http.connection import Connection, _set_up
from slurm_operator.http.messages import Reading, _has_length, request
from slurm_operator.http.pool import Connections
from slurm_operator.http.streams import Stream
from slurm_operator.kube.transport import Transport


class Mutant(NamedTuple):
    """`notices` is the test that has to."""

    target: Any
    old: str
    new: str
    notices: str


HTTP, KUBE = "tests/unit/http", "tests/unit/kube"

MUTANTS = {
    "writes are repeated": Mutant(Connections.exchange, "method not in READS or", "", f"{KUBE}/test_connections.py::test_a_write_is_never_sent_twice"),
    "reads that were answered in part are repeated": Mutant(Connections.exchange, "or kept.has_answered", "", f"{KUBE}/test_connections.py::test_a_read_that_was_answered_in_part_is_not_asked_again"),
    "no read is repeated": Mutant(Connections.exchange, "method not in READS or kept.has_answered", "True", f"{KUBE}/test_connections.py::test_a_read_on_a_kept_connection_that_was_just_closed_is_asked_again"),
    "nobody is asked in the moment of sending": Mutant(Connections._on, "before_sending()\n", "pass\n", f"{KUBE}/test_connections.py::test_whether_it_may_be_sent_is_asked_when_there_is_a_connection"),
    "half-sent requests do not count": Mutant(Connections._on, "answer.is_last or connection.is_sending", "answer.is_last", f"{KUBE}/test_connections.py::test_a_connection_whose_server_did_not_want_all_of_a_request_is_not_kept"),
    "the last answer is not the last": Mutant(Connections._on, "answer.is_last or connection.is_sending", "connection.is_sending", f"{KUBE}/test_connections.py::test_a_connection_that_cannot_be_trusted_is_not_kept"),
    "a call that is given up leaves its connection": Mutant(Connections._on, "connection.abort()  # Whatever comes back", "self._keep(connection)  # Whatever comes back", f"{KUBE}/test_connections.py::test_the_answer_to_a_call_that_was_given_up_reaches_nobody_else"),
    "silent connections stay": Mutant(Transport._answer, "connections.drop_idle_since(started)", "pass", f"{KUBE}/test_connections.py::test_a_server_that_is_gone_costs_one_call_its_deadline_and_not_one_for_each_connection"),
    "what nobody asked for is passed over": Mutant(CallConnection.data_received, "self.abort()", "pass", f"{KUBE}/test_connections.py::test_what_nobody_asked_for_ends_a_kept_connection"),
    "line breaks in headers": Mutant(request, 'head.count("\\n") != len(lines) - 1 or head.count("\\r") != len(lines) - 1', "False", f"{HTTP}/test_messages.py::test_nobody_smuggles_a_header_into_a_request"),
    "answers of any size": Mutant(Reading._check_size, "size > self._max_bytes", "False", f"{HTTP}/test_messages.py::test_an_answer_has_a_largest_size"),
    "headers without end": Mutant(Reading._count_without_body, "> _MAX_HEAD_BYTES", "> 1 << 40", f"{HTTP}/test_messages.py::test_what_is_no_http_is_told"),
    "half an answer is one": Mutant(Reading.end, "not _has_length(self.head.headers)", "True", f"{HTTP}/test_messages.py::test_an_answer_that_stops_too_early_is_none"),
    "no keepalive": Mutant(_set_up, "plain.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)", "pass", f"{HTTP}/test_connection.py::test_a_server_that_lost_its_power_is_missed_within_a_minute"),
    "connections that have answered since are doubted, too": Mutant(Connections.drop_idle_since, "connection.idle_since < since", "True", f"{KUBE}/test_connections.py::test_a_connection_that_has_answered_since_is_not_doubted"),
    "what is said before the answer is the answer": Mutant(Reading.on_headers_complete, "self.is_whole or status < 200", "self.is_whole", f"{HTTP}/test_messages.py::test_an_answer_is_whole_when_its_last_byte_is_there"),
    "any version": Mutant(Reading.on_headers_complete, "not in _VERSIONS", "is None", f"{HTTP}/test_messages.py::test_what_is_no_http_is_told"),
    "bodies in chunks of any size": Mutant(Reading.on_body, "self._check_size(self._size)", "pass", f"{HTTP}/test_messages.py::test_an_answer_has_a_largest_size"),
    "what was taken counts": Mutant(Reading.taken, "self._pieces, [], 0", "self._pieces, [], self._size", f"{HTTP}/test_messages.py::test_what_was_taken_does_not_count_against_the_largest_size"),
    "an answer to HEAD has a body": Mutant(Reading.begin, 'method == "HEAD"', "False", f"{HTTP}/test_messages.py::test_an_answer_is_whole_when_its_last_byte_is_there"),
    "a server that wants to hang up is kept": Mutant(Reading.on_headers_complete, "not self._parser.should_keep_alive()", "False", f"{KUBE}/test_connections.py::test_a_connection_that_cannot_be_trusted_is_not_kept"),
    "a body that is cut off is one": Mutant(_has_length, 'or b"content-length" in headers', "", f"{HTTP}/test_messages.py::test_an_answer_that_stops_too_early_is_none"),
    "a body without its length": Mutant(request, "if body:", "if False:", f"{HTTP}/test_messages.py::test_a_request_is_its_lines_and_its_body"),
    "refusals of watches of any size": Mutant(Stream.whole, "len(body) > max_bytes", "False", f"{KUBE}/test_torture.py::test_why_a_watch_is_refused_has_a_largest_size"),
    "the end is told twice": Mutant(Connection.abort, "if self.is_open:", "if True:", f"{HTTP}/test_connection.py::test_who_aborts_it_is_told_once_and_hears_no_more"),
    "the end waits for what is unsent": Mutant(Connection.eof_received, "self.abort()", "pass", f"{HTTP}/test_connection.py::test_it_ends_once_and_at_once_even_with_something_unsent"),
}  # fmt: skip


@pytest.fixture(autouse=True, scope="session")
def _mutant() -> Iterator[None]:
    chosen = os.environ.get("TRANSPORT_MUTANT")
    if not chosen:
        yield
        return
    mutant = MUTANTS[chosen]
    with mutated(mutant.target, mutant.old, mutant.new):
        yield
