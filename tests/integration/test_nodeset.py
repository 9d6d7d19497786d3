"""NodeSets on a real API server: what is made, in which order it goes, and that nothing is written twice."""

import json

from kinds_rig import apply, get, merge, ns, operator, ours, wait_for, writes_by

from slurm_operator import wire
from slurm_operator.manifests.objects import Pod
from slurm_operator.plan.actions import PatchObject
from slurm_operator.reconcilers.nodeset.annotations import marked
from slurm_operator.reconcilers.nodeset.report.pod_conditions import condition_writes, kubernetes_time
from slurm_operator.reconcilers.nodeset.workers import Worker
from testing.managers import running_manager, until
from testing.workers import NOW, nodeset, slurm, slurm_node

__all__ = ["ns"]

CONTROLLER = {"external": True, "externalConfig": {"host": "c", "port": 6817},
              "slurmKeyRef": {"name": "k", "key": "slurm.key"}, "jwtKeyRef": {"name": "k", "key": "jwt.key"}}  # fmt: skip
SCRATCH = {
    "metadata": {"name": "scratch"},
    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
}
WORKERS = {
    "controllerRef": {"name": "slurm"},
    "replicas": 2,
    "slurmd": {"image": "slurmd:1"},
    "volumeClaimTemplates": [SCRATCH],
    "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Delete", "whenScaled": "Delete"},
    "ssh": {
        "enabled": True,
        "extraSshdConfig": "MaxSessions 3",
        "sssdConfRef": {"name": "sssd", "key": "sssd.conf"},
    },
}


def owners(plane, ns: str, name: str) -> list[str]:
    found = get(plane, ns, "persistentvolumeclaim", name)
    return [ref["kind"] for ref in found["metadata"].get("ownerReferences", [])]


def test_workers_come_with_all_they_need_and_go_in_order(plane, ns, tmp_path):
    apply(plane, ours("Controller", ns, "slurm", CONTROLLER), ours("NodeSet", ns, "gpu", WORKERS))
    with running_manager(operator(plane, f"op-{ns}"), tmp_path / "log", "--namespaces", ns) as manager:
        manager.wait_ready()
        pod = wait_for(plane, ns, "pod", "gpu-1")
        assert {v["name"]: v.get("persistentVolumeClaim") for v in pod["spec"]["volumes"]}["scratch"] == {
            "claimName": "scratch-gpu-1"
        }
        assert "MaxSessions 3" in get(plane, ns, "configmap", "gpu-ssh-config")["data"]["sshd_config"]
        assert owners(plane, ns, "scratch-gpu-1") == ["NodeSet"]
        until(lambda: get(plane, ns, "nodeset", "gpu").get("status", {}).get("desired") == 2, what="a status")

        merge(plane, ns, "nodeset", "gpu", {"spec": {"replicas": 1}})
        until(lambda: get(plane, ns, "pod", "gpu-1") is None, what="gpu-1 gone: its slurmd had never started")
        until(
            lambda: get(plane, ns, "nodeset", "gpu")["status"].get("replicas") == 1, what="a settled status"
        )
        assert owners(plane, ns, "scratch-gpu-1") == ["Pod"]
        assert owners(plane, ns, "scratch-gpu-0") == ["NodeSet"]

    with running_manager(operator(plane, f"again-{ns}"), tmp_path / "again", "--namespaces", ns) as manager:
        manager.wait_ready()
        passes = 'reconciles_total{reconciler="nodeset"'
        until(lambda: passes in manager.get("/metrics", manager.metrics)[1], what="a pass")
        assert [write for write in writes_by(plane, f"again-{ns}") if "/controllers/" not in write] == []

        plane.kubectl("delete", "nodeset", "gpu", "-n", ns, "--wait=false")
        until(lambda: get(plane, ns, "nodeset", "gpu") is None, what="the NodeSet gone, with its last worker")
        assert get(plane, ns, "pod", "gpu-0") is None


def test_a_template_that_comes_back_is_the_newest_revision_again(plane, ns, tmp_path):
    spec = {"controllerRef": {"name": "slurm"}, "replicas": 1, "revisionHistoryLimit": 5}
    apply(plane, ours("Controller", ns, "slurm", CONTROLLER))
    with running_manager(operator(plane, f"op-{ns}"), tmp_path / "log", "--namespaces", ns) as manager:
        manager.wait_ready()
        for image, newest in (("slurmd:1", [1]), ("slurmd:2", [1, 2]), ("slurmd:1", [2, 3])):
            apply(plane, ours("NodeSet", ns, "gpu", {**spec, "slurmd": {"image": image}}))
            until(lambda newest=newest: revisions(plane, ns) == newest, what=f"revisions {newest}")


def revisions(plane, ns: str) -> list[int]:
    found = json.loads(plane.kubectl("get", "controllerrevisions", "-n", ns, "-o", "json"))["items"]
    return sorted(one["revision"] for one in found)


def test_a_nodeset_that_is_made_again_takes_in_what_was_left_of_it(plane, ns, tmp_path):
    spec = {"controllerRef": {"name": "slurm"}, "replicas": 1, "slurmd": {"image": "slurmd:1"}}
    apply(plane, ours("Controller", ns, "slurm", CONTROLLER), ours("NodeSet", ns, "gpu", spec))
    with running_manager(operator(plane, f"op-{ns}"), tmp_path / "log", "--namespaces", ns) as manager:
        manager.wait_ready()
        before = wait_for(plane, ns, "pod", "gpu-0")
        until(lambda: revisions(plane, ns) == [1], what="its revision")
        [revision] = plane.kubectl("get", "controllerrevisions", "-n", ns, "-o", "name").split()

    # As `kubectl delete nodeset gpu --cascade=orphan` ends: nobody owns them, and the NodeSet is gone.
    for left in ("pod/gpu-0", revision):
        plane.kubectl("patch", left, "-n", ns, "--type=merge", "-p", '{"metadata":{"ownerReferences":null}}')
    merge(plane, ns, "nodeset", "gpu", {"metadata": {"finalizers": []}})
    plane.kubectl("delete", "nodeset", "gpu", "-n", ns)
    apply(plane, ours("NodeSet", ns, "gpu", spec))
    uid = get(plane, ns, "nodeset", "gpu")["metadata"]["uid"]

    with running_manager(operator(plane, f"again-{ns}"), tmp_path / "again", "--namespaces", ns) as manager:
        manager.wait_ready()
        for kind, name in (("controllerrevision", revision.partition("/")[2]), ("pod", "gpu-0")):
            until(lambda k=kind, n=name: owner(plane, ns, k, n) == [uid], what=f"{kind} {name} taken in")
        until(lambda: trouble(plane, ns) not in ("", "ActionFailed"), what="a pass in which nothing failed")
    assert revisions(plane, ns) == [1]
    assert get(plane, ns, "pod", "gpu-0")["metadata"]["uid"] == before["metadata"]["uid"]


def owner(plane, ns: str, kind: str, name: str) -> list[str]:
    return [ref["uid"] for ref in get(plane, ns, kind, name)["metadata"].get("ownerReferences", [])]


def trouble(plane, ns: str) -> str:
    conditions = get(plane, ns, "nodeset", "gpu").get("status", {}).get("conditions", [])
    return next((one["reason"] for one in conditions if one["type"] == "Degraded"), "")


def test_an_api_server_takes_our_marks_and_conditions_and_keeps_those_of_others(plane, ns):
    plain = {
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "gpu-0", "namespace": ns, "labels": {"nodeset.slinky.slurm.net/pod-hostname": "gpu-0"}},
        "spec": {"containers": [{"name": "slurmd", "image": "slurmd:1"}]},
    }  # fmt: skip
    apply(plane, plain)
    theirs = [
        {"type": kind, "status": "True"} for kind in ("Ready", "SlurmNodeStateMixed", "example.com/Burnt")
    ]
    started = {"running": {"startedAt": "2026-01-01T11:00:00Z"}}
    container = {
        "name": "slurmd",
        "ready": True,
        "state": started,
        "image": "i",
        "imageID": "i",
        "restartCount": 0,
    }
    running = {"phase": "Running", "podIP": "10.0.0.7", "podIPs": [{"ip": "10.0.0.7"}],
               "conditions": theirs, "containerStatuses": [container]}  # fmt: skip
    merge(plane, ns, "pod", "gpu-0", {"status": running}, "--subresource=status")

    def member(*words: str) -> Worker:
        pod = wire.convert(get(plane, ns, "pod", "gpu-0"), Pod)
        return Worker.of(pod, nodeset(), None, slurm(slurm_node(pod, *words)))

    def carry_out(actions) -> None:
        for action in (action for action in actions if isinstance(action, PatchObject)):
            flags = [f"--subresource={action.subresource}"] if action.subresource else []
            plane.kubectl(
                "patch", "pod", "gpu-0", "-n", ns, "--type=json", "-p", json.dumps(action.operations), *flags
            )

    def conditions() -> list[str]:
        return [c["type"] for c in get(plane, ns, "pod", "gpu-0")["status"]["conditions"]]

    carry_out(
        action
        for lane in condition_writes(member("IDLE", "DRAIN"), kubernetes_time(NOW))
        for action in lane.actions()
    )
    assert sorted(conditions()) == ["Ready", "SlurmNodeStateDrain", "SlurmNodeStateIdle", "example.com/Burnt"]
    assert condition_writes(member("IDLE", "DRAIN"), kubernetes_time(NOW)) == [], (
        "what is so is not written again"
    )

    carry_out(marked(member("IDLE"), "x", "x", annotations={"a/b": "1"}, labels={"c/d": "2"}))
    carry_out(marked(member("IDLE"), "x", "x", annotations={"a/b": None}, labels={"c/d": "3"}))
    meta = get(plane, ns, "pod", "gpu-0")["metadata"]
    assert "a/b" not in meta.get("annotations", {})
    assert meta["labels"]["c/d"] == "3"
