"""Controllers on a real API server: its opinion of our manifests, and what the running manager makes of one.

No kubelet runs here, so the tests say themselves what became of a rehearsal.
"""

import json

import pytest
from kinds_rig import operator, serving_kinds, writes_by

from testing.controller_cases import CASES, manifests
from testing.managers import running_manager, until


@pytest.mark.parametrize("case", CASES)
def test_the_api_server_takes_every_manifest(api_server, namespace, case):
    """All but the ServiceMonitor, whose definition comes with the Prometheus operator."""
    made = [manifest for manifest in manifests(CASES[case]) if manifest["kind"] != "ServiceMonitor"]
    for manifest in made:
        manifest["metadata"]["namespace"] = namespace

    said = api_server.kubectl(
        "apply", "--server-side", "--dry-run=server", "--validate=strict", "-f", "-",
        stdin="\n---\n".join(map(json.dumps, made)),
    )  # fmt: skip

    assert said.count("serverside-applied") == len(made)


class Space:
    """One namespace with a Controller `slurm` in it, as its owner and its kubelet see it."""

    def __init__(self, plane, name: str) -> None:
        self.plane, self.name = plane, name
        plane.caller.call("POST", "/api/v1/namespaces", {"metadata": {"name": name}})

    def apply(self, kind: str, name: str, spec: dict) -> None:
        api = "slinky.slurm.net/v1beta1"
        thing = {
            "apiVersion": api,
            "kind": kind,
            "metadata": {"name": name, "namespace": self.name},
            "spec": spec,
        }
        self.plane.kubectl("apply", "-f", "-", stdin=json.dumps(thing))

    def controller(self, **spec) -> None:
        self.apply("Controller", "slurm", {"slurmctld": {"image": "slurmctld:26.05"}, **spec})

    def get(self, kind: str, name: str) -> dict | None:
        out = self.plane.kubectl("get", kind, name, "-n", self.name, "-o", "json", "--ignore-not-found")
        return json.loads(out) if out.strip() else None

    def all(self, kind: str) -> dict[str, dict]:
        items = json.loads(self.plane.kubectl("get", kind, "-n", self.name, "-o", "json"))["items"]
        return {item["metadata"]["name"]: item for item in items}

    def condition(self, type_: str) -> dict:
        status = (self.get("controller", "slurm") or {}).get("status") or {}
        return next((c for c in status.get("conditions", ()) if c["type"] == type_), {})

    def until_reason(self, type_: str, reason: str) -> dict:
        until(
            lambda: self.condition(type_).get("reason") == reason,
            what=f"{type_}={reason}, not {self.condition(type_)}",
        )
        return self.condition(type_)

    def rehearsals(self) -> list[str]:
        pods = self.all("pods").values()
        return [p["metadata"]["name"] for p in pods if not p["status"].get("containerStatuses")]

    def end_rehearsal(self, said: str = "good") -> None:
        """What the kubelet would write when the rehearsal is over."""
        until(self.rehearsals, what="a rehearsal")
        ended = {
            "exitCode": 0 if said == "good" else 1,
            "message": said,
            "startedAt": None,
            "finishedAt": None,
        }
        container = {
            "name": "slurmctld",
            "image": "x",
            "imageID": "x",
            "ready": False,
            "restartCount": 0,
            "state": {"terminated": ended},
        }
        status = {"phase": "Succeeded" if said == "good" else "Failed", "containerStatuses": [container]}
        for name in self.rehearsals():
            self.plane.kubectl("patch", "pod", name, "-n", self.name, "--subresource=status", "--type=merge", "-p", json.dumps({"status": status}))  # fmt: skip

    def writes_by(self, user: str) -> list[str]:
        return writes_by(self.plane, user)


@pytest.fixture
def space(plane, request) -> Space:
    return Space(plane, request.node.name.replace("_", "-").lower()[:50].strip("-"))


@pytest.fixture
def manager(plane, space, tmp_path):
    kubeconfig = operator(plane, f"op-{space.name}")
    with running_manager(kubeconfig, tmp_path / "log", "--namespaces", space.name) as manager:
        yield manager.wait_ready()


def test_a_controller_gets_its_children_in_a_safe_order(space, manager):
    space.controller()
    until(lambda: space.get("statefulset", "slurm-controller"), what="the StatefulSet")

    uid = space.get("controller", "slurm")["metadata"]["uid"]
    for kind, name in (
        ("service", "slurm-controller"), ("service", "slurm-controller-internal"), ("service", "slurm-workers-slurm"),
        ("poddisruptionbudget", "slurm-workers-pdb-slurm"), ("configmap", "slurm-config"), ("statefulset", "slurm-controller"),
    ):  # fmt: skip
        [owner] = space.get(kind, name)["metadata"]["ownerReferences"]
        assert (owner["kind"], owner["uid"], owner["controller"]) == ("Controller", uid, True), name
    for name in ("slurm-auth-slurm", "slurm-auth-jwt"):
        assert "ownerReferences" not in space.get("secret", name)["metadata"]
    assert not [name for name in space.all("pods") if "rehearsal" in name], "its own pod tries out the files"
    assert space.condition("Ready")["status"] == "False"
    assert space.get("controller", "slurm")["status"]["endpoint"] == f"slurm-controller.{space.name}:6817"


def test_what_is_deleted_comes_back_and_a_second_operator_writes_nothing(space, plane, tmp_path):
    space.controller()
    with running_manager(operator(plane, "op-first"), tmp_path / "first", "--namespaces", space.name) as first:  # fmt: skip
        first.wait_ready()
        until(lambda: space.get("statefulset", "slurm-controller"), what="the StatefulSet")
        plane.kubectl("delete", "service", "slurm-controller", "-n", space.name)
        until(lambda: space.get("service", "slurm-controller"), what="the Service again")
        settled(space, "op-first")

    with running_manager(operator(plane, "op-second"), tmp_path / "second", "--namespaces", space.name) as second:  # fmt: skip
        second.wait_ready()
        until(
            lambda: 'reconciler="controller",result="done"' in second.get("/metrics", second.metrics)[1],
            what="a pass",
        )

    assert space.writes_by("op-second") == []


def settled(space: Space, user: str) -> None:
    """Until this user has written nothing for three looks in a row."""
    seen: list[int] = []
    until(
        lambda: seen.append(len(space.writes_by(user))) or (len(seen) > 20 and len(set(seen[-20:])) == 1),
        what="quiet",
    )


def test_a_bad_line_never_reaches_the_mounted_files(space, manager):
    space.controller(extraConf="KillWait=5\n")
    until(lambda: space.get("statefulset", "slurm-controller"), what="the StatefulSet")
    good = space.get("configmap", "slurm-config")["data"]

    space.controller(extraConf="KillWait=5\nMaxJobCoutn=9\n")
    told = space.until_reason("Degraded", "ConfigRefused")
    assert "line 2 of spec.extraConf" in told["message"]
    assert "did you mean MaxJobCount?" in told["message"]

    space.controller(extraConf="JobSubmitPlugins=job_submit/nonsense\n")
    space.end_rehearsal("fatal: failed to initialize job_submit plugin")
    told = space.until_reason("Degraded", "RehearsalRefused")
    assert "failed to initialize job_submit plugin" in told["message"]
    refused = space.get("controller", "slurm")["status"]["config"]["refused"]
    assert "job_submit" in refused["message"]
    assert space.get("configmap", "slurm-config")["data"] == good

    space.controller(extraConf="KillWait=7\n")
    space.end_rehearsal()
    until(
        lambda: "KillWait=7" in space.get("configmap", "slurm-config")["data"]["slurm.conf"],
        what="the new file",
    )


def test_files_that_come_later_are_waited_for_and_followed(space, plane, manager):
    space.controller(configFileRefs=[{"name": "more"}], accountingRef={"name": "books"})
    space.until_reason("Degraded", "AccountingNotFound")
    space.apply(
        "Accounting", "books", {"external": True, "externalConfig": {"host": "dbd.example.com", "port": 7000}}
    )
    space.until_reason("Degraded", "KeyMissing")
    key = "--from-literal=slurm.key=" + "k" * 64
    plane.kubectl("create", "secret", "generic", "books-auth-slurm", "-n", space.name, key)
    space.until_reason("Degraded", "ConfigMapNotFound")
    plane.kubectl("create", "configmap", "more", "-n", space.name, "--from-literal=gres.conf=AutoDetect=off")
    until(lambda: space.get("configmap", "slurm-config"), what="the files")

    data = space.get("configmap", "slurm-config")["data"]
    assert data["gres.conf"] == "AutoDetect=off"
    assert "AccountingStorageHost=dbd.example.com\nAccountingStoragePort=7000\n" in data["slurm.conf"]

    plane.kubectl(
        "patch", "configmap", "more", "-n", space.name, "-p", '{"data":{"gres.conf":"AutoDetect=nvml"}}'
    )
    space.end_rehearsal()
    until(
        lambda: space.get("configmap", "slurm-config")["data"]["gres.conf"] == "AutoDetect=nvml",
        what="the edit",
    )


def test_a_controller_that_is_needed_is_deleted_last(space, plane, manager):
    space.controller()
    space.apply("LoginSet", "login", {"controllerRef": {"name": "slurm"}})
    until(lambda: space.get("controller", "slurm")["metadata"].get("finalizers"), what="the finalizer")

    plane.kubectl("delete", "controller", "slurm", "-n", space.name, "--wait=false")
    told = space.until_reason("Progressing", "InUse")
    assert "LoginSet login" in told["message"]
    assert space.get("service", "slurm-controller")

    plane.kubectl("annotate", "controller", "slurm", "-n", space.name, "slinky.slurm.net/force-deletion=true")
    until(lambda: space.get("controller", "slurm") is None, what="the Controller gone")
    assert space.get("secret", "slurm-auth-slurm"), "keys stay"


@pytest.mark.full
def test_a_deletion_in_the_foreground_waits_like_any_other(tmp_path):
    """With the garbage collector of the real controller manager, which then takes children before their owner."""
    with serving_kinds(tmp_path / "plane", controller_manager=True) as plane:
        space = Space(plane, "foreground")
        with running_manager(operator(plane, "op"), tmp_path / "log", "--namespaces", space.name) as manager:  # fmt: skip
            manager.wait_ready()
            space.controller()
            space.apply("LoginSet", "login", {"controllerRef": {"name": "slurm"}})
            until(
                lambda: space.get("controller", "slurm")["metadata"].get("finalizers"), what="the finalizer"
            )

            plane.kubectl(
                "delete", "controller", "slurm", "-n", space.name, "--cascade=foreground", "--wait=false"
            )
            space.until_reason("Progressing", "InUse")
            finalizers = lambda: space.get("controller", "slurm")["metadata"]["finalizers"]  # noqa: E731
            until(lambda: finalizers() == ["slinky.slurm.net/in-use"], what="no deletion in the foreground")
            until(lambda: space.get("service", "slurm-controller"), what="the Service, back if it was taken")
            settled(space, "op")
            assert "deletionTimestamp" not in space.get("service", "slurm-controller")["metadata"]
