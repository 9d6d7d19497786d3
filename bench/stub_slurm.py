"""A slurmctld and its slurmrestd in memory, for benchmarks only: kwok's pods have no slurmd of their own.

Every reply is a recorded one of the real slurmrestd with other values in it; a test holds them against the
recordings. It behaves as slurmctld was seen to: a registration keeps the record of its name, drains and
resumes name many nodes at once, an unknown name in the list refuses all of it, a busy node is not deleted.
"""

import asyncio
import copy
import json
import time
from collections.abc import Callable, Iterable
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from slurm_operator import wire
from slurm_operator.api.shared import names
from slurm_operator.manifests.objects import Pod
from slurm_operator.safety.gate import SLURMD

RECORDED = Path(__file__).parents[1] / "tests" / "slurm" / "recorded"
VERSION = "v0.0.45"

Answer = tuple[int, bytes]


@cache
def recorded(name: str) -> dict[str, Any]:
    body: dict[str, Any] = json.loads((RECORDED / f"{name}.json").read_text())["body"]
    return body


class StubSlurm:
    """One Slurm cluster. `answer` is all of it; `serve` is the same over HTTP."""

    def __init__(self, now: Callable[[], float] = time.time) -> None:
        self._now = now
        self._nodes: dict[str, dict[str, Any]] = {}
        self._encoded: dict[str, bytes] = {}
        self._jobs: dict[int, dict[str, Any]] = {}
        self._pods: dict[str, object] = {}  # Slurm node to the slurmd that registered it.
        self._nodes_changed = self._jobs_changed = self._started = int(now())
        self.requests: list[str] = []  # What was asked, without versions and query.
        self.hangs = False
        self.url = ""

    # ---- What slurmds and people do

    def register(self, name: str, address: str, feature: str, started_at: datetime | None = None) -> None:
        """A slurmd introduces itself; the record of a name stays, with its drain."""
        node = self._nodes.get(name)
        if node is None:
            node = copy.deepcopy(next(n for n in recorded("nodes")["nodes"] if "IDLE" in n["state"]))
            node |= {
                "name": name,
                "features": [feature],
                "active_features": [feature],
                "partitions": [feature],
            }
            node |= {"state": ["IDLE", "DYNAMIC_NORM"], "reason": "", "comment": ""}
        node |= {"address": address, "hostname": name}
        started = max(self._now(), started_at.timestamp() if started_at is not None else 0.0)
        node["slurmd_start_time"] = _number(int(started))
        self._put(node)

    def follow(self, old: Pod | None, new: Pod | None) -> None:
        """What becomes of a worker's pod. A slurmd never signs off, so a deleted pod changes nothing."""
        if new is None or not new.is_ready or new.metadata.is_terminating:
            return
        labels = new.metadata.labels
        name, feature = labels.get(names.LABEL_POD_HOSTNAME), labels.get(names.APP_INSTANCE, "")
        running = next((s.state.running for s in new.status.container_statuses if s.name == SLURMD), None)
        slurmd = (new.metadata.uid, new.status.pod_ip, running and running.started_at)
        if name and running and self._pods.get(name) != slurmd:
            self._pods[name] = slurmd
            self.register(name, new.status.pod_ip, feature, running.started_at)

    def take_back(self, pods: Iterable[Pod]) -> None:
        """A worker that finds itself forgotten registers again, as our images do every so often."""
        self._pods = {name: slurmd for name, slurmd in self._pods.items() if name in self._nodes}
        for pod in pods:
            self.follow(None, pod)

    def start_job(self, job_id: int, name: str) -> None:
        job = copy.deepcopy(next(j for j in recorded("jobs")["jobs"] if j["job_state"] == ["RUNNING"]))
        job |= {"job_id": job_id, "nodes": name, "required_nodes": "", "batch_host": name}
        self._jobs[job_id] = job
        self._set_state(name, {"MIXED"}, {"IDLE"})
        self._jobs_changed = int(self._now())

    def end_job(self, job_id: int) -> None:
        job = self._jobs.pop(job_id)
        self._set_state(job["nodes"], {"IDLE"}, {"MIXED"})
        self._jobs_changed = int(self._now())

    def states(self) -> dict[str, list[str]]:
        return {name: node["state"] for name, node in self._nodes.items()}

    # ---- What slurmrestd answers

    def answer(self, method: str, target: str, body: bytes = b"") -> Answer:
        path, _, query = target.partition("?")
        _, _, version, what, *rest = path.split("/")
        self.requests.append(f"{method} {what}")
        if version != VERSION:
            return 404, b"Unable to find requested URL"
        since = next((int(q[12:]) for q in query.split("&") if q.startswith("update_time=")), 0)
        match method, what:
            case "GET", "nodes":
                return self._list_nodes(since)
            case "GET", "jobs":
                return self._list_jobs(since)
            case "GET", "partitions" | "reservations":
                return self._list_still(what, since)
            case "POST", "nodes":
                return self._update(json.loads(body))
            case "DELETE", "node":
                return self._delete(unquote(rest[0]).split(","))
            case "GET", "ping" | "conf" | "reconfigure":
                return 200, wire.encode(recorded(what))
            case _:
                return 404, b"Unable to find requested URL"

    def _list_nodes(self, since: int) -> Answer:
        if _is_unchanged(since, self._nodes_changed):
            return 304, b""
        tail = wire.encode({**recorded("nodes"), "nodes": [], "last_update": _number(int(self._now()))})
        return 200, tail.replace(b'"nodes":[]', b'"nodes":[' + b",".join(self._encoded.values()) + b"]", 1)

    def _list_jobs(self, since: int) -> Answer:
        if _is_unchanged(since, self._jobs_changed):
            return 200, wire.encode(recorded("jobs-unchanged"))
        jobs = list(self._jobs.values())
        return 200, wire.encode({**recorded("jobs"), "jobs": jobs, "last_update": _number(int(self._now()))})

    def _list_still(self, what: str, since: int) -> Answer:
        if _is_unchanged(since, self._started):
            return 304, b""
        kept = recorded(what)[what] if what == "partitions" else []
        return 200, wire.encode({**recorded(what), what: kept, "last_update": _number(int(self._now()))})

    def _update(self, wanted: dict[str, Any]) -> Answer:
        unknown = [name for name in wanted["name"] if name not in self._nodes]
        if unknown:
            return 422, wire.encode(recorded("node-unknown-post"))
        for name in wanted["name"]:
            self._update_one(self._nodes[name], wanted)
        return 200, wire.encode(recorded("reconfigure"))  # The same empty envelope.

    def _update_one(self, node: dict[str, Any], wanted: dict[str, Any]) -> None:
        states = wanted.get("state") or []
        if "DRAIN" in states:
            node["state"] = [*dict.fromkeys([*node["state"], "DRAIN"])]
            node |= {"reason": wanted.get("reason", ""), "reason_set_by_user": "slurm"}
            node["reason_changed_at"] = _number(int(self._now()))
        if "RESUME" in states or "UNDRAIN" in states:
            node["state"] = [word for word in node["state"] if word != "DRAIN"]
            node["reason"] = ""
        for field in ("comment", "features"):
            node[field] = wanted.get(field, node[field])
        node["active_features"] = wanted.get("features_act", node["active_features"])
        self._put(node)

    def _delete(self, names: list[str]) -> Answer:
        """Whoever can go goes, and then the first refusal is told."""
        refusals = [refusal for name in names if (refusal := self._delete_one(name))]
        self._nodes_changed = int(self._now())
        return (
            (422, wire.encode(recorded(refusals[0])))
            if refusals
            else (200, wire.encode(recorded("reconfigure")))
        )

    def _delete_one(self, name: str) -> str | None:
        node = self._nodes.get(name)
        if node is None:
            return "node-unknown-post"
        if {"MIXED", "ALLOCATED", "COMPLETING"} & {*node["state"]}:
            return "node-delete-busy"
        del self._nodes[name], self._encoded[name]
        return None

    def _set_state(self, name: str, more: set[str], less: set[str]) -> None:
        node = self._nodes[name]
        node["state"] = [*more, *(word for word in node["state"] if word not in less | more)]
        self._put(node)

    def _put(self, node: dict[str, Any]) -> None:
        self._nodes[node["name"]] = node
        self._encoded[node["name"]] = wire.encode(node)
        self._nodes_changed = int(self._now())

    # ---- HTTP

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One request, one answer, as slurmrestd is asked."""
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            length = next(
                (int(h.split(":")[1]) for h in head.split("\r\n") if h[:15].lower() == "content-length:"), 0
            )
            body = await reader.readexactly(length)
            method, target, _ = head.split(" ", 2)
            while self.hangs:  # noqa: ASYNC110  Nobody is in a hurry.
                await asyncio.sleep(0.5)
            status, text = self.answer(method, target, body)
            writer.write(b"HTTP/1.1 %d X\r\nContent-Length: %d\r\n\r\n" % (status, len(text)) + text)
            await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass  # The asker was stopped, or lost patience.
        finally:
            writer.close()

    async def listen(self) -> asyncio.Server:
        server = await asyncio.start_server(self.serve, "127.0.0.1", 0)
        host, port = server.sockets[0].getsockname()
        self.url = f"http://{host}:{port}"
        return server


def _is_unchanged(since: int, changed: int) -> bool:
    """Marks are whole seconds, so what changed within the second of the mark counts as new."""
    return bool(since) and since - 1 >= changed


def _number(value: int) -> dict[str, Any]:
    return {"set": True, "infinite": False, "number": value}
