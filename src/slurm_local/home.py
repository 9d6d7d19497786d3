"""/home of a local Slurm cluster: a directory of this machine that all of its pods see, and a key for ssh."""

import os
import shutil
import subprocess
from pathlib import Path

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from slurm_local.errors import LocalError
from slurm_local.image.accounts import DEMO, Account
from slurm_local.kubernetes.pki import write_secret

CLAIM = "home"
MOUNT = "/home"
_SIZE = "8Gi"  # Kubernetes wants one. A directory has no limit but the disk's.

# By this comment our own line in authorized_keys is known, and replaced when there is another key.
_COMMENT = "slurm-operator-local"

# As the user, in their home: they may have put a link where we are about to write.
_ADMIT = """
set -eu
umask 077
mkdir -p .ssh
touch .ssh/authorized_keys
{ grep -v " $1\\$" .ssh/authorized_keys || true; cat; } > .ssh/authorized_keys.new
mv .ssh/authorized_keys.new .ssh/authorized_keys
"""


def make(directory: Path, keys: list[str], account: Account = DEMO) -> None:
    """A home with whatever was in it before, which lets in whoever has one of these keys."""
    home = directory / account.name
    if home.is_symlink() or (home.exists() and not home.is_dir()):
        raise LocalError(f"{home} is no directory, so nobody can have it as a home. Move it away.")
    if not home.exists():
        home.mkdir(mode=0o700, parents=True)
        os.chown(home, account.number, account.number)
    directory.chmod(0o755)
    lines = "".join(f"{_bare(key)} {_COMMENT}\n" for key in keys)
    done = subprocess.run(
        ["sh", "-c", _ADMIT, "admit", _COMMENT],
        cwd=home,
        user=account.number,
        group=account.number,
        extra_groups=[],
        input=lines,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise LocalError(f"Cannot write {home}/.ssh/authorized_keys as {account.name}: {done.stderr.strip()}")


def remove(directory: Path) -> bool:
    """Whether there was one. Links in it are removed, never followed."""
    if not directory.exists():
        return False
    shutil.rmtree(directory)
    return True


def key_pair(directory: Path) -> tuple[Path, str]:
    """The file of a private key for ssh, made when there is none, and its public half."""
    file = directory / "id_ed25519"
    if not file.exists():
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        secret = Ed25519PrivateKey.generate().private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.OpenSSH, serialization.NoEncryption()
        )
        write_secret(file, secret)
    key = serialization.load_ssh_private_key(file.read_bytes(), password=None)
    public = key.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
    return file, public.decode()


def objects(directory: Path, namespace: str) -> list[dict[str, object]]:
    """The volume and the claim by which pods mount it. Deleting the claim deletes no file."""
    capacity, modes = {"storage": _SIZE}, ["ReadWriteMany"]
    volume = f"{namespace}-{CLAIM}"
    return [
        {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": volume},
            "spec": {
                "storageClassName": "",
                "capacity": capacity,
                "accessModes": modes,
                "persistentVolumeReclaimPolicy": "Retain",
                "hostPath": {"path": str(directory), "type": "Directory"},
                "claimRef": {"namespace": namespace, "name": CLAIM},
            },
        },
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": CLAIM, "namespace": namespace},
            "spec": {
                "storageClassName": "",
                "volumeName": volume,
                "accessModes": modes,
                "resources": {"requests": capacity},
            },
        },
    ]


def mounted(container: str) -> dict[str, object]:
    """What a part of a Cluster says to have it: the container by its name, and the pod's template."""
    return {
        container: {"volumeMounts": [{"name": CLAIM, "mountPath": MOUNT}]},
        "template": {
            "spec": {"volumes": [{"name": CLAIM, "persistentVolumeClaim": {"claimName": CLAIM}}]},
        },
    }


def _bare(key: str) -> str:
    """A public key without its comment."""
    return " ".join(key.split()[:2])
