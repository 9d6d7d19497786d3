"""Which kinds there are, asked once and again when told to."""

from fake_api_server import Answer, FakeApi

from slurm_operator import wire
from slurm_operator.api.schema.kind import Kind
from slurm_operator.kube.discovery import Discovery
from slurm_operator.manifests.kinds import POD, SERVICE_MONITOR

GROUPS = {
    "/apis/example.com": {
        "versions": [{"version": "v1"}, {"version": "v1beta1"}, {"version": "v2"}],
        "preferredVersion": {"version": "v2"},
    },
    "/apis/example.com/v2": {"resources": [{"name": "things", "kind": "Thing"}]},
    "/api/v1": {"resources": [{"name": "pods", "kind": "Pod"}, {"name": "pods/status", "kind": "Pod"}]},
}
THING = Kind(group="example.com", version="v2", kind="Thing", plural="things")


async def answer(to: Answer) -> None:
    found = GROUPS.get(to.asked.path)
    await (to.json(found) if found else to.refuse(404, "NotFound", "the server could not find it"))


async def test_kinds_are_served_in_the_versions_the_server_names() -> None:
    async with FakeApi(lists=[answer]) as api, api.client() as client:
        discovery = Discovery(client)

        assert await discovery.serves(THING)
        assert await discovery.serves(POD)
        assert not await discovery.serves(
            Kind(group="example.com", version="v1", kind="Thing", plural="things")
        )
        assert not await discovery.serves(SERVICE_MONITOR)
        assert not await discovery.serves(wire.replace(THING, namespaced=False)), "its objects are elsewhere"
        assert await discovery.versions("example.com") == ("v2", "v1", "v1beta1")
        assert await discovery.versions("monitoring.coreos.com") == ()


async def test_it_is_asked_once_until_it_is_to_be_asked_again() -> None:
    async with FakeApi(lists=[answer]) as api, api.client() as client:
        discovery = Discovery(client)
        for _ in range(3):
            await discovery.serves(THING)
        asked_once = len(api.asked)
        discovery.forget()
        await discovery.serves(THING)

    assert (asked_once, len(api.asked)) == (1, 2)
