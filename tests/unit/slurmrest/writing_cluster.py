"""A Slurm cluster whose writer is at work, in front of a fake slurmrestd."""

import asyncio

from slurm_operator.slurm.snapshot import Snapshot
from slurm_operator.slurm.writes import SlurmWrite, Verdict, WriteResult
from slurm_operator.slurmsync.connection import SlurmCluster


def verdicts(result: WriteResult) -> dict[str, Verdict]:
    return {subject: found.verdict for subject, found in result.answers.items()}


class Cluster:
    """A cluster whose writer runs; the poller is left out unless a test wants it."""

    def __init__(self, cluster: SlurmCluster) -> None:
        self.cluster = cluster
        self.leads_for = 1000
        self.task = asyncio.create_task(cluster.writer.run())

    def may_write(self) -> bool:
        """Says yes so many times."""
        self.leads_for -= 1
        return self.leads_for >= 0

    async def write(self, *wanted: SlurmWrite) -> list[dict[str, Verdict]]:
        """What becomes of these when they are asked for in the same moment."""
        return [verdicts(result) for result in await asyncio.gather(*map(self.cluster.write, wanted))]

    async def poll(self) -> Snapshot:
        await self.cluster.poller.poll()
        facts = self.cluster.latest()
        assert isinstance(facts, Snapshot)
        return facts
