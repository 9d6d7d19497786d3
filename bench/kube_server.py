"""A server of worker pods for benchmarks: lists in pages and a watch, with every byte made beforehand.

Run as a program: prints its port and serves until it is killed.
"""

import asyncio
import json
import sys
from urllib.parse import parse_qs, urlsplit

PAGE = 500
_MARKS = ("@NUMBER@", "@VERSION@")


def pod_template() -> bytes:
    """A slurmd worker as the API server shows it, 8 KB, with marks for its number and version."""
    fields = {f"f:field-{n}": {f"f:part-{m}": {} for m in range(8)} for n in range(24)}
    probe = {"httpGet": {"path": "/readyz", "port": 6818, "scheme": "HTTP"}, "periodSeconds": 1}
    container = {
        "name": "slurmd",
        "image": "ghcr.io/slinkyproject/slurmd:26.05-ubuntu24.04",
        "env": [{"name": f"VARIABLE_{n}", "value": "value " * 4} for n in range(12)],
        "resources": {"limits": {"cpu": "32", "memory": "128Gi", "nvidia.com/gpu": "8"}},
        "volumeMounts": [{"name": f"volume-{n}", "mountPath": f"/mnt/volume-{n}"} for n in range(8)],
        "startupProbe": probe,
        "readinessProbe": probe,
        "livenessProbe": probe,
    }
    status = {
        "name": "slurmd",
        "ready": True,
        "started": True,
        "restartCount": 0,
        "image": container["image"],
        "imageID": "sha256:" + "0" * 64,
        "containerID": "containerd://" + "0" * 64,
        "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}},
    }
    condition = {"status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    kinds = ("Ready", "Initialized", "ContainersReady", "PodScheduled", "SlurmNodeStateIdle")
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "gpu-@NUMBER@",
            "namespace": "slurm",
            "uid": "uid-@NUMBER@",
            "resourceVersion": "@VERSION@",
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "labels": {f"label.example.com/{n}": f"value-{n}" for n in range(10)},
            "annotations": {f"annotation.example.com/{n}": "words " * 8 for n in range(4)},
            "ownerReferences": [
                {
                    "apiVersion": "slinky.slurm.net/v1beta1",
                    "kind": "NodeSet",
                    "name": "gpu",
                    "uid": "uid-of-the-nodeset",
                    "controller": True,
                }
            ],
            "managedFields": [{"manager": "slurm-operator", "fieldsV1": fields}],
        },
        "spec": {
            "nodeName": "node-@NUMBER@",
            "hostname": "gpu-@NUMBER@",
            "containers": [container],
            "volumes": [{"name": f"volume-{n}", "emptyDir": {"sizeLimit": "1Gi"}} for n in range(8)],
            "tolerations": [{"key": f"key-{n}", "operator": "Exists"} for n in range(6)],
        },
        "status": {
            "phase": "Running",
            "podIP": "10.0.0.1",
            "podIPs": [{"ip": "10.0.0.1"}],
            "startTime": "2026-01-01T00:00:00Z",
            "conditions": [condition | {"type": kind} for kind in kinds],
            "containerStatuses": [status],
        },
    }
    return json.dumps(pod, separators=(",", ":")).encode()


def pods(first: int, last: int, version: int) -> bytes:
    """Undivided JSON of some pods."""
    template = pod_template()
    return b",".join(_filled(template, number, version + number) for number in range(first, last))


def _filled(template: bytes, number: int, version: int) -> bytes:
    for mark, value in zip(_MARKS, (number, version), strict=True):
        template = template.replace(mark.encode(), b"%d" % value)
    return template


class Server:
    """Pages and one stream of changes over the same pods, as often as asked for."""

    def __init__(self, count: int, events: int) -> None:
        self.never = asyncio.Event()
        starts = range(0, count, PAGE)
        self.pages = [
            _page(pods(start, min(start + PAGE, count), 1), "" if start == starts[-1] else str(i + 1))
            for i, start in enumerate(starts)
        ]
        template = b'{"type":"MODIFIED","object":%s}\n' % pod_template()
        self.chunks = [_chunk(_filled(template, n % count, 1_000_000 + n)) for n in range(events)]

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while request := await reader.readline():
            while (await reader.readline()).strip():
                pass
            asked = parse_qs(urlsplit(request.split()[1].decode()).query)
            if "watch" in asked:
                await self._stream(writer)
            else:
                body = self.pages[int(asked.get("continue", ["0"])[0])]
                head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
                writer.write(head % len(body) + body)
                await writer.drain()

    async def _stream(self, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        for chunk in self.chunks:
            writer.write(chunk)
            await writer.drain()
        await self.never.wait()


def _page(items: bytes, next_page: str) -> bytes:
    meta = b'{"resourceVersion":"900000","continue":"%s"}' % next_page.encode()
    return b'{"kind":"PodList","apiVersion":"v1","metadata":%s,"items":[%s]}' % (meta, items)


def _chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


async def main(count: int, events: int) -> None:
    server = await asyncio.start_server(Server(count, events).answer, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), int(sys.argv[2])))
