"""Answers are read the same however they are cut, and what is no answer is refused."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slurm_operator.http import http1
from slurm_operator.http.http1 import Answer, Following, Reading

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
FIXED = HEAD + b"Content-Length: 5\r\n\r\nhello"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2;x=y\r\nlo\r\n0\r\nTrailer: x\r\n\r\n"
UNTIL_CLOSED = HEAD + b"\r\nhello"
FORETOLD = b"HTTP/1.1 100 Continue\r\n\r\n" + FIXED

WHOLE = [
    pytest.param("GET", FIXED, (200, b"hello", False), id="a length"),
    pytest.param("GET", CHUNKED, (200, b"hello", False), id="chunks, with an extension and a trailer"),
    pytest.param("GET", FORETOLD, (200, b"hello", False), id="something said before it"),
    pytest.param("HEAD", FIXED.removesuffix(b"hello"), (200, b"", False), id="only asked for the head"),
    pytest.param("DELETE", b"HTTP/1.1 204 No Content\r\n\r\n", (204, b"", False), id="no content"),
    pytest.param("GET", b"HTTP/1.1 304 Not Modified\r\n\r\n", (304, b"", False), id="not modified"),
    pytest.param("GET", b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", (200, b"", False), id="empty"),
    pytest.param("GET", FIXED.replace(b"1.1", b"1.0"), (200, b"hello", True), id="an old server closes"),
    pytest.param("GET", FIXED.replace(b"OK\r\n", b"OK\r\nconnection: Close\r\n"), (200, b"hello", True), id="it says that it closes"),
    pytest.param("GET", FIXED + b"HTTP/1.1 200", (200, b"hello", True), id="more than was asked for"),
]  # fmt: skip


def read(method: str, *pieces: bytes) -> Answer | None:
    reading = Reading(method, 1000)
    for piece in pieces:
        answer = reading.feed(piece)
        if answer is not None:
            return answer
    return None


@pytest.mark.parametrize(("method", "sent", "expected"), WHOLE)
def test_an_answer_is_whole_when_its_last_byte_is_there(
    method: str, sent: bytes, expected: tuple[int, bytes, bool]
) -> None:
    answer = read(method, sent)

    assert answer is not None
    assert (answer.status, answer.body, answer.is_last) == expected


@pytest.mark.parametrize("sent", [FIXED, CHUNKED, FORETOLD])
def test_it_is_the_same_answer_however_it_arrives(sent: bytes) -> None:
    whole = read("GET", sent)

    assert whole is not None
    assert whole.headers["content-type"] == "application/json"
    assert read("GET", *(bytes([byte]) for byte in sent)) == whole
    for cut in range(len(sent)):
        assert read("GET", sent[:cut]) is None
        assert read("GET", sent[:cut], sent[cut:]) == whole


def test_without_a_length_it_ends_with_the_connection() -> None:
    reading = Reading("GET", 1000)

    assert reading.feed(UNTIL_CLOSED) is None
    answer = reading.end()
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
    reading = Reading("GET", 1000)
    if arrived:
        assert reading.feed(arrived) is None

    with pytest.raises(EOFError, match=said):
        reading.end()


@pytest.mark.parametrize(
    ("arrived", "said"),
    [
        pytest.param(b"SSH-2.0-OpenSSH\r\n\r\n", "it begins with 'SSH", id="another protocol"),
        pytest.param(b"HTTP/1.1 OK\r\n\r\n", "it begins with", id="no number"),
        pytest.param(b"x" * 70_000, "no end of its headers", id="no end"),
        pytest.param(FIXED.replace(b": 5", b": -5"), "a length of '-5'", id="less than nothing"),
        pytest.param(FIXED.replace(b": 5", b": 1_0"), "a length of '1_0'", id="only Python reads that"),
        pytest.param(CHUNKED.replace(b"3\r\n", b"0x3\r\n"), "a length of '0x3'", id="that too"),
        pytest.param(CHUNKED.replace(b"3\r\n", b"2\r\n"), "longer than it says", id="a chunk that is longer"),
    ],
)
def test_what_is_no_http_is_told(arrived: bytes, said: str) -> None:
    with pytest.raises(http1.NotHttp, match=said):
        read("GET", arrived)


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param(FIXED.replace(b": 5", b": 1001"), id="by what it says"),
        pytest.param(HEAD + b"\r\n" + b"x" * 1001, id="by what came"),
        pytest.param(HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + b"258\r\n" + b"x" * 600 + b"\r\n258\r\n", id="by all chunks"),
    ],
)  # fmt: skip
def test_an_answer_has_a_largest_size(sent: bytes) -> None:
    with pytest.raises(http1.TooLarge, match="are allowed"):
        read("GET", sent)


@settings(max_examples=200)
@given(
    st.sampled_from([FIXED, CHUNKED, FORETOLD]), st.integers(0, 150), st.integers(0, 9), st.binary(max_size=8)
)
def test_a_damaged_answer_is_read_or_refused(sent: bytes, at: int, cut: int, piece: bytes) -> None:
    reading = Reading("GET", 1000)
    try:
        answer = reading.feed(sent[:at] + piece + sent[at + cut :]) or reading.end()
    except (http1.NotHttp, http1.TooLarge, EOFError):
        return
    assert 200 <= answer.status < 1000


def test_a_request_is_its_lines_and_its_body() -> None:
    written = http1.request("POST", "/api?x=y", [("Host", "there"), ("Accept", "application/json")], b"{}")

    assert written == (
        b"POST /api?x=y HTTP/1.1\r\nHost: there\r\nAccept: application/json\r\nContent-Length: 2\r\n\r\n{}"
    )


@pytest.mark.parametrize("value", ["secret\r\nX-Remote-User: root", "secret\nb", "secret\rb"])
def test_nobody_smuggles_a_header_into_a_request(value: str) -> None:
    with pytest.raises(ValueError, match="a line break"):
        http1.request("GET", f"/{value}", [])
    with pytest.raises(ValueError, match="a line break") as caught:
        http1.request("GET", "/", [("Authorization", value)])
    assert "secret" not in str(caught.value)


def followed(*pieces: bytes) -> tuple[list[bytes], bool]:
    following = Following(1000)
    return [piece for data in pieces for piece in following.feed(data)], following.is_whole


@pytest.mark.parametrize("sent", [FIXED, CHUNKED, FORETOLD])
def test_a_body_that_is_followed_is_the_same_however_it_arrives(sent: bytes) -> None:
    for cut in range(len(sent)):
        pieces, is_whole = followed(sent[:cut], sent[cut:])
        assert (b"".join(pieces), is_whole) == (b"hello", True)
        assert not followed(sent[:cut])[1]


def test_chunks_are_passed_on_when_they_are_whole_and_other_bodies_as_they_come() -> None:
    assert followed(CHUNKED[:-20]) == ([b"hel"], False)
    assert followed(FIXED[:-1]) == ([b"hell"], False)
    assert followed(UNTIL_CLOSED) == ([b"hello"], False)


def test_the_head_is_known_before_the_body() -> None:
    following = Following(1000)

    following.feed(HEAD)
    assert following.head is None
    following.feed(b"Content-Length: 5\r\n\r\n")
    assert following.head is not None
    assert following.head.status == 200


@pytest.mark.parametrize("sent", [FIXED[:-1], CHUNKED[:-2], HEAD])
def test_a_body_that_is_followed_must_come_to_its_end(sent: bytes) -> None:
    following = Following(1000)
    following.feed(sent)

    with pytest.raises(EOFError, match="stops in the middle"):
        following.end()


def test_a_body_without_a_length_that_is_followed_ends_with_the_connection() -> None:
    following = Following(1000)

    assert following.feed(UNTIL_CLOSED) == [b"hello"]
    assert following.end() == []
    assert following.is_whole
