"""Waits until slurmctld can be reached, for daemons that fetch their configuration from it.

Left alone, such a daemon tries for ten seconds, in which each lost packet costs it three, and then sleeps for
ten (seen with 26.05). Asked at the right moment, slurmctld answers at once.
"""

import socket
import time
from collections.abc import Sequence

_PORT = 6817
_OPTION = "--conf-server"

# A packet to a Service that has no pods yet is lost, and no answer comes.
_TRY_S = 0.5
_PAUSE_S = 0.2

# Then the daemon itself shall say what is wrong.
PATIENCE_S = 30.0


def wait_for_slurmctld(options: Sequence[str], patience_s: float = PATIENCE_S) -> bool:
    """Whether one of the servers that the options name answers; True at once when they name none."""
    named = servers(options)
    end = time.monotonic() + patience_s
    while named and not any(_answers(one) for one in named):
        if time.monotonic() >= end:
            return False
        time.sleep(_PAUSE_S)
    return True


def servers(options: Sequence[str]) -> list[tuple[str, int]]:
    """Host and port of each server in `--conf-server host[:port],...`."""
    given = ""
    for index, word in enumerate(options):
        if word == _OPTION and index + 1 < len(options):
            given = options[index + 1]
        elif word.startswith(f"{_OPTION}="):
            given = word.removeprefix(f"{_OPTION}=")
    return [_server(one.strip()) for one in given.split(",") if one.strip()]


def _server(text: str) -> tuple[str, int]:
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdigit():
        host, port = text, str(_PORT)
    return host.strip("[]"), int(port)


def _answers(server: tuple[str, int]) -> bool:
    try:
        socket.create_connection(server, timeout=_TRY_S).close()
    except OSError:
        return False
    return True
