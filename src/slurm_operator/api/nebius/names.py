"""Names of the API group `slurm.nebius.ai` that its users' manifests and tools rely on."""

from typing import Final

GROUP: Final = "slurm.nebius.ai"

# Soperator's managers elect their leader by a Lease of this name, in whatever namespace they run.
SOPERATOR_LEASE: Final = "e21479ae.nebius.ai"

# On Secrets that are guarded while their SlurmCluster exists: that they are, and its name. Some descriptions
# of this API call the annotation by the second name.
GUARD_LABEL: Final = "slurm.nebius.ai/webhook"
GUARDING_CLUSTER: Final = ("slurm.nebius.ai/cluster", "slurm.nebius.ai/cluster-name")

# On NodeSets of older releases: the SlurmCluster they belong to.
PARENTAL_CLUSTER_REF: Final = "slurm.nebius.ai/parental-cluster-ref"

# The NodeSet that `slurmNodes.worker` of older releases is read as: its pods keep their names.
OLDER_WORKERS: Final = "worker"

# Environment variables of slurmd that the operator sets itself.
RESERVED_SLURMD_ENV: Final = ("SOPERATOR_NODE_REAL_MEMORY_BYTES",)

# Labels and annotations
# Those of Kubernetes nodes that say where they are begin with this, unless a setting says otherwise.
TIER_PREFIX: Final = "topology.nebius.com"
NODESET: Final = "slurm.nebius.ai/nodeset"
WORKER: Final = "slurm.nebius.ai/worker"
CONTROLLER_TYPE: Final = "slurm.nebius.ai/controller-type"
JAILED_AGGREGATION: Final = "slurm.nebius.ai/jailed-aggregation"
# On the ConfigMap with topology.conf: when workers were last found elsewhere.
TOPOLOGY_WRITTEN: Final = "slurm.nebius.ai/topology-written-at"
CONFIG_HASH: Final = "slurm.nebius.ai/config-hash"
# On the pods of a NodeConfigurator
NODE_CONFIGURATOR: Final = "slurm.nebius.ai/node-configurator"
SCONFIG_WATCHED: Final = "sconfigcontroller.slurm.nebius.ai"

# On a SlurmCluster: whose images it uses (`slurm-operator` or `soperator`), where their names do not tell.
IMAGES: Final = "slurm.nebius.ai/images"
# On a SlurmCluster: workers that Soperator made are taken over with the jobs in them (`true`).
TAKE_OVER: Final = "slurm.nebius.ai/take-over-pods"
# On a SlurmCluster: overwriting its shared root also deletes what is not in the image.
DELETE_OTHERS: Final = "slurm.nebius.ai/populate-deletes-others"
# On a SlurmCluster: for how many seconds the Job that populates the shared root may run.
POPULATE_DEADLINE: Final = "slurm.nebius.ai/populate-deadline-seconds"

# On the Job that populates the shared root: what it was made for, and from what.
POPULATE_PURPOSE: Final = "slurm.nebius.ai/populate-purpose"
POPULATE_DIGEST: Final = "slurm.nebius.ai/populate-digest"

# On the Jobs of an ActiveCheck: the Slurm jobs that it submitted, those of them that nothing was done about
# yet, why it submitted none, and when nothing was left to do.
SLURM_JOB_IDS: Final = "slurm-job-id"
UNHANDLED_JOB_IDS: Final = "unhandled-slurm-job-id"
SKIPPED_REASON: Final = "slurm-skipped-reason"
FINAL_STATE_TIME: Final = "soperator-checks-final-state-time"
# On their pods: the check.
ACTIVE_CHECK: Final = "slurm.nebius.ai/activecheck"
# On an ActiveCheck whose brake is on: the Job for which a person says that its nodes are drained all the
# same, or that nothing is done about them.
BRAKE_RELEASE: Final = "slurm.nebius.ai/brake-release"
BRAKE_DISMISS: Final = "slurm.nebius.ai/brake-dismiss"
# Soperator keeps ActiveChecks with it while they have a CronJob.
ACTIVE_CHECK_FINALIZER: Final = "slurm.nebius.ai/activecheck-finalizer"

# As whom checks submit their jobs, and whom their reservations are for.
CHECKS_USER: Final = "soperatorchecks"
CHECKS_COMPONENT: Final = "soperatorchecks"

# Entries of Secrets
MUNGE_KEY: Final = "munge.key"
REST_JWT_KEY: Final = "rest_jwt.key"
SSSD_CONF: Final = "sssd.conf"

# The volume that every part finds the shared root under, and where it is mounted.
JAIL: Final = "jail"
ROOT: Final = "/mnt/jail"
UPPER: Final = "/mnt/jail.upper"


# Children of a SlurmCluster: tools and people look for them by these names.
def munge_secret(cluster: str) -> str:
    return f"{cluster}-munge"


def rest_jwt_secret(cluster: str) -> str:
    return f"{cluster}-rest-jwt-key"


def sshd_keys_secret(cluster: str) -> str:
    return f"{cluster}-sshd-keys"


def sssd_secret(cluster: str) -> str:
    return f"{cluster}-sssd-conf"


def slurm_configs(cluster: str) -> str:
    """The ConfigMap with Slurm's files, and the JailedConfig that delivers them."""
    return f"{cluster}-slurm-configs"


def tested_configs(cluster: str) -> str:
    """The same files as slurmctld is known to run with them."""
    return f"{slurm_configs(cluster)}-good"


def more_configs(cluster: str) -> str:
    """The ConfigMap with the files that stand beside slurm.conf, before they were tested."""
    return f"{cluster}-slurm-files"


def topology_config(cluster: str) -> str:
    """The ConfigMap with topology.conf before it was tested, and the JailedConfig that delivers it."""
    return f"{cluster}-topology-config"


def ssh_configs(cluster: str) -> str:
    return f"{cluster}-ssh-configs"


def worker_ssh_configs(cluster: str) -> str:
    return f"{cluster}-ssh-configs-worker"


def ssh_root_keys(cluster: str) -> str:
    return f"{cluster}-ssh-root-keys"


def login_limits(cluster: str) -> str:
    return f"{cluster}-login-security-limits"


def controller_limits(cluster: str) -> str:
    return f"{cluster}-controller-security-limits"


def user_isolation(cluster: str) -> str:
    return f"{cluster}-login-user-isolation"


def sysctl(cluster: str) -> str:
    return f"{cluster}-sysctl"


def supervisord(cluster: str) -> str:
    return f"{cluster}-supervisord"


def populate_jail(cluster: str) -> str:
    return f"{cluster}-populate-jail"


def sconfigcontroller(cluster: str) -> str:
    """The Deployment of the writer of files, and its account where the manifest names none."""
    return f"{cluster}-sconfigcontroller"


def check_account(cluster: str) -> str:
    """The service account of the pods of ActiveChecks."""
    return f"{cluster}-activecheck-sa"


def check_role(cluster: str) -> str:
    """What they may do, and the binding of both."""
    return f"{cluster}-activecheck"


def sbatch_script(check: str) -> str:
    """The ConfigMap with the script that an ActiveCheck has in its spec."""
    return f"sbatch-script-{check}"


def exporter(cluster: str) -> str:
    """The Deployment of the exporter, and its account where it needs one and the manifest names none."""
    return f"{cluster}-slurm-exporter"


def pod_monitor(cluster: str) -> str:
    return cluster


def login(cluster: str) -> str:
    """The LoginSet, and its workload."""
    return f"{cluster}-login"


def login_service(cluster: str) -> str:
    return f"{cluster}-login-svc"


def login_headless_service(cluster: str) -> str:
    return f"{cluster}-login-headless-svc"


def controller(cluster: str) -> str:
    """The workload of slurmctld."""
    return f"{cluster}-controller"


def slurm_controller(cluster: str) -> str:
    """The account of slurmctld's pod, where Slurm powers nodes up and down."""
    return f"{cluster}-slurm-controller"


def controller_service(cluster: str) -> str:
    return f"{cluster}-controller-svc"


def accounting(cluster: str) -> str:
    """The workload of slurmdbd."""
    return f"{cluster}-accounting"


def accounting_service(cluster: str) -> str:
    return f"{cluster}-accounting-svc"


def slurmdbd_configs(cluster: str) -> str:
    return f"{cluster}-slurmdbd-configs"


def database(cluster: str) -> str:
    """What the MariaDB operator makes a database from."""
    return f"{cluster}-acct-db"


def database_password(cluster: str) -> str:
    return f"{cluster}-acct-db-password"


def database_root_password(cluster: str) -> str:
    return f"{cluster}-acct-db-root"


def rest(cluster: str) -> str:
    """The workload of the user's slurmrestd."""
    return f"{cluster}-rest"


def rest_service(cluster: str) -> str:
    return f"{cluster}-rest-svc"


def operator_rest(cluster: str) -> str:
    """The slurmrestd of the operator's own: the RestApi, its workload and its Service."""
    return f"{cluster}-operator-rest"


def nodeset_service(cluster: str) -> str:
    """The headless Service of all workers."""
    return f"{cluster}-nodeset-svc"


# Children of a NodeConfigurator
def node_configurator(configurator: str) -> str:
    """The DaemonSet."""
    return f"{configurator}-ds"


def rebooter_account(configurator: str) -> str:
    """The service account of the rebooter's pods, where the manifest names none."""
    return f"{configurator}-rebooter"


# What rebooters may do with nodes and pods, everywhere: the ClusterRole that the installation brings.
REBOOTER_ROLE: Final = "slurm-operator-rebooter"


# Children of a NodeSet
def one_nodeset_service(cluster: str, nodeset: str) -> str:
    return f"{cluster}-nodeset-{nodeset}-svc"


def nodeset_limits(cluster: str, nodeset: str) -> str:
    return f"{cluster}-nodeset-{nodeset}-security-limits"


def nodeset_sssd_secret(cluster: str, nodeset: str) -> str:
    return f"{cluster}-nodeset-{nodeset}-sssd-conf"
