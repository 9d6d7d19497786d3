"""Both API groups on a real API server: who acts on what, Soperator's Lease, older manifests, guarded Secrets."""

import base64
import json
import socket
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

import pytest
from crd_rig import Api
from kinds_rig import apply, condition, get, merge, ns, ours, serving_kinds, writes_by
from webhook_rig import at, running_webhook, wait_known

from slurm_local.errors import LocalError
from slurm_local.kubernetes.api_call import Refused
from slurm_operator.api import registry
from slurm_operator.api.nebius import KINDS
from slurm_operator.kube.presence import IDENTITY
from slurm_operator.manifests.builders import admission
from slurm_operator.webhook.authority import first
from testing import nebius
from testing.control_plane import Plane
from testing.managers import free_port, running_manager, until
from testing.rights import operator, webhook

__all__ = ["ns"]

FIRST, SECOND = registry.GROUPS
BOTH = (f"--api={FIRST}", f"--api={SECOND}")
LEASE = "e21479ae.nebius.ai"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/{}/leases"
CLUSTERS = "slurmclusters.slurm.nebius.ai"
CONTROLLERS = "controllers.slinky.slurm.net"
ACCEPTED = nebius.accepted()
MODELS = {cls.KIND.kind: cls for cls in KINDS}
LASTS_SECONDS = 4
PART = "smallest"  # A SlurmCluster's name, and that of its Controller.
OF_PART = (f"controllers/{PART}", f"/{PART}-")
TOLD = "fieldManager=slurm-operator-observing"


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plane]:
    """A server of their own: with two kinds of the name, `kubectl get nodesets` is ambiguous."""
    with serving_kinds(tmp_path_factory.mktemp("both"), kinds=registry.ALL) as plane:
        yield plane


def cluster(plane: Plane, ns: str, name: str = "smallest") -> dict:
    """A SlurmCluster that is there."""
    path = f"/apis/slurm.nebius.ai/v1/namespaces/{ns}/slurmclusters"
    made = {**ACCEPTED["SlurmCluster/smallest"], "metadata": {"name": name}}
    return plane.caller.call("POST", path, made)


def part_of(owner: dict, ns: str) -> dict:
    """A Controller as it is made for a SlurmCluster: of the same name."""
    meta = owner["metadata"]
    manifest = ours("Controller", ns, meta["name"], {})
    reference = {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": meta["name"],
        "uid": meta["uid"],
    }
    manifest["metadata"]["ownerReferences"] = [{**reference, "controller": True}]
    return manifest


def is_told(plane: Plane, ns: str, name: str) -> bool:
    return condition(plane, ns, CONTROLLERS, name)[0] != ""


def touched(plane: Plane, user: str, *words: str) -> list[str]:
    return [write for write in writes_by(plane, user) if any(word in write for word in words)]


@contextmanager
def soperator_acts(plane: Plane, namespace: str, identity: str = "soperator-manager-0_1") -> Iterator[None]:
    """Somebody renews the Lease, as a manager of Soperator does."""
    stop, path = threading.Event(), LEASES.format(namespace)
    spec = {"holderIdentity": identity, "leaseDurationSeconds": LASTS_SECONDS}
    plane.caller.call("POST", path, {"metadata": {"name": LEASE}, "spec": spec | {"renewTime": moment()}})

    def renew() -> None:
        while not stop.wait(0.5):
            patch = {"spec": {"renewTime": moment()}}
            plane.kubectl("patch", "lease", LEASE, "-n", namespace, "--type=merge", "-p", json.dumps(patch))

    renewing = threading.Thread(target=renew)
    renewing.start()
    try:
        yield
    finally:
        stop.set()
        renewing.join()


def moment() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


@pytest.fixture
def soperator_home(plane: Plane) -> Iterator[str]:
    """A namespace that the operator is not told about; its Lease is gone after the test."""
    name = f"soperator-{uuid.uuid4().hex[:8]}"
    plane.caller.call("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
    yield name
    plane.kubectl("delete", "lease", LEASE, "-n", name, "--ignore-not-found")


def test_while_soperator_acts_nothing_of_its_group_is_changed_and_work_starts_when_it_is_silent(
    plane, ns, soperator_home, tmp_path
):
    apply(plane, part_of(cluster(plane, ns), ns), ours("Controller", ns, "plain", {}))
    log, user = tmp_path / "log", f"op-{ns}"
    with running_manager(operator(plane, user), log, "--namespaces", ns, *BOTH) as manager:
        with soperator_acts(plane, soperator_home):
            manager.wait_ready()
            until(lambda: observing(plane, ns)[1] == "AnotherOperatorActs", what="the condition")
            message = observing(plane, ns)[2]
            assert f"soperator-manager-0_1 renews Lease {soperator_home}/{LEASE}" in message
            until(lambda: is_told(plane, ns, "plain"), what="the first group at work")
            assert not is_told(plane, ns, PART)
            assert touched(plane, user, *OF_PART) == []
            later = cluster(plane, ns, "later")["metadata"]["name"]
            until(
                lambda: observing(plane, ns, later)[0] == "True", what="the condition on a new SlurmCluster"
            )
        until(lambda: observing(plane, ns) == observing(plane, ns, later) == ("", "", ""), what="its end")
        until(lambda: is_told(plane, ns, PART), what="work on the part, without a restart")

        written = len(touched(plane, user, TOLD))
        with soperator_acts_again(plane, soperator_home):
            until(lambda: observing(plane, ns)[0] == "True", what="the condition once more")
            merge(plane, ns, CONTROLLERS, PART, {"spec": {"extraConf": "MinJobAge=2"}})
            assert status_generation(plane, ns, PART) < generation(plane, ns, PART)
        until(lambda: status_generation(plane, ns, PART) == generation(plane, ns, PART), what="work again")
        assert len(touched(plane, user, TOLD)) == written + 4, "two objects, told twice"
    lines = [json.loads(line)["message"] for line in log.read_text().splitlines() if line.startswith("{")]
    assert len([line for line in lines if "Soperator acts on slurm.nebius.ai" in line]) == 2
    assert len([line for line in lines if "Soperator does not act any more" in line]) == 2


def observing(plane: Plane, ns: str, name: str = "smallest") -> tuple[str, str, str]:
    return condition(plane, ns, CLUSTERS, name, "Observing")


def generation(plane: Plane, ns: str, name: str) -> int:
    return get(plane, ns, CONTROLLERS, name)["metadata"]["generation"]


def status_generation(plane: Plane, ns: str, name: str) -> int:
    conditions = get(plane, ns, CONTROLLERS, name)["status"]["conditions"]
    return min(one["observedGeneration"] for one in conditions)


@contextmanager
def soperator_acts_again(plane: Plane, namespace: str) -> Iterator[None]:
    plane.kubectl("delete", "lease", LEASE, "-n", namespace)
    with soperator_acts(plane, namespace, "soperator-manager-0_2"):
        yield


def test_a_lease_that_was_left_behind_holds_up_nobody_for_long_and_is_not_told_of(
    plane, ns, soperator_home, tmp_path
):
    spec = {"holderIdentity": "long-gone", "leaseDurationSeconds": LASTS_SECONDS, "renewTime": moment()}
    plane.caller.call("POST", LEASES.format(soperator_home), {"metadata": {"name": LEASE}, "spec": spec})
    apply(plane, part_of(cluster(plane, ns), ns))
    user = f"op-{ns}"
    with running_manager(operator(plane, user), tmp_path / "log", "--namespaces", ns, *BOTH) as manager:
        manager.wait_ready()
        until(lambda: is_told(plane, ns, PART), what="work on the part")

    assert touched(plane, user, TOLD) == []


def test_the_second_group_alone_acts_only_on_parts_of_its_clusters(plane, ns, tmp_path):
    apply(plane, part_of(cluster(plane, ns), ns), ours("Controller", ns, "plain", {}))
    user = f"op-{ns}"
    with running_manager(
        operator(plane, user), tmp_path / "log", "--namespaces", ns, f"--api={SECOND}"
    ) as manager:
        manager.wait_ready()
        until(lambda: is_told(plane, ns, PART), what="work on the part")
        merge(plane, ns, CONTROLLERS, "plain", {"spec": {"extraConf": "MinJobAge=2"}})
        merge(plane, ns, CONTROLLERS, PART, {"spec": {"extraConf": "MinJobAge=2"}})
        until(lambda: status_generation(plane, ns, PART) >= 2, what="the new spec of the part seen")

    assert touched(plane, user, "/plain", "plain-") == []


def test_the_first_group_alone_leaves_parts_of_slurmclusters_alone(plane, ns, tmp_path):
    apply(plane, part_of(cluster(plane, ns), ns), ours("Controller", ns, "plain", {}))
    user = f"op-{ns}"
    with running_manager(operator(plane, user), tmp_path / "log", "--namespaces", ns) as manager:
        manager.wait_ready()
        until(lambda: is_told(plane, ns, "plain"), what="work on what people made")

    assert touched(plane, user, *OF_PART, "slurmclusters") == []


def test_in_soperator_s_place_it_holds_its_lease_serves_admission_and_acts(
    plane, ns, soperator_home, tmp_path
):
    certificate = first(("127.0.0.1",), datetime.now(UTC))
    (tmp_path / "tls.crt").write_bytes(certificate.certificate)
    (tmp_path / "tls.key").write_bytes(certificate.key)
    port = free_port()
    env = {
        "SLURM_OPERATOR_WATCH_NAMESPACES": ns, "WEBHOOK_PORT": str(port), "WEBHOOK_CERT_DIR": str(tmp_path),
        "IS_MARIADB_CRD_INSTALLED": "false",
    }  # fmt: skip
    flags = ("--leader-elect", f"--operator-namespace={soperator_home}", "--cache-sync-timeout=2m")
    user, log = f"op-{ns}", tmp_path / "log"
    asked = admission.validating(
        at(port), kinds=registry.ALL.on([SECOND]), name="soperator", failure_policy="Fail", namespaces=[ns]
    )
    for hook in asked["webhooks"]:
        hook["clientConfig"]["caBundle"] = base64.b64encode(certificate.trusted).decode()
    # Before the manager starts, which makes the same part.
    apply(plane, part_of(cluster(plane, ns), ns), ours("Controller", ns, "plain", {}))
    with running_manager(operator(plane, user), log, *flags, env=env, name="soperator") as manager:
        manager.wait_ready()
        until(lambda: holder(plane, soperator_home).startswith(identity_of(manager)), what="our own Lease")
        until(lambda: is_told(plane, ns, PART), what="work on the part")
        plane.caller.call(
            "POST", "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations", asked
        )
        try:
            until(lambda: "is missing" in warned(plane, ns, ACCEPTED["NodeSet/nodes-without-spec"]))
        finally:
            plane.kubectl("delete", "validatingwebhookconfiguration", "soperator")
    assert touched(plane, user, "/plain", "plain-") == []
    text = log.read_text()
    assert text.count("IS_MARIADB_CRD_INSTALLED has no effect") == 1
    assert text.count("--cache-sync-timeout has no effect") == 1


def holder(plane: Plane, namespace: str) -> str:
    return (get(plane, namespace, "lease", LEASE) or {}).get("spec", {}).get("holderIdentity", "")


def identity_of(manager) -> str:
    assert manager.process.poll() is None, manager.log.read_text()[-3000:]
    return f"{IDENTITY}{socket.gethostname()}"


def warned(plane: Plane, ns: str, manifest: dict) -> str:
    """What the API server says besides its answer; nothing is stored."""
    api = Api(plane)
    try:
        kind = MODELS[manifest["kind"]].KIND
        return "\n".join(api.send("POST", kind.path(ns) + "?dryRun=All", manifest).warnings)
    finally:
        api.close()


@pytest.fixture(scope="module")
def hook(plane, tmp_path_factory):
    """A webhook for both groups. `Fail`, so that no test passes because it was not asked."""
    log = tmp_path_factory.mktemp("hook") / "log"
    with running_webhook(webhook(plane, "webhook"), log, *BOTH) as hook:
        asked = admission.validating(
            at(hook.port), kinds=registry.ALL, failure_policy="Fail", guards_secrets=True
        )
        apply(plane, asked)
        hook.wait_ready()
        wait_known(plane, admission.NAME)
        until(lambda: "is missing" in warned(plane, "default", ACCEPTED["NodeSet/nodes-without-spec"]))
        yield hook
        plane.kubectl("delete", "validatingwebhookconfiguration", admission.NAME)


@pytest.mark.parametrize("name", ACCEPTED)
def test_every_manifest_that_is_accepted_brings_its_warnings_to_whoever_applies_it(plane, ns, hook, name):
    api = Api(plane)
    manifest = ACCEPTED[name]
    try:
        path = MODELS[manifest["kind"]].KIND.path(ns)
        answer = api.send("POST", f"{path}?dryRun=All&fieldValidation=Strict", manifest)
    finally:
        api.close()

    assert answer.status == 201, answer.body
    said = [text.partition(" - ")[2].strip('"').replace('\\"', '"') for text in answer.warnings]
    wanted = nebius.warnings_of(manifest)
    assert [text for text in wanted if not any(_same(text, one) for one in said)] == []
    assert len(said) == len(wanted)


def _same(wanted: str, said: str) -> bool:
    """An API server cuts warnings after 256 characters."""
    return said != "" and wanted.startswith(said[:250])


@pytest.mark.parametrize("note", ["slurm.nebius.ai/cluster", "slurm.nebius.ai/cluster-name"])
def test_a_guarded_secret_stays_as_it_is_while_its_cluster_exists(plane, ns, hook, note):
    cluster(plane, ns)
    meta = {
        "name": "root",
        "namespace": ns,
        "labels": {"slurm.nebius.ai/webhook": "true"},
        "annotations": {note: "smallest"},
    }
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": meta, "stringData": {"password": "a"}}
    path = f"/api/v1/namespaces/{ns}/secrets"
    made = plane.caller.call(
        "POST", path, {**secret, "metadata": {**meta, "finalizers": ["example.com/slow"]}}
    )

    for change in ({"stringData": {"password": "b"}}, {"metadata": {"labels": {"slurm.nebius.ai/webhook": None}}},
                   {"metadata": {"annotations": {"a": "b"}}}):  # fmt: skip
        with pytest.raises(LocalError, match="SlurmCluster 'smallest' uses it"):
            merge(plane, ns, "secret", "root", change)
    with pytest.raises(LocalError, match="delete that first"):
        plane.kubectl("delete", "secret", "root", "-n", ns)
    with pytest.raises(Refused, match=r"annotate it with slurm\.nebius\.ai/cluster"):
        plane.caller.call("POST", path, {**secret, "metadata": {**meta, "name": "whose", "annotations": {}}})

    plane.kubectl("delete", CLUSTERS, "smallest", "-n", ns)
    plane.kubectl("delete", "secret", "root", "-n", ns, "--wait=false")
    cluster(plane, ns)
    merge(plane, ns, "secret", "root", {"metadata": {"finalizers": None}})
    assert get(plane, ns, "secret", "root") is None
    assert made["metadata"]["uid"]
