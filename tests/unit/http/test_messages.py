"""Answers are read the same however they are cut, and what is no answer is refused."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slurm_operator.http import messages
from slurm_operator.http.messages import Answer, NotHttp, Reading, TooLarge

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
FIXED = HEAD + b"Content-Length: 5\r\n\r\nhello"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2;x=y\r\nlo\r\n0\r\nTrailer: x\r\n\r\n"
UNTIL_CLOSED = HEAD + b"\r\nhello"
FORETOLD = b"HTTP/1.1 100 Continue\r\n\r\n" + FIXED

WHOLE = [
    pytest.param("GET", FIXED, (200, b"hello", False), id="a length"),
    pytest.param("GET", CHUNKED, (200, b"hello", False), id="chunks, with an extension and a trailer"),
    pytest.param("GET", FORETOLD, (200, b"hello", False), id="something said before it"),
    pytest.param("HEAD", FIXED.removesuffix(b"hello"), (200, b"", True), id="only asked for the head"),
    pytest.param("DELETE", b"HTTP/1.1 204 No Content\r\n\r\n", (204, b"", False), id="no content"),
    pytest.param("GET", b"HTTP/1.1 304 Not Modified\r\n\r\n", (304, b"", False), id="not modified"),
    pytest.param("GET", b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", (200, b"", False), id="empty"),
    pytest.param("GET", FIXED.replace(b"1.1", b"1.0"), (200, b"hello", True), id="an old server closes"),
    pytest.param("GET", FIXED.replace(b"OK\r\n", b"OK\r\nconnection: Close\r\n"), (200, b"hello", True), id="it says that it closes"),
    pytest.param("GET", FIXED + b"HTTP/1.1 200", (200, b"hello", True), id="more than was asked for"),
]  # fmt: skip


def read(method: str, *pieces: bytes) -> Answer | None:
    reading = Reading(1000)
    reading.begin(method)
    for piece in pieces:
        if reading.feed(piece):
            return reading.answer()
    return None


@pytest.mark.parametrize(("method", "sent", "expected"), WHOLE)
def test_an_answer_is_whole_when_its_last_byte_is_there(
    method: str, sent: bytes, expected: tuple[int, bytes, bool]
) -> None:
    answer = read(method, sent)

    assert answer is not None
    assert (answer.status, answer.body, answer.is_last) == expected


def plainly(answer: Answer | None) -> tuple[int, str, bytes, bytes, bool]:
    assert answer is not None
    return (
        answer.status,
        answer.head.reason,
        answer.head.headers[b"content-type"],
        answer.body,
        answer.is_last,
    )


@pytest.mark.parametrize("sent", [FIXED, CHUNKED, FORETOLD])
def test_it_is_the_same_answer_however_it_arrives(sent: bytes) -> None:
    whole = (200, "OK", b"application/json", b"hello", False)

    assert plainly(read("GET", sent)) == whole
    assert plainly(read("GET", *(bytes([byte]) for byte in sent))) == whole
    for cut in range(len(sent)):
        assert read("GET", sent[:cut]) is None
        assert plainly(read("GET", sent[:cut], sent[cut:])) == whole


def test_the_next_answer_is_read_as_if_there_had_been_none_before() -> None:
    reading = Reading(1000)
    for sent in (FIXED, CHUNKED, b"HTTP/1.1 204 No Content\r\n\r\n", FORETOLD, FIXED):
        reading.begin("POST")
        assert not reading.has_begun
        assert reading.feed(sent)
        assert reading.answer().body == (b"" if b" 204 " in sent else b"hello")
        assert not reading.answer().is_last


def test_without_a_length_it_ends_with_the_connection() -> None:
    reading = Reading(1000)

    assert not reading.feed(UNTIL_CLOSED)
    reading.end()
    answer = reading.answer()
    assert (answer.body, answer.is_last) == (b"hello", True)


@pytest.mark.parametrize(
    ("arrived", "said"),
    [
        pytest.param(b"", "no answer came", id="nothing"),
        pytest.param(FIXED[:-1], "stops in the middle", id="a byte is missing"),
        pytest.param(CHUNKED[:-2], "stops in the middle", id="the last line is missing"),
        pytest.param(HEAD, "stops in the middle", id="in the headers"),
    ],
)
def test_an_answer_that_stops_too_early_is_none(arrived: bytes, said: str) -> None:
    reading = Reading(1000)
    if arrived:
        assert not reading.feed(arrived)

    with pytest.raises(EOFError, match=said):
        reading.end()


@pytest.mark.parametrize(
    ("arrived", "said"),
    [
        pytest.param(b"SSH-2.0-OpenSSH\r\n\r\n", "it begins with 'SSH", id="another protocol"),
        pytest.param(b"HTTP/1.1 OK\r\n\r\n", "it begins with", id="no number"),
        pytest.param(b"x" * 70_000, "it begins with 'xxx", id="no end, and no HTTP"),
        pytest.param(HEAD + b"X: y\r\n" * 11_000, "no end of its headers", id="no end, in lines"),
        pytest.param(CHUNKED[:-2] + b"x" * 70_000, "no end of its headers", id="no end behind the body"),
        pytest.param(b"HTTP/2.0 200 OK\r\nContent-Length: 0\r\n\r\n", "it is HTTP/2.0", id="another version"),
        pytest.param(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n", "another protocol", id="an upgrade"),
        pytest.param(FIXED.replace(b": 5", b": -5"), "Invalid character in Content-Length", id="less than nothing"),
        pytest.param(FIXED.replace(b": 5", b": 1_0"), "Invalid character in Content-Length", id="only Python reads that"),
        pytest.param(FIXED.replace(b": 5", b": 5\r\nContent-Length: 6"), "Content-Length", id="two lengths"),
        pytest.param(FIXED.replace(b"Type", b"Length: 2\r\nX"), "Content-Length", id="two lengths, the shorter first"),
        pytest.param(CHUNKED.replace(b"Type", b"Length: 5\r\nX"), "Content-Length", id="a length and chunks"),
        pytest.param(CHUNKED.replace(b"3\r\n", b"0x3\r\n"), "Invalid character in chunk size", id="that too"),
        pytest.param(CHUNKED.replace(b"\n0\r\n", b"\n0\x1d\r\n"), "Invalid character in chunk size", id="Python strips that"),
        pytest.param(CHUNKED.replace(b"3\r\n", b"2\r\n"), "after chunk data", id="a chunk that is longer"),
    ],
)  # fmt: skip
def test_what_is_no_http_is_told(arrived: bytes, said: str) -> None:
    with pytest.raises(NotHttp, match=said):
        read("GET", *(arrived[start : start + 1000] for start in range(0, len(arrived), 1000)))


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param(FIXED.replace(b": 5", b": 1001"), id="by what it says"),
        pytest.param(HEAD + b"\r\n" + b"x" * 1001, id="by what came"),
        pytest.param(HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + b"258\r\n" + b"x" * 600 + b"\r\n258\r\n" + b"x" * 401, id="by all chunks"),
    ],
)  # fmt: skip
def test_an_answer_has_a_largest_size(sent: bytes) -> None:
    with pytest.raises(TooLarge, match="are allowed"):
        read("GET", sent)


@settings(max_examples=200)
@given(
    st.sampled_from([FIXED, CHUNKED, FORETOLD]), st.integers(0, 150), st.integers(0, 9), st.binary(max_size=8)
)
def test_a_damaged_answer_is_read_or_refused(sent: bytes, at: int, cut: int, piece: bytes) -> None:
    reading = Reading(1000)
    try:
        if not reading.feed(sent[:at] + piece + sent[at + cut :]):
            reading.end()
    except (NotHttp, TooLarge, EOFError):
        return
    assert 200 <= reading.answer().status < 1000


def test_a_request_is_its_lines_and_its_body() -> None:
    written = messages.request("POST", "/api?x=y", [("Host", "there"), ("Accept", "application/json")], b"{}")

    assert written == (
        b"POST /api?x=y HTTP/1.1\r\nHost: there\r\nAccept: application/json\r\nContent-Length: 2\r\n\r\n{}"
    )


@pytest.mark.parametrize("value", ["secret\r\nX-Remote-User: root", "secret\nb", "secret\rb"])
def test_nobody_smuggles_a_header_into_a_request(value: str) -> None:
    with pytest.raises(ValueError, match="a line break"):
        messages.request("GET", f"/{value}", [])
    with pytest.raises(ValueError, match="a line break") as caught:
        messages.request("GET", "/", [("Authorization", value)])
    assert "secret" not in str(caught.value)


def followed(*pieces: bytes) -> tuple[bytes, bool]:
    reading, body = Reading(1000), b""
    for piece in pieces:
        reading.feed(piece)
        body += reading.taken()
    return body, reading.is_whole


@pytest.mark.parametrize("sent", [FIXED, CHUNKED, FORETOLD])
def test_a_body_that_is_followed_is_the_same_however_it_arrives(sent: bytes) -> None:
    for cut in range(len(sent)):
        assert followed(sent[:cut], sent[cut:]) == (b"hello", True)
        assert not followed(sent[:cut])[1]


def test_a_body_can_be_followed_before_it_is_whole() -> None:
    assert followed(CHUNKED[: CHUNKED.index(b"lo\r\n") + 1]) == (b"hell", False)
    assert followed(FIXED[:-1]) == (b"hell", False)
    assert followed(UNTIL_CLOSED) == (b"hello", False)


def test_what_was_taken_does_not_count_against_the_largest_size() -> None:
    chunk = b"258\r\n" + b"x" * 600 + b"\r\n"

    body, is_whole = followed(HEAD + b"Transfer-Encoding: chunked\r\n\r\n", *[chunk] * 200, b"0\r\n\r\n")

    assert (len(body), is_whole) == (120_000, True)


def test_the_head_is_known_before_the_body() -> None:
    reading = Reading(1000)

    reading.feed(HEAD)
    assert reading.head is None
    reading.feed(b"Content-Length: 5\r\n\r\n")
    assert reading.head is not None
    assert (reading.head.status, reading.head.reason) == (200, "OK")
