"""Who may read `/metrics` when it is served over HTTPS: whoever the API server says may."""

import asyncio
import ssl
from datetime import UTC, datetime, timedelta

from aiohttp import web

from slurm_operator.kube.client import Client
from slurm_operator.kube.errors import KubeError

# Anybody may show us a token, as often as they like; most connections are for the operator's own calls.
AT_ONCE = 2


class MetricsGuard:
    """Asks the API server about each bearer token: is it genuine, and may its owner GET /metrics?"""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._asking = asyncio.Semaphore(AT_ONCE)

    async def why_not(self, request: web.Request) -> str | None:
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not token:
            return "A bearer token is needed."
        try:
            async with self._asking:
                return await self._ask(token)
        except KubeError as error:
            return f"The API server could not say whether you may: {error}"

    async def _ask(self, token: str) -> str | None:
        review = await self._client.request(
            "POST",
            "/apis/authentication.k8s.io/v1/tokenreviews",
            body={"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}},
        )
        status = review.get("status", {})
        if not status.get("authenticated"):
            return "The API server does not know this token."
        user = status.get("user", {})
        access = await self._client.request(
            "POST",
            "/apis/authorization.k8s.io/v1/subjectaccessreviews",
            body={
                "apiVersion": "authorization.k8s.io/v1",
                "kind": "SubjectAccessReview",
                "spec": {
                    "user": user.get("username", ""),
                    "groups": user.get("groups", []),
                    "nonResourceAttributes": {"path": "/metrics", "verb": "get"},
                },
            },
        )
        if access.get("status", {}).get("allowed"):
            return None
        return f"{user.get('username')} may not get /metrics; bind it to the metrics-reader ClusterRole."


def self_signed_context() -> ssl.SSLContext:
    """TLS with a certificate made for this process, as nobody gave us one."""
    # Megabytes, and a tenth of the start-up, that most operators never need.
    from slurm_operator import certificates

    key = certificates.new_key()
    subject = certificates.Subject("slurm-operator-metrics")
    certificate = certificates.signed(subject, key, None, datetime.now(UTC), timedelta(days=3650))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    certificates.load(context, certificates.pem(certificate), certificates.private_pem(key))
    return context
