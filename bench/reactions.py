"""From a wish to its effect, with a handful of workers; each beside the same call by a bare client."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable

from bench.rig import FLOOR, NAMESPACE, SET, Rig, until
from bench.rows import Row
from bench.scaling import pods_of, told
from slurm_operator.api.shared import names
from slurm_operator.api.shared.meta import ObjectKey
from slurm_operator.manifests.kinds import POD
from slurm_operator.manifests.meta import Manifest


async def rows(there: Rig) -> AsyncIterator[Row]:
    """Leaves the NodeSet as it was: with no workers."""
    await _to(there, 2)
    bare = await _bare_create(there)
    took = await _timed(there, lambda: there.patch({"replicas": 3}), lambda: len(there.workers()) >= 3)
    yield _row("replicas +1 to the pod created", took, bare, "a bare POST")
    yield Row("protected when it is first seen", float(all(_is_protected(there))), "of 1")
    await _settled(there, 3)

    bare = await _bare_delete(there)
    took = await _timed(there, lambda: there.patch({"replicas": 2}), lambda: _live(there) <= 2)
    yield _row("replicas -1 to an idle pod deleting", took, bare, "a bare DELETE")
    await _settled(there, 2)

    cordon = {"metadata": {"annotations": {names.POD_CORDON: "true"}}}
    took = await _timed(there, lambda: _patch_pod(there, cordon), lambda: _drains(there) == 1)
    yield Row("pod-cordon to DRAIN in Slurm", took, "s")
    await asyncio.sleep(3)
    yield Row("and it stays", float(_drains(there)), "of 1")
    await _patch_pod(there, {"metadata": {"annotations": {names.POD_CORDON: None}}})
    await until(lambda: _drains(there) == 0, "the drain lifted")

    for count in (8, 2):
        pods_s, later_s = await _to(there, count)
        yield Row(f"to {count} workers: pods", pods_s, "s")
        yield Row(f"to {count} workers: Slurm and status agree", later_s, "s later")
    await _to(there, 0)


def _row(name: str, took: float, bare: float, to: str) -> Row:
    return Row(name, took, "s", to, took / bare)


async def _to(there: Rig, count: int) -> tuple[float, float]:
    """Seconds until the pods are so, and from then on until Slurm and the status are."""
    began = time.time()
    await there.patch({"replicas": count})
    ready = await until(lambda: len(there.ready) == count == len(there.workers()), f"{count} workers")
    return ready - began, await _settled(there, count) - ready


async def _settled(there: Rig, count: int) -> float:
    await until(lambda: len(there.ready) == count == len(there.workers()), f"{count} workers")
    return await told(there, lambda status: _agrees(there, status, count))


def _agrees(there: Rig, status: dict[str, int], count: int) -> bool:
    counted = (status.get(key, 0) for key in ("replicas", "readyReplicas", "registeredReplicas"))
    return set(counted) == {count} and len(_ours(there)) == count


def _ours(there: Rig) -> dict[str, list[str]]:
    return {name: words for name, words in there.stub.states().items() if name.startswith(f"{SET}-")}


def _drains(there: Rig) -> int:
    return sum("DRAIN" in words for words in _ours(there).values())


def _live(there: Rig) -> int:
    return sum(not pod.metadata.is_terminating for pod in there.workers())


def _is_protected(there: Rig) -> list[bool]:
    return [pod.metadata.labels.get(names.LABEL_POD_PROTECT) == "true" for pod in there.workers()]


async def _timed(there: Rig, wish: Callable[[], Awaitable[None]], effect: Callable[[], bool]) -> float:
    began = time.time()
    await wish()
    return await until(effect, "the effect", pause=0.002) - began


async def _patch_pod(there: Rig, patch: Manifest) -> None:
    await there.client.merge_patch(POD, ObjectKey(NAMESPACE, f"{SET}-0"), patch)


async def _bare_create(there: Rig) -> float:
    [pod] = await pods_of(there, 1)
    pod["metadata"]["name"] = "bare"
    began = time.time()
    await there.create(f"/api/v1/namespaces/{FLOOR}/pods", pod)
    return time.time() - began


async def _bare_delete(there: Rig) -> float:
    began = time.time()
    await there.client.delete(POD, ObjectKey(FLOOR, "bare"), grace_seconds=30)
    return time.time() - began
