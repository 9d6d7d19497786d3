"""A pass waits for its own writes to come back, for a while, however many they were."""

import asyncio
from typing import Any

from slurm_operator import wire
from slurm_operator.api.shared.meta import ObjectKey
from slurm_operator.kube.auth.access import Access
from slurm_operator.kube.client import Client
from slurm_operator.kube.watch.cache import Cache
from slurm_operator.manifests.kinds import POD
from slurm_operator.manifests.objects import Pod
from slurm_operator.runtime.act.perform import Written, wait_until_seen

VIRTUAL_TIME = True


def writes(count: int) -> list[Written]:
    cache: Cache[Any] = Cache(Client(Access(server="http://nowhere")), POD, wire.decoder(Pod))
    return [Written(cache, ObjectKey("ns", f"gpu-{number}"), str(number)) for number in range(count)]


async def test_a_watch_that_is_away_holds_up_a_thousand_writes_no_longer_than_one() -> None:
    clock = asyncio.get_running_loop().time
    began = clock()

    await wait_until_seen(writes(1000), 5)

    assert 5 <= clock() - began < 6
