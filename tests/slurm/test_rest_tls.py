"""A real slurmrestd behind https, with a certificate of an authority that no machine knows."""

import asyncio
import re
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from slurm_local.kubernetes.pki import Authority
from slurm_operator.manifests.secrets import SecretHandle
from slurm_operator.plan.reconciler import SlurmServer
from slurm_operator.slurm.snapshot import Snapshot, Unreachable
from slurm_operator.slurmrest.tokens import Keys
from slurm_operator.slurmsync.connection import SlurmCluster
from slurm_operator.slurmsync.connections import connection
from testing.daemons import SlurmDaemons

HOST = "127.0.0.1"


@asynccontextmanager
async def front_of(slurm: SlurmDaemons, tls: ssl.SSLContext) -> AsyncIterator[str]:
    """The address of a proxy that ends TLS and passes everything on, as an ingress does."""
    behind = urlsplit(slurm.rest_url)

    async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, ssl.SSLError):
            while data := await reader.read(1 << 16):
                writer.write(data)
                await writer.drain()

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection(behind.hostname, behind.port)
        opened.extend((writer, back))
        await asyncio.gather(pump(reader, back), pump(there, writer))

    opened: list[asyncio.StreamWriter] = []
    server = await asyncio.start_server(accept, HOST, 0, ssl=tls)
    try:
        yield f"https://{HOST}:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        for one in opened:
            one.transport.abort()
        await asyncio.sleep(0.1)  # A loop that ends over an open connection would hang.


def serving_tls(authority: Authority, *hosts: str) -> ssl.SSLContext:
    pair = authority.issue(f"front-{len(hosts)}", "slurmrestd", hosts=hosts)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pair.certificate, pair.key)
    return context


def cluster_at(slurm: SlurmDaemons, url: str, authorities: str) -> SlurmCluster:
    handle = SecretHandle(namespace="ns", name="login", key="SLURM_JWT")
    server = SlurmServer((url,), handle, is_only_watched=True, authorities=authorities)
    return connection("ns/cluster/demo", server, Keys(slurm.token().encode()), lambda: True)


async def seen(slurm: SlurmDaemons, url: str, authorities: str) -> Snapshot | Unreachable:
    cluster = cluster_at(slurm, url, authorities)
    await cluster.poller.poll()
    return cluster.latest()


async def test_a_private_authority_vouches_for_slurmrestd(slurm: SlurmDaemons, tmp_path: Path) -> None:
    authority = Authority(tmp_path, "private")
    bundle = authority.pair.certificate.read_text()
    async with front_of(slurm, serving_tls(authority, HOST)) as url:
        facts = await seen(slurm, url, bundle)

    assert isinstance(facts, Snapshot), facts.why
    assert facts.nodes.keys() == {"w-0", "w-1"}


@pytest.mark.parametrize(
    ("hosts", "bundle", "words"),
    [
        pytest.param((HOST,), "", "self-signed certificate|unable to get local issuer", id="nobody vouches"),
        pytest.param(
            (HOST,), "another", "certificate signature failure|unable to get", id="another authority"
        ),
        pytest.param(("elsewhere.example.org",), "private", "IP address mismatch", id="for another name"),
        pytest.param(
            (HOST,), "garbage", "the certificates that are to vouch for it cannot be read", id="garbage"
        ),
    ],
)
async def test_whoever_nobody_vouches_for_gets_no_token(
    slurm: SlurmDaemons, tmp_path: Path, hosts: tuple[str, ...], bundle: str, words: str
) -> None:
    authority = Authority(tmp_path / "a", "private")
    bundles = {
        "": "",
        "private": authority.pair.certificate.read_text(),
        "another": Authority(tmp_path / "b", "private").pair.certificate.read_text(),
        "garbage": "-----BEGIN CERTIFICATE-----\nnone\n-----END CERTIFICATE-----\n",
    }
    async with front_of(slurm, serving_tls(authority, *hosts)) as url:
        facts = await seen(slurm, url, bundles[bundle])

    assert isinstance(facts, Unreachable)
    assert re.search(words, facts.why), facts.why
