"""Which kinds the API server has: some are optional (ServiceMonitor), and rights or CRDs may come later."""

from slurm_operator.api.kind import Kind
from slurm_operator.kube.client import Client


class Discovery:
    """Answers from memory; `forget` makes it ask again."""

    def __init__(self, client: Client) -> None:
        raise NotImplementedError

    async def versions(self, group: str) -> tuple[str, ...]:
        """The versions of a group, the preferred one first; none when the group is unknown."""
        raise NotImplementedError

    async def serves(self, kind: Kind) -> bool:
        """Whether the server has this kind in this version."""
        raise NotImplementedError

    def forget(self) -> None:
        raise NotImplementedError
