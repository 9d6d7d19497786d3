"""Pods of the running operator, as far as they say how it was started."""

import re
from collections.abc import Iterable

from slurm_operator import wire
from slurm_operator.api.shared.images import VARIABLES, named_images
from slurm_operator.api.shared.meta import Meta
from slurm_operator.kube.client import Client
from slurm_operator.kube.request import Selection
from slurm_operator.manifests import kinds

_VERSION = re.compile(r"\d+\.\d+(\.\d+)?([.+-]?\w+)*")

OPERATOR = "app.kubernetes.io/name=slurm-operator"
RECORD_FLAG = "--record"


class Variable(wire.CamelRecord):
    name: str
    value: str = ""


class Container(wire.CamelRecord):
    name: str
    image: str = ""
    args: tuple[str, ...] = ()
    env: tuple[Variable, ...] = ()

    @property
    def folder(self) -> str:
        """Where it keeps its recording; empty when it keeps none."""
        for word, following in zip(self.args, (*self.args[1:], ""), strict=False):
            if word == RECORD_FLAG:
                return following
            if word.startswith(f"{RECORD_FLAG}="):
                return word.removeprefix(f"{RECORD_FLAG}=")
        return ""


class Spec(wire.CamelRecord):
    containers: tuple[Container, ...] = ()


class OperatorPod(wire.CamelRecord):
    metadata: Meta
    spec: Spec = Spec()


async def operator_pods(client: Client, namespace: str) -> list[OperatorPod]:
    """Those in a namespace, or with an empty name in all. Raises KubeError."""
    decode = wire.decoder(OperatorPod)
    selection = Selection(kind=kinds.POD, namespace=namespace, label_selector=OPERATOR)
    return [decode(item) async for page in client.list_pages(selection) for item in page.items]


def is_away(pods: Iterable[OperatorPod]) -> bool:
    """Whether no operator is there."""
    return not any(pod.spec.containers for pod in pods)


def running_operator(pods: Iterable[OperatorPod], own_version: str) -> str:
    """What to tell about the operator: that none runs, or that it is of another version; else nothing."""
    images = [container.image for pod in pods for container in pod.spec.containers]
    if not images:
        return (
            "No operator runs here that you can see: Slurm goes on, and nothing is changed until one runs. "
            "See: kubectl slurm doctor"
        )
    versions = sorted({version for image in images if (version := _version(image))} - {own_version})
    if not versions:
        return ""
    return (
        f"The operator is version {' and '.join(versions)}, this plugin {own_version}: the operator may do "
        "something else than the plugin says. Use the plugin of its version."
    )


def _version(image: str) -> str:
    """The tag of an image, where it is a version."""
    tag = image.partition("@")[0].rpartition("/")[2].partition(":")[2].removeprefix("v")
    return tag if _VERSION.fullmatch(tag) else ""


def told_images(pods: Iterable[OperatorPod]) -> dict[str, str]:
    """By variable, as the first pod has them; without any, as our own environment does."""
    first = next(iter(pods), None)
    if first is None:
        return named_images()
    variables = (variable for container in first.spec.containers for variable in container.env)
    return {one.name: one.value for one in variables if one.name in VARIABLES}
