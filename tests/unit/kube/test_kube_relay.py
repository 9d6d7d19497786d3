"""What is behind the API server: answers come through as they are, tokens with them, and no write slips out."""

from datetime import UTC, datetime

import pytest
from fake_api_server import Answer, FakeApi, refusal

from slurm_operator.api.shared.meta import ObjectKey
from slurm_operator.insight.slurm.proxy import proxy_path, slurm_through
from slurm_operator.kube import errors
from slurm_operator.kube.request import JSON, Request, on_object
from slurm_operator.manifests.kinds import POD
from slurm_operator.slurmrest.errors import SlurmUnreachable

URL = "http://demo-restapi.slurm:6820"
PROXY = "/api/v1/namespaces/slurm/services/http:demo-restapi:6820/proxy"
PING = b'{"pings": [{"hostname": "head", "pinged": "UP", "responding": true, "primary": true, "mode": "primary"}], "errors": []}'


def says(body: bytes, code: int = 200):
    async def answer_so(answer: Answer) -> None:
        await answer.body(body, code)

    return answer_so


def slurm(client):
    return slurm_through(client, (URL,), lambda: b"a key", now=lambda: datetime(2026, 1, 1, tzinfo=UTC))


async def test_slurmrestd_is_asked_through_the_service_with_the_token_in_its_header() -> None:
    async with FakeApi(others=[says(PING)]) as api, api.client(may_write=lambda: False) as client:
        [ping] = await slurm(client).read.ping()

    assert ping.hostname == "head"
    assert all(asked.path.startswith(f"{PROXY}/slurm/v0.0.") for asked in api.asked)
    assert all(asked.headers["x-slurm-user-token"].count(".") == 2 for asked in api.asked)


async def test_an_older_slurmrestd_is_found_by_its_own_not_found() -> None:
    unknown = says(b"Unable to find requested URL", 404)
    async with FakeApi(others=[unknown, unknown, says(PING)]) as api, api.client() as client:
        rest = slurm(client)
        await rest.read.ping()

    versions = [asked.path.removeprefix(f"{PROXY}/slurm/").partition("/")[0] for asked in api.asked]
    assert versions[:3] == sorted(versions[:3], reverse=True)
    assert rest.version == versions[-1] == versions[2]


@pytest.mark.parametrize(
    ("code", "said", "told"),
    [
        pytest.param(403, "services demo-restapi is forbidden", "the right to get services/proxy is missing", id="no right"),
        pytest.param(503, "no endpoints available for service", "no endpoints available", id="no pod behind it"),
        pytest.param(404, 'services "demo-restapi" not found', "not found", id="no Service"),
    ],
)  # fmt: skip
async def test_what_the_api_server_says_itself_is_not_taken_for_slurms_word(
    code: int, said: str, told: str
) -> None:
    async with FakeApi(others=[refusal(code, "Whatever", said)]) as api, api.client() as client:
        with pytest.raises(SlurmUnreachable, match=told):
            await slurm(client).read.ping()


async def test_a_relayed_write_is_held_back_like_any_other() -> None:
    request = Request(verb="proxy", method="POST", path=f"{PROXY}/slurm/v0.0.45/node/a", body=b"{}")
    async with FakeApi(others=[says(b"{}")]) as api, api.client(may_write=lambda: False) as client:
        with pytest.raises(errors.NotLeader):
            await client.relay(request)

    assert api.asked == []


async def test_asking_what_would_be_is_no_write() -> None:
    request = on_object(
        "create", "POST", POD, ObjectKey("ns", ""), params={"dryRun": "All"}, body={}, content_type=JSON
    )
    async with FakeApi(others=[says(b"{}")]) as api, api.client(may_write=lambda: False) as client:
        assert await client.send(request) == b"{}"

    assert api.asked[0].params == {"dryRun": "All"}


def test_the_path_names_scheme_service_and_port() -> None:
    assert proxy_path(URL) == PROXY
