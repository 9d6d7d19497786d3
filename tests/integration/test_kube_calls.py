"""Every verb of the client against a real API server."""

import json
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from slurm_operator.api.schema.kind import Kind
from slurm_operator.api.shared.meta import ObjectKey
from slurm_operator.kube import errors
from slurm_operator.kube.auth.config import find
from slurm_operator.kube.auth.tls import Trust
from slurm_operator.kube.client import Client
from slurm_operator.kube.discovery import Discovery
from slurm_operator.kube.events import Recorder, Regarding
from slurm_operator.kube.request import Selection
from slurm_operator.kube.watch.named_objects import read_secret
from slurm_operator.manifests.kinds import (
    CONFIG_MAP,
    DEPLOYMENT,
    DISRUPTION_BUDGET,
    EVENT,
    POD,
    SECRET,
    SERVICE_MONITOR,
)
from slurm_operator.manifests.meta import Manifest
from testing.control_plane import Plane


@pytest.fixture
async def client(api_server: Plane) -> AsyncIterator[Client]:
    async with Client(find(api_server.kubeconfig)) as client:
        yield client


def config_map(namespace: str, name: str, **data: str) -> Manifest:
    return {"metadata": {"namespace": namespace, "name": name}, "data": data}


def pod(namespace: str, name: str, **labels: str) -> Manifest:
    return {
        "metadata": {"namespace": namespace, "name": name, "labels": labels},
        "spec": {"containers": [{"name": "main", "image": "example.com/none"}]},
    }


async def test_apply_creates_and_takes_away_what_it_no_longer_says(client: Client, namespace: str) -> None:
    first = await client.apply(CONFIG_MAP, config_map(namespace, "c", a="1", b="2"))
    second = await client.apply(CONFIG_MAP, config_map(namespace, "c", a="1"))
    third = await client.apply(CONFIG_MAP, config_map(namespace, "c", a="1"))

    assert first["data"] == {"a": "1", "b": "2"}
    assert second["data"] == {"a": "1"}
    assert second["metadata"]["managedFields"][0]["manager"] == "slurm-operator"
    assert third["metadata"]["resourceVersion"] == second["metadata"]["resourceVersion"]


async def test_apply_without_force_names_who_else_owns_a_field(client: Client, namespace: str) -> None:
    await client.create(CONFIG_MAP, config_map(namespace, "c", a="theirs"))
    await client.merge_patch(CONFIG_MAP, ObjectKey(namespace, "c"), {"data": {"a": "other"}})

    with pytest.raises(errors.Conflict, match="conflict"):
        await client.apply(CONFIG_MAP, config_map(namespace, "c", a="ours"), force=False)
    forced = await client.apply(CONFIG_MAP, config_map(namespace, "c", a="ours"))

    assert forced["data"] == {"a": "ours"}


async def test_the_status_is_applied_alone(client: Client, namespace: str) -> None:
    labels = {"app": "x"}
    template = {
        "metadata": {"labels": labels},
        "spec": {"containers": [{"name": "m", "image": "example.com/x"}]},
    }
    metadata = {"namespace": namespace, "name": "d"}
    spec = {"replicas": 3, "selector": {"matchLabels": labels}, "template": template}
    await client.apply(DEPLOYMENT, {"metadata": metadata, "spec": spec})

    after = await client.apply_status(DEPLOYMENT, {"metadata": metadata, "status": {"replicas": 2}})

    assert after["status"]["replicas"] == 2
    assert after["spec"]["replicas"] == 3
    assert after["metadata"]["generation"] == 1


async def test_create_replace_and_delete_notice_who_was_faster(client: Client, namespace: str) -> None:
    key = ObjectKey(namespace, "c")
    made = await client.create(CONFIG_MAP, config_map(namespace, "c", a="1"))
    with pytest.raises(errors.AlreadyExists, match='configmaps "c" already exists'):
        await client.create(CONFIG_MAP, config_map(namespace, "c"))
    changed = await client.replace(CONFIG_MAP, made | {"data": {"a": "2"}})
    with pytest.raises(errors.Conflict, match="has been modified"):
        await client.replace(CONFIG_MAP, made | {"data": {"a": "3"}})
    uid, version = made["metadata"]["uid"], made["metadata"]["resourceVersion"]
    with pytest.raises(errors.Conflict, match="UID in the precondition"):
        await client.delete(CONFIG_MAP, key, uid="0000")
    with pytest.raises(errors.Conflict, match="ResourceVersion in the precondition"):
        await client.delete(CONFIG_MAP, key, uid=uid, resource_version=version)
    gone = await client.delete(
        CONFIG_MAP, key, uid=uid, resource_version=changed["metadata"]["resourceVersion"]
    )
    with pytest.raises(errors.NotFound, match='configmaps "c" not found'):
        await client.delete(CONFIG_MAP, key)

    assert gone is None


async def test_a_delete_says_whether_the_object_is_still_there(client: Client, namespace: str) -> None:
    held = config_map(namespace, "held")
    held["metadata"]["finalizers"] = ["example.com/wait"]
    await client.create(CONFIG_MAP, held)
    waiting = await client.delete(CONFIG_MAP, ObjectKey(namespace, "held"))
    await client.create(POD, pod(namespace, "unscheduled"))
    unscheduled = await client.delete(POD, ObjectKey(namespace, "unscheduled"))
    await client.create(POD, pod(namespace, "placed"))
    await bind(client, namespace, "placed")
    placed = await client.delete(POD, ObjectKey(namespace, "placed"))
    again = await client.delete(POD, ObjectKey(namespace, "placed"), grace_seconds=0)

    assert waiting is not None
    assert waiting["metadata"]["deletionTimestamp"]
    assert unscheduled is None
    assert placed is not None
    assert placed["metadata"]["deletionGracePeriodSeconds"] == 30
    assert again is None
    for name in ("unscheduled", "placed"):
        with pytest.raises(errors.NotFound):
            await client.get(POD, ObjectKey(namespace, name))


async def bind(client: Client, namespace: str, name: str) -> None:
    """What the scheduler does; from then on a pod is deleted gracefully."""
    binding = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": name},
        "target": {"apiVersion": "v1", "kind": "Node", "name": "nowhere"},
    }
    await client.request("POST", f"/api/v1/namespaces/{namespace}/pods/{name}/binding", body=binding)


async def test_a_json_patch_only_reaches_the_object_it_was_decided_about(
    client: Client, namespace: str
) -> None:
    key = ObjectKey(namespace, "p")
    made = await client.create(POD, pod(namespace, "p", old="1"))
    operations = [
        {"op": "add", "path": "/metadata/labels/new", "value": "2"},
        {"op": "remove", "path": "/metadata/labels/old"},
    ]
    with pytest.raises(errors.Conflict):
        await client.json_patch(POD, key, operations, uid="somebody-else")
    unchanged = await client.get(POD, key)
    patched = await client.json_patch(POD, key, operations, uid=made["metadata"]["uid"])
    with pytest.raises(errors.Invalid):
        await client.json_patch(POD, key, operations, uid=made["metadata"]["uid"])
    condition = [{"op": "add", "path": "/status/phase", "value": "Running"}]
    running = await client.json_patch(POD, key, condition, subresource="status")

    assert unchanged["metadata"]["labels"] == {"old": "1"}
    assert patched["metadata"]["labels"] == {"new": "2"}
    assert running["status"]["phase"] == "Running"


async def test_a_budget_refuses_an_eviction_and_its_absence_allows_it(client: Client, namespace: str) -> None:
    await client.create(POD, pod(namespace, "p", app="x"))
    await bind(client, namespace, "p")
    ready = [{"type": "Ready", "status": "True"}]
    status = {"phase": "Running", "conditions": ready}
    await client.merge_patch(POD, ObjectKey(namespace, "p"), {"status": status}, subresource="status")
    budget = {
        "metadata": {"namespace": namespace, "name": "b"},
        "spec": {"minAvailable": 1000, "selector": {"matchLabels": {"app": "x"}}},
    }
    await client.create(DISRUPTION_BUDGET, budget)
    # Nobody counts pods here; as the controller would, say that none may go.
    counted = {"observedGeneration": 1, "disruptionsAllowed": 0, "currentHealthy": 1, "desiredHealthy": 1000}
    await client.apply_status(
        DISRUPTION_BUDGET,
        {"metadata": budget["metadata"], "status": counted | {"expectedPods": 1}},
    )

    with pytest.raises(errors.BudgetRefused, match="disruption budget"):
        await client.evict(ObjectKey(namespace, "p"))
    await client.delete(DISRUPTION_BUDGET, ObjectKey(namespace, "b"))
    with pytest.raises(errors.Conflict):
        await client.evict(ObjectKey(namespace, "p"), uid="0000")
    await client.evict(ObjectKey(namespace, "p"))

    assert (await client.get(POD, ObjectKey(namespace, "p")))["metadata"]["deletionTimestamp"]


async def test_a_list_comes_in_pages_of_one_version(client: Client, namespace: str) -> None:
    for number in range(7):
        await client.create(CONFIG_MAP, config_map(namespace, f"c{number}"))
    selection = Selection(kind=CONFIG_MAP, namespace=namespace)

    pages = [page async for page in client.list_pages(selection, limit=3)]

    assert [len(page.items) for page in pages] == [3, 3, 1]
    assert len({page.resource_version for page in pages}) == 1


async def test_without_rights_the_server_says_what_is_missing(api_server: Plane, namespace: str) -> None:
    async with Client(find(api_server.kubeconfig_for("nobody"))) as client:
        with pytest.raises(errors.Forbidden, match='User "nobody" cannot get resource "pods"'):
            await client.get(POD, ObjectKey(namespace, "x"))


async def test_a_server_that_our_authority_does_not_know_is_not_talked_to(
    api_server: Plane, namespace: str
) -> None:
    access = find(api_server.kubeconfig)
    stranger = api_server.certificates.etcd_authority.pair.certificate
    async with Client(replace(access, trust=Trust(authority=stranger))) as client:
        with pytest.raises(errors.Unreachable, match="is not who it should be") as caught:
            await client.get(POD, ObjectKey(namespace, "x"))
    async with Client(replace(access, trust=Trust(insecure=True))) as client:
        with pytest.raises(errors.NotFound):
            await client.get(POD, ObjectKey(namespace, "x"))

    assert "verify failed" in str(caught.value)


async def test_a_rule_that_is_broken_is_told_field_by_field(client: Client, namespace: str) -> None:
    broken = pod(namespace, "p")
    broken["spec"]["containers"][0]["name"] = "Not A Name"

    with pytest.raises(errors.Invalid) as caught:
        await client.create(POD, broken)

    assert caught.value.causes[0].field == "spec.containers[0].name"


async def test_secret_values_are_read_fresh(client: Client, namespace: str) -> None:
    metadata = {"namespace": namespace, "name": "s"}
    await client.create(SECRET, {"metadata": metadata, "stringData": {"key": "value\n"}})

    assert await read_secret(client, ObjectKey(namespace, "s")) == {"key": b"value\n"}


async def test_discovery_knows_what_is_there_and_learns_of_new_kinds(client: Client) -> None:
    discovery = Discovery(client)
    gadget = Kind(group="example.com", version="v1", kind="Gadget", plural="gadgets")
    before = await discovery.serves(gadget)
    schema = {"openAPIV3Schema": {"type": "object"}}
    await client.request(
        "POST",
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
        body={
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": "gadgets.example.com"},
            "spec": {
                "group": "example.com",
                "scope": "Namespaced",
                "names": {"kind": "Gadget", "plural": "gadgets"},
                "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}],
            },
        },
    )
    remembered = await discovery.serves(gadget)
    while not await discovery.serves(gadget):
        discovery.forget()

    assert (before, remembered) == (False, False)
    assert await discovery.serves(POD)
    assert not await discovery.serves(SERVICE_MONITOR)
    assert (await discovery.versions("apps"))[0] == "v1"


async def test_events_are_accepted_and_counted(client: Client, namespace: str) -> None:
    recorder = Recorder(client)
    about = Regarding(api_version="v1", kind="Pod", name="p", namespace=namespace, uid="u")
    recorder.record(about, "Draining", "ä" * 2000, type_="Warning", related=about)
    await recorder.flush()
    recorder.record(about, "Draining", "ä" * 2000, type_="Warning", related=about)
    await recorder.flush()

    pages = [page async for page in client.list_pages(Selection(kind=EVENT, namespace=namespace))]
    (event,) = [json.loads(bytes(item)) for page in pages for item in page.items]
    assert (recorder.sent, recorder.failed) == (2, 0)
    assert event["series"]["count"] == 2
    assert event["reason"] == "Draining"


async def test_the_token_of_a_service_account_works_and_is_read_again(
    api_server: Plane, client: Client, namespace: str, tmp_path: Path
) -> None:
    """As in a pod: a mounted token, an authority in a file, and no certificate of our own."""
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "op"}}
    await client.request("POST", f"/api/v1/namespaces/{namespace}/serviceaccounts", body=account)

    async def token() -> str:
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/op/token"
        answer = await client.request("POST", path, body={"spec": {"expirationSeconds": 600}})
        return str(answer["status"]["token"])

    (tmp_path / "ca.crt").write_bytes(api_server.ca.read_bytes())
    (tmp_path / "token").write_text("expired")
    (tmp_path / "namespace").write_text(namespace)
    host, _, port = api_server.url.removeprefix("https://").partition(":")
    environ = {"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": port}
    async with Client(find(environ=environ, mounted=tmp_path)) as pod_client:
        with pytest.raises(errors.Unauthorised):
            await pod_client.get(POD, ObjectKey(namespace, "x"))
        (tmp_path / "token").write_text(await token())
        with pytest.raises(errors.Forbidden, match=f"system:serviceaccount:{namespace}:op"):
            await pod_client.get(POD, ObjectKey(namespace, "x"))
