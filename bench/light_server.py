"""An API server in memory that answers at once, with a kubelet in it: what is left is the operator's cost.

Run as a program: `python -m bench.light_server CA CERTIFICATE KEY AUDIT_LOG PODS_A_SECOND` prints its port.
It writes an audit log like that of the real one.
"""

import asyncio
import ssl
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, unquote, urlsplit

from bench.light_store import Key, Object, Refused, Selector, Store, Watcher, merged, now, patched
from slurm_operator import wire

VERBS = {"GET": "get", "POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
# The question which kinds a group has. None has any beside those that are always watched.
WHAT_THERE_IS = "?"
ABSENT = frozenset({"servicemonitors", WHAT_THERE_IS})
MACHINES = 40
BOOKMARK_SECONDS = 30.0
ADDRESSES = 250


class Asked(NamedTuple):
    method: str
    kind: str
    namespace: str
    name: str
    subresource: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes

    @property
    def key(self) -> Key:
        return (self.namespace, self.name)

    @property
    def selector(self) -> Selector:
        query = self.query
        return Selector(self.namespace, query.get("labelSelector", ""), query.get("fieldSelector", ""))

    @property
    def content(self) -> Any:
        return wire.decode_any(self.body) if self.body else {}

    @property
    def verb(self) -> str:
        if self.method == "GET" and not self.name:
            return "watch" if "watch" in self.query else "list"
        return VERBS[self.method]


class Server:
    """One connection after the other asks; pods start at a steady pace, as machines start them."""

    def __init__(self, audit_log: Path, pods_a_second: float) -> None:
        self._store = Store()
        self._store.hears = self._hear
        self._audit = audit_log.open("ab", buffering=0)
        self._pace_s = 1 / pods_a_second
        self._due: asyncio.Queue[tuple[str, Key]] = asyncio.Queue()
        self._started = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        user = _user(writer)
        try:
            while (asked := await _read(reader)) is not None:
                came = _moment()
                if asked.verb == "watch" and asked.kind not in ABSENT:
                    await self._watch(asked, writer)
                    return
                code, body = self._answer(asked)
                writer.write(b"HTTP/1.1 %d X\r\nContent-Length: %d\r\n\r\n" % (code, len(body)) + body)
                self._note(asked, user, code, came)
        except (ConnectionError, asyncio.IncompleteReadError, ssl.SSLError):
            pass
        finally:
            writer.close()

    def _answer(self, asked: Asked) -> tuple[int, bytes]:
        try:
            if asked.kind in ABSENT:
                raise Refused(404, "NotFound")
            return self._carry_out(asked)
        except Refused as no:
            return no.code, wire.encode(
                {"kind": "Status", "status": "Failure", "code": no.code, "reason": no.reason}
            )

    def _carry_out(self, asked: Asked) -> tuple[int, bytes]:
        store = self._store
        match asked.verb:
            case "list":
                return 200, self._page(asked)
            case "get":
                return 200, wire.encode(store.get(asked.kind, asked.key))
            case "create":
                return 201, wire.encode(store.create(asked.kind, asked.namespace, asked.content))
            case "delete":
                left = store.delete(asked.kind, asked.key, asked.content)
                return 200, wire.encode(left or {"kind": "Status", "status": "Success"})
            case "update":
                return 200, wire.encode(self._update(asked, asked.content))
            case _:
                return 200, wire.encode(self._patch(asked))

    def _update(self, asked: Asked, wanted: Object) -> Object:
        kept = self._store.get(asked.kind, asked.key)["metadata"]
        wanted["metadata"] |= {key: kept[key] for key in ("uid", "creationTimestamp", "resourceVersion")}
        return self._store.update(asked.kind, asked.key, wanted)

    def _patch(self, asked: Asked) -> Object:
        how, content = asked.headers["content-type"], asked.content
        is_apply = how.startswith("application/apply-patch")
        if is_apply and asked.key not in self._store.kinds[asked.kind].things:
            return self._store.create(asked.kind, asked.namespace, content)
        old = self._store.get(asked.kind, asked.key)
        if how.startswith("application/json-patch"):
            return self._store.update(asked.kind, asked.key, patched(old, content))
        if is_apply and asked.subresource == "status":
            return self._store.update(asked.kind, asked.key, {**old, "status": content["status"]})
        return self._store.update(asked.kind, asked.key, merged(old, content))

    def _page(self, asked: Asked) -> bytes:
        found = [*self._store.listed(asked.kind, asked.selector)]
        start, limit = int(asked.query.get("continue", 0)), int(asked.query.get("limit", 0)) or len(found)
        more = str(start + limit) if start + limit < len(found) else ""
        meta = wire.encode({"resourceVersion": str(self._store.version), "continue": more})
        items = b",".join(found[start : start + limit])
        return b'{"kind":"List","metadata":' + meta + b',"items":[' + items + b"]}"

    async def _watch(self, asked: Asked, writer: asyncio.StreamWriter) -> None:
        def tell(type_: str, body: bytes) -> None:
            line = b'{"type":"' + type_.encode() + b'","object":' + body + b"}\n"
            if not writer.is_closing():
                writer.write(b"%x\r\n%s\r\n" % (len(line), line))

        watcher = Watcher(asked.selector, tell)
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        watchers = self._store.kinds[asked.kind].watchers
        watchers.append(watcher)
        try:
            while not writer.is_closing():
                await asyncio.sleep(BOOKMARK_SECONDS)
                meta = {"resourceVersion": str(self._store.version)}
                tell("BOOKMARK", wire.encode({"metadata": meta}))
        finally:
            watchers.remove(watcher)

    # ---- Machines

    def _hear(self, kind: str, thing: Object) -> None:
        meta = thing["metadata"]
        if kind == "pods" and ("deletionTimestamp" in meta or not thing["spec"].get("nodeName")):
            self._due.put_nowait((meta["uid"], (meta["namespace"], meta["name"])))

    async def machines(self) -> None:
        """Binds and starts what was made, and ends what was deleted."""
        while True:
            uid, key = await self._due.get()
            pod = self._store.kinds["pods"].things.get(key)
            if pod is None or pod["metadata"]["uid"] != uid:
                continue
            if "deletionTimestamp" in pod["metadata"]:
                self._store.remove("pods", key)
            elif not pod["spec"].get("nodeName"):
                self._start(key, pod)
                await asyncio.sleep(self._pace_s)

    def _start(self, key: Key, pod: Object) -> None:
        self._started += 1
        spec = {**pod["spec"], "nodeName": f"fake-{self._started % MACHINES}"}
        bound = self._store.put("pods", key, {**pod, "spec": spec, "status": _status(pod, 0)})
        self._store.put("pods", key, {**bound, "status": _status(bound, self._started)})

    def _note(self, asked: Asked, user: str, code: int, came: str) -> None:
        about = {"resource": asked.kind, "subresource": asked.subresource, "name": asked.name}
        line = {
            "stage": "ResponseComplete",
            "user": {"username": user},
            "verb": asked.verb,
            "objectRef": {key: value for key, value in about.items() if value},
            "responseStatus": {"code": code},
            "requestReceivedTimestamp": came,
            "stageTimestamp": _moment(),
        }
        self._audit.write(wire.encode(line) + b"\n")


def _status(pod: Object, number: int) -> Object:
    """Scheduled; with a number also running and ready, at an address of its own."""
    types = ("PodScheduled", "Initialized", "ContainersReady", "Ready") if number else ("PodScheduled",)
    conditions = [{"type": type_, "status": "True", "lastTransitionTime": now()} for type_ in types]
    if not number:
        return {"phase": "Pending", "conditions": conditions}
    address = f"10.{number // ADDRESSES**2}.{number // ADDRESSES % ADDRESSES}.{number % ADDRESSES}"
    running = {"ready": True, "restartCount": 0, "state": {"running": {"startedAt": now()}}, "imageID": ""}
    containers = [{"name": c["name"], "image": c["image"], **running} for c in pod["spec"]["containers"]]
    addresses = {"podIP": address, "podIPs": [{"ip": address}]}
    return {"phase": "Running", "conditions": conditions, "containerStatuses": containers, **addresses}


async def _read(reader: asyncio.StreamReader) -> Asked | None:
    head = await reader.readuntil(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    method, target, _ = first.split(" ", 2)
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    url = urlsplit(target)
    parts = [unquote(part) for part in url.path.strip("/").split("/")]
    parts = (parts[2:] if parts[0] == "api" else parts[3:]) or [WHAT_THERE_IS]
    namespace = ""
    if parts[0] == "namespaces" and len(parts) > 2:
        namespace, parts = parts[1], parts[2:]
    kind, name, subresource = (*parts, "", "")[:3]
    return Asked(method, kind, namespace, name, subresource, dict(parse_qsl(url.query)), headers, body)


def _user(writer: asyncio.StreamWriter) -> str:
    subject = dict(pair for part in writer.get_extra_info("peercert")["subject"] for pair in part)
    return str(subject["commonName"])


def _moment() -> str:
    return datetime.now(UTC).isoformat()


async def main(ca: str, certificate: str, key: str, audit_log: str, pods_a_second: str) -> None:
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=ca)
    tls.load_cert_chain(certificate, key)
    tls.verify_mode = ssl.CERT_REQUIRED
    light = Server(Path(audit_log), float(pods_a_second))
    server = await asyncio.start_server(light.serve, "127.0.0.1", 0, ssl=tls)
    print(server.sockets[0].getsockname()[1], flush=True)
    await light.machines()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
