"""Values of Soperator's charts as people have them, and what must follow from each: a path into one object."""

from typing import Any

IMAGES = {
    "slurmctld": "r/controller_slurmctld:5", "slurmrestd": "r/slurmrestd:5", "slurmd": "r/worker_slurmd:5",
    "sshd": "r/login_sshd:5", "munge": "r/munge:5", "sssd": "r/sssd:5", "populateJail": "r/populate_jail:5",
    "slurmdbd": "r/controller_slurmdbd:5", "soperatorExporter": "r/soperator-exporter:5",
    "sConfigController": "r/sconfigcontroller:5", "nodeExporter": "r/node-exporter:1", "mariaDB": "r/mariadb:12",
}  # fmt: skip
DATABASE = {
    "enabled": True,
    "host": "db",
    "user": "slurm",
    "passwordSecretKeyRef": {"name": "db", "key": "password"},
}
JAIL = {"persistentVolumeClaim": {"claimName": "jail-pvc"}}
WORKER = {"name": "worker", "slurmd": {"resources": {"cpu": "1", "memory": "1Gi"}, "volumes": {"jail": JAIL}}}
FILTERS = [{"name": "gpu"}, {"name": "no-gpu"}, {"name": "system", "nodeSelector": {"a": "b"}}]
PARTITIONS = [{"name": "main", "isAll": True, "config": "Default=YES"}, {"name": "hidden", "isAll": True}]


def worker(**spec: Any) -> dict[str, Any]:
    return {"nodesets": [{**WORKER, **spec}]}


def slurmd(**more: Any) -> dict[str, Any]:
    return worker(slurmd={**WORKER["slurmd"], **more})


def volumes(**more: Any) -> dict[str, Any]:
    return slurmd(volumes={"jail": JAIL, **more})


def nodes(**parts: Any) -> dict[str, Any]:
    return {"slurmNodes": parts}


CLUSTER = "SlurmCluster"
_C = "spec.slurmNodes.controller"
_L = "spec.slurmNodes.login"
_A = "spec.slurmNodes.accounting"
_E = "spec.slurmNodes.exporter"
_CLAIMED = {"name": "data", "createPVC": True, "storageClassName": "fast", "size": "1Ti",
            "persistentVolumeClaim": {"claimName": "data-pvc"}}  # fmt: skip
ACCOUNTS = {"accounting": {"enabled": True, "externalDB": DATABASE}}

# Values, kind and name of an object, a path into it, and what stands there.
SLURM_CLUSTER: dict[str, tuple[dict[str, Any], str, str, str, Any]] = {
    "defaults": ({}, CLUSTER, "slurm1", "spec.partitionConfiguration.configType", "default"),
    "clusterName": ({"clusterName": "a"}, CLUSTER, "a", "spec.slurmNodes.login.serviceAccountName", None),
    "annotations": ({"annotations": {"a": "b"}}, CLUSTER, "slurm1", "metadata.annotations.a", "b"),
    "maintenance": ({"maintenance": "downscale"}, CLUSTER, "slurm1", "spec.maintenance", "downscale"),
    "AppArmor": ({"useDefaultAppArmorProfile": True}, CLUSTER, "slurm1", "spec.useDefaultAppArmorProfile", True),
    "our images": ({}, CLUSTER, "slurm1", f"{_C}.slurmctld.image", "docker.io/local/slurmctld:26.05"),
    "our munge": ({}, CLUSTER, "slurm1", f"{_C}.munge.image", "docker.io/local/slurmd:26.05"),
    "our writer": ({}, CLUSTER, "slurm1", "spec.sConfigController.container.image", "docker.io/local/slurm-operator:0.1.0"),
    "other default images": ({"defaultImages": "r/{daemon}:1"}, CLUSTER, "slurm1", f"{_L}.sshd.image", "r/login:1"),
    "images.slurmctld": ({"images": IMAGES}, CLUSTER, "slurm1", f"{_C}.slurmctld.image", "r/controller_slurmctld:5"),
    "images.sshd": ({"images": IMAGES}, CLUSTER, "slurm1", f"{_L}.sshd.image", "r/login_sshd:5"),
    "images.munge": ({"images": IMAGES}, CLUSTER, "slurm1", f"{_L}.munge.image", "r/munge:5"),
    "images.sssd": ({"images": IMAGES, **nodes(sssd={"enabled": True})}, CLUSTER, "slurm1", f"{_L}.sssd.image", "r/sssd:5"),
    "images.populateJail": ({"images": IMAGES}, CLUSTER, "slurm1", "spec.populateJail.image", "r/populate_jail:5"),
    "populateJail in parts": ({"images": {"populateJailRepository": "r/p", "populateJailTag": 7}}, CLUSTER, "slurm1", "spec.populateJail.image", "r/p:7"),
    "images.slurmdbd": ({"images": IMAGES, **nodes(**ACCOUNTS)}, CLUSTER, "slurm1", f"{_A}.slurmdbd.image", "r/controller_slurmdbd:5"),
    "images.slurmrestd": ({"images": IMAGES, **nodes(rest={"enabled": True})}, CLUSTER, "slurm1", "spec.slurmNodes.rest.rest.image", "r/slurmrestd:5"),
    "images.soperatorExporter": ({"images": IMAGES}, CLUSTER, "slurm1", f"{_E}.exporterContainer.image", "r/soperator-exporter:5"),
    "images.sConfigController": ({"images": IMAGES}, CLUSTER, "slurm1", "spec.sConfigController.container.image", "r/sconfigcontroller:5"),
    "images.mariaDB": ({"images": IMAGES, **nodes(accounting={"enabled": True, "mariadbOperator": {"enabled": True}})}, CLUSTER, "slurm1", f"{_A}.mariadbOperator.image", "r/mariadb:12"),
    "images.nodeExporter": ({"images": IMAGES}, CLUSTER, "slurm1", f"{_C}.customInitContainers.0.image", "r/node-exporter:1"),
    "pull policy of all": ({"imagePullPolicy": "Never"}, CLUSTER, "slurm1", f"{_C}.munge.imagePullPolicy", "Never"),
    "pull policy of one": ({"imagePullPolicy": "Never", **nodes(controller={"munge": {"imagePullPolicy": "Always"}})}, CLUSTER, "slurm1", f"{_C}.munge.imagePullPolicy", "Always"),
    "pull secrets": ({"imagePullSecrets": [{"name": "s"}]}, CLUSTER, "slurm1", f"{_L}.sshd.imagePullSecrets", [{"name": "s"}]),
    "pull secrets to populate": ({"imagePullSecrets": [{"name": "s"}]}, CLUSTER, "slurm1", "spec.populateJail.imagePullSecrets", [{"name": "s"}]),
    "structured partitions": ({"partitionConfiguration": {"configType": "structured", "partitions": PARTITIONS}}, CLUSTER, "slurm1", "spec.partitionConfiguration.partitions", PARTITIONS),
    "raw partitions": ({"partitionConfiguration": {"configType": "custom", "rawConfig": ["PartitionName=a"]}}, CLUSTER, "slurm1", "spec.partitionConfiguration.rawConfig.0", "PartitionName=a"),
    "health check": ({}, CLUSTER, "slurm1", "spec.healthCheckConfig.healthCheckProgram", "/opt/slurm_scripts/hc_program.sh"),
    "health check null": ({"healthCheckConfig": None}, CLUSTER, "slurm1", "spec.healthCheckConfig.healthCheckInterval", 120),
    "health check of one's own": ({"healthCheckConfig": {"healthCheckInterval": 30}}, CLUSTER, "slurm1", "spec.healthCheckConfig.healthCheckInterval", 30),
    "k8sNodeFilters": ({"k8sNodeFilters": FILTERS}, CLUSTER, "slurm1", "spec.k8sNodeFilters.2.nodeSelector.a", "b"),
    "volumeSources": ({"volumeSources": [_CLAIMED]}, CLUSTER, "slurm1", "spec.volumeSources.0", {"name": "data", "persistentVolumeClaim": {"claimName": "data-pvc"}}),
    "createPVC": ({"volumeSources": [_CLAIMED]}, "PersistentVolumeClaim", "data-pvc", "spec.storageClassName", "fast"),
    "size": ({"volumeSources": [_CLAIMED]}, "PersistentVolumeClaim", "data-pvc", "spec.resources.requests.storage", "1Ti"),
    "sshdKeysName": ({"secrets": {"sshdKeysName": "keys"}}, CLUSTER, "slurm1", "spec.secrets.sshdKeysName", "keys"),
    "overwrite": ({"populateJail": {"overwrite": True}}, CLUSTER, "slurm1", "spec.populateJail.overwrite", True),
    "hostUsers": ({"populateJail": {"hostUsers": False}}, CLUSTER, "slurm1", "spec.populateJail.hostUsers", False),
    "jailSnapshotVolume": ({"populateJail": {"jailSnapshotVolume": {"volumeSourceName": "jail"}}}, CLUSTER, "slurm1", "spec.populateJail.jailSnapshotVolume.volumeSourceName", "jail"),
    "slurmConfig": ({"slurmConfig": {"minJobAge": 10, "suspendTime": 300}}, CLUSTER, "slurm1", "spec.slurmConfig.suspendTime", 300),
    "prolog": ({}, CLUSTER, "slurm1", "spec.slurmConfig.prolog", "/opt/slurm_scripts/prolog.sh"),
    "task prolog": ({}, CLUSTER, "slurm1", "spec.slurmConfig.taskProlog", "/opt/slurm_scripts/task_prolog.sh"),
    "no prolog": ({"slurmConfig": {"prolog": None}}, CLUSTER, "slurm1", "spec.slurmConfig.prolog", None),
    "customSlurmConfig": ({"customSlurmConfig": "A=1\nB=2\n"}, CLUSTER, "slurm1", "spec.customSlurmConfig", "A=1\nB=2\n"),
    "customCgroupConfig": ({"customCgroupConfig": "A=1"}, CLUSTER, "slurm1", "spec.customCgroupConfig", "A=1"),
    "pmixEnv": ({"mpiConfig": {"pmixEnv": "A=b"}}, CLUSTER, "slurm1", "spec.mpiConfig.pmixEnv", "A=b"),
    "topology": ({"topology": {"blockSize": 4}}, CLUSTER, "slurm1", "spec.topology.blockSize", 4),
    "ncclDebug": ({}, CLUSTER, "slurm1", "spec.plugStackConfig.ncclDebug.enabled", True),
    "customPlugins": ({"plugStackConfig": {"customPlugins": [{"path": "x.so", "arguments": {"a": "b"}}]}}, CLUSTER, "slurm1", "spec.plugStackConfig.customPlugins.0.arguments.a", "b"),
    "munge probe": ({}, CLUSTER, "slurm1", f"{_L}.munge.readinessProbe.exec.command.2", "test -S /run/munge/munge.socket.2"),
    "slurmctld probe": ({}, CLUSTER, "slurm1", f"{_C}.slurmctld.livenessProbe.httpGet.path", "/livez"),
    "a probe taken away": (nodes(controller={"slurmctld": {"livenessProbe": None}}), CLUSTER, "slurm1", f"{_C}.slurmctld.livenessProbe", None),
    "resources": (nodes(controller={"slurmctld": {"resources": {"ephemeralStorage": "1Gi"}}}), CLUSTER, "slurm1", f"{_C}.slurmctld.resources", {"cpu": "1000m", "memory": "3Gi", "ephemeral-storage": "1Gi"}),
    "resources taken away": (nodes(login={"sshd": {"resources": None}}), CLUSTER, "slurm1", f"{_L}.sshd.resources", None),
    "a part taken away": ({"slurmNodes": {"login": None}}, CLUSTER, "slurm1", f"{_L}.size", 2),
    "all parts taken away": ({"slurmNodes": None, "sConfigController": None}, CLUSTER, "slurm1", f"{_L}.size", 2),
    "priority class": ({}, CLUSTER, "slurm1", f"{_C}.priorityClass", "slurm1-slurm-controller"),
    "priority class of one's own": (nodes(controller={"priorityClass": "high"}), CLUSTER, "slurm1", f"{_C}.priorityClass", "high"),
    "priority class object": ({}, "PriorityClass", "slurm1-slurm-worker", "value", 1000000),
    "priority class to populate": ({}, "PriorityClass", "slurm1-slurm-populate-jail", "value", 100007),
    "spool": ({}, CLUSTER, "slurm1", f"{_C}.volumes.spool.volumeClaimTemplateSpec.resources.requests.storage", "50Gi"),
    "spool as a source": (nodes(controller={"volumes": {"spool": {"volumeClaimTemplateSpec": None, "volumeSourceName": "spool"}}}), CLUSTER, "slurm1", f"{_C}.volumes.spool", {"volumeSourceName": "spool"}),
    "open metrics off": (nodes(controller={"openMetrics": {"enabled": False}}), CLUSTER, "slurm1", f"{_C}.openMetrics.enabled", False),
    "account of slurmctld": ({}, CLUSTER, "slurm1", f"{_C}.serviceAccountName", "slurm1-slurm-controller"),
    "account of slurmctld with a name": (nodes(controller={"serviceAccount": {"name": "x"}}), CLUSTER, "slurm1", f"{_C}.serviceAccountName", "x"),
    "no account of slurmctld": (nodes(controller={"serviceAccount": {"create": False}}), CLUSTER, "slurm1", f"{_C}.serviceAccountName", None),
    "role of slurmctld": ({}, "Role", "slurm1-slurm-controller", "rules.1.resources", ["nodesetpowerstates"]),
    "account of the exporter": ({}, CLUSTER, "slurm1", f"{_E}.serviceAccountName", "slurm1-exporter-sa"),
    "nodes for the exporter": ({}, "ClusterRole", "slurm-cluster-slurm1-exporter-sa", "rules.0.resources", ["nodes"]),
    "account of the writer": ({}, CLUSTER, "slurm1", "spec.sConfigController.serviceAccountName", "slurm1-sconfigcontroller"),
    "key for the writer": ({}, "Role", "slurm1-sconfigcontroller", "rules.3.resourceNames", ["slurm1-rest-jwt-key"]),
    "writer's user": ({"sConfigController": {"runAsUid": 1001, "runAsGid": 1001}}, CLUSTER, "slurm1", "spec.sConfigController.runAsUid", 1001),
    "writer's intervals": ({"sConfigController": {"reconfigureWaitTimeout": "9m"}}, CLUSTER, "slurm1", "spec.sConfigController.reconfigureWaitTimeout", "9m"),
    "login size": (nodes(login={"size": 0}), CLUSTER, "slurm1", f"{_L}.size", 0),
    "root keys": (nodes(login={"sshRootPublicKeys": ["ssh-ed25519 A"]}), CLUSTER, "slurm1", f"{_L}.sshRootPublicKeys", ["ssh-ed25519 A"]),
    "no root keys": (nodes(login={"sshRootPublicKeys": None}), CLUSTER, "slurm1", f"{_L}.sshRootPublicKeys", []),
    "service": (nodes(login={"sshdServiceType": "NodePort", "sshdServiceNodePort": 30099}), CLUSTER, "slurm1", f"{_L}.sshdServiceNodePort", 30099),
    "service annotations": (nodes(login={"sshdServiceAnnotations": {"a": "b"}}), CLUSTER, "slurm1", f"{_L}.sshdServiceAnnotations.a", "b"),
    "source ranges": (nodes(login={"sshdServiceLoadBalancerSourceRanges": ["10.0.0.0/8"]}), CLUSTER, "slurm1", f"{_L}.sshdServiceLoadBalancerSourceRanges", ["10.0.0.0/8"]),
    "user isolation": (nodes(login={"userIsolation": {"enabled": True, "memoryHigh": "2Gi"}}), CLUSTER, "slurm1", f"{_L}.userIsolation.memoryHigh", "2Gi"),
    "scripts on login pods": ({}, CLUSTER, "slurm1", f"{_L}.volumes.customMounts.0.mountPath", "/opt/slurm_scripts"),
    "scripts in the root": ({}, CLUSTER, "slurm1", f"{_L}.volumes.jailSubMounts.0.volumeSourceName", "slurm-scripts"),
    "scripts from elsewhere": (nodes(login={"volumes": {"customMounts": [{"name": "s", "mountPath": "/opt/slurm_scripts/", "volumeSourceName": "jail"}]}}), CLUSTER, "slurm1", f"{_L}.volumes.customMounts", [{"name": "s", "mountPath": "/opt/slurm_scripts/", "volumeSourceName": "jail"}]),
    "sub mounts": (nodes(login={"volumes": {"jailSubMounts": [{"name": "d", "mountPath": "/d", "volumeSourceName": "jail"}]}}), CLUSTER, "slurm1", f"{_L}.volumes.jailSubMounts.0.name", "d"),
    "sssd for all": (nodes(sssd={"enabled": True, "sssdConfSecretRefName": "conf"}), CLUSTER, "slurm1", f"{_C}.sssdConfSecretRefName", "conf"),
    "accounting off": ({}, CLUSTER, "slurm1", f"{_A}.munge", None),
    "external database": (nodes(**ACCOUNTS), CLUSTER, "slurm1", f"{_A}.externalDB.host", "db"),
    "munge with accounting": (nodes(**ACCOUNTS), CLUSTER, "slurm1", f"{_A}.munge.image", "docker.io/local/slurmd:26.05"),
    "slurmdbd.conf": (nodes(accounting={**ACCOUNTS["accounting"], "slurmdbdConfig": {"purgeJobAfter": "1month"}}), CLUSTER, "slurm1", f"{_A}.slurmdbdConfig.purgeJobAfter", "1month"),
    "TRES": (nodes(accounting={**ACCOUNTS["accounting"], "slurmConfig": {"accountingStorageTRES": "CPU"}}), CLUSTER, "slurm1", f"{_A}.slurmConfig.accountingStorageTRES", "CPU"),
    "priority of the database": (nodes(accounting={"enabled": True, "mariadbOperator": {"enabled": True}}), CLUSTER, "slurm1", f"{_A}.mariadbOperator.priorityClassName", "slurm1-slurm-mariadb"),
    "storage of the database": (nodes(accounting={"enabled": True, "mariadbOperator": {"enabled": True, "storage": {"size": "1Gi"}}}), CLUSTER, "slurm1", f"{_A}.mariadbOperator.storage.size", "1Gi"),
    "exporter off": (nodes(exporter={"enabled": False}), CLUSTER, "slurm1", f"{_E}.exporterContainer", None),
    "scrape timeout": ({}, CLUSTER, "slurm1", f"{_E}.podMonitorConfig.scrapeTimeout", "28s"),
    "exporter of older values": (nodes(exporter={"exporter": {"resources": {"cpu": "1"}}, "exporterContainer": None}), CLUSTER, "slurm1", f"{_E}.exporterContainer.resources", {"cpu": "1"}),
    "job source": (nodes(exporter={"jobSource": "accounting", "accountingJobsLookback": "2h"}), CLUSTER, "slurm1", f"{_E}.accountingJobsLookback", "2h"),
    "REST": (nodes(rest={"enabled": True, "threadCount": 9}), CLUSTER, "slurm1", "spec.slurmNodes.rest.threadCount", 9),
    "REST off": ({}, CLUSTER, "slurm1", "spec.slurmNodes.rest.rest", None),
    "node-exporter off": (nodes(controller={"nodeExporter": {"enabled": False}}), CLUSTER, "slurm1", f"{_C}.customInitContainers", []),
    "node-exporter on": ({}, CLUSTER, "slurm1", f"{_C}.customInitContainers.0.restartPolicy", "Always"),
    "node-exporter on login pods": (nodes(login={"nodeExporter": {"enabled": True}}), CLUSTER, "slurm1", f"{_L}.customInitContainers.0.name", "pod-node-exporter"),
    "a script of one's own": ({"slurmScripts": {"prolog.sh": "echo {{ .Values.clusterName }}"}}, "ConfigMap", "slurm1-slurm-scripts", "data", {"prolog.sh": "echo slurm1"}),
    "an extra script": ({"slurmScripts": {"extra": {"x.sh": {"content": "exit 0", "config": '{"name": "x", "command": "x"}'}}}}, "ConfigMap", "slurm1-slurm-scripts", "data", {"x.sh": "exit 0"}),
    "workers of older values": (nodes(worker={"size": 3, "k8sNodeFilterName": "gpu", "slurmd": {"image": "r/slurmd:1", "port": 6818}, "munge": {"image": "r/m:1"}, "volumes": {"spool": {"volumeSourceName": "jail"}, "jail": {"volumeSourceName": "jail"}}}), CLUSTER, "slurm1", "spec.slurmNodes.worker.size", 3),
}  # fmt: skip

_S = "spec.slurmd"
NODESET = "NodeSet"
NODESETS: dict[str, tuple[dict[str, Any], str, str, str, Any]] = {
    "smallest": (worker(), NODESET, "worker", "spec.clusterName", "slurm1"),
    "clusterName": ({"clusterName": "a", **worker()}, NODESET, "worker", "spec.clusterName", "a"),
    "clusterName of one": ({"clusterName": "a", **worker(clusterName="b")}, NODESET, "worker", "spec.clusterName", "b"),
    "a map": ({"nodesets": {"w": {"slurmd": WORKER["slurmd"]}}}, NODESET, "w", f"{_S}.volumes.jail", JAIL),
    "our image": (worker(), NODESET, "worker", f"{_S}.image", {"repository": "docker.io/local/slurmd", "tag": "26.05"}),
    "images": ({"images": {"slurmd": {"repository": "r/s", "tag": 7}}, **worker()}, NODESET, "worker", f"{_S}.image", {"repository": "r/s", "tag": "7"}),
    "images as texts": ({"images": {"munge": "r:5000/m:7"}, **worker()}, NODESET, "worker", "spec.munge.image", {"repository": "r:5000/m", "tag": "7"}),
    "image of one": (slurmd(image={"repository": "r/s", "tag": "1", "pullPolicy": "Never"}), NODESET, "worker", f"{_S}.image.pullPolicy", "Never"),
    "replicas": (worker(replicas=0), NODESET, "worker", "spec.replicas", 0),
    "maxUnavailable": (worker(maxUnavailable="20%"), NODESET, "worker", "spec.maxUnavailable", "20%"),
    "updateStrategy": (worker(updateStrategy="slurmAwareRollingUpdate"), NODESET, "worker", "spec.updateStrategy", "slurmAwareRollingUpdate"),
    "labels": (worker(labels={"a": "b"}), NODESET, "worker", "metadata.labels.a", "b"),
    "annotations": (worker(annotations={"a": "b"}), NODESET, "worker", "metadata.annotations.a", "b"),
    "GPUs": (slurmd(resources={"cpu": "1", "memory": "1Gi", "gpu": 8, "ephemeralStorage": "5Gi"}), NODESET, "worker", f"{_S}.resources", {"cpu": "1", "memory": "1Gi", "nvidia.com/gpu": 8, "ephemeral-storage": "5Gi"}),
    "gpu": (worker(gpu={"enabled": True, "nvidia": {"gdrCopyEnabled": True}}), NODESET, "worker", "spec.gpu.nvidia.gdrCopyEnabled", True),
    "spool": (worker(), NODESET, "worker", f"{_S}.volumes.spool", {"emptyDir": {}}),
    "spool as a claim": (volumes(spool={"volumeClaimTemplateSpec": {"storageClassName": "fast"}}), NODESET, "worker", f"{_S}.volumes.spool", {"ephemeral": {"volumeClaimTemplate": {"spec": {"storageClassName": "fast"}}}}),
    "spool as a source": (volumes(spool={"hostPath": {"path": "/s"}}), NODESET, "worker", f"{_S}.volumes.spool", {"hostPath": {"path": "/s"}}),
    "scripts": (worker(), NODESET, "worker", f"{_S}.volumes.customVolumeMounts.0.volumeSource.configMap.name", "slurm1-slurm-scripts"),
    "scripts in the root": (worker(), NODESET, "worker", f"{_S}.volumes.jailSubMounts.0.mountPath", "/opt/slurm_scripts"),
    "no scripts": ({"slurmScripts": {"enabled": False}, **worker()}, NODESET, "worker", f"{_S}.volumes.customVolumeMounts", []),
    "sub mounts": (volumes(jailSubMounts=[{"name": "d", "mountPath": "/d", "volumeClaimTemplateSpec": {"accessModes": ["ReadWriteOnce"]}}]), NODESET, "worker", f"{_S}.volumes.jailSubMounts.0.volumeClaimTemplateSpec.accessModes", ["ReadWriteOnce"]),
    "shared memory": (volumes(sharedMemorySize="1Gi"), NODESET, "worker", f"{_S}.volumes.sharedMemorySize", "1Gi"),
    "what becomes of claims": (volumes(persistentVolumeClaimRetentionPolicy={"whenScaled": "Retain"}), NODESET, "worker", f"{_S}.volumes.persistentVolumeClaimRetentionPolicy.whenScaled", "Retain"),
    "features": (worker(nodeConfig={"features": ["a"], "static": "Boards=1", "dynamic": "I=$X", "gresConfig": ["AutoDetect=nvidia"]}), NODESET, "worker", "spec.nodeConfig.gresConfig", ["AutoDetect=nvidia"]),
    "fabric": (worker(topology={"fabric": "f"}), NODESET, "worker", "spec.topology.fabric", "f"),
    "ephemeral": (worker(ephemeralNodes=True, initialNumberEphemeralNodes=2), NODESET, "worker", "spec.initialNumberEphemeralNodes", 2),
    "environment": (slurmd(customEnv=[{"name": "A", "value": "b"}]), NODESET, "worker", f"{_S}.customEnv.0.value", "b"),
    "security": (slurmd(security={"limitsConfig": "* soft nofile 1"}), NODESET, "worker", f"{_S}.security.limitsConfig", "* soft nofile 1"),
    "configs": (worker(configMapRefSshd="s", configMapRefSupervisord="v"), NODESET, "worker", "spec.configMapRefSupervisord", "v"),
    "place": (worker(nodeSelector={"a": "b"}, tolerations=[{"operator": "Exists"}], affinity={"nodeAffinity": {}}), NODESET, "worker", "spec.nodeSelector.a", "b"),
    "priority class": (worker(priorityClass="p"), NODESET, "worker", "spec.priorityClass", "p"),
    "priority class object": ({"priorityClasses": [{"name": "p", "value": 7}]}, "PriorityClass", "p", "value", 7),
    "priority class default": ({}, "PriorityClass", "soperator-worker-high-priority", "value", 10000000),
    "user namespace": (worker(enableHostUserNamespace=True), NODESET, "worker", "spec.enableHostUserNamespace", True),
    "delay": (worker(workerInitRandomDelaySeconds=30), NODESET, "worker", "spec.workerInitRandomDelaySeconds", 30),
    "sssd": (worker(sssd={"resources": {"cpu": "1", "memory": "1Gi"}}, sssdConfSecretRefName="s"), NODESET, "worker", "spec.sssd.image.repository", "docker.io/local/slurmd"),
    "munge": (worker(munge={"resources": {"ephemeralStorage": "1Gi"}}), NODESET, "worker", "spec.munge.resources", {"ephemeral-storage": "1Gi"}),
    "init containers": (worker(customInitContainers=[{"name": "a", "image": "i"}]), NODESET, "worker", "spec.customInitContainers.0.name", "a"),
    "node-exporter": (worker(nodeExporter={"enabled": True}), NODESET, "worker", "spec.customInitContainers.0.ports.0.containerPort", 9100),
    "worker annotations": (worker(workerAnnotations={"a": "b"}), NODESET, "worker", "spec.workerAnnotations.a", "b"),
    "null": (worker(affinity=None, nodeConfig=None, tolerations=None), NODESET, "worker", "spec.affinity", None),
}  # fmt: skip

MANAGER = "soperator-manager"
_P = "spec.template.spec.containers.0"


def manager(**more: Any) -> dict[str, Any]:
    return {"controllerManager": {"manager": more}}


OPERATOR: dict[str, tuple[dict[str, Any], str, str, str, Any]] = {
    "defaults": ({}, "Deployment", MANAGER, f"{_P}.name", "manager"),
    "account": ({}, "Deployment", MANAGER, "spec.template.spec.serviceAccountName", MANAGER),
    "command": ({}, "Deployment", MANAGER, f"{_P}.command", ["/usr/bin/slurm_operator"]),
    "args": (manager(args=["--log-level", "debug", "--reconcile-timeout=1m"]), "Deployment", MANAGER, f"{_P}.args", ["--log-level", "debug", "--checks=false"]),
    "checks in the manager": ({"checks": {"inManager": True}, **manager(args=["--leader-elect"])}, "Deployment", MANAGER, f"{_P}.args", ["--leader-elect"]),
    "no topology": (manager(controllersEnabled={"topology": False}), "Deployment", MANAGER, f"{_P}.args.4", "--controllers=*,-topology"),
    "two left out": (manager(controllersEnabled={"topology": False, "nodeset": False}), "Deployment", MANAGER, f"{_P}.args.4", "--controllers=*,-nodeset,-topology"),
    "image": (manager(image={"repository": "r/o", "tag": "7"}), "Deployment", MANAGER, f"{_P}.image", "r/o:7"),
    "image of the chart": ({}, "Deployment", MANAGER, f"{_P}.image", "docker.io/local/slurm-operator-soperator:0.1.0"),
    "pull policy": (manager(imagePullPolicy="Never"), "Deployment", MANAGER, f"{_P}.imagePullPolicy", "Never"),
    "pull secrets": (manager(imagePullSecrets=[{"name": "s"}]), "Deployment", MANAGER, "spec.template.spec.imagePullSecrets", [{"name": "s"}]),
    "namespaces": (manager(env={"slurmOperatorWatchNamespaces": "blue"}), "Deployment", MANAGER, f"{_P}.env.1", {"name": "SLURM_OPERATOR_WATCH_NAMESPACES", "value": "blue"}),
    "rights in a namespace": (manager(env={"slurmOperatorWatchNamespaces": "blue"}), "Role", "soperator-manager-clusters", "metadata.namespace", "blue"),
    "webhooks off": (manager(env={"enableWebhooks": "false"}), "Deployment", MANAGER, f"{_P}.env.0", {"name": "ENABLE_WEBHOOKS", "value": "false"}),
    "resources": (manager(resources={"limits": {"memory": "2Gi"}}), "Deployment", MANAGER, f"{_P}.resources.limits.memory", "2Gi"),
    "replicas": ({"controllerManager": {"replicas": 2}}, "Deployment", MANAGER, "spec.replicas", 2),
    "place": ({"controllerManager": {"nodeSelector": {"a": "b"}, "tolerations": [{"operator": "Exists"}]}}, "Deployment", MANAGER, "spec.template.spec.nodeSelector.a", "b"),
    "annotations of the account": ({"controllerManager": {"serviceAccount": {"annotations": {"a": "b"}}}}, "ServiceAccount", MANAGER, "metadata.annotations.a", "b"),
    "domain": ({"kubernetesClusterDomain": "c.local"}, "Deployment", MANAGER, f"{_P}.env.3.value", "c.local"),
    "metrics port": ({}, "Service", "soperator-manager-metrics", "spec.ports.0.port", 8443),
    "another metrics port": (manager(args=["--metrics-bind-address=127.0.0.1:9000"]), "Service", "soperator-manager-metrics", "spec.ports.0.port", 9000),
    "another health port": (manager(args=["-health-probe-bind-address=:9001"]), "Deployment", MANAGER, f"{_P}.ports.0.containerPort", 9001),
    "cert-manager": ({}, "Certificate", "soperator-webhook-service-cert", "spec.secretName", "soperator-webhook-service-cert"),
    "a certificate of one's own": ({"certManager": {"enabled": False}}, "Deployment", MANAGER, f"{_P}.args.4", "--webhook-service=soperator-webhook-service"),
    "failure policy": ({"webhook": {"failurePolicy": "Fail"}}, "ValidatingWebhookConfiguration", "soperator-webhook-service", "webhooks.0.failurePolicy", "Fail"),
    "node-exporter": ({"nodeExporter": {"enabled": True, "port": 9101}}, "Deployment", MANAGER, "spec.template.spec.initContainers.0.args.5", "--web.listen-address=:9101"),
    "images of clusters": ({"slurmImages": "r/{daemon}:1"}, "Deployment", MANAGER, f"{_P}.env.5.value", "r/{daemon}:1"),
    "null": ({"controllerManager": None, "nodeExporter": None}, "Deployment", MANAGER, "spec.replicas", 1),
    "policy": ({}, "ValidatingAdmissionPolicy", "soperator-workers", "spec.failurePolicy", "Fail"),
    "another name": ({"fullnameOverride": "op"}, "Deployment", "op-manager", "spec.template.spec.serviceAccountName", "op-manager"),
}  # fmt: skip

_MOUNT = {"name": "d", "mountPath": "/d", "volumeSourceName": "data"}
_WHOLE = {
    "clusterName": "whole", "images": IMAGES, "imagePullSecrets": [{"name": "s"}], "annotations": {"a": "b"},
    "useDefaultAppArmorProfile": True, "k8sNodeFilters": FILTERS, "topology": {"blockSize": 4},
    "volumeSources": [{"name": "jail", "persistentVolumeClaim": {"claimName": "jail-pvc"}}, _CLAIMED],
    "partitionConfiguration": {"configType": "structured", "partitions": PARTITIONS},
    "slurmNodes": {
        "sssd": {"enabled": True},
        "accounting": {**ACCOUNTS["accounting"], "nodeExporter": {"enabled": True}},
        "controller": {"volumes": {"customMounts": [_MOUNT]}},
        "login": {"sshRootPublicKeys": ["ssh-ed25519 A"], "volumes": {"jailSubMounts": [_MOUNT]}, "nodeExporter": {"enabled": True}},
        "rest": {"enabled": True},
    },
    "sConfigController": {"runAsUid": 1001, "runAsGid": 1001},
}  # fmt: skip
_WORKERS = {
    "clusterName": "whole",
    "nodesets": [
        {**WORKER, "nodeExporter": {"enabled": True}, "maxUnavailable": "20%"},
        {
            "name": "gpu", "replicas": 0, "gpu": {"enabled": True}, "sssd": {"resources": {"cpu": "1", "memory": "1Gi"}},
            "slurmd": {
                "resources": {"cpu": "1", "memory": "1Gi", "gpu": 8, "ephemeralStorage": "1Gi"},
                "volumes": {
                    "jail": JAIL,
                    "spool": {"volumeClaimTemplateSpec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}},
                },
            },
            "munge": {"resources": {"cpu": "1", "memory": "1Gi"}},
        },
    ],
}  # fmt: skip

# By chart: values with which whatever there is is made.
EVERYTHING: list[tuple[str, dict[str, Any]]] = [
    ("slurm-cluster", {}),
    ("slurm-cluster", _WHOLE),
    ("nodesets", _WORKERS),
    ("soperator", {"nodeExporter": {"enabled": True}}),
    (
        "soperator",
        {"certManager": {"enabled": False}, **manager(env={"slurmOperatorWatchNamespaces": "default"})},
    ),
    ("soperatorchecks", {}),
    ("soperator-activechecks", {"checks": {"dcgmi-diag-r3": {"enabled": True}}}),
    ("nodeconfigurator", {"rebooter": {"resources": {"limits": {"memory": "1Gi"}}}}),
    (
        "nodeconfigurator",
        {"rebooter": {"enabled": False}, "customContainer": {"enabled": True, "command": ["sleep"]}},
    ),
    (
        "slurm-cluster-storage",
        {
            "volume": {
                "accounting": {"enabled": True},
                "jailSubMounts": [{"name": "d", "size": "1Gi", "filestoreDeviceName": "d"}],
            }
        },
    ),
    (
        "slurm-cluster-storage",
        {"volume": {"jail": {"storageClassName": "shared"}, "controllerSpool": {"enabled": False}}},
    ),
]

CHECK = "ActiveCheck"
_N = "slurm1-create-user-nebius"
_G = "slurm1-gpu-checks"


def checks(**by_name: Any) -> dict[str, Any]:
    return {"checks": {name.replace("_", "-"): one for name, one in by_name.items()}}


CHECKS: dict[str, tuple[dict[str, Any], str, str, str, Any]] = {
    "names begin with the cluster": ({}, CHECK, _N, "spec.name", _N),
    "slurmClusterRefName": ({"slurmClusterRefName": "a"}, CHECK, "a-gpu-checks", "spec.slurmClusterRefName", "a"),
    "dependsOn": ({}, CHECK, _N, "spec.dependsOn", ["slurm1-create-user-soperatorchecks"]),
    "dependsOn without what is off": ({}, CHECK, _G, "spec.dependsOn", ["slurm1-wait-for-soperatorchecks-srun-ready", "slurm1-wait-for-topology"]),
    "dependsOn of another release": (checks(gpu_checks={"dependsOn": ["mine"]}), CHECK, _G, "spec.dependsOn", ["slurm1-mine"]),
    "off": (checks(gpu_checks={"enabled": False}), CHECK, "slurm1-ensure-healthy-nodes", "spec.dependsOn", ["slurm1-wait-for-soperatorchecks-srun-ready", "slurm1-wait-for-topology"]),
    "schedule": (checks(gpu_checks={"schedule": "1 2 3 4 5"}), CHECK, _G, "spec.schedule", "1 2 3 4 5"),
    "suspend": (checks(gpu_checks={"suspend": True}), CHECK, _G, "spec.suspend", True),
    "reaction": ({}, CHECK, _G, "spec.failureReactions.drainSlurmNode.drainReasonPrefix", "[node_problem]"),
    "another reaction": (checks(gpu_checks={"failureReactions": {"drainSlurmNode": None, "commentSlurmNode": {"commentPrefix": "x"}}}), CHECK, _G, "spec.failureReactions", {"commentSlurmNode": {"commentPrefix": "x"}}),
    "image of Slurm jobs": ({"images": {"slurmJob": "r/s:1"}}, CHECK, _G, "spec.slurmJobSpec.jobContainer.image", "r/s:1"),
    "munge of Slurm jobs": ({"images": {"munge": "r/m:1"}}, CHECK, _G, "spec.slurmJobSpec.mungeContainer.image", "r/m:1"),
    "image as a template": (checks(create_user_nebius={"k8sJobSpec": {"jobContainer": {"image": "{{ .Values.images.slurmJob }}"}}}), CHECK, _N, "spec.k8sJobSpec.jobContainer.image", "docker.io/local/login:26.05"),
    "munge of a Kubernetes Job": ({}, CHECK, "slurm1-wait-for-soperatorchecks-srun-ready", "spec.k8sJobSpec.mungeContainer.image", "docker.io/local/slurmd:26.05"),
    "no munge": ({}, CHECK, _N, "spec.k8sJobSpec.mungeContainer", None),
    "jail": ({}, CHECK, _G, "spec.slurmJobSpec.jobContainer.volumeMounts", [{"name": "jail", "mountPath": "/mnt/jail"}]),
    "another jail": ({"jobContainer": {"volumes": [{"name": "jail", "persistentVolumeClaim": {"claimName": "x"}}]}}, CHECK, _G, "spec.slurmJobSpec.jobContainer.volumes.0.persistentVolumeClaim.claimName", "x"),
    "environment of all": ({"jobContainer": {"env": [{"name": "A", "value": "b"}]}}, CHECK, _N, "spec.k8sJobSpec.jobContainer.env.2", {"name": "A", "value": "b"}),
    "where a check runs": ({}, CHECK, "slurm1-retrigger-checks", "spec.k8sJobSpec.jobContainer.env.1", {"name": "CLUSTER", "value": "slurm1"}),
    "environment of one": ({}, CHECK, _N, "spec.k8sJobSpec.jobContainer.env.0", {"name": "USER_NAME", "value": "nebius"}),
    "script": (checks(create_user_nebius={"script": "echo {{ .Values.slurmClusterRefName }}"}), "ConfigMap", _N, "data", {"script.sh": "echo slurm1"}),
    "scriptRefName": (checks(create_user_nebius={"k8sJobSpec": {"scriptRefName": "mine"}}), CHECK, _N, "spec.k8sJobSpec.scriptRefName", "mine"),
    "sbatchScript": (checks(gpu_checks={"slurmJobSpec": {"sbatchScript": "#!/bin/sh"}}), CHECK, _G, "spec.slurmJobSpec.sbatchScript", "#!/bin/sh"),
    "maxNumberOfJobs": ({}, CHECK, _G, "spec.slurmJobSpec.maxNumberOfJobs", 200),
    "hostUsers from 1.33 on": ({}, CHECK, _G, "spec.hostUsers", True),
    "hostUsers": ({"hostUsers": False}, CHECK, _G, "spec.hostUsers", False),
    "a check of one's own": (checks(mine={"enabled": True, "checkType": "k8sJob", "script": "exit 0"}), CHECK, "slurm1-mine", "spec.k8sJobSpec.scriptRefName", "slurm1-mine"),
    "jail state": ({"images": {"sansible": "r/ansible:1"}, **checks(manage_jail_state={"enabled": True, "k8sJobSpec": {"jobContainer": {"command": ["run"]}}})}, CHECK, "slurm1-manage-jail-state", "spec.k8sJobSpec.jobContainer.image", "r/ansible:1"),
    "wait": ({"waitForChecks": {"timeoutSeconds": 60}}, "Job", "slurm1-wait-for-active-checks", "spec.activeDeadlineSeconds", 60),
}  # fmt: skip

_M = "spec.template.spec.containers.0"
OF_CHECKS: dict[str, tuple[dict[str, Any], str, str, str, Any]] = {
    "defaults": ({}, "Deployment", "soperatorchecks-checks", f"{_M}.command", ["slurm-operator", "soperatorchecks"]),
    "args": ({"checks": {"manager": {"args": ["--reconcile-timeout=3m", "--log-level=debug"]}}}, "Deployment", "soperatorchecks-checks", f"{_M}.args", ["--log-level=debug", "--enable-node-replacement=false"]),
    "replacement": ({"checks": {"manager": {"args": [], "enableNodeReplacement": True}}}, "Deployment", "soperatorchecks-checks", f"{_M}.args", ["--enable-node-replacement=true"]),
    "controllers": ({"checks": {"manager": {"args": [], "controllersEnabled": {"k8snodes": False, "activecheckprolog": False}}}}, "Deployment", "soperatorchecks-checks", f"{_M}.args.1", "--controllers=*,-k8snodes"),
    "ignored labels": ({}, "Deployment", "soperatorchecks-checks", f"{_M}.env.1.value", "slurm.nebius.ai/nodeset=nfs"),
    "images of clusters": ({"slurmImages": "r/{daemon}:1"}, "Deployment", "soperatorchecks-checks", f"{_M}.env.3.value", "r/{daemon}:1"),
    "namespaces": ({"checks": {"manager": {"env": {"slurmOperatorWatchNamespaces": "blue"}}}}, "Role", "soperatorchecks-checks-clusters", "metadata.namespace", "blue"),
    "image": ({"checks": {"manager": {"image": {"repository": "r/c", "tag": "7"}}}}, "Deployment", "soperatorchecks-checks", f"{_M}.image", "r/c:7"),
    "place": ({"checks": {"tolerations": [{"operator": "Exists"}]}}, "Deployment", "soperatorchecks-checks", "spec.template.spec.tolerations", [{"operator": "Exists"}]),
    "replicas": ({"checks": {"replicas": 2}}, "Deployment", "soperatorchecks-checks", "spec.replicas", 2),
}  # fmt: skip

CONFIGURATOR = "NodeConfigurator"
CONFIGURATORS: dict[str, tuple[dict[str, Any], str, str, str, Any]] = {
    "defaults": ({}, CONFIGURATOR, "nodeconfigurator", "spec.rebooter.enabled", True),
    "image": ({"rebooter": {"image": {"repository": "r/r", "tag": 7}}}, CONFIGURATOR, "nodeconfigurator", "spec.rebooter.image", {"repository": "r/r", "tag": "7", "pullPolicy": "IfNotPresent"}),
    "account": ({}, CONFIGURATOR, "nodeconfigurator", "spec.rebooter.serviceAccountName", "nodeconfigurator-rebooter"),
    "account of one's own": ({"rebooter": {"serviceAccountName": "x"}}, CONFIGURATOR, "nodeconfigurator", "spec.rebooter.serviceAccountName", "x"),
    "no account": ({"rebooter": {"generateRBAC": False}}, CONFIGURATOR, "nodeconfigurator", "spec.rebooter.serviceAccountName", ""),
    "evictions": ({}, "ClusterRole", "nodeconfigurator-nodeconfigurator-rebooter", "rules.3.resources", ["pods/eviction"]),
    "log level": ({"rebooter": {"logLevel": "debug"}}, CONFIGURATOR, "nodeconfigurator", "spec.rebooter.logLevel", "debug"),
    "tolerations": ({"rebooter": {"tolerations": [{"operator": "Exists"}]}}, CONFIGURATOR, "nodeconfigurator", "spec.rebooter.tolerations.0.operator", "Exists"),
    "init containers": ({"initContainers": [{"name": "a", "image": "b"}]}, CONFIGURATOR, "nodeconfigurator", "spec.initContainers.0.name", "a"),
    "host": ({"hostNetwork": False, "hostIPC": True}, CONFIGURATOR, "nodeconfigurator", "spec.hostIPC", True),
    "a container of one's own": ({"rebooter": {"enabled": False}, "customContainer": {"enabled": True}}, CONFIGURATOR, "nodeconfigurator", "spec.customContainer.image.repository", "docker.io/library/busybox"),
    "older values": ({"rebooter": {"enabled": False}, "nodeConfigurator": {"enabled": True, "image": {"repository": "r/x", "tag": "1"}}}, CONFIGURATOR, "nodeconfigurator", "spec.nodeConfigurator.image.repository", "r/x"),
}  # fmt: skip

STORAGE: dict[str, tuple[dict[str, Any], str, str, str, Any]] = {
    "claim": ({}, "PersistentVolumeClaim", "jail-pvc", "spec.volumeName", "jail-pv"),
    "size": ({"volume": {"jail": {"size": "5Gi"}}}, "PersistentVolume", "jail-pv", "spec.capacity.storage", "5Gi"),
    "name": ({"volume": {"jail": {"name": "My Jail"}}}, "PersistentVolume", "my-jail-pv", "spec.local.path", "/mnt/my-jail"),
    "spool": ({}, "PersistentVolumeClaim", "controller-spool-pvc", "spec.resources.requests.storage", "30Gi"),
    "accounting": ({"volume": {"accounting": {"enabled": True}}}, "PersistentVolumeClaim", "accounting-pvc", "spec.resources.requests.storage", "128Gi"),
    "class": ({"storageClass": {"local": {"name": "mine"}}}, "StorageClass", "mine", "volumeBindingMode", "WaitForFirstConsumer"),
    "a class that exists": ({"volume": {"jail": {"storageClassName": "shared"}}}, "PersistentVolumeClaim", "jail-pvc", "spec", {"accessModes": ["ReadWriteMany"], "storageClassName": "shared", "resources": {"requests": {"storage": "2Ti"}}}),
    "place": ({"storage": {"jail": {"matchExpressions": [{"key": "a", "operator": "Exists"}]}}}, "PersistentVolume", "jail-pv", "spec.nodeAffinity.required.nodeSelectorTerms.0.matchExpressions", [{"key": "a", "operator": "Exists"}]),
    "tolerations": ({"storage": {"jail": {"tolerations": [{"operator": "Exists"}]}}}, "DaemonSet", "jail-mount", "spec.template.spec.tolerations", [{"operator": "Exists"}]),
    "strategy": ({}, "DaemonSet", "jail-mount", "spec.updateStrategy.rollingUpdate.maxUnavailable", "20%"),
    "strategy taken away": ({"storage": {"jail": {"updateStrategy": None}}}, "DaemonSet", "jail-mount", "spec.updateStrategy", None),
    "sub mounts": ({"volume": {"jailSubMounts": [{"name": "d", "size": "1Gi", "filestoreDeviceName": "x"}]}}, "PersistentVolumeClaim", "d-pvc", "spec.volumeName", "d-pv"),
}  # fmt: skip
