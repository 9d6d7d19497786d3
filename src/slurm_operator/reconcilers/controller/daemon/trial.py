"""slurmctld's first start: its files are tried out in its own pod, right before it starts there.

While no slurmctld of a Controller has ever run, a bad file can hurt nothing. So its StatefulSet need not wait
for a rehearsal, and whoever waits for the Controller has something to look at from the first moment.
"""

from collections.abc import Iterator

from slurm_operator.api.slinky.controller import Controller
from slurm_operator.manifests.builders import logs
from slurm_operator.manifests.meta import Manifest
from slurm_operator.manifests.objects import ContainerStatus, Pod
from slurm_operator.reconcilers.controller.annotations import DIGEST_WORD, ETC_VOLUME, STATE
from slurm_operator.reconcilers.controller.configuration.slurm_conf import state_directory
from slurm_operator.reconcilers.controller.daemon.readiness import CONTAINER
from slurm_operator.reconcilers.controller.daemon.trial_scripts import (
    FIRST,
    MOUNTED,
    STATE_VARIABLE,
    TRY_OUT_FIRST,
)

# Volumes of the pod in whose place the trial has directories of its own: it leaves no trace in them.
_IN_PLACE_OF = {
    ETC_VOLUME: "etc",
    STATE: "state",
    "run": "run",
    "slurm-authsocket": "socket",
    logs.VOLUME: "log",
}
# What it looks at, and must not change.
_LOOKED_AT = {ETC_VOLUME: "etc", STATE: "state"}

_TMP = "/tmp"  # noqa: S108 - of a container
_PROBES = {"startupProbe", "livenessProbe", "readinessProbe"}
_NOT_OF_A_TRIAL = _PROBES | {"lifecycle", "args", "ports", "resizePolicy"}


def tried_out(controller: Controller, pod: Manifest) -> Manifest:
    """The pod with a container that tries out the files first, after those that prepare something for it."""
    main = next(one for one in pod["containers"] if one["name"] == CONTAINER)
    return {
        **pod,
        "initContainers": [*(pod.get("initContainers") or ()), trial(controller, main)],
        "volumes": [*pod["volumes"], {"name": FIRST, "emptyDir": {}}],
    }


def trial(controller: Controller, main: Manifest) -> Manifest:
    """slurmctld's container, reduced to what decides whether slurmctld starts."""
    kept = {key: value for key, value in main.items() if key not in _NOT_OF_A_TRIAL}
    state = {"name": STATE_VARIABLE, "value": state_directory(controller)}
    return kept | {
        "name": FIRST,
        "command": ["sh", "-c", TRY_OUT_FIRST],
        "env": [*(main.get("env") or ()), state],
        "terminationMessagePolicy": "File",
        # Seconds of work must not wait for the room that a slurmctld needs for weeks.
        "resources": {**(main.get("resources") or {}), "requests": {"cpu": "10m", "memory": "64Mi"}},
        "volumeMounts": with_tmp([*_mounts(main)], {"name": FIRST, "subPath": "tmp"}),
    }


def with_tmp(mounts: list[Manifest], volume: Manifest) -> list[Manifest]:
    """With a place for temporary files, unless the user gave slurmctld one."""
    has_one = any(one["mountPath"] == _TMP for one in mounts)
    return mounts if has_one else [*mounts, {**volume, "mountPath": _TMP}]


def _mounts(main: Manifest) -> Iterator[Manifest]:
    for one in main["volumeMounts"]:
        volume, path = one["name"], one["mountPath"]
        place = _IN_PLACE_OF.get(volume)
        yield one if place is None else {"name": FIRST, "subPath": place, "mountPath": path}
        if volume in _LOOKED_AT:
            yield {**one, "mountPath": f"{MOUNTED}/{_LOOKED_AT[volume]}", "readOnly": True}


def refused(pod: Pod) -> tuple[str, str] | None:
    """The digest of the files that were refused in this pod, and slurmctld's words; None if none were."""
    for status in pod.status.init_container_statuses:
        if status.name == FIRST and (words := _last_words(status)):
            digest, _, told = words.strip().partition("\n")
            if digest.startswith(DIGEST_WORD):
                return digest.removeprefix(DIGEST_WORD), told
    return None


def _last_words(status: ContainerStatus) -> str:
    """Of the last time that it ended; while it runs again nobody knows more."""
    ended = status.state.terminated or status.last_state.terminated
    return ended.message if ended is not None and ended.exit_code else ""
