"""Dynamic volumes: a directory for every claim of our storage class. Runs as a program beside the cluster.

All nodes share this machine's files, so a volume may be mounted by many. Directories are open to everybody,
because the kubelet does not change the owner of a hostPath volume and Slurm's daemons are not root.
"""

import http.client
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from slurm_local.kubernetes.api_call import Caller, Refused
from slurm_local.kubernetes.pki import Pair
from slurm_operator import wire

CLASS = "local"
PROVISIONER = "slurm-operator.local/directory"
_WATCH_S = 300


def objects() -> list[dict[str, object]]:
    """The default storage class."""
    return [
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": {
                "name": CLASS,
                "annotations": {"storageclass.kubernetes.io/is-default-class": "true"},
            },
            "provisioner": PROVISIONER,
            "reclaimPolicy": "Delete",
            "volumeBindingMode": "Immediate",
        }
    ]


def command(caller: Caller, directory: Path) -> list[str]:
    """How to run this module as a program."""
    files = [caller.ca, caller.client.certificate, caller.client.key, directory]
    return [sys.executable, "-m", "slurm_local.kubernetes.volumes", caller.url, *map(str, files)]


def volume(claim: dict[str, Any], directory: Path) -> dict[str, object]:
    """The PersistentVolume that answers one claim."""
    meta = claim["metadata"]
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {
            "name": f"pvc-{meta['uid']}",
            "annotations": {"pv.kubernetes.io/provisioned-by": PROVISIONER},
        },
        "spec": {
            "storageClassName": CLASS,
            "capacity": {"storage": claim["spec"]["resources"]["requests"]["storage"]},
            "accessModes": claim["spec"]["accessModes"],
            "persistentVolumeReclaimPolicy": "Delete",
            "hostPath": {"path": str(directory / f"pvc-{meta['uid']}"), "type": "Directory"},
            "claimRef": {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "namespace": meta["namespace"],
                "name": meta["name"],
                "uid": meta["uid"],
            },
        },
    }


def wants_volume(claim: dict[str, Any]) -> bool:
    """Whether a claim is ours and still waits."""
    spec = claim["spec"]
    return spec.get("storageClassName") == CLASS and not spec.get("volumeName")


def is_done(persistent_volume: dict[str, Any]) -> bool:
    """Whether a volume is ours and its claim is gone."""
    ours = persistent_volume["metadata"].get("annotations", {}).get("pv.kubernetes.io/provisioned-by")
    return bool(ours == PROVISIONER and persistent_volume.get("status", {}).get("phase") == "Released")


def provide(caller: Caller, directory: Path, claim: dict[str, Any]) -> None:
    if not wants_volume(claim):
        return
    answer = volume(claim, directory)
    place = directory / f"pvc-{claim['metadata']['uid']}"
    place.mkdir(parents=True, exist_ok=True)
    place.chmod(0o777)
    try:
        caller.call("POST", "/api/v1/persistentvolumes", answer)
    except Refused as refusal:
        if refusal.status != http.client.CONFLICT:  # We made it, and the claim is not bound yet.
            raise


def reclaim(caller: Caller, directory: Path, persistent_volume: dict[str, Any]) -> None:
    if not is_done(persistent_volume):
        return
    name = persistent_volume["metadata"]["name"]
    shutil.rmtree(directory / name, ignore_errors=True)
    caller.call("DELETE", f"/api/v1/persistentvolumes/{name}")


def seen(caller: Caller, path: str) -> Iterator[dict[str, Any]]:
    """Every object of one kind, then every change of one, until the connection ends."""
    found = caller.call("GET", path)
    yield from found["items"]
    version = found["metadata"]["resourceVersion"]
    connection = caller.connection(timeout_s=_WATCH_S + 30)
    try:
        connection.request("GET", f"{path}?watch=1&resourceVersion={version}&timeoutSeconds={_WATCH_S}")
        stream = connection.getresponse()
        while line := stream.readline():
            event = wire.decode_any(line)
            if event["type"] in {"ADDED", "MODIFIED"}:
                yield event["object"]
    finally:
        connection.close()


def follow(caller: Caller, path: str, handle: Callable[[dict[str, Any]], None]) -> None:
    """Handles each object for ever. A failure starts over from the list, so nothing is missed."""
    while True:
        try:
            for thing in seen(caller, path):
                handle(thing)
        except (OSError, Refused, http.client.HTTPException, wire.DecodeError) as trouble:
            print(f"{path}: {trouble}; looking again", flush=True)
            time.sleep(1)


def main() -> None:
    url, ca, certificate, key, place = sys.argv[1:]
    caller, directory = Caller(url, Path(ca), Pair(Path(certificate), Path(key))), Path(place)
    threading.Thread(
        target=follow,
        args=(caller, "/api/v1/persistentvolumes", lambda each: reclaim(caller, directory, each)),
        daemon=True,
    ).start()
    follow(caller, "/api/v1/persistentvolumeclaims", lambda each: provide(caller, directory, each))


if __name__ == "__main__":
    main()
