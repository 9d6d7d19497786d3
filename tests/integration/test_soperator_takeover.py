"""A cluster that Soperator made, on a real API server: left alone while it runs, then gone on with.

Kruise's definition stands in for Kruise, and no kubelet and no Slurm runs here: what is shown is who owns, keeps
and writes what. The manager is killed in the middle, and another one goes on.
"""

import json
import signal
from collections.abc import Iterator

import pytest
from click.testing import CliRunner
from kinds_rig import apply, condition, get, ns, operator, serving_kinds, until, wait_reason, writes_by

from slurm_operator.api import registry
from slurm_operator.api.nebius import names
from slurm_operator.cli.kubectl import kubectl_slurm
from slurm_operator.manifests import kinds
from testing import soperator
from testing.audit import changes_by
from testing.control_plane import Plane
from testing.managers import running_manager

__all__ = ["ns"]

pytestmark = pytest.mark.timeout(300)

FIRST, SECOND = registry.GROUPS
BOTH = (f"--api={FIRST}", f"--api={SECOND}")
CLUSTERS, NODESETS = f"slurmclusters.{SECOND}", f"nodesets.{SECOND}"
CONTROLLERS = f"controllers.{FIRST}"
KRUISE = "statefulsets.apps.kruise.io"
MANAGER = "slurm_operator"
# What is neither replaced nor emptied, whatever happens.
KEPT = [
    *(("service", name) for name in (*soperator.SERVICES, names.one_nodeset_service("smallest", "cpu"))),
    *(("secret", name) for name in soperator.SECRETS),
    ("pvc", soperator.CLAIM),
    ("configmap", names.slurm_configs("smallest")),
    ("job", names.populate_jail("smallest")),
]


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plane]:
    with serving_kinds(tmp_path_factory.mktemp("soperator"), kinds=registry.ALL) as plane:
        apply(plane, soperator.KRUISE_CRD)
        name = soperator.KRUISE_CRD["metadata"]["name"]
        plane.kubectl("wait", "--for=condition=Established", "crd", name, "--timeout=60s")
        yield plane


def made(plane: Plane, ns: str, body: dict) -> dict:
    """As Soperator's field manager writes it."""
    path = kinds.kind_of(body).path(ns)
    place = {**body, "metadata": {**body["metadata"], "namespace": ns}}
    there: dict = plane.caller.call("POST", f"{path}?fieldManager={MANAGER}", place)
    return there


def living(plane: Plane, ns: str) -> None:
    """Everything that Soperator makes of one cluster, with pods that run."""
    cluster = made(plane, ns, soperator.cluster())
    workers = made(plane, ns, soperator.workers())
    owners = [soperator.owner(one, one["metadata"]["uid"]) for one in (cluster, workers)]
    for body in soperator.around(*owners):
        made(plane, ns, body)
    job = made(plane, ns, soperator.populated(owners[0]))
    _status(plane, ns, job, {"succeeded": 1})
    workloads = {}
    for body in soperator.stateful_sets(*owners):
        there = made(plane, ns, body)
        workloads[there["metadata"]["name"]] = soperator.owner(there, there["metadata"]["uid"])
    for body in soperator.pods(workloads):
        _status(plane, ns, made(plane, ns, body), {"phase": "Running"})


def _status(plane: Plane, ns: str, body: dict, status: dict) -> None:
    path = kinds.kind_of(body).path(ns, body["metadata"]["name"], "status")
    plane.caller.call("PATCH", path, {"status": status}, kind="application/merge-patch+json")


def versions(plane: Plane, ns: str) -> dict[str, tuple[str, str]]:
    """Uid and version of everything that Soperator made."""
    listed = "service,secret,configmap,pvc,job,deployment,statefulsets.apps.kruise.io,pod"
    found = json.loads(plane.kubectl("get", listed, "-n", ns, "-o", "json"))["items"]
    return {
        f"{one['kind']}/{one['metadata']['name']}": (
            one["metadata"]["uid"],
            one["metadata"]["resourceVersion"],
        )
        for one in found
        if one["metadata"]["name"] != "kube-root-ca.crt"
    }


def uids(plane: Plane, ns: str) -> dict[tuple[str, str], str]:
    return {(kind, name): get(plane, ns, kind, name)["metadata"]["uid"] for kind, name in KEPT}


def keys(plane: Plane, ns: str) -> dict[str, dict]:
    return {name: get(plane, ns, "secret", name)["data"] for name in soperator.SECRETS}


def told_by_doctor(plane: Plane, way: str) -> str:
    kubeconfig = plane.kubeconfig_for("doctor", "system:masters")
    result = CliRunner().invoke(kubectl_slurm, ["doctor", *way.split(), "--kubeconfig", str(kubeconfig)])
    assert result.exit_code == 0, result.output
    assert changes_by(plane.audit_log, "doctor") == []
    return " ".join(result.stdout.split())


def test_a_cluster_of_soperator_is_left_alone_and_then_gone_on_with(plane, ns, tmp_path):
    living(plane, ns)
    before, kept, secrets = versions(plane, ns), uids(plane, ns), keys(plane, ns)
    addresses = {
        name: get(plane, ns, "service", name)["spec"].get("clusterIP") for name in soperator.SERVICES
    }
    told = told_by_doctor(plane, "--from soperator")
    assert "smallest-controller" in told
    assert soperator.CLAIM in told
    user = f"op-{ns}"
    second = f"again-{ns}"

    with running_manager(operator(plane, user), tmp_path / "first", "--namespaces", ns, *BOTH) as manager:
        manager.wait_ready()
        for kind, name in ((CLUSTERS, "smallest"), (NODESETS, "cpu")):
            said = wait_reason(plane, ns, kind, name, "SoperatorPodsRunning")
            assert "doctor --from soperator" in said
        assert versions(plane, ns) == before, "not one write to anything that Soperator made"

        # Without its pods, but while Kruise may make some again.
        pods = [
            f"{name}-{n}" for name, (_, _, count) in soperator.STATEFUL_SETS.items() for n in range(count)
        ]
        plane.kubectl("delete", "pod", "-n", ns, *pods, "--grace-period=0", "--force")
        until(
            lambda: "StatefulSet cpu (0)" in condition(plane, ns, CLUSTERS, "smallest")[2],
            what="a StatefulSet without pods counts",
        )
        assert get(plane, ns, CONTROLLERS, "smallest") is None

        plane.kubectl("delete", KRUISE, "-n", ns, *soperator.STATEFUL_SETS, "--wait=false")
        plane.kubectl("delete", "deployment", "-n", ns, *soperator.DEPLOYMENTS, "--wait=false")
        until(lambda: " ".join(writes_by(plane, user)).count("/services/") > 0, what="the first Service")
        manager.signal(signal.SIGKILL)
        manager.wait()

    with running_manager(operator(plane, second), tmp_path / "second", "--namespaces", ns, *BOTH) as manager:
        manager.wait_ready()
        until(lambda: get(plane, ns, CONTROLLERS, "smallest") is not None, what="the parts")
        part = get(plane, ns, CONTROLLERS, "smallest")
        assert part["spec"]["persistence"]["existingClaim"] == soperator.CLAIM
        for name in (names.controller_service("smallest"), names.nodeset_service("smallest")):
            until(
                lambda name=name: owners(plane, ns, "service", name) == [("Controller", "smallest")],
                what=f"{name} belongs to its part",
            )
        until(
            lambda: (
                owners(plane, ns, "service", names.login_service("smallest"))
                == [("LoginSet", "smallest-login")]
            ),
            what="the login Service belongs to its part",
        )
        until(
            lambda: (
                owners(plane, ns, "service", names.one_nodeset_service("smallest", "cpu"))
                == [("NodeSet", "cpu")]
            ),
            what="the Service of the NodeSet belongs to its part",
        )
        rehearsed(plane, ns)
        until(lambda: get(plane, ns, "statefulset.apps", "smallest-controller") is not None, what="slurmctld")
        written = get(plane, ns, "configmap", names.slurm_configs("smallest"))["data"]["slurm.conf"]
        assert "StateSaveLocation=/var/spool/slurmctld/smallest" in written, "where its volume is mounted"
        pod = get(plane, ns, "statefulset.apps", "smallest-controller")["spec"]["template"]["spec"]
        state = next(one for one in pod["volumes"] if one["name"] == "statesave")
        assert state["persistentVolumeClaim"]["claimName"] == soperator.CLAIM

        assert uids(plane, ns) == kept, "the same objects as before"
        assert keys(plane, ns) == secrets, "with the same keys"
        assert {
            name: get(plane, ns, "service", name)["spec"].get("clusterIP") for name in soperator.SERVICES
        } == addresses
        for name in soperator.SECRETS:
            assert owners(plane, ns, "secret", name) == [], "keys outlive the SlurmCluster"
        for one in (CONTROLLERS, f"loginsets.{FIRST}", f"nodesets.{FIRST}"):
            for thing in json.loads(plane.kubectl("get", one, "-n", ns, "-o", "json"))["items"]:
                reasons = [found["reason"] for found in thing.get("status", {}).get("conditions", [])]
                assert "NameTaken" not in reasons, thing["metadata"]["name"]
    assert refused(plane, second) == [], "what the first one was killed in the middle of does not count"
    assert "controllers.slinky.slurm.net/smallest" in told_by_doctor(plane, "--to soperator")


def test_workers_are_taken_over_with_the_jobs_in_them_when_a_person_asks_for_it(plane, ns, tmp_path):
    """Kruise's definition stands in for Kruise, and this test for the garbage collector: it releases pods."""
    living(plane, ns)
    workers = [f"{soperator.WORKERS}-{number}" for number in range(2)]
    pods = {name: get(plane, ns, "pod", name)["metadata"]["uid"] for name in workers}
    others = {name: found for name, found in versions(plane, ns).items() if not _is_of_workers(name)}
    user, second = f"op-{ns}", f"again-{ns}"

    with running_manager(operator(plane, user), tmp_path / "first", "--namespaces", ns, *BOTH) as manager:
        manager.wait_ready()
        said = wait_reason(plane, ns, CLUSTERS, "smallest", "SoperatorPodsRunning")
        assert names.TAKE_OVER in said
        plane.kubectl("annotate", CLUSTERS, "-n", ns, "smallest", f"{names.TAKE_OVER}=true")
        until(
            lambda: get(plane, ns, KRUISE, soperator.WORKERS)["metadata"].get("deletionTimestamp"),
            what="the StatefulSet of the workers is deleted",
        )
        there = get(plane, ns, KRUISE, soperator.WORKERS)["metadata"]
        assert "orphan" in there["finalizers"], "its pods are not to go with it"
        manager.signal(signal.SIGKILL)
        manager.wait()

    released(plane, ns, KRUISE, soperator.WORKERS, workers)
    with running_manager(operator(plane, second), tmp_path / "second", "--namespaces", ns, *BOTH) as manager:
        manager.wait_ready()
        for name in workers:
            until(
                lambda name=name: owners(plane, ns, "pod", name) == [("NodeSet", soperator.WORKERS)],
                what=f"{name} is adopted",
            )
        said = wait_reason(plane, ns, CLUSTERS, "smallest", "SoperatorPodsRunning")
        assert "taken over" in said
        assert "smallest-controller" in said
        until(
            lambda: "pod-protect" in " ".join(get(plane, ns, "pod", workers[0])["metadata"]["labels"]),
            what="nobody else can evict it",
        )
        left = {name: found for name, found in versions(plane, ns).items() if not _is_of_workers(name)}
        assert left == others, "nothing else of Soperator's was written"
        assert get(plane, ns, CONTROLLERS, "smallest") is None

        plane.kubectl("delete", "deployment", "-n", ns, *soperator.DEPLOYMENTS, "--wait=false")
        plane.kubectl("delete", KRUISE, "-n", ns, names.controller("smallest"), "--wait=false")
        plane.kubectl(
            "delete", "pod", "-n", ns, f"{names.controller('smallest')}-0", "--grace-period=0", "--force"
        )
        until(lambda: get(plane, ns, CONTROLLERS, "smallest") is not None, what="the parts")
        assert get(plane, ns, f"loginsets.{FIRST}", names.login("smallest")) is None
        assert get(plane, ns, KRUISE, names.login("smallest")) is not None, "people may be logged in"
        login = get(plane, ns, "service", names.login_service("smallest"))["metadata"]
        assert [one["kind"] for one in login["ownerReferences"]] == ["SlurmCluster"]
        rehearsed(plane, ns)
        until(lambda: get(plane, ns, "statefulset.apps", "smallest-controller") is not None, what="slurmctld")
        written = get(plane, ns, "configmap", names.slurm_configs("smallest"))["data"]["slurm.conf"]
        [line] = [one for one in written.splitlines() if one.startswith("NodeName=")]
        assert line.startswith("NodeName=cpu-[0-1] "), "the jobs of a node without a line would end"
        assert "CPUs" not in line, "nor may it change what they were given"

    assert {name: get(plane, ns, "pod", name)["metadata"]["uid"] for name in workers} == pods
    deleted = [
        one["requestURI"]
        for user_ in (user, second)
        for one in changes_by(plane.audit_log, user_)
        if one["verb"] == "delete" and "/pods/" in one["requestURI"]
    ]
    assert [uri for uri in deleted if any(f"/pods/{name}" in uri for name in workers)] == []


GOOD = {"name": "slurmctld", "image": "x", "imageID": "x", "ready": False, "restartCount": 0,
        "state": {"terminated": {"exitCode": 0, "message": "good", "startedAt": None, "finishedAt": None}}}  # fmt: skip
"""A rehearsal that went well, as a kubelet tells it."""


def rehearsed(plane: Plane, ns: str) -> None:
    """No kubelet runs here: the files that slurmctld is to start with are tried out well."""

    def there() -> list[str]:
        return [
            one for one in plane.kubectl("get", "pod", "-n", ns, "-o", "name").split() if "rehearsal" in one
        ]

    until(there, what="a rehearsal")
    for name in there():
        status = {"status": {"phase": "Succeeded", "containerStatuses": [GOOD]}}
        plane.kubectl(
            "patch", name, "-n", ns, "--subresource=status", "--type=merge", "-p", json.dumps(status)
        )


def released(plane: Plane, ns: str, kind: str, name: str, pods: list[str]) -> None:
    """What Kubernetes' garbage collector does for who is deleted without its dependents."""
    for pod in pods:
        plane.kubectl("patch", "pod", "-n", ns, pod, "--type=json", "-p", json.dumps(
            [{"op": "remove", "path": "/metadata/ownerReferences"}]
        ))  # fmt: skip
    left = [{"op": "replace", "path": "/metadata/finalizers", "value": []}]
    plane.kubectl("patch", kind, "-n", ns, name, "--type=json", "-p", json.dumps(left))


def _is_of_workers(name: str) -> bool:
    """What is theirs, and what our operator writes for them."""
    return name in {
        f"StatefulSet/{soperator.WORKERS}",
        *(f"Pod/{soperator.WORKERS}-{n}" for n in range(2)),
    } or (
        name == f"Service/{names.one_nodeset_service('smallest', soperator.WORKERS)}"
        or name == f"ConfigMap/{names.nodeset_limits('smallest', soperator.WORKERS)}"
    )


def owners(plane: Plane, ns: str, kind: str, name: str) -> list[tuple[str, str]]:
    found = get(plane, ns, kind, name)["metadata"].get("ownerReferences") or ()
    return [(one["kind"], one["name"]) for one in found]


LOST_RACE = "the server rejected our request due to an error in our request"
"""All that the server says when the `test` of a JSON patch fails: the object changed first, and the next pass
decides again."""


def refused(plane: Plane, user: str) -> list[str]:
    """Writes that the API server did not take, apart from patches that lost a race."""
    return [
        f"{one['requestURI']}: {one['responseStatus']}"
        for one in changes_by(plane.audit_log, user)
        if one["responseStatus"]["code"] >= 400
        and "leases" not in one["requestURI"]
        and one["responseStatus"].get("message") != LOST_RACE
    ]
