"""A daemon is started when slurmctld can be reached, and not before; without end nobody waits."""

import socket
import threading

import pytest

from images.entry.reach import servers, wait_for_slurmctld


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["-Z", "--conf-server", "slurm-controller.ns:7001", "--conf", "Features=x"], [("slurm-controller.ns", 7001)]),
        (["--conf-server=here"], [("here", 6817)]),
        (["--conf-server", "a:1, b"], [("a", 1), ("b", 6817)]),
        (["--conf-server", "[fd00::1]:6817"], [("fd00::1", 6817)]),
        (["-Z", "-N", "w-0"], []),
        (["--conf-server"], []),
    ],
)  # fmt: skip
def test_the_options_name_whom_to_wait_for(options, expected):
    assert servers(options) == expected


def test_who_names_no_server_does_not_wait():
    assert wait_for_slurmctld(["-Z"], patience_s=0)


def test_nobody_waits_for_ever():
    with socket.create_server(("127.0.0.1", 0)) as once:
        port = once.getsockname()[1]

    assert not wait_for_slurmctld(["--conf-server", f"127.0.0.1:{port}"], patience_s=0)


def test_the_wait_ends_when_somebody_listens():
    with socket.socket() as later:
        later.bind(("127.0.0.1", 0))
        options = ["--conf-server", f"127.0.0.1:{later.getsockname()[1]}"]
        assert not wait_for_slurmctld(options, patience_s=0)

        listening = threading.Timer(0.3, later.listen)
        listening.start()
        assert wait_for_slurmctld(options)
        listening.join()
