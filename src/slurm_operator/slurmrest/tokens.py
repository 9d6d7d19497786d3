"""Slurm's JSON Web Tokens, signed in the process from the shared key."""

import uuid
import warnings
from collections.abc import Callable
from datetime import datetime, timedelta

import jwt

# Clocks of two machines may differ. A token is valid from a little before it was made, and replaced while
# more than this is left of it: slurmctld accepts it with its clock this far off in either direction.
SKEW = timedelta(seconds=90)

LIFETIME = timedelta(minutes=5)

# Slurm keeps `exp` as a signed 32-bit number.
LATEST_EXPIRY = 2**31 - 2

KeyProvider = Callable[[], bytes]


def signed(key: bytes, *, user: str, now: datetime, lifetime: timedelta) -> str:
    """A token that makes its bearer `user` until `now + lifetime`."""
    since = int((now - SKEW).timestamp())
    claims = {
        "sun": user,
        "iss": "slurm-operator",
        "iat": since,
        "nbf": since,
        "exp": min(int((now + lifetime).timestamp()), LATEST_EXPIRY),
        "jti": str(uuid.uuid4()),
    }
    with warnings.catch_warnings():
        # A short key is its owner's choice; Slurm takes it, and there is nobody at this point to warn.
        warnings.simplefilter("ignore", jwt.warnings.InsecureKeyLengthWarning)
        return jwt.encode(claims, key, algorithm="HS256")


class TokenSource:
    """Hands out a token with at least half of its life left. The key is asked for at each signing."""

    def __init__(
        self,
        key: KeyProvider,
        *,
        now: Callable[[], datetime],
        user: str = "slurm",
        lifetime: timedelta = LIFETIME,
    ) -> None:
        self._key = key
        self._now = now
        self._user = user
        self._lifetime = lifetime
        self._token = ""
        self._signed_at: datetime | None = None

    def token(self) -> str:
        now = self._now()
        if self._signed_at is None or not timedelta(0) <= now - self._signed_at < self._lifetime / 2:
            self._token = signed(self._key(), user=self._user, now=now, lifetime=self._lifetime)
            self._signed_at = now
        return self._token

    def reject(self, token: str) -> None:
        """`token` was not accepted: the next one is signed anew, unless that has happened already."""
        if token == self._token:
            self._signed_at = None
