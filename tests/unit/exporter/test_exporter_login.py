"""Where tokens come from, and what is said when there are none."""

from pathlib import Path

import jwt
import pytest

from slurm_operator.exporter.login import (
    NoToken,
    ScontrolToken,
    SecretKey,
    SecretTokens,
    TokenFile,
    key_file,
)
from slurm_operator.slurmrest.errors import SlurmUnauthorised
from testing.virtual_time import FakeClock

# The clock of these tests is not that of the machine.
FIRST, SECOND = b"1" * 32, b"2" * 32
ANY_TIME = {"verify_exp": False, "verify_nbf": False, "verify_iat": False}


def test_a_token_file_is_read_again_for_each_call(tmp_path: Path):
    path = tmp_path / "token"
    tokens = TokenFile(path)
    with pytest.raises(SlurmUnauthorised, match="cannot read the token"):
        tokens.token()
    path.write_text("SLURM_JWT=first\n")
    assert tokens.token() == "first"
    path.write_text("second")
    assert tokens.token() == "second"


def test_a_missing_key_is_said(tmp_path: Path):
    with pytest.raises(SlurmUnauthorised, match="cannot read the key"):
        key_file(tmp_path / "key")()
    (tmp_path / "key").write_bytes(b"k")
    assert key_file(tmp_path / "key")() == b"k"
    assert NoToken().token() == ""


def scontrol(folder: Path, says: str) -> str:
    """A program that counts how often it was asked."""
    path = folder / "scontrol"
    path.write_text(f'#!/bin/sh\necho "$@" >> {folder}/asked\nn=$(wc -l < {folder}/asked)\necho "{says}"\n')
    path.chmod(0o755)
    return str(path)


async def test_scontrol_makes_a_token_when_it_is_time(tmp_path: Path, clock: FakeClock):
    clock.advance(1000)
    tokens = ScontrolToken(scontrol(tmp_path, "SLURM_JWT=token-$n"), "root", 1800, clock)
    with pytest.raises(SlurmUnauthorised, match="no token yet"):
        tokens.token()

    await tokens.renew()
    await tokens.renew()
    assert tokens.token() == "token-1"
    clock.advance(1780)
    await tokens.renew()
    assert tokens.token() == "token-2"
    tokens.reject("token-2")
    await tokens.renew()

    assert tokens.token() == "token-3"
    assert (tmp_path / "asked").read_text().splitlines() == ["token username=root lifespan=1800"] * 3


async def test_an_scontrol_that_says_something_else_is_no_token(tmp_path: Path, clock: FakeClock):
    tokens = ScontrolToken(scontrol(tmp_path, "no"), "root", 1800, clock)
    with pytest.raises(SlurmUnauthorised, match="something else"):
        await tokens.renew()
    with pytest.raises(SlurmUnauthorised, match="made no token"):
        await ScontrolToken(str(tmp_path / "none"), "root", 1800, clock).renew()


async def test_a_key_that_was_made_again_is_read_when_a_token_is_refused(clock: FakeClock):
    there, asked = [b""], []

    async def read() -> bytes:
        asked.append(there[0])
        return there[0]

    key = SecretKey(read)
    tokens = SecretTokens(key, now=clock.now, user="root")
    await key.renew()
    with pytest.raises(SlurmUnauthorised, match="no key"):
        tokens.token()

    there[0] = FIRST
    await key.renew()
    first = tokens.token()
    await key.renew()
    assert asked == [b"", FIRST], "a key that is accepted is not read again"

    there[0] = SECOND
    tokens.reject(first)
    await key.renew()
    assert jwt.decode(tokens.token(), SECOND, algorithms=["HS256"], options=ANY_TIME)["sun"] == "root"
    assert key() == SECOND

    there[0] = b""
    tokens.reject(tokens.token())
    await key.renew()
    assert key() == SECOND, "while the Secret cannot be read, the last key stays"
    await key.renew()
    assert asked[-2:] == [b"", b""], "and it is asked for again"
