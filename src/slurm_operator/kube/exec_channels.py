"""What a command in a container says: several streams through one web socket, told apart by a byte."""

from collections.abc import Iterable

from slurm_operator import wire
from slurm_operator.kube.errors import CommandFailed, Status

# Each message begins with the number of its channel; the last one says how the command ended.
CHANNELS = "v4.channel.k8s.io"
_STDOUT, _STDERR, _END = 1, 2, 3


def output(messages: Iterable[bytes], attempted: str) -> bytes:
    """What went to standard output. Raises CommandFailed with the reason and what it complained about."""
    said: dict[int, bytearray] = {_STDOUT: bytearray(), _STDERR: bytearray(), _END: bytearray()}
    for message in messages:
        if message and message[0] in said:
            said[message[0]] += message[1:]
    end = wire.decode(bytes(said[_END]) or b"{}", Status)
    if end.status != "Success":
        complaint = said[_STDERR].decode(errors="replace").strip()
        why = end.message or "the connection ended before it did"
        raise CommandFailed(": ".join(filter(None, [attempted, why, complaint])))
    return bytes(said[_STDOUT])
