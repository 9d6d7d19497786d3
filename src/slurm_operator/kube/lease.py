"""Leader election: one of several managers acts, by a Lease, on a connection of its own."""

from collections.abc import Callable

from slurm_operator.api.meta import ObjectKey
from slurm_operator.kube.client import Client


class Elector:
    """Takes and holds a Lease. `is_leader` is what `may_write` should ask."""

    def __init__(
        self,
        client: Client,
        key: ObjectKey,
        identity: str,
        *,
        duration_seconds: int = 15,
        renew_deadline_seconds: float = 10.0,
        retry_seconds: float = 2.0,
        clock: Callable[[], float] | None = None,
    ) -> None:
        raise NotImplementedError

    @property
    def is_leader(self) -> bool:
        """True only while the lease cannot have run out, by a clock that goes on while we are stopped."""
        raise NotImplementedError

    @property
    def holder(self) -> str:
        """Who holds the lease as far as we have seen; empty when nobody does."""
        raise NotImplementedError

    async def acquire(self) -> None:
        """Returns when the lease is ours."""
        raise NotImplementedError

    async def hold(self) -> None:
        """Renew; returns when the lease is lost."""
        raise NotImplementedError

    async def release(self) -> None:
        """Give it back, so that another takes over at once."""
        raise NotImplementedError
