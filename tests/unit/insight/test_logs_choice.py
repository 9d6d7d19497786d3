"""Which logs are meant, and how much of each."""

import asyncio
from contextlib import asynccontextmanager
from datetime import timedelta

import pytest

from slurm_operator import wire
from slurm_operator.api.shared import names
from slurm_operator.insight.logs.choice import LoggedPod, NoSuchLog, Stream, Wanted, chosen, span
from slurm_operator.insight.logs.reading import lines
from slurm_operator.kube.errors import from_body

PARTS = {"demo": {"demo", "demo-cpu", "demo-login"}, "other": {"other"}}


def pod(name: str, daemon: str, owner: str, *, hostname: str = "", namespace: str = "ns") -> LoggedPod:
    labels = {names.APP_NAME: daemon, names.APP_INSTANCE: owner, names.LABEL_POD_HOSTNAME: hostname}
    spec = {"containers": [{"name": daemon}], "initContainers": [{"name": "logfile"}], "hostname": hostname}
    return wire.convert(
        {"metadata": {"name": name, "namespace": namespace, "labels": labels}, "spec": spec}, LoggedPod
    )


PODS = [
    pod("demo-controller-0", "slurmctld", "demo"),
    pod("demo-restapi-x", "slurmrestd", "demo"),
    pod("demo-cpu-0", "slurmd", "demo-cpu"),
    pod("demo-cpu-x7k2p", "slurmd", "demo-cpu", hostname="machine-7"),
    pod("demo-login-x", "login", "demo-login"),
    pod("other-controller-0", "slurmctld", "other"),
]


@pytest.mark.parametrize(
    ("target", "meant"),
    [
        ("", [pod.metadata.name for pod in PODS]),
        ("demo", [pod.metadata.name for pod in PODS[:5]]),
        ("cluster/demo", [pod.metadata.name for pod in PODS[:5]]),
        ("controller/demo", ["demo-controller-0"]),
        ("restapi/demo", ["demo-restapi-x"]),
        ("nodeset/demo-cpu", ["demo-cpu-0", "demo-cpu-x7k2p"]),
        ("nodesets/demo-cpu", ["demo-cpu-0", "demo-cpu-x7k2p"]),
        ("demo-cpu", ["demo-cpu-0", "demo-cpu-x7k2p"]),
        ("demo-cpu-0", ["demo-cpu-0"]),
        ("machine-7", ["demo-cpu-x7k2p"]),
        ("pod/demo-login-x", ["demo-login-x"]),
    ],
)
def test_a_target_is_a_cluster_a_part_a_pod_or_a_slurm_node(target, meant):
    streams = chosen(PODS, target, PARTS)

    assert sorted({stream.pod for stream in streams}) == sorted(meant)
    assert {stream.container for stream in streams if stream.pod == meant[0]} >= {"logfile"}


def test_daemons_and_containers_narrow_the_choice():
    assert chosen(PODS, "demo", PARTS, daemons=["slurmctld"], container="logfile") == [
        Stream("ns", "demo-controller-0", "logfile")
    ]


def test_a_name_that_nothing_has_is_answered_with_names_that_something_has():
    with pytest.raises(NoSuchLog, match=r"Nothing here is called 'gpu'.*demo-controller-0"):
        chosen(PODS, "gpu", PARTS)
    with pytest.raises(NoSuchLog, match="There are: logfile, slurmctld"):
        chosen(PODS, "controller/demo", PARTS, container="sidecar")
    with pytest.raises(NoSuchLog, match="No daemon of Slurm runs here"):
        chosen([], "", PARTS)


@pytest.mark.parametrize(
    ("text", "length"),
    [("10s", timedelta(seconds=10)), ("1h30m", timedelta(hours=1, minutes=30)), ("2d", timedelta(days=2))],
)
def test_lengths_of_time_are_written_as_kubectl_takes_them(text, length):
    assert span(text) == length


@pytest.mark.parametrize("text", ["", "10", "m", "10 m", "1h-5m", "10w"])
def test_what_is_no_length_of_time_is_refused(text):
    with pytest.raises(ValueError, match="no length of time"):
        span(text)


def test_the_api_server_is_asked_for_just_what_was_wanted():
    assert Wanted().params("slurmd") == {"container": "slurmd"}
    assert Wanted(follow=True, previous=True, tail=0, since=timedelta(minutes=5), timestamps=True).params("x") == {
        "container": "x", "follow": "true", "previous": "true", "tailLines": "0", "sinceSeconds": "300", "timestamps": "true",
    }  # fmt: skip


class Server:
    """Logs as the API server has them; a missing one is a refusal."""

    def __init__(self, logs: dict[str, list[bytes]]) -> None:
        self.logs = logs

    def _pieces(self, params) -> list[bytes]:
        if params["container"] not in self.logs:
            raise from_body(400, b"", attempted="get log", reason="container is waiting to start")
        return self.logs[params["container"]]

    async def text(self, path, *, params):
        return b"".join(self._pieces(params))

    @asynccontextmanager
    async def follow(self, path, *, params):
        async def pieces():
            for piece in self._pieces(params):
                await asyncio.sleep(0)
                yield piece

        yield pieces()


@pytest.mark.parametrize("follow", [False, True])
async def test_every_line_arrives_once_and_whole_and_a_missing_log_hides_no_other(follow):
    server = Server({"a": [b"one\ntw", b"o\n", b"three"], "b": [b"\xc3\xa9\xff\n", b""]})
    streams = [Stream("ns", "pod", name) for name in ("a", "missing", "b")]

    found = [line async for line in lines(server, streams, Wanted(follow=follow))]

    assert [line.text for line in found if line.container == "a"] == ["one", "two", "three"]
    assert [line.text for line in found if line.container == "b"] == ["é\ufffd"]
    assert [line.text for line in found if line.container == "missing"] == [
        "[no log: get log: container is waiting to start]"
    ]


STREAMS = [Stream("ns", "demo-controller-0", "slurmctld"), Stream("ns", "demo-controller-0", "logfile"), Stream("ns", "demo-cpu-0", "slurmd")]  # fmt: skip
SAID = {
    "slurmctld": "2026-01-01T12:00:02.000000001Z slurmctld: error: no route\n2026-01-01T12:00:04Z slurmctld: bye\n",
    "logfile": "2026-01-01T12:00:02.5Z [2026-01-01T12:00:02.000] error: no route\n"
    "2026-01-01T12:00:03Z [2026-01-01T12:00:03.000] error: no route\n",
    "slurmd": "2026-01-01T12:00:01Z slurmd: error: no route\n",
}


class Stamping:
    """The API server, which puts the time before each line when it is asked to."""

    async def text(self, path: str, params: dict[str, str]) -> bytes:
        assert params["timestamps"] == "true"
        return SAID[params["container"]].encode()

    @asynccontextmanager
    async def follow(self, path: str, params: dict[str, str]):
        async def pieces():
            yield await self.text(path, params)

        yield pieces()


@pytest.mark.parametrize("follow", [False, True])
async def test_lines_are_merged_by_time_and_what_two_containers_of_a_pod_say_is_told_once(follow):
    wanted = Wanted(follow=follow)
    found = [(line.pod, line.text) async for line in lines(Stamping(), STREAMS, wanted)]

    assert found == [
        ("demo-cpu-0", "slurmd: error: no route"),
        ("demo-controller-0", "slurmctld: error: no route"),
        ("demo-controller-0", "[2026-01-01T12:00:03.000] error: no route"),
        ("demo-controller-0", "slurmctld: bye"),
    ]


async def test_times_are_shown_to_who_asks_for_them():
    shown = [line.text async for line in lines(Stamping(), STREAMS[2:], Wanted(timestamps=True))]

    assert shown == ["2026-01-01T12:00:01Z slurmd: error: no route"]
