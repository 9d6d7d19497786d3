"""Brings the flight recorder's files out of the operator's pods. Nothing is changed there."""

from slurm_operator import wire
from slurm_operator.api.meta import Meta, key_of
from slurm_operator.kube.client import Client
from slurm_operator.kube.request import Selection
from slurm_operator.kubectl.bundle_collect import OPERATOR
from slurm_operator.manifests import kinds
from slurm_operator.runtime.recording import PATTERN

FLAG = "--record"

# Whole lines only: the recorder may be writing one right now. Its image has no shell, but a Python.
_PRINT = f"""\
import pathlib, sys
for file in sorted(pathlib.Path(sys.argv[1]).glob({PATTERN!r})):
    whole, end, _ = file.read_bytes().rpartition(b"\\n")
    sys.stdout.buffer.write(whole + end)
"""


class NotRecording(Exception):  # noqa: N818 - it says what is the case
    """There is no recording to fetch; the message says why, and how to get one."""


class Container(wire.CamelRecord):
    name: str
    args: tuple[str, ...] = ()

    @property
    def folder(self) -> str:
        """Where it keeps its recording; empty when it keeps none."""
        for word, following in zip(self.args, (*self.args[1:], ""), strict=False):
            if word == FLAG:
                return following
            if word.startswith(f"{FLAG}="):
                return word.removeprefix(f"{FLAG}=")
        return ""


class Spec(wire.CamelRecord):
    containers: tuple[Container, ...] = ()


class OperatorPod(wire.CamelRecord):
    """A pod of the operator, as far as it says where its recording is."""

    metadata: Meta
    spec: Spec = Spec()


async def fetched(client: Client, namespace: str) -> bytes:
    """The recordings of all managers, one after the other. Raises NotRecording, or KubeError."""
    pods = await _pods(client, namespace)
    recording = [(pod, one) for pod in pods for one in pod.spec.containers if one.folder]
    if not recording:
        raise NotRecording(_why(pods, namespace))
    command = ("python3", "-c", _PRINT)
    found = [await client.printed(key_of(pod), one.name, (*command, one.folder)) for pod, one in recording]
    return b"".join(found)


async def _pods(client: Client, namespace: str) -> list[OperatorPod]:
    decode = wire.decoder(OperatorPod)
    selection = Selection(kind=kinds.POD, namespace=namespace, label_selector=OPERATOR)
    return [decode(item) async for page in client.list_pages(selection) for item in page.items]


def _why(pods: list[OperatorPod], namespace: str) -> str:
    if not pods:
        return f"No pod of the operator is in {namespace or 'any namespace'}; name its namespace with -n."
    return (
        f"The operator in {pods[0].metadata.namespace} keeps no recording. Start it with {FLAG} FOLDER, by "
        "the chart with operator.record=true; or see what it would decide right now with `record take`."
    )
