"""What slurmrestd sends, byte for byte, where it does not keep to HTTP closely: unit tests read these bytes.

SLURM_OPERATOR_RECORD=1 records them again.
"""

import os
import re
import socket
from pathlib import Path

import pytest

from testing.daemons import SlurmDaemons

RECORDED = Path(__file__).parent / "recorded" / "bytes"
V = "v0.0.45"

CALLS = [
    pytest.param("ping", f"/slurm/{V}/ping/", (), True, id="an answer"),
    pytest.param("asked-to-close", f"/slurm/{V}/ping/", ("Connection: close",), True, id="asked to close"),
    pytest.param("no-route", "/slurm/v0.0.1/ping/", (), True, id="a version that it does not have"),
    pytest.param("no-token", f"/slurm/{V}/ping/", (), False, id="nobody"),
    pytest.param("no-database", f"/slurmdb/{V}/users/", (), True, id="a database that is not there"),
    pytest.param("unchanged", f"/slurm/{V}/nodes/?update_time=4000000000", (), True, id="nothing new"),
]


def sent(slurm: SlurmDaemons, target: str, headers: tuple[str, ...], *, is_known: bool) -> bytes:
    """Whatever comes until there is silence."""
    host, port = slurm.rest_url.removeprefix("http://").split(":")
    lines = [f"GET {target} HTTP/1.1", f"Host: {host}", "Accept: application/json", *headers]
    lines += [f"X-SLURM-USER-TOKEN: {slurm.token()}"] if is_known else []
    with socket.create_connection((host, int(port)), timeout=20) as connection:
        connection.sendall("\r\n".join([*lines, "", ""]).encode())
        found = connection.recv(65536)
        connection.settimeout(2)
        try:
            while more := connection.recv(65536):
                found += more
        except TimeoutError:
            pass
    return found


def shape(data: bytes) -> list[str]:
    """Its lines that are not content, with every number the same."""
    text = re.sub(rb"\{.*\}", b"{}", data, flags=re.DOTALL).decode("latin-1")
    return [re.sub(r"\d{2,}(?= *$)", "N", line) for line in text.split("\r\n")]


@pytest.mark.parametrize(("name", "target", "headers", "is_known"), CALLS)
def test_these_are_the_bytes(
    slurm: SlurmDaemons, name: str, target: str, headers: tuple[str, ...], is_known: bool
) -> None:
    found = sent(slurm, target, headers, is_known=is_known)
    path = RECORDED / f"{name}.http"
    if os.environ.get("SLURM_OPERATOR_RECORD"):
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(found)

    assert shape(found) == shape(path.read_bytes())
