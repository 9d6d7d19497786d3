"""Whatever the fields of a list hold, it becomes records or a refusal to read it; never anything else."""

import json

from fake_slurmrestd import body_of
from hypothesis import given, settings
from hypothesis import strategies as st

from slurm_operator import wire
from slurm_operator.slurm.node import SlurmNode
from slurm_operator.slurmrest.answers.jobs import JobsReply, slurm_job
from slurm_operator.slurmrest.answers.nodes import Nodes, NodesReply

NODE = body_of("nodes")["nodes"][0]
JOB = body_of("jobs")["jobs"][0]

scalars = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**63), 2**63), st.floats(allow_nan=False), st.text()
)
triples = st.fixed_dictionaries(
    {
        "set": st.booleans(),
        "infinite": st.booleans(),
        "number": st.one_of(st.integers(), st.floats(-1e19, 1e19)),
    }
)
values = st.one_of(scalars, triples, st.lists(st.text(max_size=8), max_size=3))

# What `Session.content` turns into SlurmAnswerUnreadable.
UNREADABLE = (wire.DecodeError, ValueError, OverflowError, OSError)


@settings(deadline=None)
@given(st.dictionaries(st.sampled_from(sorted(NODE)), values, max_size=6))
def test_any_node_is_read_or_refused(fields: dict[str, object]) -> None:
    body = json.dumps({"nodes": [NODE | fields]}).encode()
    try:
        nodes = [Nodes().one(bytes(entry)) for entry in wire.decode(body, NodesReply).nodes or ()]
    except UNREADABLE:
        return

    assert [node.name for node in nodes] == [fields.get("name", NODE["name"])]


@settings(deadline=None)
@given(st.dictionaries(st.sampled_from(sorted(JOB)), values, max_size=6))
def test_any_job_is_read_or_refused(fields: dict[str, object]) -> None:
    body = json.dumps({"jobs": [JOB | fields]}).encode()
    try:
        jobs = [slurm_job(job) for job in wire.decode(body, JobsReply).jobs or ()]
    except UNREADABLE:
        return

    assert [job.job_id for job in jobs] == [fields.get("job_id", JOB["job_id"])]


def test_only_what_changed_is_read_anew() -> None:
    def told(**fields: object) -> list[wire.Raw]:
        listed = [NODE | {"name": name} for name in ("a", "b", "c")]
        listed[1] |= fields
        return wire.decode(json.dumps({"nodes": listed}).encode(), NodesReply).nodes or []

    def read(told: list[wire.Raw]) -> list[SlurmNode]:
        nonlocal nodes
        nodes = nodes.reading()
        return [nodes.one(bytes(entry)) for entry in told]

    nodes = Nodes()
    first, again = read(told()), read(told())
    changed, back = read(told(cpu_load=7777, comment="new")), read(told())

    assert [new is old for new, old in zip(again, first, strict=True)] == [True, True, True]
    assert [new is old for new, old in zip(changed, first, strict=True)] == [True, False, True]
    assert changed[1].comment == "new"
    assert back == first
    assert back[1] is not first[1], "more than the last list is not remembered"
