"""What a shared root has, beside what the image brings."""

from collections.abc import Mapping

# Written last, so only a complete root has it. The name is the one that Soperator's own parts look for.
MARKER = "etc/soperator-jail-populated"
OLD_MARKER = ".populated"

# Beside the root's own content while it is populated.
LOCK = ".slurm-operator-populate.lock"
WORK = ".slurm-operator-populate"
REPLACED = ".slurm-operator-replaced"

# Not overwritten and not deleted: they are the users', or somebody else writes them.
KEPT = ("home", "root", "opt/soperator-home", "etc/slurm")
HOST_KEYS = "etc/ssh/ssh_host_"
ACCOUNT_FILES = ("passwd", "group", "shadow", "gshadow", "subuid", "subgid")

# On workers a directory of the Kubernetes node, which is empty at first.
NODE_OUTPUTS = "opt/soperator-outputs/local"

# Every directory that anything is mounted on, in any pod. Made here so that no pod has to: pods that start
# together would race.
MOUNT_POINTS: Mapping[str, int] = {
    "proc": 0o555,
    "sys": 0o555,
    "dev": 0o755,
    "run": 0o755,
    "tmp": 0o1777,
    "var/log": 0o755,
    "var/spool/slurmd": 0o755,
    "var/lib/sss/pipes": 0o755,
    "var/hostlog/journal": 0o755,
    "var/cache/enroot": 0o1777,
    "var/cache/enroot-container-images": 0o1777,
    "usr/lib/slurm-operator/plugins": 0o755,
    "etc/slurm": 0o755,
    "mnt/memory": 0o755,
    "home": 0o755,
    "root": 0o700,
    "opt/soperator-home": 0o755,
    "opt/soperator-outputs": 0o777,
    "opt/soperator-outputs/local": 0o777,
    "opt/soperator-outputs/local/nccl_logs": 0o777,
    "opt/soperator-outputs/local/slurm_jobs": 0o777,
    "opt/soperator-outputs/local/slurm_scripts": 0o777,
    "opt/soperator-outputs/local/task_prolog": 0o777,
    "opt/soperator-outputs/local/health_checker_cmd_stdout": 0o777,
    "opt/soperator-outputs/shared": 0o777,
    "opt/soperator-outputs/shared/nccl_profiles": 0o777,
    "opt/soperator-outputs/shared/acceptance": 0o777,
}

# Files that differ by node. A mount on a single file is lost when somebody replaces the file, so these are
# links into /run, which every step and session has for its own.
NODE_LINKS: Mapping[str, str] = {
    "etc/hosts": "../run/slurm-operator/hosts",
    "etc/resolv.conf": "../run/slurm-operator/resolv.conf",
    "etc/hostname": "../run/slurm-operator/hostname",
}

# Left by GPU workers of an earlier cluster on this root: a flag, and stand-ins for driver libraries.
GPU_FLAG = "etc/gpu_libs_installed.flag"
LIBRARY_DIRECTORIES = ("usr/lib/x86_64-linux-gnu", "usr/lib/aarch64-linux-gnu")
PLACEHOLDER_BYTES = 64
