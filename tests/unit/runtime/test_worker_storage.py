"""How much local storage workers use, read from a kubelet that speaks TLS and asks who we are."""

import ssl
from dataclasses import replace
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest

from slurm_local.kubernetes.pki import Authority
from slurm_operator.api.shared.meta import ObjectKey
from slurm_operator.kube.auth.access import Access
from slurm_operator.kube.auth.credentials import Fixed, Identity, bearer
from slurm_operator.kube.auth.tls import Trust
from slurm_operator.kube.errors import conflict
from slurm_operator.manifests.objects import Pod
from slurm_operator.manifests.storage import storage_limit, storage_used
from slurm_operator.runtime.kubelets import KubeletSettings
from slurm_operator.runtime.worker_storage import StorageWatch
from slurm_operator.wire import DecodeError
from testing.kube_nodes import pod
from testing.kubelet_stats import Kubelet, kubelet

NOW = datetime(2026, 1, 1, tzinfo=UTC)
GIB = 1 << 30


def limited(**limits: str) -> dict[str, Any]:
    """A container with this limit of local storage."""
    return {"name": "a", "resources": {"limits": limits}}


@pytest.mark.parametrize(
    ("spec", "total"),
    [
        ({"containers": [limited(**{"ephemeral-storage": "1Gi"})]}, GIB),
        (
            {
                "containers": [limited(**{"ephemeral-storage": "1Gi"}), limited(cpu="1")],
                "initContainers": [limited(**{"ephemeral-storage": "512Mi"})],
            },
            GIB + GIB // 2,
        ),
        ({"containers": [limited(**{"ephemeral-storage": "2G"})]}, 2_000_000_000),
        ({"containers": [limited(**{"ephemeral-storage": "much"})]}, 0),
        ({"containers": [{"name": "a"}]}, 0),
        ({}, 0),
    ],
)
def test_the_limit_is_that_of_all_containers(spec, total):
    assert storage_limit({"spec": spec}) == total


def test_a_summary_without_figures_tells_nothing():
    assert list(storage_used(b'{"pods": [{"podRef": {"uid": "a"}}, {"ephemeral-storage": {}}]}')) == []
    assert list(storage_used(b"{}")) == []


@pytest.mark.parametrize("body", [b"", b"[]", b"<html>", b'{"pods": 7}', b'{"pods": [{"podRef": "a"}]}'])
def test_what_is_no_summary_is_refused(body):
    with pytest.raises(DecodeError):
        list(storage_used(body))


class Api:
    """Has the pods whole."""

    def __init__(self, who: str = "ours", limit: str = "1Gi") -> None:
        credentials = Fixed(Identity((bearer(who),)))
        self.access = Access(server="http://nowhere", credentials=credentials)
        self.limit = limit
        self.asked: list[str] = []
        self.is_gone = False

    async def get(self, kind, key: ObjectKey) -> dict[str, Any]:
        self.asked.append(key.name)
        if self.is_gone:
            raise conflict("there is no such pod")
        limits = {"ephemeral-storage": self.limit} if self.limit else {}
        return {"spec": {"containers": [limited(**limits)]}, "status": {"hostIP": "127.0.0.1"}}


def watch(there: Kubelet, api: Api, *pods: Pod, **settings: Any) -> tuple[StorageWatch, Any, list[ObjectKey]]:
    known = SimpleNamespace(
        view=lambda: None,
        records={Pod: {one.metadata.name: one for one in pods}},
        storage={},
        clock=SimpleNamespace(steady=lambda: NOW),
    )
    woken: list[ObjectKey] = []
    chosen = replace(KubeletSettings(port=there.port, timeout_seconds=5, insecure=True), **settings)
    places = lambda one, world: [ObjectKey("", one.spec.node_name)]  # noqa: E731
    return StorageWatch(api, known, chosen, places, woken.append), known, woken


WORKER = pod("cpu-0", "n0")
UID = WORKER.metadata.uid


async def test_what_a_worker_uses_is_noted_and_its_kubernetes_node_is_looked_at():
    async with kubelet() as there:
        api = Api()
        looks, known, woken = watch(there, api, WORKER, pod("cpu-1", "n1"))
        there.used = {UID: GIB // 2, "somebody else's": GIB}
        await looks.look()

        assert set(known.storage) == {UID}
        assert (known.storage[UID].percent, known.storage[UID].read_at) == (50, NOW)
        assert sorted(woken) == [ObjectKey("", "n0"), ObjectKey("", "n1")]
        await looks.look()
        assert sorted(api.asked) == ["cpu-0", "cpu-1"], "a limit never changes"

        known.records[Pod].clear()
        await looks.look()
        assert known.storage == {}


async def test_a_kubelet_that_does_not_tell_is_said_once_and_leaves_what_was_read(capsys):
    async with kubelet() as there:
        looks, known, woken = watch(there, Api(who="theirs"), WORKER)
        await looks.look()
        await looks.look()

        assert (known.storage, woken, there.asked) == ({}, [], 2)
        assert capsys.readouterr().out.count("the storage of workers cannot be read") == 1


async def test_a_certificate_that_nobody_vouches_for_gets_no_token():
    async with kubelet() as there:
        looks, known, _ = watch(there, Api(), WORKER, insecure=False)
        await looks.look()

        assert (there.asked, known.storage) == (0, {})


async def test_by_default_a_certificate_that_the_authority_of_the_api_server_signed_is_taken(tmp_path):
    authority = Authority(tmp_path, "ca")
    pair = authority.issue("kubelet", "system:node:n0", hosts=["127.0.0.1"])
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(pair.certificate, pair.key)
    api = Api()
    async with kubelet(tls=tls) as there:
        there.used[UID] = 1 << 20
        looks, known, _ = watch(there, api, WORKER, insecure=KubeletSettings().insecure)
        await looks.look()
        assert (there.asked, known.storage) == (0, {}), "the system's authorities do not know it"

        api.access = replace(api.access, trust=Trust(authority=authority.pair.certificate))
        await looks.look()
        assert known.storage[UID].used_bytes == 1 << 20


async def test_workers_without_a_limit_and_pods_that_are_gone_cost_the_kubelet_nothing():
    async with kubelet() as there:
        for api in (Api(limit=""), Api()):
            api.is_gone = api.limit != ""
            looks, known, woken = watch(there, api, WORKER)
            await looks.look()
            assert (there.asked, known.storage, woken) == (0, {}, [])
