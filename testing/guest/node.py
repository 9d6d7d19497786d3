"""A Kubernetes node in the virtual machine: containerd and a kubelet that runs the pods of a directory.

There is no API server: pods are the ones that the operator would create, made fit for a kubelet alone. They use
the node's network, and files of the node instead of Secrets.
"""

import copy
import hashlib
import json
import secrets
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

import yaml

from slurm_local import image
from slurm_local.build import builds
from slurm_local.build.stamps import once
from slurm_local.kubernetes import containerd
from slurm_local.paths import Paths
from slurm_local.progress import PlainProgress
from testing.boxed.conf import CONTROLLER
from testing.boxed.head import SLURM
from testing.guest.machine import AGENT, Machine, disk
from testing.guest.roots import node_root, qemu_root

NAME = "node"
ADDRESS = "10.9.9.9"  # The kubelet refuses an address of loopback, and there is no other network.

_SOCKET = "/run/containerd/containerd.sock"
_MANIFESTS = "/test/pods"


class Node:
    """Booted, and its kubelet answers. `driver` is the kubelet's and containerd's cgroup driver."""

    def __init__(self, work: Path, driver: str) -> None:
        files = work / "files"
        (files / "pods").mkdir(parents=True)
        (files / "agent").write_text(AGENT)
        (files / "containerd.toml").write_text(_containerd(driver))
        (files / "kubelet.yaml").write_text(yaml.safe_dump(_kubelet(driver), sort_keys=False))
        shutil.copytree(_programs(), files / "bin")
        (files / "slurm.key").write_bytes(secrets.token_bytes(1024))
        (files / "jwt.key").write_bytes(secrets.token_bytes(32))
        self.machine = Machine(qemu_root(), work, [_system(), _images(), disk(files, work / "files.ext4")])
        shutil.rmtree(files)
        try:
            self._start()
        except BaseException:
            self.machine.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.machine.close()

    def run_slurmctld(self, files: Mapping[str, str]) -> None:
        """slurmctld with these files; until it answers."""
        machine = self.machine
        machine.run("rm -rf /test/ctld /test/slurmd; mkdir -p /test/ctld /test/slurmd")
        for name, text in files.items():
            machine.write(f"/test/ctld/{name}", text)
        uid, gid = SLURM
        machine.run(
            "cp /test/slurm.key /test/jwt.key /test/ctld/; cp /test/slurm.key /test/slurmd/; chmod 600 /test/slurmd/*; "
            f"chmod 600 /test/ctld/*.key; chown -R {uid}:{gid} /test/ctld"
        )
        self.put_pod("ctld", _slurmctld())
        self.machine.wait_for(
            lambda: self.slurm("scontrol ping", check=False).endswith("is UP"), "slurmctld to answer", 300
        )

    def put_pod(self, name: str, pod: Mapping[str, Any]) -> None:
        self.machine.write("/run/pod.json", json.dumps(pod))
        self.machine.run(f"mv /run/pod.json {_MANIFESTS}/{name}.json")

    def take_pod(self, name: str) -> None:
        """Asks the kubelet to end it, as a delete in the API does."""
        self.machine.run(f"rm {_MANIFESTS}/{name}.json")

    def slurm(self, command: str, *, timeout_s: float = 240, check: bool = True) -> str:
        """What a Slurm client prints, as root beside slurmctld."""
        entered = f"nsenter --mount --target $(pgrep --oldest slurmctld) -- {command}"
        return self.machine.run(entered, timeout_s=timeout_s, check=check).strip()

    def ask_kubelet(self, path: str) -> str:
        url = f"https://{ADDRESS}:10250/{path}"
        return self.slurm(f"curl --silent --fail --insecure {url}")

    def _start(self) -> None:
        machine = self.machine
        machine.run(f"hostname {CONTROLLER}; ip link set lo up; ip address add {ADDRESS}/32 dev lo")
        # The system was made without both, and every pod begins with a copy of them.
        machine.run("echo 127.0.0.1 localhost > /etc/hosts; touch /etc/resolv.conf")
        machine.run("mount --make-rshared /; mkdir -p /run/containerd")
        # With delegation, as packages of containerd and of the kubelet ask for it.
        unit = "systemd-run --quiet --property=Delegate=yes --property=KillMode=process --setenv=PATH=/test/bin:/usr/sbin:/usr/bin:/sbin:/bin"
        machine.run(f"{unit} --unit=containerd /test/bin/containerd --config=/test/containerd.toml")
        machine.wait_for(lambda: machine.tried(f"test -S {_SOCKET}").code == 0, "containerd to listen")
        kubelet = f"/test/bin/kubelet --config=/test/kubelet.yaml --root-dir=/var/lib/kubelet --hostname-override={NAME} --node-ip={ADDRESS} --housekeeping-interval=30s"
        machine.run(f"{unit} --unit=kubelet {kubelet}")


def prepare() -> None:
    """Makes what takes minutes on a fresh machine."""
    qemu_root()
    _system()
    _images()
    _programs()


def for_kubelet_alone(pod: Mapping[str, Any]) -> dict[str, Any]:
    """A worker of the operator, as a kubelet without an API server takes it."""
    made = copy.deepcopy(dict(pod))
    made["metadata"].pop("ownerReferences", None)
    spec = made["spec"]
    for volume in spec["volumes"]:
        if "projected" in volume:  # The Slurm key.
            del volume["projected"]
            volume["hostPath"] = {"path": "/test/slurmd"}
    for container in [*spec["containers"], *spec["initContainers"]]:
        container["imagePullPolicy"] = "Never"
        container.setdefault("image", image.slurm_image("slurmd"))
    slurmd = spec["containers"][0]
    slurmd["args"] = [f"{ADDRESS}:6817" if ":6817" in word else word for word in slurmd["args"]]
    # The key that turns is a Secret of the operator's; here there is one key, and no ring.
    slurmd["env"] = [one for one in slurmd["env"] if one["name"] != "SLURM_SACK_JWKS"]
    return made


def _slurmctld() -> dict[str, Any]:
    uid, gid = SLURM
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "ctld", "namespace": "default"},
        "spec": {
            "hostNetwork": True,
            "terminationGracePeriodSeconds": 5,
            "containers": [
                {
                    "name": "slurmctld",
                    "image": image.SLURM_IMAGE,
                    "imagePullPolicy": "Never",
                    "command": ["slurmctld", "-D"],
                    "securityContext": {"runAsUser": uid, "runAsGroup": gid},
                    "volumeMounts": [
                        {"name": "etc", "mountPath": "/etc/slurm"},
                        {"name": "run", "mountPath": "/run"},
                        {"name": "spool", "mountPath": "/var/spool/slurmctld"},
                    ],
                }
            ],
            "volumes": [
                {"name": "etc", "hostPath": {"path": "/test/ctld"}},
                {"name": "run", "emptyDir": {}},
                {"name": "spool", "emptyDir": {}},
            ],
        },
    }


def _containerd(driver: str) -> str:
    text = containerd.config(Path("/var/lib/containerd"), "/run/containerd/state", _SOCKET, Path("/etc/cni"))
    by_systemd = str(driver == "systemd").lower()
    # A virtual machine of one's own may give processes any adjustment.
    return text.replace("SystemdCgroup = false", f"SystemdCgroup = {by_systemd}").replace(
        "restrict_oom_score_adj = true", "restrict_oom_score_adj = false"
    )


def _kubelet(driver: str) -> dict[str, Any]:
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": ADDRESS,
        "authentication": {"anonymous": {"enabled": True}, "webhook": {"enabled": False}},
        "authorization": {"mode": "AlwaysAllow"},
        "containerRuntimeEndpoint": f"unix://{_SOCKET}",
        "cgroupDriver": driver,
        "staticPodPath": _MANIFESTS,
        "fileCheckFrequency": "1s",
        "failSwapOn": False,
        "resolvConf": "",
        "makeIPTablesUtilChains": False,
        "evictionHard": {"memory.available": "50Mi", "nodefs.available": "1%", "imagefs.available": "1%"},
        "imageGCHighThresholdPercent": 100,
        "imageGCLowThresholdPercent": 99,
    }


def _programs() -> Path:
    paths, progress = Paths.of(), PlainProgress()
    kubernetes = builds.binaries(builds.KUBERNETES, paths, progress)
    runtime = builds.binaries(builds.CONTAINERD, paths, progress)
    wanted = [kubernetes / "kubelet", *(runtime / name for name in builds.CONTAINERD.programs)]

    def fill(directory: Path) -> None:
        for program in wanted:
            shutil.copy2(program, directory / program.name)

    return once(paths.images / f"guest-programs-{_digest(*wanted)}", fill)


def _system() -> Path:
    """The system as a disk, made once."""
    root = node_root()

    def fill(directory: Path) -> None:
        disk(root, directory / "system.ext4")

    return once(root.parent.with_name(f"{root.parent.name}-disk"), fill) / "system.ext4"


def _images() -> Path:
    """Unpacked images as a disk, made once for each set of images."""
    paths, progress = Paths.of(), PlainProgress()
    archives = (image.pause_archive(paths, progress), image.slurm_archive(paths, progress))
    seed = containerd.seed(archives, paths, progress)

    def fill(directory: Path) -> None:
        disk(seed / "root", directory / "images.ext4")

    return once(paths.images / f"guest-images-{_digest(*archives)}", fill) / "images.ext4"


def _digest(*files: Path) -> str:
    facts = [f"{file} {file.stat().st_mtime_ns}" for file in files]
    return hashlib.sha256("\n".join(facts).encode()).hexdigest()[:12]
