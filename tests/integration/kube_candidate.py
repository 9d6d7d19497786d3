"""A manager in one page: takes the lease, then writes as fast as it may. Run as a program by tests.

Arguments: kubeconfig, namespace, identity. Prints "leading" when it does, and ends when it no longer does.
"""

import asyncio
import sys
from pathlib import Path

from slurm_operator.api.shared.meta import ObjectKey
from slurm_operator.kube.auth.config import find
from slurm_operator.kube.client import Client
from slurm_operator.kube.errors import KubeError
from slurm_operator.kube.lease import Elector
from slurm_operator.manifests.kinds import CONFIG_MAP


async def main(kubeconfig: str, namespace: str, identity: str) -> None:
    async with Client(find(Path(kubeconfig)), may_write=lambda: False) as client:
        elector = Elector(
            client,
            ObjectKey(namespace, "candidate"),
            identity,
            duration_seconds=4,
            renew_deadline_seconds=2.5,
            retry_seconds=0.5,
        )
        client.may_write = lambda: elector.is_leader
        await elector.acquire()
        print("leading", flush=True)
        writers = [asyncio.create_task(write(client, namespace, identity, number)) for number in range(4)]
        await elector.hold()
        for writer in writers:
            writer.cancel()


async def write(client: Client, namespace: str, identity: str, number: int) -> None:
    count = 0
    while True:
        count += 1
        manifest = {
            "metadata": {"namespace": namespace, "name": f"w{number}"},
            "data": {identity: str(count)},
        }
        try:
            await client.apply(CONFIG_MAP, manifest)
        except KubeError:
            await asyncio.sleep(0.05)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
