"""Connections whose Secrets are deleted: whoever is connected goes on, whoever is not waits for a key."""

import asyncio
import base64

import pytest

from slurm_operator import wire
from slurm_operator.api.shared.meta import ObjectKey
from slurm_operator.kube.errors import NotFound, Status
from slurm_operator.kube.secret_values import value_digest
from slurm_operator.manifests.secrets import SecretHandle
from slurm_operator.plan.reconciler import SlurmServer
from slurm_operator.slurmsync.connections import SlurmClusters

KEY = ObjectKey("ns", "slurm")
URLS = ("http://slurm-restapi.ns:6820",)
ORIGINAL = SlurmServer(URLS, SecretHandle(namespace="ns", name="jwt", key="jwt.key", digest="a"))
DIGEST = value_digest(b"key")
COPY = SlurmServer(URLS, SecretHandle(namespace="ns", name="copies", key=f"key-{DIGEST}", form="base64url"))
OTHER = SlurmServer(URLS, SecretHandle(namespace="ns", name="copies", key="key-b", form="base64url"))
LOST = SlurmServer(URLS, None)


class Client:
    """Secrets with one entry each."""

    def __init__(self, **entries: dict[str, bytes]) -> None:
        self.secrets = entries

    async def read(self, kind, key, decode):
        if key.name not in self.secrets:
            raise NotFound(Status(code=404))
        data = {entry: base64.b64encode(value).decode() for entry, value in self.secrets[key.name].items()}
        return decode(memoryview(wire.encode({"metadata": {"name": key.name}, "data": data})))


class Cluster:
    """Never answers."""

    def subscribe(self, callback) -> None: ...

    def use(self, urls) -> None: ...

    async def run(self) -> None:
        await asyncio.Event().wait()


class Clusters(SlurmClusters):
    """Remembers with which keys it connected."""

    def __init__(self, client: Client) -> None:
        super().__init__(client, lambda: True)
        self.offered: list[bytes] = []

    def _connection(self, name, server, keys):
        self.offered.append(keys())
        return Cluster()


async def connected(client: Client, *servers: SlurmServer) -> Clusters:
    clusters = Clusters(client)
    for server in servers:
        clusters.reconfigure({KEY: server})
        for _ in range(5):
            await asyncio.sleep(0)
        client.secrets.pop("jwt", None)
    return clusters


@pytest.mark.parametrize(
    ("secrets", "servers", "offered"),
    [
        pytest.param({"jwt": {"jwt.key": b"key"}}, (ORIGINAL, LOST), [b"key"], id="all Secrets are gone: it stays connected"),
        pytest.param({"jwt": {"jwt.key": b"key"}, "copies": {f"key-{DIGEST}": b"a2V5"}}, (ORIGINAL, COPY), [b"key"], id="the copy is the same key"),
        pytest.param({"jwt": {"jwt.key": b"key"}}, (ORIGINAL, OTHER), [b"key", b"key"], id="another copy went in the same moment"),
        pytest.param({"copies": {f"key-{DIGEST}": b"a2V5"}}, (COPY,), [b"key"], id="only the copy was there when it started"),
        pytest.param({}, (LOST,), [], id="nobody knows the key"),
    ],
)  # fmt: skip
async def test_slurm_is_asked_with_a_key_that_somebody_still_knows(secrets, servers, offered):
    clusters = await connected(Client(**secrets), *servers)

    assert clusters.offered == offered
    assert (clusters.remembered(DIGEST) == b"key") is bool(offered)
    await clusters.close()
    assert clusters.remembered(DIGEST) is None, "a key is kept no longer than it is used"
