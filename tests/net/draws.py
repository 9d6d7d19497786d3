"""Specs from chance: every part that a decision may depend on, in combinations that nobody thought of."""

import random
from collections.abc import Callable
from typing import Any

NAMESPACE = "ns"
MACHINES = ("m0", "m1", "m2", "m3", "m4", "m5")
TIMES = ("2026-01-01T11:00:00Z", "2026-01-01T11:59:50Z", "2026-01-01T12:10:00Z", "2026-01-02T03:00:00Z")

Spec = dict[str, Any]


def some(chance: random.Random, share: float, **fields: Callable[[], Any]) -> Spec:
    """Each field with this share of chance."""
    return {name: make() for name, make in fields.items() if chance.random() < share}


def meta(chance: random.Random, name: str, *, finalizers: tuple[str, ...] = ()) -> Spec:
    made: Spec = {"name": name, "namespace": NAMESPACE}
    if finalizers and chance.random() < 0.8:
        made["finalizers"] = list(finalizers)
    if chance.random() < 0.04:
        made["annotations"] = {"slinky.slurm.net/force-deletion": "true"}
    return made


def ref(name: str, key: str = "") -> Spec:
    return {"name": name, **({"key": key} if key else {})}


def container(chance: random.Random, image: str) -> Spec:
    return {
        "image": f"{image}:{chance.choice('112')}",
        **some(
            chance,
            0.1,
            resources=lambda: {"limits": {"cpu": str(chance.randint(1, 4)), "memory": "1Gi"}},
            env=lambda: [{"name": "A", "value": chance.choice(["", "b"])}],
            args=lambda: ["-v"],
            livenessProbe=lambda: {"tcpSocket": {"port": 6818}},
        ),
    }


REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def pool(chance: random.Random) -> Spec:
    operator = chance.choice(["In", "NotIn", "Exists", "Gt"])
    return {"key": "pool", "operator": operator, **({} if operator == "Exists" else {"values": ["a"]})}


def template(chance: random.Random) -> Spec:
    return {
        "metadata": some(chance, 0.2, labels=lambda: {"team": "a"}, annotations=lambda: {"note": "x"}),
        "spec": some(
            chance,
            0.1,
            nodeSelector=lambda: {"pool": chance.choice("ab")},
            tolerations=lambda: [{"key": "gpu", "operator": "Exists"}],
            priorityClassName=lambda: "high",
            terminationGracePeriodSeconds=lambda: chance.choice([0, 600]),
            hostNetwork=lambda: True,
            affinity=lambda: {
                "nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": [pool(chance)]}]}}
            },
            volumes=lambda: [{"name": "scratch", "emptyDir": {}}],
        ),
    }


def nodeset(chance: random.Random) -> Spec:
    """Workers, wherever they are described."""
    worker = template(chance)
    if chance.random() < 0.15:
        worker["spec"]["hostname"] = chance.choice(["gpu-", "n"])
    return {
        "replicas": chance.choice([0, 1, 2, 2, 3, 4, 5]),
        "slurmd": container(chance, "slurmd"),
        "template": worker,
        **some(
            chance,
            0.15,
            scalingMode=lambda: "DaemonSet",
            partition=lambda: {"enabled": True, **some(chance, 0.5, config=lambda: "MaxTime=60")},
            extraConf=lambda: chance.choice(["Gres=gpu:2", "Weight=10 bad", "Feature=big Topology=s1"]),
            ssh=lambda: {"enabled": True, **some(chance, 0.5, sssdConfRef=lambda: ref("sssd", "sssd.conf"))},
            logfile=lambda: {"image": "log:1"},
            minReadySeconds=lambda: 20,
            ordinalPadding=lambda: 2,
            pinToNode=lambda: True,
            workloadDisruptionProtection=lambda: False,
            pruneSlurmNodeRecords=lambda: "NodeNotFound",
            oversubscribeNode=lambda: True,
            podInfoInComment=lambda: True,
            revisionHistoryLimit=lambda: chance.randint(0, 3),
            terminationGracePeriodSeconds=lambda: 60,
            volumeClaimTemplates=lambda: [
                {"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"]}}
            ],
            persistentVolumeClaimRetentionPolicy=lambda: {
                "whenDeleted": chance.choice(["Retain", "Delete"]),
                "whenScaled": chance.choice(["Retain", "Delete"]),
            },
            drainPolicy=lambda: {
                "type": chance.choice(["Wait", "Requeue", "Cancel"]),
                "deadline": chance.choice(["0s", "10m", "2h"]),
                **some(chance, 0.5, message=lambda: "ask the admins"),
            },
            updateStrategy=lambda: update_strategy(chance),
        ),
    }


def update_strategy(chance: random.Random) -> Spec:
    kind = chance.choice(["RollingUpdate", "OnDelete", "ScheduledUpdate"])
    made: Spec = {"type": kind}
    if chance.random() < 0.5:
        made["rollingUpdate"] = {"maxUnavailable": chance.choice([1, 2, "25%", "100%", "many"])}
    if kind == "ScheduledUpdate":
        made["scheduledUpdate"] = {
            "startTime": chance.choice(TIMES),
            **some(chance, 0.5, duration=lambda: "2h", flags=lambda: ["WEEKLY"]),
        }
    return made


def controller(chance: random.Random) -> Spec:
    """slurmctld, wherever it is described."""
    return {
        "slurmctld": container(chance, "slurmctld"),
        **some(
            chance,
            0.15,
            template=lambda: template(chance),
            inplaceReconfigure=lambda: True,
            reconfigure=lambda: {"image": "reconfigure:1"},
            ha=lambda: {"enabled": True, "backups": chance.randint(1, 2)},
            configFileRefs=lambda: [ref("files")],
            prologScriptRefs=lambda: [ref("scripts")],
            epilogScriptRefs=lambda: [ref("scripts")],
            service=lambda: {"spec": {"type": "LoadBalancer"}, "port": 7000},
            metrics=lambda: {"enabled": True, "serviceMonitor": {"enabled": True}},
        ),
        "persistence": chance.choice(
            [{"enabled": True}, {"enabled": True, "existingClaim": "state"}, {"enabled": False}]
        ),
    }


def key_refs(chance: random.Random) -> Spec:
    return some(
        chance,
        0.2,
        slurmKeyRef=lambda: ref("own-slurm", "slurm.key"),
        jwtKeyRef=lambda: ref("own-jwt", "jwt.key"),
    )


def whole_controller(chance: random.Random, *, accounting: bool) -> Spec:
    lines = [
        "",
        "",
        "",
        "",
        "SlurmctldDebug=debug",
        "PartitionName=p1 Nodes=ALL",
        "MaxJobCount=",
        "NodeSet=x Feature=x",
    ]
    return {
        **controller(chance),
        **key_refs(chance),
        **({"accountingRef": ref("slurm")} if accounting else {}),
        "extraConf": chance.choice(lines),
        **some(
            chance,
            0.05,
            clusterName=lambda: "physics",
            external=lambda: True,
            externalConfig=lambda: {"host": "ctl.example", "port": 6817},
        ),
    }


def accounting(chance: random.Random) -> Spec:
    database = {"host": "db", "username": "slurm", "passwordKeyRef": ref("database", "password")}
    place: Spec = chance.choice([{"managed": {}}, {"storageConfig": database}, {}])
    return {
        "slurmdbd": container(chance, "slurmdbd"),
        **place,
        **key_refs(chance),
        **some(
            chance,
            0.1,
            extraConf=lambda: "PurgeJobAfter=30days",
            template=lambda: template(chance),
            external=lambda: True,
            externalConfig=lambda: {"host": "dbd.example", "port": 6819},
        ),
    }


def restapi(chance: random.Random) -> Spec:
    return {
        "slurmrestd": container(chance, "slurmrestd"),
        **some(
            chance, 0.2, replicas=lambda: chance.randint(0, 3), template=lambda: template(chance),
            service=lambda: {"spec": {"type": "NodePort"}},
        ),
    }  # fmt: skip


def login(chance: random.Random) -> Spec:
    return {
        "login": container(chance, "login"),
        **some(
            chance,
            0.2,
            replicas=lambda: chance.randint(0, 3),
            rootSshAuthorizedKeys=lambda: "ssh-ed25519 AAAA ada",
            extraSshdConfig=lambda: "LogLevel DEBUG",
            sssdConfRef=lambda: ref("sssd", "sssd.conf"),
            sshHostKeysRef=lambda: ref("host-keys"),
            template=lambda: template(chance),
            service=lambda: {"spec": {"type": "LoadBalancer"}},
        ),
    }


def token(chance: random.Random) -> Spec:
    key = chance.choice([{"controllerRef": ref("slurm")}, {"jwtKeyRef": ref("own-jwt", "jwt.key")}])
    return {
        "username": chance.choice(["ada", "root", ""]),
        **key,
        **some(
            chance,
            0.3,
            lifetime=lambda: chance.choice(["0s", "1h", "24h"]),
            refresh=lambda: False,
            secretRef=lambda: ref("given", "token"),
        ),
    }


def cluster(chance: random.Random) -> Spec:
    if chance.random() < 0.1:
        return {"server": "http://slurm.example:6820", "token": {"secretRef": "given"}}
    sets = [{**nodeset(chance), "name": name} for name in ("cpu", "gpu")[: chance.randint(0, 2)]]
    for one in sets:
        if chance.random() < 0.2:
            del one["replicas"]
    names = [one["name"] for one in sets]
    books = chance.choice(
        [{"managed": {}}, {"external": {"host": "db", "passwordKeyRef": ref("database", "password")}}]
    )
    return {
        "nodeSets": sets,
        **key_refs(chance),
        **some(
            chance,
            0.3,
            image=lambda: "slurm:1",
            controller=lambda: controller(chance),
            accounting=lambda: {**books, "slurmdbd": container(chance, "slurmdbd")},
            restApi=lambda: restapi(chance),
            logins=lambda: [{**login(chance), "name": "login"}],
            isolation=lambda: chance.choice(["auto", "process", "cgroup"]),
            extraConf=lambda: "SlurmctldDebug=debug",
            partitions=lambda: [{"name": "all", "default": True, "nodeSets": names[:1]}],
        ),
    }
