"""The operator under test: ours, ours with a patch, or another one that serves the same API."""

import struct
import subprocess
from dataclasses import dataclass
from pathlib import Path

import yaml

from slurm_local import image
from slurm_local.cluster import Cluster
from slurm_local.progress import Progress
from slurm_local.slurm_cluster import OPERATOR_NAMESPACE, install, wait_established
from slurm_operator import wire
from slurm_operator.api.registry import Registry

# Where our image keeps the program: a patch goes before it.
_PROGRAM = "/usr/lib/slurm-operator/program:/usr/lib/slurm-operator/dependencies"


@dataclass(frozen=True)
class Operator:
    """`manifests` and `archives` are another operator's: its installation, and the images it is made from.

    `process` are words of its command line, by which it is found and killed. `patch` is Python that ours runs
    at its start.
    """

    manifests: Path | None = None
    archives: tuple[Path, ...] = ()
    process: str = "slurm_operator.cli manager"
    deployment: str = "slurm-operator"
    namespace: str = OPERATOR_NAMESPACE
    patch: str = ""

    @property
    def is_ours(self) -> bool:
        return self.manifests is None

    def install(self, cluster: Cluster, kinds: Registry, clock: Path, progress: Progress) -> None:
        """Until it has started, with a clock that can be set wrong. Another one brings its own kinds."""
        ours = (image.operator_archive(cluster.paths, progress),) if self.is_ours else ()
        for archive in (*ours, *self.archives):
            cluster.load_image(archive)
        if self.manifests is None:
            install(cluster, image.OPERATOR_IMAGE, kinds)
        else:
            _install_other(cluster, self.manifests)
        _make_clock(clock)
        self._change(cluster, clock)

    def _change(self, cluster: Cluster, clock: Path) -> None:
        where = ("-n", self.namespace)
        if self.patch:
            cluster.apply([self._patch_file()])
        found = cluster.kubectl("get", "deployment", self.deployment, *where, "-o", "json")
        container = wire.decode_any(found)["spec"]["template"]["spec"]["containers"][0]["name"]
        body = wire.encode(self._template(container, clock)).decode()
        # The file with the wrong time is one of this machine, which a restricted namespace does not allow.
        label = "pod-security.kubernetes.io/enforce=privileged"
        cluster.kubectl("label", "namespace", self.namespace, "--overwrite", label)
        cluster.kubectl("patch", "deployment", self.deployment, *where, "--type=strategic", "-p", body)
        rollout = ("rollout", "status", f"deployment/{self.deployment}")
        cluster.kubectl(*rollout, *where, "--timeout=180s")

    def _patch_file(self) -> dict[str, object]:
        return {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "patch", "namespace": self.namespace},
            "data": {"sitecustomize.py": self.patch},
        }

    def _template(self, container: str, clock: Path) -> dict[str, object]:
        volumes: list[dict[str, object]] = [{"name": "clock", "hostPath": {"path": str(clock)}}]
        mounts = [{"name": "clock", "mountPath": "/clock", "readOnly": True}]
        variables = {"LD_PRELOAD": "/clock/skew.so", "SKEW_FILE": "/clock/seconds"}
        if self.patch:
            volumes.append({"name": "patch", "configMap": {"name": "patch"}})
            mounts.append({"name": "patch", "mountPath": "/patch", "readOnly": True})
            variables["PYTHONPATH"] = f"/patch:{_PROGRAM}"
        env = [{"name": name, "value": value} for name, value in variables.items()]
        changed = {"name": container, "env": env, "volumeMounts": mounts}
        return {"spec": {"template": {"spec": {"volumes": volumes, "containers": [changed]}}}}


def _install_other(cluster: Cluster, manifests: Path) -> None:
    objects = [thing for thing in yaml.safe_load_all(manifests.read_text()) if thing]
    cluster.apply([thing for thing in objects if thing["kind"] == "CustomResourceDefinition"])
    wait_established(cluster.kubectl)
    cluster.apply([thing for thing in objects if thing["kind"] != "CustomResourceDefinition"])


def _make_clock(directory: Path) -> None:
    """The library that the operator is started with, and the number of seconds that it reads."""
    directory.mkdir(parents=True, exist_ok=True)
    directory.chmod(0o755)
    source, library = Path(__file__).with_name("skew.c"), directory / "skew.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-O2", "-o", library, source, "-ldl"], check=True)
    (directory / "seconds").write_bytes(struct.pack("l", 0))
