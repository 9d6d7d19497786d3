"""What the tests of slurmrestd share: clients, clusters, and plain HTTP for replies as they are."""

import asyncio
import contextlib
import json
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime
from typing import Any, NamedTuple

from slurm_operator.slurm.snapshot import Snapshot
from slurm_operator.slurmrest.client import SlurmRest
from slurm_operator.slurmsync.connection import SlurmCluster
from testing.daemons import SlurmDaemons

OURS = "slurm-operator: ScaleIn: leaving the NodeSet"


class Reply(NamedTuple):
    status: int
    body: Any


def raw(slurm: SlurmDaemons, method: str, path: str, body: Any = None, token: str | None = None) -> Reply:
    """One plain exchange; the body is JSON, else text, else None. An empty token sends none."""
    headers = {"Content-Type": "application/json"}
    if token != "":
        headers["X-SLURM-USER-TOKEN"] = token or slurm.token()
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(slurm.rest_url + path, data, headers, method=method)
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return Reply(answer.status, _content(answer.read()))
    except urllib.error.HTTPError as error:
        with error:
            return Reply(error.code, _content(error.read()))


def _content(data: bytes) -> Any:
    try:
        return json.loads(data) if data else None
    except ValueError:
        return data.decode()


def client_of(slurm: SlurmDaemons, **options: Any) -> SlurmRest:
    options = {"now": lambda: datetime.now(UTC), "key": lambda: slurm.jwt_key} | options
    return SlurmRest([slurm.rest_url], **options)


@contextlib.asynccontextmanager
async def cluster_of(
    slurm: SlurmDaemons, may_write: Callable[[], bool] = lambda: True, **options: Any
) -> AsyncIterator[SlurmCluster]:
    """A cluster as the operator has it, with its poller and writer at work."""
    cluster = SlurmCluster("test", [slurm.rest_url], lambda: slurm.jwt_key, may_write=may_write, **options)
    task = asyncio.create_task(cluster.run())
    try:
        yield cluster
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def until(condition: Callable[[], bool], what: str, deadline_s: float = 40) -> None:
    """As `wait_for`, with the loop left free."""
    async with asyncio.timeout(deadline_s):
        while not condition():  # noqa: ASYNC110 - what is waited for happens in other processes
            await asyncio.sleep(0.05)
    assert condition(), what


def seen(cluster: SlurmCluster) -> Snapshot | None:
    facts = cluster.latest()
    return facts if isinstance(facts, Snapshot) else None


async def running(slurm: SlurmDaemons, *options: str, script: str = "sleep 600") -> int:
    """A job that runs."""
    job = slurm.submit(script, *options)
    await until(lambda: slurm.job_state(job) == "RUNNING", f"job {job} to run")
    return job


def shown(slurm: SlurmDaemons, kind: str, name: str) -> dict[str, str]:
    """What `scontrol show` says, by key. Values with spaces lose all but their first word."""
    text = slurm.run("scontrol", "--oneliner", "show", kind, name)
    return dict(word.split("=", 1) for word in text.split() if "=" in word)


def reason(slurm: SlurmDaemons, name: str) -> str:
    return slurm.run("sinfo", "--noheader", "--nodes", name, "--format=%E").strip()
