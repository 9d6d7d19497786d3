"""The whole manager as a process: it acts, hands over, stands still when stopped, and restarts without a write."""

import base64
import json
import re
import signal
import subprocess
from concurrent.futures import ThreadPoolExecutor

import jwt
import pytest
from kinds_rig import plane

from slurm_operator.api import registry
from slurm_operator.api.slinky.token import Token
from testing.audit import changes_by
from testing.managers import running_manager, until
from testing.rights import operator

__all__ = ["plane"]

KEY = b"0123456789abcdef0123456789abcdef"

LEASE = ("--leader-elect", "--leader-elect-lease-duration=4", "--leader-elect-renew-deadline=3",
         "--leader-elect-retry-period=0.5", "--leader-elect-namespace=default")  # fmt: skip


@pytest.fixture
def ns(plane, request) -> str:
    name = request.node.name.replace("_", "-").lower()[:50].strip("-")
    plane.caller.call("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
    return name


def secret(ns: str, name: str, value: bytes = KEY) -> dict:
    return {
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": ns},
        "data": {"jwt.key": base64.b64encode(value).decode()},
    }  # fmt: skip


def token(ns: str, name: str = "ci", **spec) -> dict:
    return {
        "apiVersion": "slinky.slurm.net/v1beta1", "kind": "Token", "metadata": {"name": name, "namespace": ns},
        "spec": {"jwtKeyRef": {"name": "keys", "key": "jwt.key"}, "username": "ada", **spec},
    }  # fmt: skip


def apply(plane, *manifests: dict) -> None:
    plane.kubectl("apply", "-f", "-", stdin="\n---\n".join(json.dumps(manifest) for manifest in manifests))


def read(plane, ns: str, kind: str, name: str) -> dict | None:
    out = plane.kubectl("get", kind, name, "-n", ns, "-o", "json", "--ignore-not-found")
    return json.loads(out) if out.strip() else None


def claims(plane, ns: str, key: bytes, name: str = "ci-jwt-ada") -> dict | None:
    found = read(plane, ns, "secret", name)
    if found is None:
        return None
    return jwt.decode(base64.b64decode(found["data"]["SLURM_JWT"]), key, algorithms=["HS256"])


def is_lease(entry: dict) -> bool:
    return entry.get("objectRef", {}).get("resource") == "leases"


def wait_ready(plane, ns: str, name: str = "ci") -> None:
    plane.kubectl("wait", "--for=condition=Ready", f"token/{name}", "-n", ns, "--timeout=60s")


def test_a_token_is_signed_told_and_follows_its_key(plane, ns, tmp_path):
    apply(plane, token(ns))
    with running_manager(operator(plane, "op-a"), tmp_path / "log", "--namespaces", ns) as manager:
        manager.wait_ready()
        until(lambda: read(plane, ns, "token", "ci").get("status", {}).get("conditions"), what="a status")
        ready = {c["type"]: c for c in read(plane, ns, "token", "ci")["status"]["conditions"]}["Ready"]
        assert (ready["status"], ready["reason"]) == ("False", "SigningKeyMissing")
        assert "There is no Secret 'keys'" in ready["message"]

        apply(plane, secret(ns, "keys"))
        wait_ready(plane, ns)
        assert claims(plane, ns, KEY)["sun"] == "ada"

        other = KEY[::-1]
        apply(plane, secret(ns, "keys", other))
        until(lambda: signed_with(plane, ns, other), what="a token signed with the new key")
        wait_ready(plane, ns)
        wanted = {"SigningKeyMissing", "Signed", "Renewed"}
        until(lambda: wanted <= reasons(told(plane, ns)), what="the news")
        assert KEY.decode() not in manager.log.read_text() + told(plane, ns)


def told(plane, ns: str) -> str:
    """All events, as the API server has them."""
    return plane.kubectl("get", "events.events.k8s.io", "-n", ns, "-o", "json")


def reasons(events: str) -> set[str]:
    return {event["reason"] for event in json.loads(events)["items"]}


def signed_with(plane, ns: str, key: bytes) -> bool:
    try:
        return claims(plane, ns, key) is not None
    except jwt.InvalidSignatureError:
        return False


def test_health_and_metrics_are_served(plane, ns, tmp_path):
    with running_manager(operator(plane, "op-h"), tmp_path / "log", "--namespaces", ns) as manager:
        manager.wait_ready()
        assert manager.get("/healthz") == (200, "ok\n")
        apply(plane, secret(ns, "keys"), token(ns))
        wait_ready(plane, ns)
        until(lambda: "slurm_operator_cached_objects" in manager.get("/metrics", manager.metrics)[1])
        text = manager.get("/metrics", manager.metrics)[1]
        for name in (
            "slurm_operator_queue_depth{", "slurm_operator_reconcile_seconds_bucket{", "slurm_operator_kube_requests_total{",
            "slurm_operator_event_loop_lag_seconds ", "slurm_operator_is_leader 1.0",
        ):  # fmt: skip
            assert name in text, name
        manager.signal(signal.SIGTERM)
        assert manager.wait() == 0


def test_secure_metrics_ask_the_api_server_who_may_read_them(plane, ns, tmp_path):
    plane.kubectl("create", "serviceaccount", "scraper", "-n", ns)
    with running_manager(
        operator(plane, "op-m"), tmp_path / "log", "--namespaces", ns, "--metrics-secure"
    ) as manager:
        manager.wait_ready()
        bearer = plane.kubectl("create", "token", "scraper", "-n", ns).strip()

        def scrape(*headers: str) -> str:
            command = ["curl", "-sk", f"https://127.0.0.1:{manager.metrics}/metrics"]
            return subprocess.run([*command, *headers], capture_output=True, text=True, check=True).stdout

        assert scrape() == "A bearer token is needed.\n"
        assert "does not know this token" in scrape("-H", "Authorization: Bearer nonsense")
        assert "may not get /metrics" in scrape("-H", f"Authorization: Bearer {bearer}")
        plane.kubectl("create", "clusterrole", f"reader-{ns}", "--verb=get", "--non-resource-url=/metrics")
        plane.kubectl(
            "create",
            "clusterrolebinding",
            f"reader-{ns}",
            f"--clusterrole=reader-{ns}",
            f"--serviceaccount={ns}:scraper",
        )
        until(
            lambda: "slurm_operator_is_leader" in scrape("-H", f"Authorization: Bearer {bearer}"),
            what="access",
        )


def test_when_the_leader_is_killed_the_other_takes_over(plane, ns, tmp_path):
    apply(plane, secret(ns, "keys"))
    flags = ("--namespaces", ns, *LEASE, "--leader-elect-id", ns)
    with (
        running_manager(operator(plane, "op-one"), tmp_path / "one", *flags) as one,
        running_manager(operator(plane, "op-two"), tmp_path / "two", *flags) as two,
    ):
        one.wait_ready(), two.wait_ready()
        apply(plane, token(ns, "first"))
        wait_ready(plane, ns, "first")
        leader = one if any(not is_lease(e) for e in changes_by(plane.audit_log, "op-one")) else two
        leader.signal(signal.SIGKILL)

        apply(plane, token(ns, "second"))

        wait_ready(plane, ns, "second")


def test_a_leader_that_was_stopped_past_its_lease_writes_nothing_when_it_wakes_up(plane, ns, tmp_path):
    apply(plane, secret(ns, "keys"))
    names = [f"t{number}" for number in range(120)]
    flags = ("--namespaces", ns, *LEASE, "--leader-elect-id", ns, "--token-workers=2")
    with running_manager(operator(plane, "op-old"), tmp_path / "old", *flags) as old:
        old.wait_ready()
        with ThreadPoolExecutor() as beside:
            applied = beside.submit(apply, plane, *(token(ns, name) for name in names))
            until(
                lambda: len(changes_by(plane.audit_log, "op-old")) > 20,
                what="the old leader in the midst of its work",
            )
            old.signal(signal.SIGSTOP)
            applied.result()
        with running_manager(operator(plane, "op-new"), tmp_path / "new", *flags) as new:
            new.wait_ready()
            plane.kubectl("wait", "--for=condition=Ready", "token", "--all", "-n", ns, "--timeout=120s")
            before = len(changes_by(plane.audit_log, "op-old"))

            old.signal(signal.SIGCONT)

            assert old.wait() == 3
            assert len(changes_by(plane.audit_log, "op-old")) == before


def test_a_restart_in_an_unchanged_world_writes_nothing_but_the_lease(plane, ns, tmp_path):
    flags = ("--namespaces", ns, *LEASE, "--leader-elect-id", ns)
    apply(plane, secret(ns, "keys"), *(token(ns, f"t{number}") for number in range(5)))
    with running_manager(operator(plane, "op-before"), tmp_path / "before", *flags) as manager:
        manager.wait_ready()
        for number in range(5):
            wait_ready(plane, ns, f"t{number}")
        manager.signal(signal.SIGTERM)
        assert manager.wait() == 0

    with running_manager(operator(plane, "op-after"), tmp_path / "after", *flags) as manager:
        manager.wait_ready()
        until(lambda: passes_without_work(manager) >= 5, what="passes without anything to do")
        manager.signal(signal.SIGTERM)
        assert manager.wait() == 0

    assert [entry for entry in changes_by(plane.audit_log, "op-after") if not is_lease(entry)] == []


def passes_without_work(manager) -> float:
    text = manager.get("/metrics", manager.metrics)[1]
    found = re.search(r'slurm_operator_reconciles_total\{reconciler="token",result="done"\} (\S+)', text)
    return float(found[1]) if found else 0


@pytest.mark.full
def test_referenced_secrets_in_400_namespaces_do_not_exhaust_connections(plane, tmp_path):
    spaces = [f"many-{number}" for number in range(400)]
    apply(plane, *({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}} for name in spaces))
    apply(plane, *(thing for name in spaces for thing in (secret(name, "keys"), token(name))))
    with running_manager(operator(plane, "op-many"), tmp_path / "log") as manager:
        manager.wait_ready()
        until(lambda: ready_tokens(plane) >= 400, seconds=180, what="400 signed tokens")
        apply(plane, token("many-7", "one-more"))
        wait_ready(plane, "many-7", "one-more")
        assert "error" not in {json.loads(line)["level"] for line in manager.log.read_text().splitlines()}


def ready_tokens(plane) -> int:
    items = json.loads(plane.kubectl("get", "tokens", "-A", "-o", "json"))["items"]
    conditions = [c for item in items for c in item.get("status", {}).get("conditions", ())]
    return sum(1 for c in conditions if c["type"] == "Ready" and c["status"] == "True")


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        (("--metrics-addr", "nowhere"), "is not an address to listen on"),
        (("--config", "/does/not/exist"), "Cannot read the settings file"),
        (("--leader-elect-renew-deadline=99",), "A lease needs"),
        (("--kubeconfig", "/does/not/exist"), "/does/not/exist"),
    ],
)
def test_bad_flags_end_at_once_with_what_to_do(plane, tmp_path, flags, says):
    with running_manager(operator(plane, "op-bad"), tmp_path / "log", *flags) as manager:
        assert manager.wait() != 0
        assert says in manager.log.read_text()


def test_a_kind_that_may_be_absent_holds_up_nothing_and_one_that_may_not_be_looked_at_holds_up_everything(
    plane, ns, tmp_path
):
    """With rights for all kinds but one, nothing is decided: to see none is not the same as not to see."""
    user = f"limited-{ns}"
    kubeconfig = plane.kubeconfig_for(user)
    needed = [one for one in registry.DEFAULT if not one.is_optional]
    resources = [f"{one.plural}.{one.group}" for one in needed if one.model is not Token]
    verbs = "--verb=get,list,watch,create,update,patch,delete"
    core = ["pods", "nodes", "secrets", "configmaps", "services", "deployments.apps", "statefulsets.apps",
            "controllerrevisions.apps", "poddisruptionbudgets.policy", "persistentvolumeclaims", "events.events.k8s.io"]  # fmt: skip
    plane.kubectl(
        "create", "clusterrole", user, verbs, *(f"--resource={name}" for name in [*core, *resources])
    )
    plane.kubectl("create", "clusterrolebinding", user, f"--clusterrole={user}", f"--user={user}")
    with running_manager(kubeconfig, tmp_path / "log") as manager:
        until(lambda: _told(manager, "Token.slinky.slurm.net"), what="readiness that names what is missing")
        assert not manager.is_ready
        plane.kubectl("create", "clusterrole", f"{user}-too", verbs, "--resource=tokens.slinky.slurm.net")
        plane.kubectl(
            "create", "clusterrolebinding", f"{user}-too", f"--clusterrole={user}-too", f"--user={user}"
        )
        manager.wait_ready()


def _told(manager, text: str) -> bool:
    try:
        return text in manager.get("/readyz")[1]
    except OSError:
        return False
