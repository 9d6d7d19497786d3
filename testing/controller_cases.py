"""The inputs whose manifests are kept in the repository and tried on a real API server."""

import base64

from slurm_operator.manifests import kinds
from slurm_operator.manifests.meta import Manifest
from slurm_operator.reconcilers.controller.configuration.files import wanted_files
from slurm_operator.reconcilers.controller.desired import desired
from slurm_operator.reconcilers.controller.observe import observe
from testing.controllers import KEY, controller, files, secret, thing, world
from testing.world import HandmadeWorld

GPU = {"controllerRef": {"name": "slurm"}, "template": {"spec": {"hostname": "gpu-"}}, "partition": {"enabled": True, "config": "Default=YES MaxTime=1-0"}}  # fmt: skip
CPU = {"controllerRef": {"name": "slurm"}}

EVERYTHING = {
    "clusterName": "Big",
    "slurmKeyRef": {"name": "keys", "key": "slurm.key"},
    "jwtKeyRef": {"name": "keys", "key": "jwt.key"},
    "jwksKeyRef": {"name": "jwks", "key": "provider.json"},
    "accountingRef": {"name": "books"},
    "inplaceReconfigure": True,
    "extraConf": "SlurmctldParameters=Idle_On_Node_Suspend,enable_configless\nAuthInfo=cred_expire=5\nMaxNodeCount=64\n",
    "configFileRefs": [{"name": "more-files"}],
    "prologScriptRefs": [{"name": "prologs"}],
    "epilogScriptRefs": [{"name": "epilogs"}],
    "prologSlurmctldScriptRefs": [{"name": "head-prologs"}],
    "epilogSlurmctldScriptRefs": [{"name": "head-epilogs"}],
    "persistence": {"enabled": True, "storageClassName": "fast", "resources": {"requests": {"storage": "10Gi"}}},
    "slurmctld": {
        "image": "slurmctld:26.05",
        "args": ["-v"],
        "env": [{"name": "SLURMCTLD_OPTIONS", "value": "-vv"}],
        "resources": {"limits": {"memory": "4Gi"}},
        "securityContext": {"runAsUser": 0, "runAsNonRoot": False},
    },
    "logfile": {"image": "busybox:1"},
    "reconfigure": {"resources": {"limits": {"memory": "64Mi"}}},
    "service": {
        "metadata": {"annotations": {"lb": "internal"}},
        "spec": {"type": "LoadBalancer", "externalIPs": ["192.0.2.1"]},
        "port": 7000,
        "nodePort": 30817,
    },
    "metrics": {
        "enabled": True,
        "serviceMonitor": {
            "enabled": True,
            "labels": {"release": "prometheus"},
            "interval": "30s",
            "endpoints": [{"path": "/metrics/jobs"}, {"path": "/metrics/nodes", "interval": "5m", "scrapeTimeout": "1m"}],
        },
    },
    "template": {
        "metadata": {"labels": {"team": "hpc"}, "annotations": {"note": "careful"}},
        "spec": {
            "priorityClassName": "system-cluster-critical",
            "tolerations": [{"key": "head", "operator": "Exists"}],
            "containers": [{"name": "beside", "image": "beside:1"}],
            "volumes": [{"name": "plugins", "emptyDir": {}}],
            "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchExpressions": [{"key": "head", "operator": "Exists"}]}]}}},
        },
    },
}  # fmt: skip


def _everything() -> HandmadeWorld:
    made = world(
        controller(EVERYTHING, labels={"helm.sh/chart": "slurm-1", "env": "test"}, annotations={"kubectl.kubernetes.io/x": "y", "who": "ada"}),
        thing("Accounting", "books", {"service": {"port": 7819}}),
        thing("NodeSet", "gpu", GPU),
        thing("NodeSet", "cpu", CPU),
        secret("keys", slurm_key="k1", jwt_key="j1"),
        files("jwks", {"provider.json": "{}", "other": "unused"}),
        files("more-files", {"gres.conf": "AutoDetect=nvml\n"}),
        files("prologs", {"20-b.sh": "#!/bin/sh\n", "10-a.sh": "#!/bin/sh\n"}),
        files("epilogs", {}, {"clean": base64.b64encode(b"\x7fELF").decode()}),
        files("head-prologs", {"check.sh": "#!/bin/sh\n"}),
        files("head-epilogs", {"tidy.sh": "#!/bin/sh\n"}),
    )  # fmt: skip
    made.served.add(kinds.SERVICE_MONITOR)
    return made


CASES: dict[str, HandmadeWorld] = {
    "defaults": world(controller()),
    "everything": _everything(),
    "no-persistence": world(controller({"persistence": {"enabled": False}})),
    "external": world(
        controller({
            "external": True, "externalConfig": {"host": "head.example.com", "port": 6817},
            "slurmKeyRef": {"name": "keys", "key": "slurm.key"}, "jwtKeyRef": {"name": "keys", "key": "jwt.key"},
            "accountingRef": {"name": "books"}, "extraConf": "KillWait=5\n",
        }),
        thing("Accounting", "books"), secret("keys", slurm_key="k1", jwt_key="j1"),
    ),
    "ha": world(
        controller({"ha": {"enabled": True, "backups": 2}, "persistence": {"enabled": True, "existingClaim": "shared"}})
    ),
    "accounting": world(controller({"accountingRef": {"name": "books"}}), thing("Accounting", "books")),
    "external-accounting": world(
        controller({"accountingRef": {"name": "books"}}),
        thing("Accounting", "books", {"external": True, "externalConfig": {"host": "dbd.example.com", "port": 7000}}),
    ),
    "nodesets": world(
        controller(),
        thing("NodeSet", "zeta", CPU), thing("NodeSet", "gpu", GPU),
        thing("NodeSet", "old", {**CPU, "partition": {"enabled": True, "config": "State=UP MaxTime=60"}}, deletionTimestamp="2026-01-01T00:00:00Z"),
        thing("NodeSet", "elsewhere", {"controllerRef": {"name": "other"}}),
    ),
}  # fmt: skip


def manifests(made: HandmadeWorld) -> list[Manifest]:
    seen = observe(KEY, made)
    assert seen is not None
    return desired(seen, wanted_files(seen))
