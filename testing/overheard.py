"""A wire tap: HTTP servers of a test's own, and one that hands every request on and notes it."""

import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple


class Request(NamedTuple):
    method: str
    path: str


@contextmanager
def served(handler: type[BaseHTTPRequestHandler], **fields: object) -> Iterator[str]:
    """A server on loopback whose handlers have these fields; its address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (handler,), fields))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class Tap(BaseHTTPRequestHandler):
    """Hands requests on to `url`; all of them stand in `heard`."""

    url: str
    heard: list[Request]

    def do_GET(self) -> None:
        self.heard.append(Request(self.command, self.path))
        body = self.rfile.read(int(self.headers.get("Content-Length", 0))) or None
        headers = {name: value for name, value in self.headers.items() if name.lower() != "host"}
        request = urllib.request.Request(self.url + self.path, body, headers, method=self.command)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                self._answer(answer.status, answer.headers.get("Content-Type"), answer.read())
        except urllib.error.HTTPError as error:
            with error:
                self._answer(error.code, error.headers.get("Content-Type"), error.read())

    do_POST = do_PUT = do_PATCH = do_DELETE = do_GET  # noqa: N815 - the names that the server looks for

    def _answer(self, status: int, content_type: str | None, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", content_type or "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def overheard(url: str) -> Iterator[tuple[str, list[Request]]]:
    """Another address of the server at `url`, and what is asked there."""
    heard: list[Request] = []
    with served(Tap, url=url, heard=heard) as address:
        yield address, heard
