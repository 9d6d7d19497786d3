"""Deletes that a real API server carries out after the client gave up: none of them meets a worker that stays."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Iterator

import pytest

from slurm_operator import wire
from slurm_operator.api.shared import names
from slurm_operator.api.shared.meta import ObjectKey
from slurm_operator.kube import errors
from slurm_operator.kube.auth.config import find
from slurm_operator.kube.client import Client
from slurm_operator.manifests.kinds import POD
from slurm_operator.manifests.meta import Manifest
from slurm_operator.manifests.objects import Pod
from slurm_operator.plan.actions import PatchObject
from slurm_operator.reconcilers.nodeset.annotations import leaves, stays
from slurm_operator.reconcilers.nodeset.workers import Worker
from slurm_operator.safety.gate import Drained, version_to_delete
from testing.control_plane import ControlPlane, Plane
from testing.workers import NOW, nodeset, slurm

WORKERS = 24
ROUNDS = 3
GIVES_UP_SECONDS = 2.0
LATE_SECONDS = 6.0  # By then a server that goes on has done what it was ever going to do.


@pytest.fixture
def stoppable(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plane]:
    """A server of its own: the others must not stand still."""
    with ControlPlane(tmp_path_factory.mktemp("stoppable")).running() as plane:
        yield plane


@pytest.fixture
async def client(stoppable: Plane) -> AsyncIterator[Client]:
    async with Client(find(stoppable.kubeconfig)) as client:
        yield client


def worker(name: str) -> Manifest:
    """On a machine, so that it ends after its grace period, as real ones do."""
    containers = [{"name": "slurmd", "image": "example.com/none"}]
    return {
        "metadata": {"namespace": "default", "name": name},
        "spec": {"nodeName": "m1", "containers": containers},
    }


def member(pod: Manifest) -> Worker:
    return Worker.of(wire.convert(pod, Pod), nodeset(), None, slurm())


async def patched(client: Client, actions: list[PatchObject]) -> Manifest:
    [action] = actions
    return await client.json_patch(POD, ObjectKey(*action.key), action.operations, uid=action.uid)


async def delete(client: Client, pod: Manifest) -> None:
    """As the performer sends it."""
    typed = wire.convert(pod, Pod)
    proof = Drained(pod_uid=typed.metadata.uid, slurm_node=typed.metadata.name, asked_at=NOW)
    version = version_to_delete(proof, typed)
    assert version, "it is marked"
    key = ObjectKey("default", typed.metadata.name)
    await client.delete(
        POD,
        key,
        uid=proof.pod_uid,
        resource_version=version,
        grace_seconds=30,
        deadline_seconds=GIVES_UP_SECONDS,
    )


async def marked_worker(client: Client, name: str) -> Manifest:
    return await patched(client, leaves(member(await client.create(POD, worker(name)))))


@pytest.mark.parametrize("is_for_good", [False, True])
async def test_a_delete_that_was_sent_before_is_void_once_the_mark_is_gone(
    client: Client, is_for_good: bool
) -> None:
    made = await client.create(POD, worker("one"))
    marked = await patched(client, leaves(member(made), for_good=is_for_good))
    await patched(client, stays(member(marked)))

    with pytest.raises(errors.Conflict):
        await delete(client, marked)

    live = await client.get(POD, ObjectKey("default", "one"))
    assert "deletionTimestamp" not in live["metadata"]
    assert names.POD_LEAVING not in live["metadata"].get("annotations", {})


async def test_a_stopped_server_deletes_nobody_who_stays_when_it_goes_on(
    client: Client, stoppable: Plane
) -> None:
    """What it had taken in before, it may carry out when it goes on, though nobody waits for that any more."""
    deleted: list[str] = []
    for number in range(ROUNDS):
        deleted += await one_round(client, stoppable, f"round-{number}")

    assert deleted == []


async def one_round(client: Client, stoppable: Plane, prefix: str) -> list[str]:
    """Workers that were deleted after the write was answered by which they stay."""
    marked = [await marked_worker(client, f"{prefix}-{number}") for number in range(WORKERS)]
    os.kill(stoppable.apiserver.pid, signal.SIGSTOP)
    try:
        answers = await asyncio.gather(*(delete(client, pod) for pod in marked), return_exceptions=True)
    finally:
        os.kill(stoppable.apiserver.pid, signal.SIGCONT)
    assert {type(answer) for answer in answers} == {errors.Timeout}, "the client has given up on all of them"

    kept = await asyncio.gather(*(stays_after_all(client, pod) for pod in marked))
    await asyncio.sleep(LATE_SECONDS)

    names_kept = [name for name in kept if name is not None]
    live = [await client.get(POD, ObjectKey("default", name)) for name in names_kept]
    return [pod["metadata"]["name"] for pod in live if "deletionTimestamp" in pod["metadata"]]


async def stays_after_all(client: Client, pod: Manifest) -> str | None:
    """Its name, if no delete was carried out before; then it may be resumed."""
    written = await patched(client, stays(member(pod)))
    is_ending = "deletionTimestamp" in written["metadata"]
    return None if is_ending else str(written["metadata"]["name"])
