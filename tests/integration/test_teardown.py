"""Taking things down in every order: each ends, and no worker that may have a job goes before it is said to be free.

The API server and the controllers that collect garbage are real. Nobody runs the pods: what a kubelet would say about a
worker is written by the tests, and no Slurm answers, so a worker that runs is never proved to be free.
"""

import json
import random
import re
import uuid
from contextlib import contextmanager
from pathlib import Path

import pytest
from chart_rig import CHARTS, HelmError, helm
from kinds_rig import apply, config_map, get, merge, ours, secret, serving_kinds

from slurm_local.slurm_cluster import wait_established
from slurm_operator.api import KINDS
from slurm_operator.api.schema.crd import crd
from slurm_operator.api.shared import names
from slurm_operator.install import Installation, installation
from slurm_operator.manifests.builders.protection import protection
from testing import rights
from testing.docs import ROOT, Terminal, blocks
from testing.managers import running_manager, until

OPERATOR = "teardown-operator"
CLUSTER = {"nodeSets": [{"name": "cpu", "replicas": 2}], "logins": [{"name": "login"}]}
PARTS = ("clusters", "controllers", "nodesets", "loginsets", "restapis")
CHOSEN = Installation(image="none", webhook_image="none")
WORKERS = ("demo-cpu-0", "demo-cpu-1")


@pytest.fixture(scope="module")
def plane(tmp_path_factory):
    with serving_kinds(tmp_path_factory.mktemp("teardown"), controller_manager=True) as plane:
        apply(plane, {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "machine"}})
        yield plane


@pytest.fixture
def protected(plane):
    """The policy of an installation, for the operator of these tests; gone afterwards."""
    made = protection(OPERATOR)
    apply(plane, *made)
    yield
    plane.kubectl("delete", "--ignore-not-found", "-f", "-", stdin=json.dumps(listed(made)))


@pytest.fixture
def ns(plane) -> str:
    name = f"teardown-{uuid.uuid4().hex[:8]}"
    plane.kubectl("create", "namespace", name)
    plane.wait_for_service_account(name)
    return name


def define(plane) -> None:
    apply(plane, *(crd(kind) for kind in KINDS))
    wait_established(plane.kubectl)


def listed(manifests: list[dict]) -> dict:
    return {"apiVersion": "v1", "kind": "List", "items": manifests}


@contextmanager
def operating(plane, log: Path):
    with running_manager(rights.operator(plane, OPERATOR), log) as manager:
        yield manager.wait_ready()


def make_cluster(plane, ns: str) -> None:
    """Until the operator has made all of it."""
    apply(plane, ours("Cluster", ns, "demo", CLUSTER))

    wanted = {*WORKERS, "demo-controller-0"}
    until(lambda: pods(plane, ns).keys() >= wanted, seconds=120, what="the pods of a cluster")
    until(lambda: held(plane, ns) >= {"nodesets", "controllers"}, what="parts that are held")


def run(plane, ns: str, name: str = WORKERS[0]) -> str:
    """Say of a worker what its kubelet would when slurmd runs; its uid."""
    binding = {"metadata": {"name": name}, "target": {"kind": "Node", "name": "machine"}}
    plane.caller.call("POST", f"/api/v1/namespaces/{ns}/pods/{name}/binding", binding)
    say(plane, ns, name, "Running", {"running": {"startedAt": "2026-01-01T11:00:00Z"}})
    return str(get(plane, ns, "pod", name)["metadata"]["uid"])


def end(plane, ns: str, name: str = WORKERS[0], message: str = "") -> None:
    """Say of a pod what its kubelet would when its last process has ended."""
    ended = {"exitCode": 0, "startedAt": "2026-01-01T11:00:00Z", "finishedAt": "2026-01-01T12:00:00Z"}
    say(plane, ns, name, "Succeeded", {"terminated": {**ended, "message": message}})


def say(plane, ns: str, name: str, phase: str, state: dict) -> None:
    pod = get(plane, ns, "pod", name)
    if pod is None:
        return
    common = {"state": state, "ready": "running" in state, "image": "i", "imageID": "i", "restartCount": 0}
    containers = [{"name": each["name"], **common} for each in pod["spec"]["containers"]]
    status = {"phase": phase, "podIP": "10.0.0.7", "containerStatuses": containers}
    merge(plane, ns, "pod", name, {"status": status}, "--subresource=status")


def bury(plane, ns: str) -> None:
    """What the kubelet of the machine does in the end: pods that are to go, and were placed there, are gone."""
    for name, pod in pods(plane, ns).items():
        if "deletionTimestamp" in pod["metadata"]:
            flags = ("--grace-period=0", "--force", "--ignore-not-found")
            plane.kubectl("delete", "pod", name, "-n", ns, *flags)


def pods(plane, ns: str) -> dict[str, dict]:
    found = json.loads(plane.kubectl("get", "pods", "-n", ns, "-o", "json"))["items"]
    return {pod["metadata"]["name"]: pod for pod in found}


def is_untouched(plane, ns: str, uid: str, name: str = WORKERS[0]) -> bool:
    """Whether that very worker is there, and nobody has asked it to end."""
    pod = pods(plane, ns).get(name, {"metadata": {}})["metadata"]
    return pod.get("uid") == uid and "deletionTimestamp" not in pod


def left(plane, ns: str) -> list[dict]:
    """Objects of our kinds."""
    kinds = ",".join(f"{plural}.{names.GROUP}" for plural in PARTS)
    found: list[dict] = json.loads(plane.kubectl("get", kinds, "-n", ns, "-o", "json"))["items"]
    return found


def held(plane, ns: str) -> set[str]:
    """Plurals of kinds of which something has a finalizer."""
    return {f"{thing['kind'].lower()}s" for thing in left(plane, ns) if thing["metadata"].get("finalizers")}


def wait_all_gone(plane, ns: str) -> None:
    def is_gone() -> bool:
        bury(plane, ns)
        return not left(plane, ns) and not pods(plane, ns)

    until(is_gone, seconds=240, what=f"everything to go: {ns}")


def wait_namespace_gone(plane, ns: str) -> None:
    def is_gone() -> bool:
        bury(plane, ns)
        return get(plane, "", "namespace", ns) is None

    until(is_gone, seconds=240, what=f"the namespace to go: {ns}")


def delete_cluster(plane, ns: str, *flags: str) -> None:
    plane.kubectl("delete", f"clusters.{names.GROUP}", "demo", "-n", ns, "--wait=false", *flags)


@pytest.mark.full
@pytest.mark.parametrize("cascade", ["background", "foreground"])
def test_a_cluster_goes_with_all_it_made_when_no_job_can_be_there(plane, ns, protected, tmp_path, cascade):
    with operating(plane, tmp_path / "log"):
        make_cluster(plane, ns)

        delete_cluster(plane, ns, f"--cascade={cascade}")

        wait_all_gone(plane, ns)
    keys = plane.kubectl("get", "secrets", "-n", ns, "-o", "name")
    assert keys.count("demo") >= 2, "keys stay: state and tokens were made with them"


def test_a_cluster_waits_for_a_worker_that_may_have_a_job_and_goes_after_it(plane, ns, protected, tmp_path):
    with operating(plane, tmp_path / "log"):
        make_cluster(plane, ns)
        uid = run(plane, ns)

        delete_cluster(plane, ns)
        until(lambda: WORKERS[1] not in pods(plane, ns), what="the worker that never started to go")
        assert is_untouched(plane, ns, uid)
        assert {"controllers", "nodesets"} <= held(plane, ns)

        end(plane, ns)
        wait_all_gone(plane, ns)


@pytest.mark.full
def test_a_cluster_that_is_deleted_while_the_operator_is_away_stays_whole_until_it_is_back(
    plane, ns, protected, tmp_path
):
    with operating(plane, tmp_path / "log"):
        make_cluster(plane, ns)
        uid = run(plane, ns)
    before = {name: pod["metadata"]["uid"] for name, pod in pods(plane, ns).items()}

    delete_cluster(plane, ns)
    until(lambda: "nodesets" in held(plane, ns), what="the NodeSet to be held")
    assert before.items() <= {name: pod["metadata"]["uid"] for name, pod in pods(plane, ns).items()}.items()
    assert is_untouched(plane, ns, uid)

    with operating(plane, tmp_path / "again"):
        end(plane, ns)
        wait_all_gone(plane, ns)


@pytest.mark.parametrize(
    "is_there",
    [
        pytest.param(True, id="the operator runs", marks=pytest.mark.full),
        pytest.param(False, id="the operator is away"),
    ],
)
def test_a_namespace_goes_first_and_its_worker_is_not_cut_short(plane, ns, protected, tmp_path, is_there):
    with operating(plane, tmp_path / "log") as manager:
        make_cluster(plane, ns)
        uid = run(plane, ns)
        if is_there:
            plane.kubectl("delete", "namespace", ns, "--wait=false")
            wait_namespace_gone(plane, ns)  # Its slurmctld goes first; then the worker waits alone.
            assert failed_passes(manager) == [], "nothing is put back where everything goes"
            return
    plane.kubectl("delete", "namespace", ns, "--wait=false")

    until(lambda: WORKERS[0] in told(plane, ns), what="the reason in the Namespace's conditions")
    assert is_untouched(plane, ns, uid)

    with operating(plane, tmp_path / "again"):
        wait_namespace_gone(plane, ns)


def failed_passes(manager) -> list[str]:
    """Reconcilers whose passes came to nothing, as the operator counts them."""
    text = manager.get("/metrics", manager.metrics)[1]
    return re.findall(r'reconciles_total\{reconciler="(.*)",result="(?:failed|error)"\}', text)


def told(plane, ns: str) -> str:
    """Why a namespace is still there."""
    conditions = get(plane, "", "namespace", ns)["status"].get("conditions", [])
    return " ".join(condition["message"] for condition in conditions)


@pytest.mark.full
def test_an_operator_that_is_uninstalled_first_leaves_everything_and_finishes_when_it_is_back(
    plane, ns, tmp_path
):
    everything = listed(installation(CHOSEN))
    with operating(plane, tmp_path / "log"):
        apply(plane, *everything["items"])
        make_cluster(plane, ns)
        uid = run(plane, ns)
    plane.kubectl("delete", "-f", "-", stdin=json.dumps(everything))

    merge(plane, ns, f"clusters.{names.GROUP}", "demo", {"metadata": {"labels": {"edited": "yes"}}})
    delete_cluster(plane, ns)
    until(lambda: "nodesets" in held(plane, ns), what="the NodeSet to be held")
    assert is_untouched(plane, ns, uid)

    with operating(plane, tmp_path / "again"):
        end(plane, ns)
        wait_all_gone(plane, ns)


def test_who_does_not_want_the_operator_back_lets_go_by_the_command_in_the_guide(plane, ns, tmp_path):
    with operating(plane, tmp_path / "log"):
        make_cluster(plane, ns)
    plane.kubectl("delete", "namespace", ns, "--wait=false")
    until(lambda: "finalizers remaining" in told(plane, ns), what="the Namespace to name finalizers")

    [command] = [
        block.text
        for block in blocks("sh", (ROOT / "docs/guides/installation.md",))
        if "finalizers" in block.text
    ]
    done = Terminal(tmp_path / "reader", plane.kubeconfig, kubectl=plane.kubectl_program).type(
        command.replace("NAMESPACE", ns)
    )
    assert done.returncode == 0, done.stderr

    wait_namespace_gone(plane, ns)


def test_definitions_that_go_first_wait_for_the_workers_and_can_come_back(plane, ns, protected, tmp_path):
    with operating(plane, tmp_path / "log") as manager:
        make_cluster(plane, ns)
        uid = run(plane, ns)
        definitions = [f"{kind.KIND.plural}.{names.GROUP}" for kind in KINDS]

        plane.kubectl("delete", "crd", *definitions, "--wait=false")
        until(lambda: WORKERS[1] not in pods(plane, ns), what="the worker that never started to go")
        assert is_untouched(plane, ns, uid)

        end(plane, ns)
        until(lambda: "slinky" not in plane.kubectl("get", "crd", "-o", "name"), seconds=240, what="no kinds")
        bury(plane, ns)
        assert manager.process.poll() is None

        define(plane)
        make_cluster(plane, ns)


def test_a_release_is_not_installed_while_the_last_one_is_being_deleted(plane, ns):
    """It would be applied to objects that go: Helm would have a release, and nobody a cluster."""
    before = ours("Controller", ns, "slurm", {})
    before["metadata"]["finalizers"] = ["example.org/held"]
    apply(plane, before)
    plane.kubectl("delete", f"controllers.{names.GROUP}", "slurm", "-n", ns, "--wait=false")
    flags = ("--kubeconfig", str(plane.kubeconfig), "--dry-run=server", "-n", ns)

    with pytest.raises(HelmError, match="Controller slurm of the last release is still being deleted"):
        helm("install", "slurm", str(CHARTS / "slurm"), *flags)

    merge(plane, ns, f"controllers.{names.GROUP}", "slurm", {"metadata": {"finalizers": None}})
    assert "kind: Controller" in helm("install", "slurm", str(CHARTS / "slurm"), *flags)


# ---- Every kind on its own, and the Secrets and ConfigMaps beside them, in any order

PIECES = ("secrets", "configmaps", "nodesets", "loginsets", "restapis", "accountings", "controllers", "tokens", "clusters")  # fmt: skip
ALL_KINDS = tuple(piece for piece in PIECES if piece not in ("secrets", "configmaps"))
KEY_REFS = {
    "slurmKeyRef": {"name": "keys", "key": "slurm.key"},
    "jwtKeyRef": {"name": "keys", "key": "jwt.key"},
}
DRAWN_BY = 20261117


def drawn(count: int) -> list[tuple[str, ...]]:
    """So many different orders, the same ones every time; the first is that of Helm."""
    chance, found = random.Random(DRAWN_BY), {("secrets", "configmaps", *sorted(ALL_KINDS)): None}
    while len(found) < count:
        found[tuple(chance.sample(PIECES, len(PIECES)))] = None
    return list(found)


def make_parts(plane, ns: str) -> None:
    """One object of each kind with keys of the user's, and a Cluster with its own; a worker of each will run."""
    ref = {"controllerRef": {"name": "slurm"}}
    elsewhere = {"external": True, "externalConfig": {"host": "records", "port": 6819}}
    files = {"configFileRefs": [{"name": "files"}], "accountingRef": {"name": "books"}}
    apply(
        plane,
        secret(ns, "keys", **{"slurm.key": "k" * 32, "jwt.key": "j" * 32}),
        config_map(ns, "files", {"gres.conf": "# none\n"}),
        ours("Accounting", ns, "books", {**elsewhere, **KEY_REFS}),
        ours("Controller", ns, "slurm", {**KEY_REFS, **files}),
        ours("RestApi", ns, "slurm", ref),
        ours("NodeSet", ns, "gpu", {**ref, "replicas": 2}),
        ours("LoginSet", ns, "login", ref),
        ours("Token", ns, "ada", {**ref, "username": "ada"}),
        ours("Cluster", ns, "demo", {"nodeSets": [{"name": "cpu", "replicas": 1}]}),
    )


BUSY = ("gpu-0", "demo-cpu-0")


def delete_all(plane, ns: str, piece: str) -> None:
    group = "/api/v1" if piece in ("secrets", "configmaps") else f"/apis/{names.GROUP}/v1beta1"
    plane.caller.call("DELETE", f"{group}/namespaces/{ns}/{piece}")


def everything_left(plane, ns: str) -> list[str]:
    kinds = ",".join(f"{plural}.{names.GROUP}" for plural in ALL_KINDS)
    return plane.kubectl("get", kinds, "-n", ns, "-o", "name").split()


def end_in_every_order(plane, tmp_path, orders: list[tuple[str, ...]]) -> None:
    """All of them beside each other; the operator is away for the middle of each."""
    spaces = {f"order-{uuid.uuid4().hex[:8]}": order for order in orders}
    busy: dict[str, dict[str, str]] = {}
    with operating(plane, tmp_path / "log"):
        for ns in spaces:
            plane.kubectl("create", "namespace", ns)
            plane.wait_for_service_account(ns)
            make_parts(plane, ns)
        for ns in spaces:
            until(lambda ns=ns: pods(plane, ns).keys() >= {*BUSY}, seconds=120, what=f"workers in {ns}")
            busy[ns] = {name: run(plane, ns, name) for name in BUSY}
        for ns, order in spaces.items():
            for piece in order[:3]:
                delete_all(plane, ns, piece)
    for ns, order in spaces.items():
        for piece in order[3:6]:
            delete_all(plane, ns, piece)
    with operating(plane, tmp_path / "again") as manager:
        for ns, order in spaces.items():
            for piece in order[6:]:
                delete_all(plane, ns, piece)
        for ns, order in spaces.items():
            until(
                lambda ns=ns: "gpu-1" not in pods(plane, ns),
                seconds=120,
                what=f"an idle worker to go: {order}",
            )
            assert all(is_untouched(plane, ns, uid, name) for name, uid in busy[ns].items()), order
            for name in BUSY:
                end(plane, ns, name)
        for ns, order in spaces.items():
            what = f"everything to go in the order {order}"
            until(lambda ns=ns: not everything_left(plane, ns), seconds=120, what=what)
            left_ = plane.kubectl("get", "secrets", "-n", ns, "-o", "name").split()
            kept = [name for name in left_ if name.endswith(("-ring", "-signing-keys"))]
            assert kept == [], "copies of keys go with the last who needs them"
        assert manager.process.poll() is None


def test_helms_order_and_another_one_end(plane, protected, tmp_path):
    end_in_every_order(plane, tmp_path, drawn(2))


@pytest.mark.full
@pytest.mark.parametrize(
    "orders", [pytest.param(slice(2, 13), id="second"), pytest.param(slice(13, 24), id="third")]
)
def test_every_order_ends_and_no_worker_that_may_have_a_job_goes_before_its_time(
    plane, tmp_path, orders, request
):
    if orders.start == 2:
        request.getfixturevalue("protected")  # The others go without a policy.
    end_in_every_order(plane, tmp_path, drawn(24)[orders])
