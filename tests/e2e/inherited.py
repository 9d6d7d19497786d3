"""A Slurm cluster as Slinky's operator leaves it behind: labels, hashes and habits as they were recorded.

The pods run our images, which follow the same conventions; everything about them is written here as that operator
writes it, and sent as its field manager. `testing/slinky_objects` has the objects themselves: what has no labels there
has none here, and templates carry the names that they carry there.
"""

import base64
import hashlib
import json
import secrets

from operator_rig import PROCESS_CONF, Slurm

from slurm_local.image.images import slurm_image
from slurm_operator.api.schema import codec
from slurm_operator.api.shared.names import LABEL_HASH as HASH
from slurm_operator.api.shared.names import slurm_node_set
from slurm_operator.api.slinky.nodeset import NodeSet
from slurm_operator.reconcilers.nodeset.creation.slinky_hash import patch, their_hash

MANAGER = "manager"  # What a Go program without a name of its own is called in managedFields.
SERVER = "slurm-controller"
NEVER = "Never"
CONF = PROCESS_CONF + "PartitionName=all Nodes=ALL Default=YES State=UP MaxTime=UNLIMITED\n"
CONF_WITH_BACKUPS = "SlurmctldTimeout=10\n" + CONF

FILES = ("slurm.key", "jwt.key")

SLURMCTLD = {
    "ports": [{"name": "slurmctld", "containerPort": 6817, "protocol": "TCP"}],
    "startupProbe": {"httpGet": {"path": "/livez", "port": "slurmctld"}, "periodSeconds": 10, "failureThreshold": 6},
    "livenessProbe": {"httpGet": {"path": "/livez", "port": "slurmctld"}, "periodSeconds": 10, "failureThreshold": 6},
    "securityContext": {"runAsNonRoot": True, "runAsUser": 401, "runAsGroup": 401},
}  # fmt: skip


def labels(app: str, component: str, name: str = "slurm") -> dict[str, str]:
    return {
        "app.kubernetes.io/name": app,
        "app.kubernetes.io/instance": name,
        "app.kubernetes.io/component": component,
    }


class Inherited:
    """The objects of one cluster: a Controller, a RestApi and a NodeSet with two workers.

    With backups the slurmctlds share the claim `state`, and a standby is ready as soon as it lives.
    """

    def __init__(
        self,
        slurm: Slurm,
        backups: int = 0,
        nodeset: str = "cpu",
        hostname: str = "cpu-",
        keys: tuple[str, str] = ("keys", "keys"),
    ) -> None:
        """`hostname` is what the template says of host names, `keys` where slurm.key and jwt.key are."""
        self.slurm, self.backups, self.name, self.hostname, self.secrets = (
            slurm,
            backups,
            nodeset,
            hostname,
            keys,
        )
        self.extra_conf = CONF_WITH_BACKUPS if backups else CONF

    def make(self) -> None:
        """Everything but our own kinds, which must be there: they own it all."""
        self.create(*self.controller(), *self._restapi(), *self._shared(), *self._workers())

    def create(self, *manifests: dict) -> None:
        text = json.dumps({"apiVersion": "v1", "kind": "List", "items": list(manifests)})
        self.slurm.cluster.kubectl("create", f"--field-manager={MANAGER}", "-f", "-", stdin=text)

    def owner(self, kind: str, name: str, *, is_controller: bool = True) -> list[dict]:
        found = json.loads(
            self.slurm.cluster.kubectl("get", kind, name, "-n", self.slurm.namespace, "-o", "json")
        )
        return [{
            "apiVersion": found["apiVersion"], "kind": found["kind"], "name": name, "uid": found["metadata"]["uid"],
            "controller": is_controller, "blockOwnerDeletion": True,
        }]  # fmt: skip

    def _meta(self, name: str, marks: dict[str, str], owner: list[dict], **more: object) -> dict:
        return {
            "name": name, "namespace": self.slurm.namespace, "labels": marks, "ownerReferences": owner, **more,
        }  # fmt: skip

    @property
    def node_set(self) -> str:
        """What Slurm calls the NodeSet: by the host names of its workers."""
        return slurm_node_set(self.hostname, self.name)

    def slurm_conf(self) -> str:
        ns = self.slurm.namespace
        return "\n".join([
            "#", "### GENERAL ###", f"ClusterName={ns}_slurm", "SlurmUser=slurm",
            *(f"SlurmctldHost={pod}({pod}.{SERVER}-internal.{ns})" for pod in self._heads()), "SlurmctldPort=6817",
            f"SlurmctldAddr={SERVER}.{ns}", f"StateSaveLocation=/var/spool/slurmctld/{ns}_slurm",
            "SlurmdUser=root", "SlurmdPort=6818", "SlurmdSpoolDir=/var/spool/slurmd", "MaxNodeCount=1024",
            "SlurmctldLogFile=/var/log/slurm/slurmctld.log", "SlurmSchedLogFile=/var/log/slurm/slurmctld.log",
            "SlurmdLogFile=/var/log/slurm/slurmd.log", "#", "### PLUGINS & PARAMETERS ###",
            "AuthType=auth/slurm", "CredType=cred/slurm", "AuthAltTypes=auth/jwt",
            "AuthAltParameters=jwt_key=/etc/slurm/jwt.key", "AuthInfo=use_client_ids",
            "SlurmctldParameters=enable_configless,reconfig_on_restart",
            "AccountingStorageType=accounting_storage/none", "#", "### NODESETS & PARTITIONS ###",
            f"NodeSet={self.node_set} Feature={self.node_set}", "#", "### EXTRA CONFIG ###", self.extra_conf,
        ]) + "\n"  # fmt: skip

    def _heads(self) -> list[str]:
        return [f"{SERVER}-{index}" for index in range(1 + self.backups)]

    def controller(self) -> list[dict]:
        owner, marks = self.owner("controller", "slurm"), labels("slurmctld", "controller")
        config = {"slurm.conf": self.slurm_conf()}
        selector = {key: marks[key] for key in ("app.kubernetes.io/name", "app.kubernetes.io/instance")}
        pod = {
            "metadata": {
                "name": SERVER,
                "namespace": self.slurm.namespace,
                "labels": marks,
                "annotations": {
                    "kubectl.kubernetes.io/default-container": "slurmctld",
                    "slinky.slurm.net/slurm-config-hash": hashlib.sha256(
                        config["slurm.conf"].encode()
                    ).hexdigest(),
                    **self._key_hashes(),
                },
            },
            "spec": self._slurmctld_pod(selector),
        }
        claim = {
            "metadata": {"name": "statesave", "namespace": self.slurm.namespace},
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
        }
        return [
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": self._meta("slurm-config", marks, owner), "data": config},
            self._service(SERVER, marks, owner, {**selector, "controller.slinky.slurm.net/active": "true"}, "slurmctld", 6817),
            self._service(f"{SERVER}-internal", marks, owner, selector, "slurmctld", 6817, headless=True),
            {
                "apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": self._meta(SERVER, marks, owner),
                "spec": {
                    "replicas": 1 + self.backups, "serviceName": f"{SERVER}-internal", "revisionHistoryLimit": 0,
                    "selector": {"matchLabels": selector}, "template": pod, "volumeClaimTemplates": [] if self.backups else [claim],
                },
            },
        ]  # fmt: skip

    def _key_hashes(self) -> dict[str, str]:
        """Of the keys as they are: another one gives another slurmctld."""
        where = ("-n", self.slurm.namespace, "-o", "json")
        data = json.loads(self.slurm.cluster.kubectl("get", "secret", "keys", *where))["data"]
        return {
            f"slinky.slurm.net/{name.replace('.', '-')}-hash": hashlib.sha256(
                base64.b64decode(text)
            ).hexdigest()
            for name, text in data.items()
        }

    def _slurmctld_pod(self, selector: dict[str, str]) -> dict:
        ns, image = self.slurm.namespace, slurm_image("slurmctld")
        apart = {"labelSelector": {"matchLabels": selector}, "topologyKey": "kubernetes.io/hostname"}
        mounts = {
            "slurm-etc": "/etc/slurm", "run": "/run", "statesave": f"/var/spool/slurmctld/{ns}_slurm",
            "slurm-authsocket": "/run/slurmctld", "slurm-logfile": "/var/log/slurm", "ledgers": "/ledgers",
        }  # fmt: skip
        sources = [
            {"configMap": {"name": "slurm-config"}}, {"configMap": {"name": "files"}},
            self._key("slurm.key"),
            self._key("jwt.key"),
        ]  # fmt: skip
        return {
            "automountServiceAccountToken": False,
            "affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [apart]}},
            "securityContext": {"runAsNonRoot": True, "runAsUser": 401, "runAsGroup": 401, "fsGroup": 401},
            "initContainers": [self._logfile(image, "slurmctld")],
            "containers": [{
                "name": "slurmctld", "image": image, "imagePullPolicy": NEVER, **SLURMCTLD,
                "readinessProbe": {"httpGet": {"path": "/livez" if self.backups else "/readyz", "port": "slurmctld"}},
                "volumeMounts": [{"name": name, "mountPath": path} for name, path in mounts.items()],
            }],
            "volumes": [
                {"name": "slurm-etc", "projected": {"defaultMode": 0o610, "sources": sources}},
                {"name": "slurm-logfile", "emptyDir": {"medium": "Memory"}},
                {"name": "run", "emptyDir": {"medium": "Memory"}},
                {"name": "slurm-authsocket", "emptyDir": {}},
                *([{"name": "statesave", "persistentVolumeClaim": {"claimName": "state"}}] if self.backups else []),
                self.slurm.ledger_volume,
            ],
        }  # fmt: skip

    def _logfile(self, image: str, daemon: str) -> dict:
        pipe = f"/var/log/slurm/{daemon}.log"
        loop = f"trap 'exit 0' TERM; rm -f {pipe}; mkfifo -m 777 {pipe}; while true; do cat {pipe} || true; sleep 1; done"
        return {
            "name": "logfile", "image": image, "imagePullPolicy": NEVER, "restartPolicy": "Always",
            "command": ["sh", "-c", loop], "env": [{"name": "SOCKET", "value": pipe}],
            "volumeMounts": [{"name": "slurm-logfile", "mountPath": "/var/log/slurm"}],
        }  # fmt: skip

    def _service(
        self,
        name: str,
        marks: dict,
        owner: list,
        selector: dict,
        port: str,
        number: int,
        *,
        headless: bool = False,
    ) -> dict:
        spec: dict = {"selector": selector, "ports": [{"name": port, "port": number, "targetPort": port}]}
        if headless:
            spec |= {"clusterIP": "None", "publishNotReadyAddresses": True}
        return {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": self._meta(name, marks, owner),
            "spec": spec,
        }

    def _restapi(self) -> list[dict]:
        owner, marks = self.owner("restapi", "slurm"), labels("slurmrestd", "restapi")
        selector = {key: marks[key] for key in ("app.kubernetes.io/name", "app.kubernetes.io/instance")}
        sources = [
            {"configMap": {"name": "slurm-config", "items": [{"key": "slurm.conf", "path": "slurm.conf"}]}},
            self._key("slurm.key"),
        ]
        probe = {"tcpSocket": {"port": "slurmrestd"}, "periodSeconds": 10, "failureThreshold": 6}
        container = {
            "name": "slurmrestd", "image": slurm_image("slurmrestd"), "imagePullPolicy": NEVER,
            "args": ["-s", "openapi/slurmctld", "0.0.0.0:6820"],
            "env": [
                {"name": "SLURM_JWT", "value": "daemon"},
                {"name": "SLURMRESTD_SECURITY", "value": "disable_unshare_files,disable_unshare_sysv"},
            ],
            "ports": [{"name": "slurmrestd", "containerPort": 6820, "protocol": "TCP"}],
            "startupProbe": probe, "livenessProbe": probe, "readinessProbe": {"tcpSocket": {"port": "slurmrestd"}},
            "volumeMounts": [{"name": "slurm-etc", "mountPath": "/etc/slurm", "readOnly": True}],
        }  # fmt: skip
        pod = {
            "metadata": {
                "name": "slurm-restapi", "namespace": self.slurm.namespace, "labels": marks,
                "annotations": {"kubectl.kubernetes.io/default-container": "slurmrestd"},
            },
            "spec": {
                "automountServiceAccountToken": False, "containers": [container],
                "securityContext": {"runAsNonRoot": True, "runAsUser": 65534, "runAsGroup": 65534, "fsGroup": 65534},
                "volumes": [{"name": "slurm-etc", "projected": {"defaultMode": 0o600, "sources": sources}}],
            },
        }  # fmt: skip
        return [
            self._service("slurm-restapi", marks, owner, selector, "slurmrestd", 6820),
            {
                "apiVersion": "apps/v1", "kind": "Deployment", "metadata": self._meta("slurm-restapi", marks, owner),
                "spec": {
                    "replicas": 1, "revisionHistoryLimit": 0, "selector": {"matchLabels": selector}, "template": pod,
                },
            },
        ]  # fmt: skip

    def _shared(self) -> list[dict]:
        """The Service and the budget of all workers: owned by every NodeSet, and by none of them in charge."""
        owner = self.owner("nodesets.slinky.slurm.net", self.name, is_controller=False)
        mine = {"slinky.slurm.net/cluster": "slurm"}
        budget = {"matchLabels": {**mine, "nodeset.slinky.slurm.net/pod-protect": "true"}}
        selector = {**mine, "app.kubernetes.io/name": "slurmd"}
        return [
            self._service("slurm-workers-slurm", {}, owner, selector, "slurmd", 6818, headless=True),
            {
                "apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
                "metadata": self._meta("slurm-workers-pdb-slurm", {}, owner),
                "spec": {"maxUnavailable": 0, "selector": budget},
            },
        ]  # fmt: skip

    def _workers(self) -> list[dict]:
        owner = self.owner("nodesets.slinky.slurm.net", self.name)
        nodeset = self.nodeset()
        revision = {
            "apiVersion": "apps/v1", "kind": "ControllerRevision", "revision": 1,
            "metadata": self._meta(f"{self.name}-{their_hash(nodeset)}", {HASH: their_hash(nodeset)}, owner),
            "data": patch(nodeset.spec),
        }  # fmt: skip
        return [revision, *(self.worker(number, owner, their_hash(nodeset)) for number in range(2))]

    def nodeset(self) -> NodeSet:
        """As the API server has it."""
        where = ("-n", self.slurm.namespace, "-o", "json")
        found = self.slurm.cluster.kubectl("get", "nodesets.slinky.slurm.net", self.name, *where)
        return codec.read(NodeSet, json.loads(found))

    def worker(self, number: int, owner: list[dict], hash_: str) -> dict:
        ns, name, image = self.slurm.namespace, f"{self.name}-{number}", slurm_image("slurmd")
        host = f"{self.hostname}{number}"
        marks = labels("slurmd", "worker", self.name) | {
            "slinky.slurm.net/cluster": "slurm", HASH: hash_,
            "nodeset.slinky.slurm.net/pod-name": name, "nodeset.slinky.slurm.net/pod-index": str(number),
            "nodeset.slinky.slurm.net/pod-hostname": host, "nodeset.slinky.slurm.net/scaling-mode": "StatefulSet",
        }  # fmt: skip
        path = {"httpGet": {"path": "/livez", "port": "slurmd"}, "periodSeconds": 10, "failureThreshold": 6}
        container = {
            "name": "slurmd", "image": image, "imagePullPolicy": NEVER,
            "args": ["-Z", "--conf-server", f"{SERVER}.{ns}:6817", "--conf", f"'Features={self.node_set}'"],
            "env": [{"name": "POD_CPUS", "value": "0"}, {"name": "POD_MEMORY", "value": "0"}],
            "ports": [{"name": "slurmd", "containerPort": 6818, "protocol": "TCP"}],
            "startupProbe": path, "livenessProbe": path,
            "readinessProbe": {"httpGet": {"path": "/readyz", "port": "slurmd"}},
            "securityContext": {"privileged": False, "capabilities": {"add": ["SETUID", "SETGID", "CHOWN", "KILL"], "drop": ["ALL"]}},
            "volumeMounts": [
                {"name": "slurm-etc", "mountPath": "/etc/slurm", "readOnly": True},
                {"name": "slurm-logfile", "mountPath": "/var/log/slurm"},
                {"name": "ledgers", "mountPath": "/ledgers"},
            ],
        }  # fmt: skip
        key = self._key("slurm.key")
        return {
            "apiVersion": "v1", "kind": "Pod",
            "metadata": self._meta(
                name, marks, owner, annotations={"kubectl.kubernetes.io/default-container": "slurmd"}
            ),
            "spec": {
                "automountServiceAccountToken": False, "enableServiceLinks": False,
                "hostname": host, "subdomain": "slurm-workers-slurm",
                "dnsConfig": {"searches": [f"slurm-workers-slurm.{ns}.svc.cluster.local"]},
                "tolerations": [{"key": "nodeset.slinky.slurm.net/worker", "operator": "Equal", "effect": "NoExecute"}],
                "initContainers": [self._logfile(image, "slurmd")], "containers": [container],
                "volumes": [
                    {"name": "slurm-etc", "projected": {"defaultMode": 0o600, "sources": [key]}},
                    {"name": "slurm-logfile", "emptyDir": {"medium": "Memory"}},
                    self.slurm.ledger_volume,
                ],
            },
        }  # fmt: skip

    def keys(self) -> dict:
        """Keys of the user's own: that operator makes none."""
        data = {
            name: base64.b64encode(secrets.token_bytes(1024)).decode() for name in ("slurm.key", "jwt.key")
        }
        return {
            "apiVersion": "v1", "kind": "Secret", "data": data,
            "metadata": {"name": "keys", "namespace": self.slurm.namespace},
        }  # fmt: skip
