"""Nodes that exist only in the API server, by kwok: for tests with thousands of them."""

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import yaml

from slurm_local.cluster import Cluster, is_ready
from slurm_local.progress import Step

_Match = dict[str, str | list[str]]

_MARK = "kwok.x-k8s.io/node"
_READY = '.status.conditions.[] | select( .type == "Ready" ) | .status'

_NODE_STATUS = """
phase: Running
conditions:
{{ range NodeConditions }}
- {type: {{ .type | Quote }}, status: {{ .status | Quote }}, reason: {{ .reason | Quote }},
   message: {{ .message | Quote }}, lastTransitionTime: {{ Now | Quote }}}
{{ end }}
"""

_POD_STATUS = """
phase: Running
startTime: {{ Now | Quote }}
{{ with PodIPsWith .spec.nodeName false .metadata.uid .metadata.name .metadata.namespace }}
podIP: {{ index . 0 | Quote }}
{{ end }}
conditions:
- {type: Initialized, status: "True", lastTransitionTime: {{ Now | Quote }}}
- {type: ContainersReady, status: "True", lastTransitionTime: {{ Now | Quote }}}
- {type: Ready, status: "True", lastTransitionTime: {{ Now | Quote }}}
containerStatuses:
{{ range .spec.containers }}
- {name: {{ .name | Quote }}, image: {{ .image | Quote }}, imageID: "", ready: true, started: true,
   restartCount: 0, state: {running: {startedAt: {{ Now | Quote }}}}}
{{ end }}
"""


def stages(*, ends_pods: bool = True) -> str:
    """What kwok does with a fake node and its pods: up at once, gone at once.

    kwok deletes by name alone, and when it is late that ends the successor, again and again. Where pods of
    one name follow each other by the hundred, somebody else has to end them.
    """
    gone: _Match = {"key": ".metadata.deletionTimestamp", "operator": "Exists"}
    here: _Match = {"key": ".metadata.deletionTimestamp", "operator": "DoesNotExist"}
    pending: _Match = {"key": ".status.phase", "operator": "In", "values": ["Pending"]}
    not_ready: _Match = {"key": _READY, "operator": "NotIn", "values": ["True"]}
    made = [
        _stage("node-up", "Node", [not_ready], {"statusTemplate": _NODE_STATUS}),
        _stage("pod-up", "Pod", [here, pending], {"statusTemplate": _POD_STATUS}),
    ]
    if ends_pods:
        made.append(_stage("pod-gone", "Pod", [gone], {"delete": True}))
    return yaml.safe_dump_all(made, sort_keys=False)


def node(number: int) -> dict[str, object]:
    """A fake node. Tainted, so that nothing lands there unasked."""
    name, room = f"fake-{number}", {"cpu": "64", "memory": "256Gi", "pods": "250"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "annotations": {_MARK: "fake"},
            "labels": {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "type": "fake"},
        },
        "spec": {"taints": [{"key": _MARK, "value": "fake", "effect": "NoSchedule"}]},
        "status": {"capacity": room, "allocatable": room},
    }


def command(program: Path, kubeconfig: Path, config: Path) -> list[str]:
    """kwok, looking after our fake nodes and nobody else's; `config` holds the stages."""
    flags = ["--manage-all-nodes=false", f"--manage-nodes-with-annotation-selector={_MARK}=fake"]
    flags += ["--node-lease-duration-seconds=40", "--enable-crds=", "--v=WARN"]
    return [str(program), f"--kubeconfig={kubeconfig}", f"--config={config}", *flags]


def start(cluster: Cluster, programs: Path, count: int, step: Step) -> None:
    """Makes the nodes and waits until all are Ready."""
    file = cluster.directory / "stages.yaml"
    file.write_text(stages())
    cluster.parts.start("kwok", command(programs / "kwok", cluster.kubeconfig, file))
    caller = cluster.caller
    with ThreadPoolExecutor(8) as pool:
        for _ in pool.map(
            lambda number: caller.call("POST", "/api/v1/nodes", node(number)), range(1, count + 1)
        ):
            pass  # Each may raise what went wrong.

    def all_ready() -> bool:
        time.sleep(0.5)  # A list of thousands keeps the API server from making them ready.
        ready = sum(map(is_ready, cluster.items("/api/v1/nodes?labelSelector=type%3Dfake")))
        step.at(ready, count)
        return ready == count

    cluster.parts.wait_until(all_ready, f"{count} fake nodes to be Ready", deadline_s=60 + count / 5)


def _stage(name: str, kind: str, matches: list[_Match], then: dict[str, object]) -> dict[str, object]:
    return {
        "apiVersion": "kwok.x-k8s.io/v1alpha1",
        "kind": "Stage",
        "metadata": {"name": name},
        "spec": {
            "resourceRef": {"apiGroup": "v1", "kind": kind},
            "selector": {"matchExpressions": matches},
            "next": then,
        },
    }
