"""Made-up worlds: objects, pods, machines and a Slurm cluster from a number, in states that nobody thought of.

Each lives for a few rounds. In a round every reconciler makes a pass over each of its objects and its plan is
carried out; in between time passes, pods get further or fail, and Slurm is found in another state.
"""

import random
from datetime import timedelta
from typing import Any

from net import draws, troubles
from net.draws import MACHINES, NAMESPACE, some
from net.ledger import Ledger
from net.stage import PROGRAM, Stage
from simulation.apiserver import HUMAN, Object, text
from slurm_operator.api.shared import names
from slurm_operator.api.shared.meta import ObjectKey
from slurm_operator.api.slinky.accounting import Accounting
from slurm_operator.api.slinky.cluster import Cluster
from slurm_operator.api.slinky.controller import Controller
from slurm_operator.api.slinky.loginset import LoginSet
from slurm_operator.api.slinky.nodeset import NodeSet
from slurm_operator.api.slinky.restapi import RestApi
from slurm_operator.api.slinky.token import Token
from slurm_operator.manifests import kinds
from slurm_operator.plan.world import Protection
from slurm_operator.reconcilers.nodeset.worker.drain_causes import Leaving, Staying
from slurm_operator.slurm.health import ControllerPing
from slurm_operator.slurm.jobs.job import SlurmJob
from slurm_operator.slurm.node import SlurmNode
from slurm_operator.slurm.partition import Partition
from slurm_operator.slurm.reasons import OurReason
from slurm_operator.slurm.snapshot import Snapshot, Unreachable, jobs_by_node
from slurm_operator.slurm.states import JobState, NodeState

MOST_ROUNDS = 8
TROUBLED = 1500  # Worlds from this number on live longer and have troubles.
IN_USE = (names.IN_USE_FINALIZER,)
SECRETS = ("own-slurm", "own-jwt", "sssd", "database", "host-keys", "given")
ENTRIES = {
    "slurm.key": "aw==",
    "jwt.key": "ag==",
    "sssd.conf": "cw==",
    "password": "cA==",
    "ssh_host_ed25519_key": "aw==",
    "ssh_host_ed25519_key.pub": "cHVi",
}
HIDEABLE = (kinds.KUBE_NODE, kinds.STORAGE_CLASS, kinds.SERVICE_MONITOR, kinds.NAMESPACE, Cluster.KIND)
CAUSES = (*Leaving, *Staying)


def lived(number: int, ledger: Ledger) -> None:
    """The whole life of one world, noted down."""
    stage = made_up(number)
    is_troubled = number >= TROUBLED
    rounds = stage.chance.randint(6, 12) if is_troubled else stage.chance.randint(1, MOST_ROUNDS)
    for left in reversed(range(rounds)):
        for reconciler in PROGRAM.reconcilers:
            for key, plan, report in stage.passes(reconciler):
                ledger.note(f"{reconciler.name} {key}", plan, report)
        go_on(stage)
        if is_troubled:
            troubles.befall(stage, is_end=left == rounds // 3)


def made_up(number: int) -> Stage:
    """What stands there in the beginning."""
    chance = random.Random(number)
    stage = Stage(chance)
    _surroundings(stage)
    if chance.random() < 0.2:
        stage.put(Cluster.KIND, _named(stage, "slurm", draws.cluster(chance)))
    else:
        _parts(stage)
    stage.protection = chance.choice(list(Protection))
    stage.hidden = {kind for kind in HIDEABLE if chance.random() < 0.06}
    _delete_some(stage)
    _slurms(stage)
    return stage


def go_on(stage: Stage) -> None:
    """Time passes, and not much stays as it is."""
    stage.clock.moment += timedelta(seconds=stage.chance.choice([1, 1, 5, 5, 40, 700, 90000]))
    stage.unread.clear()
    _workloads(stage)
    _pods(stage)
    _change_minds(stage)
    _delete_some(stage)
    stage.server.collect()
    _slurms(stage)


# ---- What is there


def _surroundings(stage: Stage) -> None:
    chance = stage.chance
    stage.put(kinds.NAMESPACE, {"metadata": {"name": NAMESPACE}})
    for name in MACHINES[: chance.randint(1, len(MACHINES))]:
        stage.put(kinds.KUBE_NODE, _machine(chance, name), {"conditions": _machine_conditions(chance)})
    for name in SECRETS:
        if chance.random() < 0.95:
            stage.put(kinds.SECRET, {**_bare(name), "data": ENTRIES})
    for name, data in (("files", {"gres.conf": "AutoDetect=off\n"}), ("scripts", {"10.sh": "#!/bin/sh\n"})):
        if chance.random() < 0.93:
            stage.put(kinds.CONFIG_MAP, {**_bare(name), "data": data})
    if chance.random() < 0.15:
        stage.unread.add(ObjectKey(NAMESPACE, chance.choice([*SECRETS, "files"])))
    if chance.random() < 0.5:
        default = {"storageclass.kubernetes.io/is-default-class": "true"}
        stage.put(kinds.STORAGE_CLASS, {"metadata": {"name": "disk", "annotations": default}})
    if chance.random() < 0.5:
        modes = chance.choice([["ReadWriteOnce"], ["ReadWriteMany"]])
        stage.put(kinds.PERSISTENT_VOLUME_CLAIM, {**_bare("state"), "spec": {"accessModes": modes}})


def _machine(chance: random.Random, name: str) -> Object:
    taints = some(
        chance, 0.1, taints=lambda: [{"key": chance.choice(TAINTS), "effect": chance.choice(EFFECTS)}]
    )
    notes = some(
        chance,
        0.1,
        **{
            names.NODE_CORDON_REASON: lambda: "disk is bad",
            names.HOSTNAME_OVERRIDE: lambda: chance.choice(["big", "Not A Name"]),
            names.TOPOLOGY: lambda: chance.choice(["default:s1", "??"]),
        },
    )
    spec = {**taints, **some(chance, 0.15, unschedulable=lambda: True)}
    return {
        "metadata": {"name": name, "labels": {"pool": chance.choice("ab")}, "annotations": notes},
        "spec": spec,
    }


TAINTS = ("gpu", "ToBeDeletedByClusterAutoscaler", "node.kubernetes.io/unreachable")
EFFECTS = ("NoSchedule", "NoExecute")


def _machine_conditions(chance: random.Random) -> list[Object]:
    ready = chance.choice(["True", "True", "True", "Unknown"])
    return [{"type": "Ready", "status": ready}, {"type": "DiskBad", "status": "True", "reason": "Smart"}]


def _parts(stage: Stage) -> None:
    chance = stage.chance
    has_books = chance.random() < 0.4
    if has_books and chance.random() < 0.9:
        stage.put(Accounting.KIND, _named(stage, "slurm", draws.accounting(chance)))
    if chance.random() < 0.92:
        stage.put(
            Controller.KIND, _named(stage, "slurm", draws.whole_controller(chance, accounting=has_books))
        )
    for kind, name, draw in (
        (RestApi, "slurm", draws.restapi),
        (LoginSet, "login", draws.login),
        (NodeSet, "gpu", draws.nodeset),
        (NodeSet, "cpu", draws.nodeset),
    ):
        if chance.random() < 0.7:
            spec = {"controllerRef": {"name": "slurm"}, **draw(chance)}
            made = stage.put(kind.KIND, _named(stage, name, spec))
            if kind is NodeSet:
                _old_workers(stage, made)
    if chance.random() < 0.4:
        stage.put(Token.KIND, {**_bare("ada"), "spec": draws.token(chance)})


def _old_workers(stage: Stage, nodeset: Object) -> None:
    """Pods from before anybody of us looked: of any revision, number and state."""
    chance, name = stage.chance, nodeset["metadata"]["name"]
    for ordinal in chance.sample(range(6), chance.choice([0, 0, 1, 3, 5])):
        labels = {
            names.APP_NAME: "slurmd",
            names.APP_INSTANCE: name,
            names.LABEL_SCALING_MODE: chance.choice(["StatefulSet", "StatefulSet", "DaemonSet"]),
            names.LABEL_REVISION: chance.choice(["r1", "r2"]),
            names.LABEL_POD_HOSTNAME: f"{name}-{ordinal}",
            names.LABEL_POD_INDEX: str(ordinal),
            **some(chance, 0.7, **{names.LABEL_POD_PROTECT: lambda: "true"}),
        }
        owner = {
            "apiVersion": "slinky.slurm.net/v1beta1", "kind": "NodeSet", "name": name,
            "uid": nodeset["metadata"]["uid"], "controller": True,
        }  # fmt: skip
        metadata = {
            "name": f"{name}-{ordinal}", "namespace": NAMESPACE, "labels": labels,
            "annotations": _pod_notes(chance), "ownerReferences": [owner] if chance.random() < 0.95 else [],
        }  # fmt: skip
        stage.put(kinds.POD, {"metadata": metadata, "spec": {"hostname": f"{name}-{ordinal}"}})
        _live(stage, ObjectKey(NAMESPACE, f"{name}-{ordinal}"))


def _pod_notes(chance: random.Random) -> dict[str, str]:
    return some(
        chance,
        0.06,
        **{
            names.POD_CORDON: lambda: "true",
            names.POD_DELETION_COST: lambda: chance.choice(["-5", "7", "much"]),
            names.POD_REPLACE: lambda: "true",
            names.ALLOW_DELETION: lambda: "true",
        },
    )


# ---- What goes on


def _pods(stage: Stage) -> None:
    for pod in stage.server.all(kinds.POD):
        if stage.chance.random() < 0.7:
            _live(stage, ObjectKey(NAMESPACE, pod["metadata"]["name"]))


def _live(stage: Stage, key: ObjectKey) -> None:
    """One pod gets further, or does not."""
    chance = stage.chance
    pod = stage.server.get(kinds.POD, key)
    if _app(pod) in VERDICTS:
        status = _verdict(chance, _app(pod))
        stage.server.change(kinds.POD, key, lambda it: it.update(status=status), HUMAN)
        return
    machines = [found["metadata"]["name"] for found in stage.server.all(kinds.KUBE_NODE)]
    at = text(stage.now - timedelta(seconds=chance.choice([1, 30, 90, 4000])))
    state = chance.choice(["ready"] * 6 + ["unready", "unready", "waiting", "crashed", "pending", "ended"])

    def edit(found: Object) -> None:
        if chance.random() < 0.1:
            found["metadata"].setdefault("annotations", {}).update(_pod_notes(chance))
        if state == "pending" and not found["spec"].get("nodeName"):
            return
        found["spec"].setdefault("nodeName", chance.choice(machines) if machines else "lost")
        found["status"] = _pod_status(chance, found, state, at)

    stage.server.change(kinds.POD, key, edit, HUMAN)
    if chance.random() < 0.04 and "deletionTimestamp" not in pod["metadata"]:
        stage.server.change(
            kinds.POD,
            key,
            lambda it: it["metadata"].update(deletionTimestamp=at, deletionGracePeriodSeconds=3600),
            HUMAN,
        )


VERDICTS = {
    "slurm-rehearsal": ("good", "good", "good", "fatal: slurm.conf: line 3: no such thing"),
}


def _verdict(chance: random.Random, app: str) -> Object:
    """A pod that tries something out has come to its end, and says what it found."""
    message = chance.choice(VERDICTS[app])
    ended = {"exitCode": 0 if message == "good" else 1, "message": message}
    container = {"name": "slurmctld", "state": {"terminated": ended}}
    return {"phase": "Succeeded" if message == "good" else "Failed", "containerStatuses": [container]}


def _pod_status(chance: random.Random, pod: Object, state: str, at: str) -> Object:
    name = pod["metadata"]["labels"].get(names.APP_NAME, "main")
    running = {"running": {"startedAt": at}}
    container: dict[str, Any] = {"name": name, "ready": state == "ready", "state": running}
    if state in ("waiting", "pending"):
        container["state"] = {"waiting": {"reason": chance.choice(["ImagePullBackOff", "ContainerCreating"])}}
    elif state == "crashed":
        ended = {"exitCode": 1, "reason": "Error", "finishedAt": at, "message": "fatal: no such file"}
        container |= {"state": {"waiting": {"reason": "CrashLoopBackOff"}}, "restartCount": 3}
        container["lastState"] = {"terminated": ended}
    elif state == "ended":
        container["state"] = {"terminated": {"exitCode": 1, "finishedAt": at}}
    phases = {"ended": "Failed", "waiting": "Pending", "pending": "Pending"}
    number = sum(pod["metadata"]["name"].encode()) % 250
    ready = {"type": "Ready", "status": "True" if state == "ready" else "False", "lastTransitionTime": at}
    return {
        "phase": phases.get(state, "Running"),
        "podIP": f"10.0.0.{number}",
        "conditions": [ready],
        "containerStatuses": [container],
    }


def _workloads(stage: Stage) -> None:
    """StatefulSets and Deployments have some of their pods, and say so."""
    chance = stage.chance
    for kind in (kinds.STATEFUL_SET, kinds.DEPLOYMENT):
        for workload in stage.server.all(kind):
            wanted = workload["spec"].get("replicas", 1)
            ready = chance.choice([wanted, wanted, 0])
            status = {
                "observedGeneration": chance.choice([workload["metadata"]["generation"], 0]),
                "replicas": wanted, "readyReplicas": ready, "availableReplicas": ready,
                "updatedReplicas": chance.choice([wanted, 0]), "updateRevision": "u1",
            }  # fmt: skip
            stage.server.change(
                kind, _key(workload), lambda it, status=status: it.update(status=status), HUMAN
            )
            for index in range(wanted):
                _daemon_pod(stage, workload, index)


def _daemon_pod(stage: Stage, workload: Object, index: int) -> None:
    meta, template = workload["metadata"], workload["spec"]["template"]
    key = ObjectKey(NAMESPACE, f"{meta['name']}-{index}")
    if key in stage.server.objects[kinds.POD] or stage.chance.random() < 0.3:
        return
    owner = {
        "apiVersion": "apps/v1", "kind": workload["kind"], "name": meta["name"], "uid": meta["uid"], "controller": True
    }  # fmt: skip
    metadata = {
        "name": key.name, "namespace": NAMESPACE, "ownerReferences": [owner],
        "labels": {**template["metadata"].get("labels", {}), names.LABEL_REVISION: stage.chance.choice(["u1", "u0"])},
        "annotations": dict(template["metadata"].get("annotations", {})),
    }  # fmt: skip
    stage.put(kinds.POD, {"metadata": metadata, "spec": {"hostname": key.name}})
    _live(stage, key)


DRAWS = {NodeSet: draws.nodeset, RestApi: draws.restapi, LoginSet: draws.login, Cluster: draws.cluster}


def _change_minds(stage: Stage) -> None:
    """Some specs change, in a part or as a whole."""
    chance = stage.chance
    for kind, draw in DRAWS.items():
        for found in stage.server.all(kind.KIND):
            if chance.random() < 0.3:
                new = draw(chance)
                fields = chance.sample(sorted(new), min(len(new), 2))
                picked = {field: new[field] for field in fields}
                stage.server.change(
                    kind.KIND, _key(found), lambda it, picked=picked: it["spec"].update(picked), HUMAN
                )
    for found in stage.server.all(Controller.KIND):
        if chance.random() < 0.3:
            lines = chance.choice(["SlurmctldDebug=debug2", "MaxJobCount=", "SlurmctldPort=7000"])
            stage.server.change(
                Controller.KIND,
                _key(found),
                lambda it, lines=lines: it["spec"].update(extraConf=lines),
                HUMAN,
            )

    for name in SECRETS:
        key = ObjectKey(NAMESPACE, name)
        if key in stage.server.objects[kinds.SECRET] and chance.random() < 0.05:
            value = chance.choice(["bmV3", "bmV3ZXI="])
            stage.server.change(
                kinds.SECRET,
                key,
                lambda it, value=value: it["data"].update(dict.fromkeys(ENTRIES, value)),
                HUMAN,
            )


def _delete_some(stage: Stage) -> None:
    chance = stage.chance
    for kind in troubles.OURS:
        for found in stage.server.all(kind.KIND):
            if chance.random() < 0.07:
                stage.server.delete(kind.KIND, _key(found), HUMAN)


# ---- Slurm


def _slurms(stage: Stage) -> None:
    """What is known of the Slurm cluster by now."""
    chance, key = stage.chance, ObjectKey(NAMESPACE, "slurm")
    if chance.random() < 0.15:
        stage.slurms[key] = Unreachable(since=stage.now - timedelta(seconds=70), why="no answer")
        return
    workers = [pod for pod in stage.server.all(kinds.POD) if _app(pod) == "slurmd"]
    nodes = [node for pod in workers for node in _slurm_node(stage, pod)]
    if chance.random() < 0.2:
        nodes.append(SlurmNode(name="gpu-9", state=NodeState.of("DOWN", "DYNAMIC_NORM"), features=("gpu",)))
    jobs = list(_jobs(stage, [node.name for node in nodes]))
    asked_at = stage.now - timedelta(seconds=chance.choice([0, 0, 0, 1, 8]))
    config = _live_config(stage)
    stage.slurms[key] = Snapshot(
        nodes={node.name: node for node in nodes},
        jobs={job.job_id: job for job in jobs},
        jobs_by_node=jobs_by_node(jobs),
        nodes_asked_at=asked_at,
        jobs_asked_at=asked_at,
        partitions={
            name: Partition(name=name, state=frozenset({chance.choice(["UP", "INACTIVE"])}))
            for name in ("gpu", "cpu", "all")
            if chance.random() < 0.6
        },
        behind=frozenset(node.name for node in nodes if chance.random() < 0.05),
        slurmctld_parameters=config,
        is_config_known=chance.random() < 0.95,
        cluster="ns_slurm",
        release="26.05.5",
        api_version=chance.choice(["v0.0.45", "v0.0.42"]),
        pings=(ControllerPing(hostname="slurm-controller-0", is_primary=True, is_responding=True),),
    )


def _live_config(stage: Stage) -> tuple[str, ...]:
    """The note of what slurmctld runs with: often that of the files that are wanted."""
    found = stage.server.objects[kinds.CONFIG_MAP].get(ObjectKey(NAMESPACE, "slurm-config"))
    lines = (found or {}).get("data", {}).get("slurm.conf", "").splitlines()
    words = [line.partition("=")[2] for line in lines if line.startswith("SlurmctldParameters=")]
    return tuple(words[0].split(",")) if words and stage.chance.random() < 0.7 else ("enable_configless",)


def _slurm_node(stage: Stage, pod: Object) -> list[SlurmNode]:
    chance, meta = stage.chance, pod["metadata"]
    statuses = pod["status"].get("containerStatuses") or []
    if chance.random() < 0.15 or not statuses:
        return []
    base = chance.choice(["IDLE", "IDLE", "ALLOCATED", "MIXED", "DOWN", "IDLE"])
    flags = [
        flag for flag in ("DRAIN", "COMPLETING", "NOT_RESPONDING", "INVALID_REG") if chance.random() < 0.12
    ]
    if chance.random() < 0.25:
        flags.append("DRAIN")
    cause = chance.choice(CAUSES)
    ours = str(
        OurReason(cause=cause, text="for a reason", pod_uid=chance.choice([meta["uid"], "", "0000beef-0000"]))
    )
    reason = chance.choice([ours, ours, ours, "Kill task failed", "bad NIC", ""]) if "DRAIN" in flags else ""
    began = stage.now - timedelta(seconds=chance.choice([0, 20, 5000]))
    return [
        SlurmNode(
            name=meta["labels"].get(names.LABEL_POD_HOSTNAME, meta["name"]),
            state=NodeState.of(base, *dict.fromkeys(flags), "DYNAMIC_NORM"),
            address=pod["status"].get("podIP", "") if chance.random() < 0.9 else "10.9.9.9",
            slurmd_start_time=began,
            reason=reason,
            reason_set_by=chance.choice(["root", "ada", "slurm"]) if reason else "",
            reason_changed_at=stage.now - timedelta(seconds=chance.choice([5, 900])) if reason else None,
            features=("gpu", "k8s/pool=a"),
            active_features=("gpu",),
            cpus=4,
            cores=2,
            real_memory_mb=1000,
            topology=chance.choice(["", "default:s1"]),
        )
    ]


def _jobs(stage: Stage, nodes: list[str]):
    chance = stage.chance
    for job_id in range(1, chance.choice([1, 2, 4, 7])):
        words = chance.choice(
            [["RUNNING"], ["RUNNING"], ["SUSPENDED"], ["PENDING"], ["COMPLETED", "COMPLETING"], ["RUNNING", "CONFIGURING"]]
        )  # fmt: skip
        is_on = words != ["PENDING"] and nodes
        yield SlurmJob(
            job_id=job_id,
            state=JobState.of(*words),
            user="ada",
            partition=chance.choice(["gpu", "all", "gpu,cpu"]),
            nodes=tuple(chance.sample(nodes, min(len(nodes), chance.randint(1, 2)))) if is_on else (),
            batch_host=chance.choice(nodes) if nodes and chance.random() < 0.1 else "",
            required_nodes=(chance.choice(nodes),) if nodes and chance.random() < 0.1 else (),
            start_time=stage.now - timedelta(seconds=chance.choice([5, 3000])),
            time_limit=chance.choice([None, timedelta(minutes=30), timedelta(days=2)]),
            is_requeueable=chance.random() < 0.5,
            admin_comment=chance.choice(["", "hello"]),
        )


# ---- Small things


def _app(pod: Object) -> str:
    return pod["metadata"].get("labels", {}).get(names.APP_NAME, "")


def _bare(name: str) -> Object:
    return {"metadata": {"name": name, "namespace": NAMESPACE}}


def _named(stage: Stage, name: str, spec: draws.Spec) -> Object:
    finalizers = (names.WORKERS_FINALIZER, *IN_USE)
    return {"metadata": draws.meta(stage.chance, name, finalizers=finalizers), "spec": spec}


def _key(found: Object) -> ObjectKey:
    return ObjectKey(found["metadata"].get("namespace", ""), found["metadata"]["name"])
