"""Names that other people's tools rely on: labels, annotations, child objects, files, ports.

They are the same as in the operator that came before, so that dashboards, policies and scripts go on working.
"""

import hashlib
from typing import Final

GROUP: Final = "slinky.slurm.net"

# Labels
APP_NAME: Final = "app.kubernetes.io/name"
APP_INSTANCE: Final = "app.kubernetes.io/instance"
APP_COMPONENT: Final = "app.kubernetes.io/component"
APP_PART_OF: Final = "app.kubernetes.io/part-of"
APP_MANAGED_BY: Final = "app.kubernetes.io/managed-by"
LABEL_PART: Final = "slinky.slurm.net/part"  # the daemon, where app.kubernetes.io/name says something else
LABEL_PART_NAME: Final = "slinky.slurm.net/part-name"  # the object of ours that the pod is of
LABEL_CLUSTER: Final = "slinky.slurm.net/cluster"
LABEL_ACTIVE: Final = "controller.slinky.slurm.net/active"
LABEL_POD_NAME: Final = "nodeset.slinky.slurm.net/pod-name"
LABEL_POD_INDEX: Final = "nodeset.slinky.slurm.net/pod-index"
LABEL_POD_HOSTNAME: Final = "nodeset.slinky.slurm.net/pod-hostname"
LABEL_POD_PROTECT: Final = "nodeset.slinky.slurm.net/pod-protect"
LABEL_SCALING_MODE: Final = "nodeset.slinky.slurm.net/scaling-mode"
LABEL_REVISION: Final = "controller-revision-hash"
LABEL_HASH: Final = "controller.kubernetes.io/hash"  # the operator before us tells revisions apart by it

# Labels on worker pods that tools of slurm.nebius.ai read: whether updates are told there, the revision that
# replaces a worker, and how far that is
UPDATES_FOLLOWED: Final = "slurm.nebius.ai/rolling-update-enabled"
UPDATE_OPERATION: Final = "slurm.nebius.ai/worker-operation-id"
UPDATE_PHASE: Final = "slurm.nebius.ai/worker-operation-phase"

# Annotations on worker pods
POD_CORDON: Final = "nodeset.slinky.slurm.net/pod-cordon"
POD_DELETION_COST: Final = "nodeset.slinky.slurm.net/pod-deletion-cost"
POD_DEADLINE: Final = "nodeset.slinky.slurm.net/pod-deadline"

POD_REPLACE: Final = "nodeset.slinky.slurm.net/replace"  # another pod in its place, when its jobs are done
POD_RETIRED: Final = "nodeset.slinky.slurm.net/retired"  # the uid of a pod that never takes a job again
POD_LEAVING: Final = "nodeset.slinky.slurm.net/leaving"  # the uid of a pod that may be about to be deleted
POD_NO_STEPS: Final = "nodeset.slinky.slurm.net/no-steps"  # since when slurmd runs in which no step was seen
ALLOW_DELETION: Final = "nodeset.slinky.slurm.net/allow-deletion"  # a person takes the risk
# Another operator made the pod, from what this digest stands for. It is as good as one of ours while its
# NodeSet has the same digest by the second name.
POD_TAKEN_OVER: Final = "nodeset.slinky.slurm.net/taken-over"
KEEPS_TAKEN_OVER: Final = "slinky.slurm.net/keeps-taken-over"

# Annotations on Kubernetes nodes
NODE_CORDON_REASON: Final = "nodeset.slinky.slurm.net/node-cordon-reason"
HOSTNAME_OVERRIDE: Final = "nodeset.slinky.slurm.net/hostname-override"
TOPOLOGY: Final = "topology.slinky.slurm.net/spec"
FEATURES: Final = "features.slinky.slurm.net/spec"

# Digests on pod templates: a pod is replaced when what it was made from changes.
SLURM_KEY_HASH: Final = "slinky.slurm.net/slurm-key-hash"
JWT_KEY_HASH: Final = "slinky.slurm.net/jwt-key-hash"
SLURM_CONFIG_HASH: Final = "slinky.slurm.net/slurm-config-hash"
SLURMDBD_CONF_HASH: Final = "slinky.slurm.net/slurmdbd-conf-hash"
SSHD_CONF_HASH: Final = "slinky.slurm.net/sshd-conf-hash"
SSSD_CONF_HASH: Final = "slinky.slurm.net/sssd-conf-hash"
SSH_HOST_KEYS_HASH: Final = "slinky.slurm.net/ssh-host-keys-hash"
KEY_RING: Final = "slinky.slurm.net/key-ring"  # on pods that find their Slurm keys in this Secret
POD_SECURITY: Final = "slinky.slurm.net/pod-security"  # on pods: how strictly their containers are confined
POD_SECURITY_NOW: Final = "1"
DEFAULT_CONTAINER: Final = "kubectl.kubernetes.io/default-container"

# Everything else with a fixed name
CRD_ALLOW_DELETION: Final = "slinky.slurm.net/allow-deletion"  # on a CRD: delete it with all its objects
MANAGER: Final = "slinky.slurm.net/manager"  # on a Controller: namespace, name and uid of a Lease
FORCE_DELETION: Final = "slinky.slurm.net/force-deletion"  # delete an object though others depend on it
IN_USE_FINALIZER: Final = "slinky.slurm.net/in-use"
WORKERS_FINALIZER: Final = "nodeset.slinky.slurm.net/workers"
RESERVATION_FINALIZER: Final = "nodeset.slinky.slurm.net/reservation"
WORKER_TOLERATION: Final = "nodeset.slinky.slurm.net/worker"
POD_CONDITION_PREFIX: Final = "SlurmNodeState"
CLUSTER_NAME_LENGTH: Final = 40
SLURM_KEY_FILE: Final = "slurm.key"
JWT_KEY_FILE: Final = "jwt.key"
MUNGE_KEY_FILE: Final = "munge.key"
JWKS_FILE: Final = "jwks.json"
KEY_RING_FILE: Final = "slurm.jwks"
TOKEN_KEY: Final = "SLURM_JWT"  # noqa: S105 - the name of a Secret's entry
SSH_HOST_KEY_TYPES: Final = ("rsa", "ed25519", "ecdsa")

SLURMCTLD_PORT: Final = 6817
SLURMD_PORT: Final = 6818
SLURMDBD_PORT: Final = 6819
SLURMRESTD_PORT: Final = 6820
SSH_PORT: Final = 22
DATABASE_PORT: Final = 3306

SLURM_USER: Final = "slurm"
SLURM_UID: Final = 401
MUNGE_UID: Final = 102
SLURMRESTD_UID: Final = 65534

# Files that Slurm always looks for. Others work too, but something has to include them.
CONFIG_FILES: Final = frozenset(
    {
        "acct_gather.conf",
        "burst_buffer.conf",
        "cgroup.conf",
        "cli_filter.lua",
        "gres.conf",
        "helpers.conf",
        "job_container.conf",
        "job_submit.lua",
        "mpi.conf",
        "namespace.yaml",
        "oci.conf",
        "plugstack.conf",
        "topology.conf",
        "topology.yaml",
    }
)
RESERVED_FILES: Final = frozenset({"slurm.conf", "slurmdbd.conf"})


def cluster_name(given: str, namespace: str, controller: str) -> str:
    """Slurm's ClusterName: the given one, or one that is unique in the Kubernetes cluster."""
    return given or f"{namespace}_{controller}"


def slurm_node_set(hostname_prefix: str, nodeset: str) -> str:
    """What slurm.conf calls a NodeSet: in `NodeSet=`, as a feature and as a partition."""
    words = hostname_prefix.split()
    return (words[0].strip("-") if words else "") or nodeset


def selector(app: str, instance: str) -> str:
    """The label selector that finds the pods of one kind's object."""
    return f"{APP_INSTANCE}={instance},{APP_NAME}={app}"


# As many characters as a label, the name of a Service, and that of a StatefulSet may have.
LABEL_LENGTH: Final = 63
SERVICE_LENGTH: Final = 63
WORKLOAD_LENGTH: Final = 52

# Up to so many characters of a Controller's or Accounting's name, its children have all of it in theirs.
USUAL_LENGTH: Final = 43

_MARK_LENGTH: Final = 8


def shortened(name: str, length: int) -> str:
    """The name, or its beginning with a mark of the whole, if it is longer than that."""
    if len(name) <= length:
        return name
    mark = hashlib.sha256(name.encode()).hexdigest()[:_MARK_LENGTH]
    return f"{name[: length - _MARK_LENGTH - 1].rstrip('-')}-{mark}"


def _workload(usual: str) -> str:
    """Pods carry `<name>-<hash>` as a label, of 63 characters at most. Shorter names stay as they were."""
    return usual if len(usual) <= USUAL_LENGTH + len("-controller") else shortened(usual, WORKLOAD_LENGTH)


# Children of a Controller
def controller_service(controller: str) -> str:
    return f"{controller}-controller"


def controller_workload(controller: str) -> str:
    return _workload(f"{controller}-controller")


def controller_pod(controller: str, index: int) -> str:
    return f"{controller_workload(controller)}-{index}"


def controller_internal_service(controller: str) -> str:
    return shortened(f"{controller}-controller-internal", SERVICE_LENGTH)


def controller_config(controller: str) -> str:
    return f"{controller}-config"


def good_config(controller: str) -> str:
    """The ConfigMap with the last files that slurmctld is known to run with."""
    return f"{controller_config(controller)}-good"


def worker_service(controller: str) -> str:
    return shortened(f"slurm-workers-{controller}", SERVICE_LENGTH)


def worker_budget(controller: str) -> str:
    return f"slurm-workers-pdb-{controller}"


# Children of the other kinds
def accounting_workload(accounting: str) -> str:
    """The StatefulSet, the Service and the Secret with slurmdbd.conf: one name for all three."""
    return _workload(f"{accounting}-accounting")


def database_workload(accounting: str) -> str:
    """The StatefulSet, the Service and the Secret with the password of a MariaDB of our own."""
    return _workload(f"{accounting}-mariadb")


def restapi_workload(restapi: str) -> str:
    return f"{restapi}-restapi"


def exporter_workload(restapi: str) -> str:
    """As long as the name of slurmrestd's own, which is the longest that fits."""
    return f"{restapi}-metrics"


def login_workload(loginset: str) -> str:
    return loginset


def login_headless_service(loginset: str) -> str:
    """The Service by which ordered login pods have names of their own."""
    return f"{login_workload(loginset)}-headless"


def ssh_host_keys(loginset: str) -> str:
    return f"{loginset}-ssh-host-keys"


def ssh_config(owner: str) -> str:
    return f"{owner}-ssh-config"


def token_secret(token: str, username: str) -> str:
    return f"{token}-jwt-{username}"


def worker_claim(template: str, nodeset: str, identity: str) -> str:
    """A worker's volume claim; `identity` is its padded ordinal, or its host name in DaemonSet mode."""
    return f"{template}-{nodeset}-{identity}"


def reservation(nodeset: str) -> str:
    return f"SlurmOperatorMaint-{nodeset}"


def auth_slurm_secret(owner: str) -> str:
    """The Secret with a generated Slurm key, named after the Accounting, or the Controller without one."""
    return f"{owner}-auth-slurm"


def signing_copies(controller: str) -> str:
    """Where we keep signing keys that a slurmctld without a volume may still have."""
    return f"{controller}-signing-keys"


def auth_jwt_secret(owner: str) -> str:
    """The Secret with a generated JWT signing key, named like the Slurm key's."""
    return f"{owner}-auth-jwt"


def munge_secret(owner: str) -> str:
    """The Secret with a generated key of munge, named like the Slurm key's."""
    return f"{owner}-munge"


def munge_copy(secret: str) -> str:
    """Where we keep a copy of munge's key, called after the Secret that has it."""
    return f"{secret}-copy"


def sssd_secret(owner: str) -> str:
    """The Secret with a generated sssd.conf that knows local users."""
    return f"{owner}-sssd-conf"


# Children of a Cluster: the Controller, Accounting and RestApi are called like it.
def cluster_part(cluster: str, part: str) -> str:
    """A NodeSet or LoginSet of a Cluster."""
    return f"{cluster}-{part}"
