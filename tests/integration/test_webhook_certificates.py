"""The webhook's certificates on a real API server: made once, shared, renewed while questions keep coming."""

import asyncio
import base64
import ssl
import threading
import uuid
from datetime import UTC, datetime, timedelta

import aiohttp
import pytest
from aiohttp import web
from kinds_rig import apply, get, ns, ours, plane
from webhook_rig import at, running_webhook, wait_known

from slurm_local.kubernetes.api_call import Refused
from slurm_operator.api.shared.meta import ObjectKey
from slurm_operator.kube.auth.config import find
from slurm_operator.kube.client import Client
from slurm_operator.manifests.builders import admission
from slurm_operator.runtime.settings import Address
from slurm_operator.webhook.authority import AUTHORITY_LIFE, Bundle, first, renewed
from slurm_operator.webhook.keeping import FileKeeper, SecretKeeper
from slurm_operator.webhook.lookup import Lookup
from slurm_operator.webhook.metrics import Metrics
from slurm_operator.webhook.process import Settings, answerers
from slurm_operator.webhook.server import Admission, listening
from slurm_operator.webhook.serving import Served
from testing.managers import free_port, until
from testing.rights import webhook

__all__ = ["ns", "plane"]

HOSTS = ("127.0.0.1",)
WORKERS = {"controllerRef": {"name": "slurm"}}


class Clock:
    """A time that a test chooses, as far from now as it likes."""

    def __init__(self) -> None:
        self.ago = timedelta()

    def __call__(self) -> datetime:
        return datetime.now(UTC) - self.ago


@pytest.fixture
def configuration(plane):
    """A webhook configuration of one test, which refuses what it cannot ask about; gone afterwards."""
    name = f"certificates-{uuid.uuid4().hex[:8]}"
    yield name
    plane.kubectl("delete", "validatingwebhookconfiguration", name, "--ignore-not-found")


class Questions(threading.Thread):
    """Writes NodeSets without storing them, as fast as the API server answers, and keeps what went wrong."""

    def __init__(self, plane, ns: str) -> None:
        super().__init__(daemon=True)
        self._plane, self._ns = plane, ns
        self.asked, self.failed, self.done = 0, [], threading.Event()

    def run(self) -> None:
        path = f"/apis/slinky.slurm.net/v1beta1/namespaces/{self._ns}/nodesets?dryRun=All"
        while not self.done.is_set():
            try:
                self._plane.caller.call("POST", path, ours("NodeSet", self._ns, "asked", WORKERS))
            except Refused as error:
                self.failed.append(str(error))
            self.asked += 1

    async def ask(self, more: int) -> None:
        wanted = self.asked + more
        await asyncio.to_thread(until, lambda: self.asked >= wanted, what=f"{wanted} questions")


def shown(port: int) -> str:
    return ssl.get_server_certificate(("127.0.0.1", port), timeout=10)


def stored(plane, ns: str, name: str = "certificates") -> Bundle:
    data = get(plane, ns, "secret", name)["data"]
    return Bundle.of({name: base64.b64decode(value) for name, value in data.items()})


async def test_certificates_and_authority_are_renewed_without_a_dropped_question(plane, ns, configuration):
    port, clock, served = free_port(), Clock(), Served()
    async with Client(find(plane.kubeconfig)) as client:
        paths = answerers(
            Lookup(client), Settings(server=Address("", 0), health=Address("", 0), metrics=Address("", 0))
        )
        keeper = SecretKeeper(client, ObjectKey(ns, "certificates"), HOSTS, [configuration], served, clock)
        app = Admission(paths, Metrics()).app()

        clock.ago = AUTHORITY_LIFE - timedelta(days=360)  # Nine years ago somebody installed this.
        await keeper.look()
        clock.ago = timedelta(days=2)  # The day before yesterday a new authority was added ...
        await keeper.look()
        await keeper.look()  # ... and the old one signed once more.
        old = stored(plane, ns)
        assert len(old.certificates) == 2

        apply(
            plane, admission.validating(at(port), name=configuration, failure_policy="Fail", namespaces=[ns])
        )
        await keeper.look()
        async with listening(app, Address("127.0.0.1", port), served):
            questions = Questions(plane, ns)
            questions.start()
            heard = lambda: questions.asked > len(questions.failed)  # noqa: E731
            await asyncio.to_thread(until, heard, what="an API server that knows the configuration")
            questions.failed.clear()
            await questions.ask(5)
            before = await asyncio.to_thread(shown, port)

            clock.ago = timedelta()
            await keeper.look()  # The new authority signs.
            promoted = stored(plane, ns)
            await questions.ask(10)
            after = await asyncio.to_thread(shown, port)

            await keeper.look()
            await questions.ask(5)
            questions.done.set()
            await asyncio.to_thread(questions.join)

    assert questions.failed == []
    assert before == old.certificate.decode()
    assert after == promoted.certificate.decode() != before
    assert promoted.certificates == list(reversed(old.certificates)), "the old authority is still trusted"
    assert stored(plane, ns) == promoted


async def test_whoever_trusts_what_was_made_known_before_is_served_through_every_renewal():
    """Connections that are opened again and one that stays, while certificate and authority change under them."""
    port, now, served = free_port(), datetime.now(UTC), Served()
    bundle = first(HOSTS, now - AUTHORITY_LIFE + timedelta(days=360))
    bundle = renewed(renewed(bundle, HOSTS, now - timedelta(days=2)), HOSTS, now - timedelta(days=2))
    served.use(bundle.certificate, bundle.key)
    trusts = ssl.create_default_context(cadata=bundle.trusted.decode())
    app = web.Application()
    app.router.add_get("/", slow_ok)
    seen = set()
    async with listening(app, Address("127.0.0.1", port), served), aiohttp.ClientSession() as stays:
        for when in (now, now + timedelta(seconds=1)):
            await get_ok(stays, port, trusts)
            asked = [asyncio.create_task(reconnect(port, trusts)) for _ in range(20)]
            await asyncio.sleep(0.02)
            bundle = renewed(bundle, HOSTS, when)
            served.use(bundle.certificate, bundle.key)
            asked += [asyncio.create_task(reconnect(port, trusts)) for _ in range(20)]
            await asyncio.gather(*asked)
            await get_ok(stays, port, trusts)
            seen.add(await asyncio.to_thread(shown, port))

    assert seen == {bundle.certificate.decode()}, "what the new authority signed"
    assert bundle.serving.issuer == bundle.certificates[0].subject


async def slow_ok(_request: web.Request) -> web.Response:
    await asyncio.sleep(0.05)
    return web.Response(text="ok")


async def reconnect(port: int, trusts: ssl.SSLContext) -> None:
    async with aiohttp.ClientSession() as session:
        await get_ok(session, port, trusts)


async def get_ok(session: aiohttp.ClientSession, port: int, trusts: ssl.SSLContext) -> None:
    async with session.get(f"https://127.0.0.1:{port}/", ssl=trusts) as answer:
        assert await answer.text() == "ok"


def test_replicas_that_start_at_once_share_one_certificate(plane, ns, tmp_path):
    user = webhook(plane, "webhook")
    plane.kubectl("delete", "secret", Settings.secret, "-n", "default", "--ignore-not-found")
    with running_webhook(user, tmp_path / "a") as one, running_webhook(user, tmp_path / "b") as two:
        one.wait_ready()
        two.wait_ready()

        assert one.certificate == two.certificate
        assert (
            base64.b64decode(get(plane, "default", "secret", Settings.secret)["data"]["tls.crt"]).decode()
            == one.certificate
        )


def test_somebody_s_ruined_secret_is_made_anew_and_made_known(plane, ns, configuration, tmp_path):
    async def look() -> Served:
        served = Served()
        async with Client(find(plane.kubeconfig)) as client:
            await SecretKeeper(client, ObjectKey(ns, "certificates"), HOSTS, [configuration], served).look()
        return served

    apply(plane, admission.validating(at(1), name=configuration, namespaces=["nowhere"]))
    plane.kubectl("create", "secret", "generic", "certificates", "-n", ns, "--from-literal=ca.crt=nonsense")

    assert asyncio.run(look()).is_ready

    wait_known(plane, configuration)
    known = get(plane, "", "validatingwebhookconfiguration", configuration)["webhooks"]
    assert {base64.b64decode(one["clientConfig"]["caBundle"]) for one in known} == {stored(plane, ns).trusted}


def test_a_webhook_that_finds_a_ruined_secret_at_its_start_mends_it(plane, tmp_path):
    """Under its own account, which may update this Secret and no other."""
    plane.kubectl("delete", "secret", Settings.secret, "-n", "default", "--ignore-not-found")
    plane.kubectl("create", "secret", "generic", Settings.secret, "-n", "default", "--from-literal=tls.crt=x")

    with running_webhook(webhook(plane, "webhook"), tmp_path / "log") as hook:
        hook.wait_ready()

        assert hook.certificate == stored(plane, "default", Settings.secret).certificate.decode()


def test_certificates_of_others_are_read_again_when_they_change(plane, tmp_path):
    """As cert-manager's Secret is mounted: the Deployment of the Slinky operator starts with its own flags."""
    now = datetime.now(UTC)
    old, new = first(HOSTS, now), first(HOSTS, now)
    write(tmp_path, old)
    flags = ("--leader-elect", "--enable-http2=false", "--metrics-secure=false", "--zap-log-level=info",
             "--namespaces=", "--leader-elect-namespace=", f"--cert-dir={tmp_path}")  # fmt: skip
    with running_webhook(plane.kubeconfig_for("nobody-at-all"), tmp_path / "log", *flags) as hook:
        hook.wait_ready()
        assert hook.certificate == old.certificate.decode()

        write(tmp_path, new)
        until(lambda: hook.certificate == new.certificate.decode(), what="the new certificate")

        hook.process.terminate()
        assert hook.process.wait(30) == 0


async def test_a_half_written_file_leaves_the_old_certificate_in_use(tmp_path):
    served, now = Served(), datetime.now(UTC)
    keeper = FileKeeper(tmp_path, served)
    write(tmp_path, first(HOSTS, now))
    await keeper.look()
    until_before = served.expires_at

    (tmp_path / "tls.crt").write_bytes(first(HOSTS, now + timedelta(days=1)).certificate)
    with pytest.raises(Exception, match="belong together"):
        await keeper.look()

    assert served.expires_at == until_before


def write(directory, bundle: Bundle) -> None:
    (directory / "tls.key").write_bytes(bundle.key)
    (directory / "tls.crt").write_bytes(bundle.certificate)
