"""Brings the flight recorder's files out of the operator's pods. Nothing is changed there."""

from slurm_operator.api.shared.meta import key_of
from slurm_operator.insight.operator_pods import RECORD_FLAG, OperatorPod, operator_pods
from slurm_operator.kube.client import Client
from slurm_operator.runtime.report.recording import PATTERN

# Whole lines only: the recorder may be writing one right now. Its image has no shell, but a Python.
_PRINT = f"""\
import pathlib, sys
for file in sorted(pathlib.Path(sys.argv[1]).glob({PATTERN!r})):
    whole, end, _ = file.read_bytes().rpartition(b"\\n")
    sys.stdout.buffer.write(whole + end)
"""


class NotRecording(Exception):  # noqa: N818 - it says what is the case
    """There is no recording to fetch; the message says why, and how to get one."""


async def fetched(client: Client, namespace: str) -> bytes:
    """The recordings of all managers, one after the other. Raises NotRecording, or KubeError."""
    pods = await operator_pods(client, namespace)
    recording = [(pod, one) for pod in pods for one in pod.spec.containers if one.folder]
    if not recording:
        raise NotRecording(_why(pods, namespace))
    command = ("python3", "-c", _PRINT)
    found = [await client.printed(key_of(pod), one.name, (*command, one.folder)) for pod, one in recording]
    return b"".join(found)


def _why(pods: list[OperatorPod], namespace: str) -> str:
    if not pods:
        return f"No pod of the operator is in {namespace or 'any namespace'}; name its namespace with -n."
    where = pods[0].metadata.namespace
    return (
        f"The operator in {where} keeps no recording. Start it with {RECORD_FLAG} FOLDER, by the chart with "
        "operator.record=true; or see what it would decide right now with `record take`."
    )
