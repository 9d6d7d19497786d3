"""Single requests to the API server, for programs that must not need a client library."""

import http.client
import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from slurm_local.kubernetes.pki import Pair
from slurm_operator import wire

# On a busy machine an API server takes its time, above all for CRDs.
_PATIENCE_S = 30.0


class Refused(Exception):  # noqa: N818
    """The API server answered with an error."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(f"{status}: {text}")
        self.status = status


@dataclass(frozen=True)
class Caller:
    """Talks to one API server with one client certificate."""

    url: str
    ca: Path
    client: Pair

    def connection(self, timeout_s: float | None) -> http.client.HTTPSConnection:
        parts = urlsplit(self.url)
        assert parts.hostname is not None
        context = ssl.create_default_context(cafile=str(self.ca))
        context.load_cert_chain(self.client.certificate, self.client.key)
        return http.client.HTTPSConnection(parts.hostname, parts.port, timeout=timeout_s, context=context)

    def call(self, method: str, path: str, body: object = None, *, kind: str = "application/json") -> Any:
        """The decoded answer; None when it is no JSON. Raises Refused for an error, OSError for silence."""
        connection = self.connection(timeout_s=_PATIENCE_S)
        try:
            data = None if body is None else wire.encode(body)
            connection.request(method, path, data, {"Content-Type": kind, "Accept": "application/json"})
            answer = connection.getresponse()
            text = answer.read()
        finally:
            connection.close()
        if answer.status >= 400:
            raise Refused(answer.status, text.decode(errors="replace")[:500])
        return wire.decode_any(text) if text.startswith((b"{", b"[")) else None

    def is_ready(self) -> bool:
        try:
            self.call("GET", "/readyz")
        except (OSError, Refused, http.client.HTTPException):
            return False
        return True
