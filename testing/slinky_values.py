"""The values of Slinky's charts in version 1.3, in our own words: every key with a default of the same shape.

`helm upgrade --reuse-values` puts these in the place of our own defaults.
"""

from typing import Any

IMAGE_TAG = "26.05-ubuntu26.04"


def _container(name: str) -> dict[str, Any]:
    image = {"repository": f"ghcr.io/slinkyproject/{name}", "tag": IMAGE_TAG}
    return {"image": image, "args": [], "env": [], "resources": {}}


_LOG: dict[str, Any] = {"image": {"repository": "docker.io/library/alpine", "tag": "latest"}, "resources": {}}
_POD: dict[str, Any] = {
    "affinity": {},
    "initContainers": [],
    "nodeSelector": {"kubernetes.io/os": "linux"},
    "tolerations": [],
    "volumes": [],
}
_SERVICE: dict[str, Any] = {"metadata": {}, "spec": {}}

SLURM: dict[str, Any] = {
    "nameOverride": None,
    "fullnameOverride": None,
    "namespaceOverride": None,
    "asciiArt": True,
    "imagePullSecrets": [],
    "imagePullPolicy": "IfNotPresent",
    "priorityClass": {"enabled": False, "create": False, "name": "slurm-system-critical", "value": 1000000000},
    "slurmKey": {"create": True, "annotations": {}, "secretRef": {}},
    "jwtKey": {"create": True, "annotations": {}, "secretRef": {}},
    "jwksKeys": {"enabled": False, "configMapRef": {}},
    "clusterName": None,
    "configFiles": {},
    "prologScripts": {},
    "epilogScripts": {},
    "prologSlurmctldScripts": {},
    "epilogSlurmctldScripts": {},
    "prologScriptRefs": [],
    "epilogScriptRefs": [],
    "controller": {
        "external": False,
        "externalConfig": {},
        "slurmctld": _container("slurmctld"),
        "reconfigure": _container("slurmctld"),
        "logfile": _LOG,
        "inplaceReconfigure": False,
        "persistence": {
            "enabled": True,
            "storageClassName": None,
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "4Gi"}},
        },
        "extraConf": None,
        "extraConfMap": {},
        "metadata": {},
        "podSpec": _POD,
        "service": _SERVICE,
        "metrics": {"enabled": False, "serviceMonitor": {"enabled": False}},
    },
    "restapi": {"replicas": 1, "slurmrestd": _container("slurmrestd"), "metadata": {}, "podSpec": _POD, "service": _SERVICE},
    "accounting": {
        "enabled": False,
        "external": False,
        "slurmdbd": _container("slurmdbd"),
        "storageConfig": {
            "host": "mariadb",
            "port": 3306,
            "database": "slurm_acct_db",
            "username": "slurm",
            "passwordKeyRef": {"name": "mariadb-password", "key": "password"},
        },
        "extraConf": None,
        "extraConfMap": {},
        "metadata": {},
        "podSpec": _POD,
        "service": _SERVICE,
    },
    "sssd": {"secretRef": {}, "conf": "[sssd]\nservices = nss, pam\n"},
    "loginsetDefaults": {
        "enabled": True,
        "replicas": 1,
        "login": _container("login"),
        "initconf": _LOG,
        "rootSshAuthorizedKeys": None,
        "extraSshdConfig": None,
        "metadata": {},
        "podSpec": _POD,
        "service": {"metadata": {}, "spec": {"type": "LoadBalancer"}},
    },
    "loginsets": {},
    "nodesetDefaults": {
        "enabled": True,
        "scalingMode": "StatefulSet",
        "replicas": 1,
        "workloadDisruptionProtection": True,
        "slurmd": _container("slurmd"),
        "logfile": _LOG,
        "extraConf": None,
        "extraConfMap": {},
        "partition": {"enabled": False, "config": None, "configMap": {}},
        "ssh": {"enabled": False},
        "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "25%"}},
        "metadata": {},
        "podSpec": _POD,
    },
    "nodesets": {},
    "partitions": {"all": {"enabled": False, "nodesets": ["ALL"], "configMap": {"Default": "YES"}}},
    "vendor": {"nvidia": {"dcgm": {"enabled": False, "jobMappingDir": "/var/lib/dcgm-exporter/job-mapping"}}},
    "extraObjects": [],
}  # fmt: skip


def _program(name: str, **more: Any) -> dict[str, Any]:
    return {
        "enabled": True,
        "replicas": 1,
        "image": {"repository": f"ghcr.io/slinkyproject/{name}", "tag": ""},
        "imagePullPolicy": "IfNotPresent",
        "serviceAccount": {"create": True, "name": ""},
        "affinity": {},
        "tolerations": [],
        "resources": {},
        "pdb": {"enabled": False, "minAvailable": 1},
        "logLevel": "info",
        "healthPort": 8081,
        "leaderElection": True,
        **more,
    }


OPERATOR: dict[str, Any] = {
    "nameOverride": "",
    "fullnameOverride": "",
    "namespaceOverride": "",
    "imagePullSecrets": [],
    "imagePullPolicy": "IfNotPresent",
    "priorityClassName": "",
    "crds": {"enabled": False},
    "operator": _program(
        "slurm-operator",
        accountingWorkers=4, controllerWorkers=4, loginsetWorkers=4, nodesetWorkers=4, restapiWorkers=4, tokenWorkers=4,
        slurmclientWorkers=2, metricsPort=8080, namespaces="",
    ),
    "webhook": _program(
        "slurm-operator-webhook",
        timeoutSeconds=10,
        serverPort=9443,
        validating={"failurePolicy": "Fail", "matchPolicy": "Equivalent"},
    ),
    "certManager": {"enabled": True, "secretName": "slurm-operator-webhook-ca", "duration": "43800h", "renewBefore": "8760h"},
}  # fmt: skip
