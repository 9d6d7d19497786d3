"""A client for one Slurm cluster's slurmrestd."""

from collections.abc import Callable, Sequence
from datetime import datetime

from slurm_operator.slurmrest.database import Database
from slurm_operator.slurmrest.incoming import MAX_LIST_BYTES
from slurm_operator.slurmrest.reader import Reader
from slurm_operator.slurmrest.sender import Sender
from slurm_operator.slurmrest.session import Session
from slurm_operator.slurmrest.tokens import KeyProvider, ReadyToken, TokenSource
from slurm_operator.slurmrest.transport import DEADLINE_SECONDS, MAX_ANSWER_BYTES, MAX_SHORT_BYTES, Transport
from slurm_operator.slurmrest.versions import Capability


class SlurmRest:
    """`read` looks at slurmctld, `send` changes it, `database` is slurmdbd.

    `key` signs our own tokens, unless it is a token already.
    """

    def __init__(
        self,
        urls: Sequence[str],
        key: KeyProvider | ReadyToken,
        *,
        now: Callable[[], datetime],
        user: str = "slurm",
        deadline_s: float = DEADLINE_SECONDS,
        max_answer_bytes: int = MAX_ANSWER_BYTES,
        max_list_bytes: int = MAX_LIST_BYTES,
        authorities: str = "",
        transport: Transport | None = None,
    ) -> None:
        transport = transport or Transport(
            urls,
            deadline_s=deadline_s,
            max_answer_bytes=max_answer_bytes,
            max_short_bytes=MAX_SHORT_BYTES,
            authorities=authorities,
        )
        tokens = key if isinstance(key, ReadyToken) else TokenSource(key, now=now, user=user)
        self._session = Session(transport, tokens, max_list_bytes=max_list_bytes)
        self.read = Reader(self._session)
        self.send = Sender(self._session)
        self.database = Database(self._session)

    @property
    def url(self) -> str:
        """The slurmrestd in use."""
        return self._session.transport.url

    @property
    def version(self) -> str:
        """The API version in use; empty before the first call."""
        return self._session.version

    def can(self, capability: Capability) -> bool:
        """Whether the API version in use has it; before the first call nobody knows otherwise."""
        return not self.version or capability.is_in(self.version)

    def next_url(self) -> None:
        """Turn to another slurmrestd, which may be of another release."""
        self._session.transport.next_url()
        self._session.forget_version()

    def use(self, urls: Sequence[str]) -> None:
        """Ask these slurmrestds from now on; the one in use stays so if it is among them."""
        before = self.url
        self._session.transport.use(urls)
        if self.url != before:
            self._session.forget_version()
