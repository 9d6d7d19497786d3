"""A cluster of fake machines, a stub Slurm and the real operator: real API server, scheduler and kwok.

What the operator costs is read from outside: CPU and memory from the kernel, requests from the API server's
audit log and from the stub.
"""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import aiohttp

from bench.kubelet import Kubelet
from bench.operated import STUB
from bench.refs import ROOT
from bench.stub_slurm import StubSlurm
from slurm_local.build import builds
from slurm_local.kubernetes import commands, kwok_nodes
from slurm_local.kubernetes.commands import Certificates
from slurm_local.paths import Paths
from slurm_local.progress import PlainProgress, Quiet
from slurm_local.slurm_cluster import wait_established
from slurm_operator import wire
from slurm_operator.api import KINDS
from slurm_operator.api.schema.crd import crd
from slurm_operator.api.shared.meta import ObjectKey, key_of
from slurm_operator.api.slinky.nodeset import NodeSet
from slurm_operator.kube.auth import config
from slurm_operator.kube.client import Client
from slurm_operator.kube.watch.cache import Cache
from slurm_operator.manifests.kinds import POD
from slurm_operator.manifests.objects import Pod
from testing.control_plane import ControlPlane, Plane, free_ports
from testing.processes import Process

NAMESPACE, FLOOR = "bench", "floor"
SET = "gpu"
OPERATOR = "operator"
MACHINES = 40
SLURMD_WATCH_SECONDS = 30.0  # As in our images.
BYTECODE = Path("build").absolute() / "bytecode"
GROUP = "/apis/slinky.slurm.net/v1beta1"


class Call(NamedTuple):
    """One answered request, as the API server wrote it down."""

    user: str
    verb: str
    what: str
    name: str
    code: int
    came_at: float
    done_at: float

    @property
    def is_lasting(self) -> bool:
        return self.verb == "watch" or self.what == "leases"


class Usage(NamedTuple):
    cpu_s: float
    peak_mb: float


class AnyPlane(Protocol):
    """What is asked of a control plane."""

    directory: Path
    url: str
    audit_log: Path
    kubeconfig: Path
    certificates: Certificates

    def kubeconfig_for(self, user: str, *groups: str) -> Path: ...


class Rig:
    """The running parts, and short ways to look at them."""

    def __init__(self, plane: AnyPlane, client: Client, pods: Cache[Pod], stub: StubSlurm) -> None:
        self.plane, self.client, self.pods, self.stub = plane, client, pods, stub
        self.ready: set[ObjectKey] = set()
        self._workers: dict[ObjectKey, Pod] = {}
        self._read_up_to = 0
        pods.subscribe(self._follow)

    def _follow(self, old: Pod | None, new: Pod | None) -> None:
        """Counted as they come and go: looking through thousands all the time would take the CPU away."""
        about = new or old
        if about is None or about.metadata.namespace != NAMESPACE:
            return  # The floor's are not workers: Slurm knows nothing of them.
        key = key_of(about)
        self._workers.pop(key, None)
        self.ready.discard(key)
        if new is not None:
            self._workers[key] = new
            if new.is_ready:
                self.ready.add(key)
        self.stub.follow(old, new)

    def calls(self) -> list[Call]:
        """What was answered since this was last asked."""
        with self.plane.audit_log.open("rb") as log:
            log.seek(self._read_up_to)
            text = log.read()
        whole = text[: text.rfind(b"\n") + 1]
        self._read_up_to += len(whole)
        entries = map(wire.decode_any, whole.splitlines())
        return [_call(entry) for entry in entries if entry["stage"] == "ResponseComplete"]

    async def nodeset(self, name: str = SET) -> dict[str, Any]:
        return await self.client.get(NodeSet.KIND, ObjectKey(NAMESPACE, name))

    async def patch(self, spec: dict[str, Any], name: str = SET) -> None:
        await self.client.merge_patch(NodeSet.KIND, ObjectKey(NAMESPACE, name), {"spec": spec})

    def workers(self) -> list[Pod]:
        return list(self._workers.values())

    async def create(self, path: str, thing: dict[str, Any]) -> None:
        await self.client.request("POST", path, body=thing)

    async def controller(self, name: str, stub: StubSlurm, namespace: str = NAMESPACE) -> None:
        """A Controller that runs elsewhere, as far as the operator is concerned: at the stub."""
        keys = {
            "slurmKeyRef": {"name": "keys", "key": "slurm.key"},
            "jwtKeyRef": {"name": "keys", "key": "jwt.key"},
        }
        spec = {"external": True, "externalConfig": {"host": "c", "port": 6817}, **keys}
        await self.create(
            f"{GROUP}/namespaces/{namespace}/controllers", ours("Controller", name, spec, {STUB: stub.url})
        )

    @asynccontextmanager
    async def operator(self, *namespaces: str) -> AsyncIterator["Operator"]:
        operator = Operator(self.plane)
        operator.start(*namespaces or (NAMESPACE,))
        try:
            yield operator
        finally:
            operator.stop()


class Operator:
    """The operator's process."""

    def __init__(self, plane: AnyPlane) -> None:
        self.tree = ROOT  # Whose code it runs, from the next start on.
        self._kubeconfig = plane.kubeconfig_for(OPERATOR, "system:masters")
        self._log = plane.directory / "operator.log"
        self._process: subprocess.Popen[bytes] | None = None
        self._metrics = 0
        self.started_at = 0.0

    def start(self, *namespaces: str) -> None:
        self._metrics = free_ports().api
        argv = [
            sys.executable,
            "-m",
            "bench.operated",
            str(self._kubeconfig),
            str(self._metrics),
            *namespaces,
        ]
        # As in an image: bytecode is there before the first start.
        bytecode = {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(BYTECODE)}
        code = {"PYTHONPATH": f"{self.tree / 'src'}:{self.tree}"}
        self.started_at = time.time()
        with self._log.open("ab") as out:
            env = {**os.environ, **bytecode, **code}
            self._process = subprocess.Popen(argv, stdout=out, stderr=out, env=env, cwd=self.tree)

    async def metrics(self) -> str:
        """Empty while it does not answer."""
        try:
            async with (
                aiohttp.ClientSession() as session,
                session.get(f"http://127.0.0.1:{self._metrics}/metrics") as answer,
            ):
                return await answer.text()
        except aiohttp.ClientError:
            return ""

    def usage(self) -> Usage:
        process = Path(f"/proc/{self.pid}")
        fields = (process / "stat").read_text().rpartition(")")[2].split()
        peak = next(
            line for line in (process / "status").read_text().splitlines() if line.startswith("VmHWM")
        )
        ticks = int(fields[11]) + int(fields[12])
        return Usage(ticks / os.sysconf("SC_CLK_TCK"), int(peak.split()[1]) / 1024)

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def stop(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(15)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


@asynccontextmanager
async def rig(directory: Path, machines: int = MACHINES) -> AsyncIterator[Rig]:
    """Everything but the operator."""
    kwok = builds.binaries(builds.KWOK, Paths.of(), PlainProgress()) / "kwok"
    with ControlPlane(directory, audit="Metadata").running() as plane:
        processes = [_scheduler(plane), _kwok(plane, kwok)]
        for process in processes:
            process.start()
        try:
            for kind in KINDS:
                plane.caller.call(
                    "POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", crd(kind)
                )
            wait_established(plane.kubectl)
            async with AsyncExitStack() as stack:
                made = await watching(plane, stack, machines)
                _beside(stack, Kubelet(made.client, made.pods, starts_pods=False).run())
                yield made
        finally:
            for process in processes:
                process.stop()


async def watching(plane: AnyPlane, stack: AsyncExitStack, machines: int) -> Rig:
    """A stub Slurm, namespaces, a Controller, and somebody who looks at the pods."""
    client = await stack.enter_async_context(Client(config.find(plane.kubeconfig, "")))
    pods = Cache(client, POD, wire.decoder(Pod), label_selector="app.kubernetes.io/name=slurmd")
    stub = StubSlurm()
    server = await stub.listen()
    stack.callback(server.close)
    rig = Rig(plane, client, pods, stub)
    _beside(stack, pods.run())
    await pods.synced.wait()
    _beside(stack, _take_back(rig))
    for number in range(machines):
        node = kwok_nodes.node(number)
        await rig.create("/api/v1/nodes", node)
    for namespace in (NAMESPACE, FLOOR):
        await add_namespace(rig, namespace)
    await rig.controller("slurm", stub)
    return rig


def _beside(stack: AsyncExitStack, work: Coroutine[Any, Any, None]) -> None:
    """Goes on until the stack ends, and is over before what it uses is."""
    task = asyncio.create_task(work)

    async def end() -> None:
        task.cancel()
        await asyncio.wait([task])

    stack.push_async_callback(end)


async def _take_back(rig: Rig) -> None:
    """Whose record has gone and who stayed: on a machine that stands still for seconds that happens."""
    while True:
        await asyncio.sleep(SLURMD_WATCH_SECONDS)
        rig.stub.take_back(rig.workers())


async def add_namespace(rig: Rig, name: str) -> None:
    await rig.create("/api/v1/namespaces", {"metadata": {"name": name}})
    keys = {"slurm.key": "a" * 44, "jwt.key": "b" * 44}
    secret = {"metadata": {"name": "keys"}, "data": keys}
    await rig.create(f"/api/v1/namespaces/{name}/secrets", secret)


def ours(kind: str, name: str, spec: dict[str, Any], notes: dict[str, str] | None = None) -> dict[str, Any]:
    metadata = {"name": name, "annotations": notes or {}}
    return {"apiVersion": "slinky.slurm.net/v1beta1", "kind": kind, "metadata": metadata, "spec": spec}


def nodeset(replicas: int, name: str = SET, controller: str = "slurm") -> dict[str, Any]:
    """Workers for fake machines, many on each: thousands of Nodes would only be the scheduler's benchmark."""
    spec = {
        "controllerRef": {"name": controller},
        "replicas": replicas,
        "oversubscribeNode": True,
        "slurmd": {
            "image": "slurmd:1",
            "resources": {
                "limits": {"cpu": "2", "memory": "24103Mi"},
                "requests": {"cpu": "0", "memory": "0"},
            },
        },
        "template": {"spec": {"tolerations": [{"operator": "Exists"}]}},
        "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "25%"}},
    }
    return ours("NodeSet", name, spec)


async def until(condition: Callable[[], bool], what: str, seconds: float = 600, pause: float = 0.01) -> float:
    """Waits, and gives the time at which it was so."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError(f"waited {seconds:.0f} s for {what}")
        await asyncio.sleep(pause)
    return time.time()


def _scheduler(plane: Plane) -> Process:
    programs = builds.binaries(builds.KUBERNETES, Paths.of(), Quiet())
    argv = [*commands.scheduler(programs / "kube-scheduler", plane.kubeconfig), "--secure-port=0"]
    argv += ["--kube-api-qps=2000", "--kube-api-burst=4000"]
    return Process("kube-scheduler", argv, plane.directory / "kube-scheduler.log")


def _kwok(plane: Plane, program: Path) -> Process:
    stages = plane.directory / "stages.yaml"
    stages.write_text(kwok_nodes.stages(ends_pods=False))
    return Process(
        "kwok", kwok_nodes.command(program, plane.kubeconfig, stages), plane.directory / "kwok.log"
    )


def _call(entry: dict[str, Any]) -> Call:
    about = entry.get("objectRef", {})
    what = "/".join(part for part in (about.get("resource", "?"), about.get("subresource", "")) if part)
    return Call(
        user=entry["user"]["username"],
        verb=entry["verb"],
        what=what,
        name=about.get("name", ""),
        code=entry.get("responseStatus", {}).get("code", 0),
        came_at=_moment(entry["requestReceivedTimestamp"]),
        done_at=_moment(entry["stageTimestamp"]),
    )


def _moment(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()
