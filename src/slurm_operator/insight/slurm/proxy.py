"""slurmrestd from outside the cluster: through the API server, which passes the token's header on."""

import asyncio
from collections.abc import Callable
from datetime import datetime
from urllib.parse import urlsplit

from slurm_operator import wire
from slurm_operator.kube.client import Client
from slurm_operator.kube.errors import KubeError, Unreachable
from slurm_operator.kube.request import Request as KubeRequest
from slurm_operator.slurmrest.client import SlurmRest
from slurm_operator.slurmrest.errors import SlurmCutOff, SlurmTimedOut, SlurmUnreachable
from slurm_operator.slurmrest.exchange import Reply
from slurm_operator.slurmrest.tokens import KeyProvider, ReadyToken
from slurm_operator.slurmrest.transport import DEADLINE_SECONDS, Request, Transport


class ServiceProxy(Transport):
    """Calls to the Services behind these URLs, `http://NAME.NAMESPACE:PORT`, on the API server's behalf."""

    def __init__(
        self, client: Client, urls: tuple[str, ...], *, deadline_s: float = DEADLINE_SECONDS
    ) -> None:
        super().__init__(urls, deadline_s=deadline_s)
        self._client = client

    async def _send(self, request: Request, token: str) -> Reply:
        try:
            code, body = await self._client.relay(
                KubeRequest(
                    verb="proxy",
                    method=request.method,
                    path=proxy_path(self.url) + request.path,
                    resource="services/proxy",
                    subject=f"slurmrestd at {self.url}",
                    params=request.query,
                    body=None if request.body is None else wire.encode(request.body),
                    headers={"X-SLURM-USER-TOKEN": token},
                )
            )
        except Unreachable as error:
            # What left us may still be carried out, whether or not an answer comes.
            kind = SlurmCutOff if error.may_have_happened else SlurmUnreachable
            raise kind(request.attempt, str(error)) from error
        except (KubeError, asyncio.IncompleteReadError) as error:
            raise SlurmUnreachable(request.attempt, str(error)) from error
        if (said := _api_server_said(body)) is not None:
            raise _failure(request, code, said)
        return Reply(code, body)


class _Status(wire.CamelRecord):
    kind: str = ""
    api_version: str = ""
    message: str = ""
    reason: str = ""


def _api_server_said(body: bytes) -> str | None:
    """The words of the API server, when it is not slurmrestd that speaks."""
    try:
        status = wire.decode(body, _Status)
    except (wire.DecodeError, UnicodeDecodeError):
        return None
    return (
        (status.message or status.reason) if (status.kind, status.api_version) == ("Status", "v1") else None
    )


# The API server asks for the verb that belongs to the method, on services/proxy.
_VERBS = {"GET": "get", "POST": "create", "DELETE": "delete"}


def _failure(request: Request, code: int, said: str) -> SlurmUnreachable | SlurmTimedOut:
    if code == 403:
        verb = _VERBS.get(request.method, request.method.lower())
        return SlurmUnreachable(request.attempt, f"the right to {verb} services/proxy is missing: {said}")
    return SlurmTimedOut(request.attempt, said) if code == 504 else SlurmUnreachable(request.attempt, said)


def proxy_path(url: str) -> str:
    """Where the API server takes requests for a Service: `http://NAME.NAMESPACE:PORT` as we write it."""
    parts = urlsplit(url)
    name, _, namespace = (parts.hostname or "").partition(".")
    return f"/api/v1/namespaces/{namespace}/services/{parts.scheme}:{name}:{parts.port}/proxy"


def slurm_through(
    client: Client,
    urls: tuple[str, ...],
    key: KeyProvider | ReadyToken,
    *,
    now: Callable[[], datetime],
    user: str = "slurm",
) -> SlurmRest:
    """A client for the slurmrestds behind these Services."""
    return SlurmRest(urls, key, now=now, user=user, transport=ServiceProxy(client, urls))
