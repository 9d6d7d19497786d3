"""A Slurm cluster as a Helm release that brings its own keys, in Secrets that cannot be changed."""

import json
import secrets
import subprocess
from pathlib import Path
from typing import Any

import yaml
from helm_rig import CHARTS, HOME, SLURM_VALUES, Helm
from operator_rig import until

from slurm_local.errors import LocalError
from slurm_local.image import slurm_image
from slurm_operator.api.shared.names import GROUP

NAMESPACE = "slurm"
KINDS = ("nodesets", "loginsets", "restapis", "controllers", "accountings", "tokens", "clusters")
KEYS = (("slurm-key", "slurm.key"), ("jwt-key", "jwt.key"))
COPIES = {"slurm-key-ring", "slurm-signing-keys"}


BYSTANDER = "bystander-"


def _bystander(node: str) -> dict[str, Any]:
    container = {
        "name": "sleep",
        "image": slurm_image("slurmctld"),
        "imagePullPolicy": "Never",
        "command": ["sleep", "3600"],
        "volumeMounts": [{"name": "key", "mountPath": "/key"}],
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"{BYSTANDER}{node}", "namespace": NAMESPACE},
        "spec": {
            "nodeName": node,
            "containers": [container],
            "volumes": [{"name": "key", "secret": {"secretName": "jwt-key"}}],
        },
    }


class Release:
    """`helm install` and `uninstall` of one chart, and what is left in its namespace."""

    def __init__(self, helm: Helm, place: Path) -> None:
        self.helm, self.place = helm, place
        self.kubectl = helm.cluster.kubectl
        rendered = helm("template", "slurm", str(CHARTS / "slurm"), "-n", NAMESPACE, values=SLURM_VALUES)
        things = [thing for thing in yaml.safe_load_all(rendered) if thing]
        [head] = [thing for thing in things if thing["kind"] == "Controller"]
        for field, (name, key) in zip(("slurmKeyRef", "jwtKeyRef"), KEYS, strict=True):
            head["spec"][field] = {"name": name, "key": key}
        (place / "templates").mkdir(parents=True)
        (place / "Chart.yaml").write_text("apiVersion: v2\nname: slurm-with-keys\nversion: 0.1.0\n")
        (place / "templates" / "slurm.yaml").write_text(yaml.safe_dump_all(things))

    def install(self) -> None:
        """With keys that no release before had."""
        made = [
            {
                "apiVersion": "v1",
                "kind": "Secret",
                "immutable": True,
                "metadata": {"name": name},
                "stringData": {key: secrets.token_hex(32)},
            }
            for name, key in KEYS
        ]
        (self.place / "templates" / "keys.yaml").write_text(yaml.safe_dump_all(made))
        if self.helm.cluster.kubectl("get", "namespace", NAMESPACE, "--ignore-not-found") == "":
            self.kubectl("create", "namespace", NAMESPACE)
        self.helm("install", "slurm", str(self.place), "-n", NAMESPACE)

    def wait_idle(self, seconds: float = 300) -> None:
        until(lambda: self.helm.idle() == 2, seconds, self.told)

    def wait_ready(self, seconds: float = 240) -> None:
        """The operator can ask Slurm, and says so."""
        until(lambda: self.ready()[0] == "True" and self.registered() == 2, seconds, self.told)

    def ready(self) -> tuple[str, str]:
        found = [one for one in self.controller_conditions() if one["type"] == "Ready"]
        return (found[0]["status"], found[0]["reason"]) if found else ("", "")

    def registered(self) -> int:
        return sum(one.get("status", {}).get("registeredReplicas", 0) for one in self.left("nodesets"))

    def controller_conditions(self) -> list[dict[str, Any]]:
        return [
            one for found in self.left("controllers") for one in found.get("status", {}).get("conditions", ())
        ]

    def left(self, *plurals: str) -> list[dict[str, Any]]:
        """Objects of our kinds, or of some of them."""
        wanted = ",".join(f"{plural}.{GROUP}" for plural in plurals or KINDS)
        found: list[dict[str, Any]] = json.loads(self.kubectl("get", wanted, "-n", NAMESPACE, "-o", "json"))[
            "items"
        ]
        return found

    def secrets(self) -> set[str]:
        return {one["metadata"]["name"] for one in self.helm.get("secrets", "-n", NAMESPACE)["items"]}

    def delete(self, *what: str, flags: tuple[str, ...] = ()) -> None:
        for plural in what:
            kind = f"{plural}.{GROUP}" if plural in KINDS else plural
            self.kubectl("delete", kind, "--all", "-n", NAMESPACE, "--wait=false", *flags)

    def uninstall(self) -> None:
        """Who deletes all Secrets deletes what Helm knows of its release."""
        self.helm("uninstall", "slurm", "-n", NAMESPACE, "--ignore-not-found")

    def wait_gone(self, seconds: float = 240) -> None:
        until(lambda: not self.left() and not self.pods(), seconds, self.told)

    def pods(self) -> list[str]:
        return [name for name in self.helm.pods(NAMESPACE) if not name.startswith(BYSTANDER)]

    def stand_by(self) -> None:
        """A pod on every node that has the signing key: its kubelet keeps that for whoever comes next."""
        nodes = [node["metadata"]["name"] for node in self.helm.get("nodes")["items"]]
        self.helm.cluster.apply([_bystander(node) for node in nodes])
        until(lambda: self._standing() == len(nodes), 60, self.told)

    def _standing(self) -> int:
        found = self.helm.get("pods", "-n", NAMESPACE)["items"]
        named = [one for one in found if one["metadata"]["name"].startswith(BYSTANDER)]
        return sum(one["status"].get("phase") == "Running" for one in named)

    def send_bystanders_away(self) -> None:
        names = [name for name in self.helm.pods(NAMESPACE) if name.startswith(BYSTANDER)]
        self.kubectl("delete", "pod", *names, "-n", NAMESPACE, "--grace-period=0", "--force")

    def last_state(self, job: int) -> str:
        """Of a job; empty when nobody can be asked any more."""
        try:
            return self.helm.job_state(job)
        except (LocalError, IndexError, subprocess.TimeoutExpired):
            return ""

    def restart_operator(self) -> None:
        self.kubectl(
            "delete", "pod", "-n", HOME, "-l", "app.kubernetes.io/name=slurm-operator", "--wait=false"
        )

    def told(self) -> str:
        words = {
            f"{one['kind']} {one['metadata']['name']}": [
                f"{c['type']}={c['status']} {c['reason']}: {c.get('message', '')}" for c in one.get("status", {}).get("conditions", ())
            ]
            for one in self.left()
        }  # fmt: skip
        pods = self.kubectl("get", "pods", "-n", NAMESPACE, "-o", "wide")
        return f"{json.dumps(words, indent=1)}\n{pods}\n{sorted(self.secrets())}"
