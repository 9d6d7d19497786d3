"""Trying out a configuration before it is used: slurmctld on the new files, in a pod that is thrown away."""

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from slurm_operator.api.shared.meta import ObjectKey
from slurm_operator.api.slinky.controller import Controller, controller_pod
from slurm_operator.conditions import Reason
from slurm_operator.manifests import kinds
from slurm_operator.manifests.builders import munge
from slurm_operator.manifests.builders.owners import owner_reference
from slurm_operator.manifests.builders.parts import Owner
from slurm_operator.manifests.meta import Child, Manifest
from slurm_operator.manifests.objects import Pod
from slurm_operator.plan.actions import DeleteObject
from slurm_operator.reconcilers.controller import annotations
from slurm_operator.reconcilers.controller.annotations import ETC_VOLUME, STATE
from slurm_operator.reconcilers.controller.configuration.files import SLURM_CONF, Files, data
from slurm_operator.reconcilers.controller.configuration.slurm_conf import ETC, state_directory
from slurm_operator.reconcilers.controller.daemon.readiness import CONTAINER
from slurm_operator.reconcilers.controller.daemon.services import owner
from slurm_operator.reconcilers.controller.daemon.trial import with_tmp
from slurm_operator.reconcilers.controller.daemon.trial_scripts import FIRST, GOOD, REACHES_OUT, TRY_OUT
from slurm_operator.reconcilers.controller.daemon.workload import etc_volume, settled_pod
from slurm_operator.reconcilers.controller.observe import Seen
from slurm_operator.slurm.conf.lines import WHITE
from slurm_operator.slurm.hostlist import compress
from slurm_operator.slurm.snapshot import Snapshot
from slurm_operator.slurm.topology import is_readable

# Pulling the image counts, too.
DEADLINE_SECONDS = 600

_REACHES_OUT = re.compile(rf"\s*{REACHES_OUT}\s*[-+*/]?=", re.IGNORECASE)
# Where the real slurmctld must be is no matter here, and on the machine's network they would meet.
_OF_THE_REAL_ONE = {"affinity", "initContainers", "hostNetwork", "dnsPolicy", "topologySpreadConstraints"}
_WHERE = re.compile(r"(?P<file>[\w.-]+\.(?:conf|yaml))(?:[:,]? (?:at )?line |:)(?P<line>\d+)")
# What slurmctld complains about on every start in an image without mail, and goes on.
_NO_CAUSE = re.compile(r"Configured MailProg is invalid")
_TIMESTAMP = re.compile(r"^\[?[0-9T:.\- ]{10,}\]?\s*")


@dataclass(frozen=True)
class Verdict:
    """What slurmctld said to a configuration."""

    is_good: bool
    message: str = ""
    file: str = ""
    line: int = 0


def files_for(seen: Seen, files: Files) -> Files:
    """The same files for a slurmctld that must touch nothing: alone, without accounting, workers by name."""
    conf = "".join(f"{line}\n" for line in _harmless(files.texts[SLURM_CONF]))
    extra = [
        "AccountingStorageType=accounting_storage/none",
        f"SlurmctldHost={controller_pod(seen.controller, 0)}(127.0.0.1)",
        f"StateSaveLocation={state_directory(seen.controller)}",
    ]
    # Lines that name dynamic nodes are right where these exist, so they must exist here, each at its place.
    for place, workers in known_workers(seen).items():
        at = [f"Topology={place}"] if place else []
        extra.append(" ".join([f"NodeName={compress(workers)}", "State=CLOUD", *at]))
    return Files({**files.texts, SLURM_CONF: conf + "".join(f"{line}\n" for line in extra)}, files.binaries)


def known_workers(seen: Seen) -> dict[str, list[str]]:
    """Nodes that slurmctld knows without a line of their own in the configuration, by their topology."""
    if not isinstance(seen.slurm, Snapshot):
        return {}
    found: defaultdict[str, list[str]] = defaultdict(list)
    for name, node in sorted(seen.slurm.nodes.items()):
        if node.state.is_dynamic:
            found[node.topology if is_readable(node.topology) else ""].append(name)
    return dict(sorted(found.items()))


def _harmless(text: str) -> Iterator[str]:
    """Line by line, so that complaints keep their line numbers."""
    is_continued = False
    for line in text.removesuffix("\n").split("\n"):
        dropped = is_continued or _REACHES_OUT.match(line) is not None
        stripped = line.rstrip(WHITE)
        is_continued = dropped and (len(stripped) - len(stripped.rstrip("\\"))) % 2 == 1
        yield "#" if dropped else line


def config_map(seen: Seen, files: Files) -> Manifest:
    """What the rehearsal reads. The pod belongs to it: when it goes, the pod goes."""
    head = owner(seen.controller)
    metadata = head.metadata(annotations.rehearsal(seen.name, files.digest))
    metadata["labels"] = _labels(seen)
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, **data(files_for(seen, files))}


def rehearsal_pod(seen: Seen, holder: Child) -> Manifest:
    """The slurmctld pod, reduced to what decides whether slurmctld starts."""
    name = holder.metadata.name
    whole = settled_pod(seen)
    main = next(one for one in whole["containers"] if one["name"] == CONTAINER)
    dropped = {"startupProbe", "livenessProbe", "readinessProbe", "lifecycle", "args", "ports"}
    container = {key: value for key, value in main.items() if key not in dropped}
    container |= {
        "command": ["sh", "-c", TRY_OUT],
        "terminationMessagePolicy": "File",
        # Seconds of work must not wait for the room that a slurmctld needs for weeks.
        "resources": {**(main.get("resources") or {}), "requests": {"cpu": "10m", "memory": "64Mi"}},
    }
    container["volumeMounts"] = with_tmp([*main["volumeMounts"]], {"name": "rehearsal-tmp"})
    kept = {key: value for key, value in whole.items() if key not in _OF_THE_REAL_ONE}
    first = [
        one
        for one in whole.get("initContainers", ())
        if one["name"] != FIRST and (one.get("restartPolicy") != "Always" or one["name"] == munge.NAME)
    ]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": seen.namespace,
            "labels": _labels(seen),
            "ownerReferences": [owner_reference(kinds.CONFIG_MAP, holder.metadata)],
        },
        "spec": kept
        | {
            # slurmctld only runs on the host that slurm.conf names.
            "hostname": controller_pod(seen.controller, 0),
            "restartPolicy": "Never",
            "activeDeadlineSeconds": DEADLINE_SECONDS,
            "terminationGracePeriodSeconds": 0,
            "initContainers": first,
            "containers": [container],
            "volumes": [
                *(volume for volume in whole["volumes"] if volume["name"] not in (ETC_VOLUME, STATE, FIRST)),
                etc_volume(seen, name),
                {"name": STATE, "emptyDir": {}},
                {"name": "rehearsal-tmp", "emptyDir": {}},
            ],
        },
    }


def verdict(pod: Pod) -> Verdict | None:
    """What came of a rehearsal; None while it runs, and when it was cut off before it could say."""
    for status in pod.status.container_statuses:
        ended = status.state.terminated
        if status.name == CONTAINER and ended is not None and ended.message.strip():
            return judged(ended.message)
    return None


def judged(message: str) -> Verdict:
    """The cause in slurmctld's own words, with the file and line where it names them."""
    if message.strip() == GOOD:
        return Verdict(is_good=True)
    lines = [_TIMESTAMP.sub("", line).replace("slurmctld: ", "") for line in message.strip().splitlines()]
    said = [line for line in lines if not _NO_CAUSE.search(line)]
    where = next((found for line in said if (found := _WHERE.search(line.replace(f"{ETC}/", "")))), None)
    told = "; ".join(dict.fromkeys(said))
    if where is None:
        return Verdict(is_good=False, message=told)
    return Verdict(is_good=False, message=told, file=where["file"], line=int(where["line"]))


def is_over(pod: Pod) -> bool:
    """It ended without a verdict: evicted, out of time, its machine gone."""
    return pod.has_ended and verdict(pod) is None


def trouble(pod: Pod) -> str:
    """Why a rehearsal has not begun, in the words of the scheduler or the kubelet."""
    scheduled = pod.status.condition("PodScheduled")
    if scheduled is not None and scheduled.status == "False":
        return scheduled.message
    for status in (*pod.status.init_container_statuses, *pod.status.container_statuses):
        waiting = status.state.waiting
        if waiting is not None and waiting.reason not in ("", "PodInitializing", "ContainerCreating"):
            return f"{waiting.reason}: {waiting.message}".removesuffix(": ")
    return ""


def removal(seen: Seen, holder: Child, why: str) -> DeleteObject:
    return DeleteObject(
        kind=kinds.CONFIG_MAP,
        key=ObjectKey(seen.namespace, holder.metadata.name),
        uid=holder.metadata.uid,
        reason=Reason.REHEARSAL_OVER,
        message=f"removed rehearsal {holder.metadata.name}: {why}",
        is_housekeeping=True,
    )


def _labels(seen: Seen) -> dict[str, str]:
    """Other labels than slurmctld's, so that no Service and no StatefulSet takes it for one."""
    controller = seen.controller
    labels = controller.spec.children.labels
    rehearsal = Owner(Controller.KIND, controller.metadata, annotations.REHEARSAL_APP, "controller", labels)
    return rehearsal.labels
