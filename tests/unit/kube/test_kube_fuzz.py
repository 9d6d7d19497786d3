"""What comes from the API server and from files, damaged: read, or refused in our own words."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from slurm_operator.http.messages import TooLarge
from slurm_operator.kube import envelope
from slurm_operator.kube.auth import kubeconfig
from slurm_operator.kube.errors import ConfigProblem, Unreadable
from slurm_operator.kube.watch.lines import lines

EVENT = json.dumps(
    {
        "type": "MODIFIED",
        "object": {"metadata": {"name": "a", "uid": "u", "resourceVersion": "7"}, "spec": {}},
    }
).encode()

CONFIG = """
apiVersion: v1
kind: Config
current-context: here
clusters: [{name: there, cluster: {server: "https://127.0.0.1:6443", insecure-skip-tls-verify: true}}]
users: [{name: me, user: {token: abc}}]
contexts: [{name: here, context: {cluster: there, user: me, namespace: slurm}}]
"""


async def _of(*parts: bytes) -> AsyncIterator[bytes]:
    for part in parts:
        yield part


async def _all(*parts: bytes) -> list[bytes]:
    return [line async for batch in lines(_of(*parts)) for line in batch]


@given(st.lists(st.binary(max_size=12).map(lambda line: line.replace(b"\n", b"")), max_size=6), st.data())
def test_lines_are_the_same_however_they_are_cut(wanted: list[bytes], data: st.DataObject) -> None:
    whole = b"".join(line + b"\n" for line in wanted)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=5)))
    parts = [whole[start:end] for start, end in zip([0, *cuts], [*cuts, len(whole)], strict=True)]

    assert asyncio.run(_all(*parts)) == [line for line in wanted if line]


async def test_a_line_without_an_end_is_refused_and_many_long_ones_are_not() -> None:
    found = [line async for batch in lines(_of(*[b"x" * 60, b"y\n"] * 50), 100) for line in batch]
    assert found == [b"x" * 60 + b"y"] * 50

    with pytest.raises(TooLarge, match="more than 100 bytes"):
        async for _ in lines(_of(*[b"x" * 60] * 2), 100):
            pass


@settings(max_examples=200)
@given(st.integers(0, len(EVENT)), st.integers(0, 20), st.binary(max_size=8))
def test_a_damaged_event_is_an_event_or_unreadable(at: int, cut: int, piece: bytes) -> None:
    line = EVENT[:at] + piece + EVENT[at + cut :]
    try:
        found = envelope.event(line)
        envelope.name(found.object)
    except Unreadable:
        return
    assert found.type or b'"type": ""' in line  # Then the reflector says that it does not know the type.


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.integers(0, len(CONFIG)), st.integers(0, 30), st.text(max_size=8))
def test_a_damaged_kubeconfig_is_understood_or_explained(
    tmp_path: Path, at: int, cut: int, piece: str
) -> None:
    file = tmp_path / "config"
    file.write_text(CONFIG[:at] + piece + CONFIG[at + cut :], encoding="utf-8", errors="replace")
    try:
        access = kubeconfig.load([file])
    except ConfigProblem:
        return
    assert access.server


@pytest.mark.parametrize("junk", [b"\xff\xfe\x00", b"[" * 2000, b"&a [*a]", b"!!python/object:os.system {}"])
def test_what_is_no_kubeconfig_at_all_is_explained(tmp_path: Path, junk: bytes) -> None:
    file = tmp_path / "config"
    file.write_bytes(junk)

    with pytest.raises(ConfigProblem):
        kubeconfig.load([file])
