"""How the exporter logs in to slurmrestd, from what it is given."""

import asyncio
import subprocess
from collections.abc import Awaitable, Callable
from datetime import datetime
from pathlib import Path
from typing import Final

from slurm_operator.clock import Clock
from slurm_operator.slurmrest.errors import SlurmUnauthorised
from slurm_operator.slurmrest.tokens import ReadyToken, TokenSource

# A token that is nearly over is replaced before it is.
_LEEWAY_SECONDS: Final = 30.0
_SCONTROL_SECONDS: Final = 20.0


class NoToken:
    """For a slurmrestd, or a proxy before it, that asks for none."""

    def token(self) -> str:
        return ""

    def reject(self, token: str) -> None:
        pass


class TokenFile:
    """A token that somebody else renews, read again for each call: the file of a mounted Secret changes."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def token(self) -> str:
        return ReadyToken(_text(self._path)).token()

    def reject(self, token: str) -> None:
        pass


class SecretKey:
    """The key in a Secret: read until there is one, and again when a token that it signed was refused.

    Whoever makes the key anew restarts slurmctld with it; until then the one that was read is the right one.
    """

    def __init__(self, read: Callable[[], Awaitable[bytes]]) -> None:
        self._read = read
        self._key = b""
        self._is_doubted = True

    def __call__(self) -> bytes:
        return self._key

    def doubt(self) -> None:
        self._is_doubted = True

    async def renew(self) -> None:
        """Away from the event of a refusal. A key that was good stays where there is none to be read."""
        if self._is_doubted:
            found = await self._read()
            self._key = found or self._key
            self._is_doubted = not found


class SecretTokens(TokenSource):
    """Tokens that such a key signs."""

    def __init__(self, key: SecretKey, *, now: Callable[[], datetime], user: str) -> None:
        super().__init__(key, now=now, user=user)
        self._secret_key = key

    def reject(self, token: str) -> None:
        super().reject(token)
        self._secret_key.doubt()


def key_file(path: Path) -> Callable[[], bytes]:
    """Gives the key that signs tokens, as it stands in the file now."""

    def read() -> bytes:
        try:
            return path.read_bytes()
        except OSError as error:
            raise SlurmUnauthorised("log in", f"cannot read the key: {error}") from error

    return read


class ScontrolToken:
    """Tokens that `scontrol token` makes on this machine, kept for a while."""

    def __init__(self, scontrol: str, user: str, seconds: float, clock: Clock) -> None:
        self._command = [scontrol, "token", f"username={user}", f"lifespan={int(seconds)}"]
        self._seconds = seconds
        self._clock = clock
        self._token = ""
        self._made_at = 0.0

    def token(self) -> str:
        """The one that is kept. `renew` makes it, away from the event loop."""
        if not self._token:
            raise SlurmUnauthorised("log in", "scontrol has made no token yet")
        return self._token

    def reject(self, token: str) -> None:
        if token == self._token:
            self._made_at = 0.0

    async def renew(self) -> None:
        """Make a new one when it is time. Raises SlurmUnauthorised."""
        age = self._clock.monotonic() - self._made_at
        if not self._token or not self._made_at or age > self._seconds - _LEEWAY_SECONDS:
            self._token = await asyncio.to_thread(self._made)
            self._made_at = self._clock.monotonic()

    def _made(self) -> str:
        try:
            done = subprocess.run(
                self._command, capture_output=True, text=True, timeout=_SCONTROL_SECONDS, check=True
            )
        except (OSError, subprocess.SubprocessError) as error:
            raise SlurmUnauthorised("log in", f"scontrol made no token: {error}") from error
        if not done.stdout.startswith("SLURM_JWT="):
            raise SlurmUnauthorised("log in", "scontrol printed something else than SLURM_JWT=…")
        return ReadyToken(done.stdout).token()


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise SlurmUnauthorised("log in", f"cannot read the token: {error}") from error
