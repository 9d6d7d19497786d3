"""Twenty-five things that go wrong on a real cluster: how each is made and repaired, and what must be said."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import faults_in_kubernetes as kubernetes
import faults_in_slurm as slurm
import faults_of_accounting as accounting
from patient import Patient


class Fault(NamedTuple):
    """`happens` makes it, gives what to ask about, and then repairs it. Both words must be in the answer."""

    happens: Callable[[Patient], Iterator[str]]
    cause: str
    remedy: str


FAULTS: dict[str, Fault] = {
    "missing-secret": Fault(accounting.missing_secret, "Secret 'unlocked'", "Create the Secret"),
    "wrong-key": Fault(accounting.wrong_key, "has no entry 'password' (it has: pass)", "Add the entry"),
    "database-down": Fault(accounting.database_down, "does not answer", "Start the database"),
    "wrong-grant": Fault(accounting.wrong_grant, "GRANT ALL", "Run the GRANT"),
    "bad-image": Fault(kubernetes.bad_image, "nowhere.example/slurmd:typo", "Correct the image"),
    "no-node-fits": Fault(kubernetes.no_node_fits, "Insufficient cpu", "Ask for less"),
    "volume-pending": Fault(kubernetes.volume_pending, "no StorageClass 'fast'", "Create StorageClass"),
    "dns-broken": Fault(kubernetes.dns_broken, "DNS", "cluster's DNS"),
    "rbac-missing": Fault(kubernetes.rbac_missing, 'cannot create resource "pods"', "grant its ServiceAccount"),
    "quota": Fault(kubernetes.quota, "exceeded quota: small", "ResourceQuota"),
    "pod-security": Fault(kubernetes.pod_security, "violates PodSecurity", "label the namespace"),
    "eviction-blocked": Fault(kubernetes.eviction_blocked, "cannot be evicted meanwhile", "uncordon"),
    "name-clash": Fault(kubernetes.name_clash, "exists already", "choose another name"),
    "slurmctld-crash": Fault(slurm.slurmctld_crash, "Incomplete job state save file", "log of slurmctld says why"),
    "config-refused": Fault(slurm.config_refused, "did you mean SchedulerType", "Correct the line"),
    "worker-does-not-register": Fault(slurm.does_not_register, "slurmctld does not know it", "log of slurmd"),
    "gres-mismatch": Fault(slurm.gres_mismatch, "gpu", "extraConf"),
    "drained-by-a-human": Fault(slurm.drained_by_human, "fan is loud", "kubectl slurm undrain demo-odd-0"),
    "held-job": Fault(slurm.held_job, "its owner holds it", "scontrol release"),
    "impossible-job": Fault(slurm.impossible_job, "no node of the cluster has what it asks for", "Ask for less"),
    "full-queue": Fault(slurm.full_queue, "jobs with a higher priority", "in its turn"),
    "expired-token": Fault(slurm.expired_token, "the token ran out", "spec.refresh"),
    "version-skew": Fault(slurm.version_skew, "is newer than slurmctld", "Update the Controller first"),
    "stuck-completing": Fault(slurm.stuck_completing, "still has processes", "See which process"),
    "node-lost": Fault(kubernetes.node_lost, "does not answer", "Bring the node back"),
}  # fmt: skip

# What people ask about a cluster on which nothing is broken.
ANSWERS: dict[str, Fault] = {
    "drained-cluster": Fault(slurm.all_drained, "3 of 3 nodes are drained by root: bad NIC", "undrain demo-"),
    "job-of-an-array": Fault(slurm.array_task, "waits in partition all", "scontrol show job"),
    "job-lacks-memory": Fault(
        slurm.lacks_memory, "no node has enough free memory", "Nothing is wrong with it"
    ),
    "job-that-failed": Fault(slurm.failed_job, "failed at", "with exit code 3"),
}

# Jobs that wait or are over: nothing is wrong with them.
WAITING = {
    "held-job",
    "impossible-job",
    "full-queue",
    "job-of-an-array",
    "job-lacks-memory",
    "job-that-failed",
}
