"""What is fed. Each target takes any bytes; an error that is made for it is an answer, and all others are findings.

Beside not falling over, most have something to keep: what was read is written and read again as the same.
"""

import contextlib
import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from slurm_operator import wire
from slurm_operator.api.schema import durations as go_durations
from slurm_operator.http.messages import NotHttp, Reading, TooLarge
from slurm_operator.kube import envelope
from slurm_operator.kube.auth import kubeconfig
from slurm_operator.kube.errors import ConfigProblem, Unreadable
from slurm_operator.kube.watch import json_split
from slurm_operator.manifests.moments import moment
from slurm_operator.printable import printable, printable_json
from slurm_operator.redaction.redactor import Redactor
from slurm_operator.slurm import durations
from slurm_operator.slurm.conf import topology_yaml
from slurm_operator.slurm.conf.lines import UnwritableError, parse, render
from slurm_operator.slurm.features import features_text, kube_features
from slurm_operator.slurm.hostlist import HostlistError, compress, expand
from slurm_operator.slurm.reasons import OurReason, author, given_up_for, is_slurms_own_reason, sanitised
from slurm_operator.slurm.topology import TopologyError, places
from slurm_operator.slurm.tres import TresError, gres, tres
from slurm_operator.slurmrest.answers.jobs import WireJob, slurm_job
from slurm_operator.slurmrest.answers.nodes import Nodes
from slurm_operator.slurmrest.list_split import ListSplit

Target = Callable[[bytes], None]

PASSWORD: Final = "correct-horse-battery"
_REDACTOR: Final = Redactor([{"password": PASSWORD.encode()}])


def text_of(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape").encode("utf-8", "replace").decode()


def hostlist(data: bytes) -> None:
    try:
        names = expand(text_of(data), 2000)
    except HostlistError:
        return
    assert sorted(set(expand(compress(names)))) == sorted(set(names))


def amounts(data: bytes) -> None:
    for read in (gres, tres):
        with contextlib.suppress(TresError):
            read(text_of(data))


def conf_lines(data: bytes) -> None:
    conf = parse(text_of(data), "slurm.conf")
    try:
        written = render(conf.entries)
    except UnwritableError:
        return
    assert render(parse(written, "slurm.conf").entries) == written


def topology_file(data: bytes) -> None:
    assert all(str(problem) for problem in topology_yaml.problems(text_of(data)))


def annotations(data: bytes) -> None:
    text = text_of(data)
    with contextlib.suppress(TopologyError):
        places(text)
    assert all(name.startswith("k8s/") for name in kube_features(features_text(kube_features(text))))
    moment(text)


def reasons(data: bytes) -> None:
    who, _, text = text_of(data).partition("\n")
    OurReason.read(text)
    author(text, who)
    given_up_for(text)
    is_slurms_own_reason(text, who)
    assert sanitised(sanitised(text)) == sanitised(text)


def lengths(data: bytes) -> None:
    text = text_of(data)
    with contextlib.suppress(durations.DurationError):
        durations.duration(text)
    with contextlib.suppress(ValueError, OverflowError):
        go_durations.parse(text)


def slurm_list(data: bytes) -> None:
    """In pieces or as a whole: the same entries, the same rest, or no list."""
    size = data[0] % 32 + 1 if data else 1
    document = data[1:]
    whole = _split(document, len(document) or 1)
    pieces = _split(document, size)
    assert (whole is None) == (pieces is None)
    if whole is not None and pieces is not None:
        assert [bytes(one) for one in whole[0]] == [bytes(one) for one in pieces[0]]
        assert whole[1] == pieces[1]


def _split(document: bytes, size: int) -> tuple[list[Any], bytes] | None:
    """What is no JSON as a whole may be cut at other places: whoever asked refuses that as a whole."""
    split, found = ListSplit("jobs"), list[Any]()
    try:
        for at in range(0, len(document), size):
            found += split.feed(document[at : at + size])
        found += split.feed(b"", is_last=True)
        for entry in found:
            json.loads(bytes(entry))
        json.loads(split.rest)
    except (ValueError, RecursionError):
        return None
    return found, split.rest


def slurm_records(data: bytes) -> None:
    for read in (lambda: slurm_job(wire.decode(data, WireJob)), lambda: Nodes().one(data)):
        with contextlib.suppress(wire.DecodeError, HostlistError, UnicodeDecodeError, RecursionError):
            read()


def json_pieces(data: bytes) -> None:
    """Of what is JSON, the parts are what a parser finds."""
    try:
        document = json.loads(data, object_pairs_hook=_once)
    except (ValueError, RecursionError):
        document = None
    if isinstance(document, dict) and not any(mark in data for mark in (b"\\", b"\x00")):
        found = json_split.members(data)
        assert {
            name: json.loads(bytes(value), object_pairs_hook=_once) for name, value in found.items()
        } == document
    if isinstance(document, list):
        parts = json_split.elements(data)
        assert [json.loads(bytes(part), object_pairs_hook=_once) for part in parts] == document


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(dict(pairs)) != len(pairs):
        raise ValueError("a name stands there twice")
    return dict(pairs)


def watch_line(data: bytes) -> None:
    try:
        envelope.name(envelope.event(data).object)
    except Unreadable:
        return


def http_answer(data: bytes) -> None:
    """httptools reads it; what it says is ours to judge."""
    method, reading = ("HEAD", "GET")[len(data) % 2], Reading(4000)
    reading.begin(method)
    try:
        if not reading.feed(data):
            reading.end()
        answer = reading.answer()
    except (NotHttp, TooLarge, EOFError):
        return
    assert 200 <= answer.status < 1000


def kube_config(data: bytes) -> None:
    with tempfile.NamedTemporaryFile() as file:
        file.write(data)
        file.flush()
        try:
            assert kubeconfig.load([Path(file.name)]).server
        except ConfigProblem:
            return


def redaction(data: bytes) -> None:
    """A known password is nowhere in what is left."""
    before, _, after = text_of(data).partition("\n")
    left = _REDACTOR.text(f"{before}{PASSWORD}{after}")
    assert PASSWORD not in left
    assert PASSWORD not in _REDACTOR.text(text_of(data).replace("x", PASSWORD))


def terminal(data: bytes) -> None:
    text = text_of(data)
    shown = printable(text)
    assert shown == printable(shown)
    assert not any(ord(char) < 32 or 127 <= ord(char) < 160 for char in shown)
    quoted = json.dumps(text, ensure_ascii=False)
    assert json.loads(printable_json(quoted)) == text


TARGETS: Final[dict[str, Target]] = {
    "amounts": amounts,
    "annotations": annotations,
    "conf-lines": conf_lines,
    "hostlist": hostlist,
    "http-answer": http_answer,
    "json-pieces": json_pieces,
    "kube-config": kube_config,
    "lengths": lengths,
    "reasons": reasons,
    "redaction": redaction,
    "slurm-list": slurm_list,
    "slurm-records": slurm_records,
    "terminal": terminal,
    "topology-file": topology_file,
    "watch-line": watch_line,
}

# What each begins with. The rest is found.
SEEDS: Final[dict[str, tuple[bytes, ...]]] = {
    "amounts": (b"gpu:a100:2(S:0-1)", b"cpu=4,mem=10G,node=1,gres/gpu=2"),
    "annotations": (b"default:sw1:sw2", b"2026-01-01T12:00:00Z", b"k8s/a,k8s/b"),
    "conf-lines": (b'ClusterName=a\nNodeName=n[1-3] CPUs=4 # x\nInclude x.conf\nA="b c"\\\n d=e\n',),
    "hostlist": (b"gpu-[0-3,07],login", b"a[1-2]b"),
    "http-answer": (
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2;x=y\r\nlo\r\n0\r\nT: x\r\n\r\n",
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n",
    ),
    "json-pieces": (b'{"a": [1, {"b": "}"}], "c": "\\""}', b'[1, "a]", {"b": []}]'),
    "kube-config": (
        b"apiVersion: v1\nkind: Config\ncurrent-context: here\n"
        b'clusters: [{name: there, cluster: {server: "https://127.0.0.1:6443"}}]\n'
        b"users: [{name: me, user: {token: abc}}]\n"
        b"contexts: [{name: here, context: {cluster: there, user: me, namespace: slurm}}]\n",
    ),
    "lengths": (b"1-02:03:04", b"UNLIMITED", b"1h30m", b"1.5h"),
    "reasons": (
        b"root\nslurm-operator: ScaleIn: leaving (pods made until 2026-01-01T12:00:00Z) : Not responding",
        b"slurm\nada: bad NIC",
    ),
    "redaction": (b"password: \n# x", b'{"token": "x", "a": 1}', b"mysql -u root -px", b"StoragePass=x y"),
    "slurm-list": (b'\x05{"meta": {}, "jobs": [{"job_id": 1, "name": "}]"}, {"a": [{}]}], "errors": []}',),
    "slurm-records": (
        b'{"job_id": 1, "job_state": ["RUNNING"], "nodes": "gpu-[0-1]", "partition": "all"}',
        b'{"name": "gpu-0", "state": ["IDLE", "DRAIN"], "reason": "x", "reason_changed_at": {"set": true, "number": 1}}',
    ),
    "terminal": (b"job\x1b[31mred\x07", "a\u202eb\u2028c".encode()),
    "topology-file": (
        b"- topology: default\n  cluster_default: true\n  tree:\n    switches:\n      - switch: s1\n        nodes: n[1-2]\n",
    ),
    "watch-line": (b'{"type": "MODIFIED", "object": {"metadata": {"name": "a", "resourceVersion": "7"}}}',),
}
