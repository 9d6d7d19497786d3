from datetime import UTC, datetime, timedelta

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from hypothesis import given, settings
from hypothesis import strategies as st

from slurm_operator.slurmrest.tokens import LIFETIME, Keys, TokenSource, signed

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
KEY = b"0123456789abcdef0123456789abcdef"


class Hands:
    """A clock that is moved by hand."""

    def __init__(self) -> None:
        self.time = NOON

    def __call__(self) -> datetime:
        return self.time


def claims(token: str, key: bytes = KEY) -> dict[str, object]:
    """The claims, checked by PyJWT as they stand; its own clock is left out of it."""
    options = {"verify_exp": False, "verify_nbf": False, "verify_iat": False}
    return jwt.decode(token, key, algorithms=["HS256"], options=options)  # type: ignore[arg-type]


def test_a_token_says_who_and_how_long() -> None:
    found = claims(signed(KEY, user="slurm", now=NOON, lifetime=timedelta(minutes=5)))

    assert found["sun"] == "slurm"
    assert found["iss"] == "slurm-operator"
    assert found["exp"] == NOON.timestamp() + 300
    assert found["iat"] == found["nbf"]
    assert len(str(found["jti"])) == 36


@settings(deadline=None)
@given(st.integers(min_value=-60, max_value=60), st.integers(min_value=0, max_value=149))
def test_a_minute_of_skew_in_either_direction_does_no_harm(skew_s: int, age_s: int) -> None:
    hands = Hands()
    source = TokenSource(lambda: KEY, now=hands)
    source.token()
    hands.time += timedelta(seconds=age_s)
    found = claims(source.token())

    theirs = (hands.time + timedelta(seconds=skew_s)).timestamp()

    assert found["nbf"] <= theirs < found["exp"]  # type: ignore[operator]
    assert found["iat"] <= theirs  # type: ignore[operator]


def test_a_token_is_kept_for_half_of_its_life() -> None:
    hands = Hands()
    source = TokenSource(lambda: KEY, now=hands)
    first = source.token()

    hands.time += LIFETIME / 2 - timedelta(seconds=1)
    assert source.token() == first
    hands.time += timedelta(seconds=1)
    assert source.token() != first


def test_a_clock_set_back_gives_a_new_token() -> None:
    hands = Hands()
    source = TokenSource(lambda: KEY, now=hands)
    first = source.token()

    hands.time -= timedelta(hours=1)

    assert source.token() != first


def test_rejecting_a_token_twice_signs_once() -> None:
    source = TokenSource(lambda: KEY, now=Hands())
    old = source.token()
    source.reject(old)
    new = source.token()

    source.reject(old)

    assert source.token() == new != old


def test_of_several_keys_the_next_signs_when_one_is_not_taken() -> None:
    source = TokenSource(Keys(b"new" * 12, b"old" * 12), now=Hands())
    first = source.token()
    source.reject(first)
    second = source.token()
    source.reject(first)

    assert source.token() == second, "who comes late turns nothing"
    assert claims(second, key=b"old" * 12)["sun"] == "slurm"

    source.reject(second)
    assert claims(source.token(), key=b"new" * 12)["sun"] == "slurm"


def test_the_far_future_still_fits_into_slurms_number() -> None:
    found = claims(signed(KEY, user="slurm", now=NOON, lifetime=timedelta(days=36500)))

    assert found["exp"] == 2**31 - 2


@pytest.mark.parametrize("shape", ["short", "pem", "json"])
def test_every_key_that_slurm_takes_is_taken(shape: str) -> None:
    private = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    pem = private.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.NoEncryption(),
    )
    key = {"short": b"tiny", "pem": pem, "json": b'{"kty":"oct","k":"x"}'}[shape]

    token = signed(key, user="slurm", now=NOON, lifetime=timedelta(minutes=5))

    assert token.count(".") == 2
