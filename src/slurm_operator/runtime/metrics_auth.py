"""Who may read `/metrics` when it is served over HTTPS: whoever the API server says may."""

import asyncio
import os
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
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "slurm-operator-metrics")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(days=3650))
        .sign(key, hashes.SHA256())
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    # `ssl` reads files only. This one is in memory: the root of the container is read-only.
    with os.fdopen(os.memfd_create("metrics.pem"), "wb") as file:
        file.write(
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
            + certificate.public_bytes(serialization.Encoding.PEM)
        )
        file.flush()
        context.load_cert_chain(f"/proc/self/fd/{file.fileno()}")
    return context
