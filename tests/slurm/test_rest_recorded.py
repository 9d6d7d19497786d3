"""Records the replies that unit tests are fed with, and sees to it that they stay true."""

import asyncio
import time
from collections.abc import Callable
from typing import Any

import pytest
from recording import check
from rest_rig import OURS, Reply, client_of, raw, running, until

from slurm_operator.slurmrest.versions import NEWEST_FIRST, Capability
from testing.daemons import SlurmDaemons

V = "/slurm/v0.0.45"
DB = "/slurmdb/v0.0.45"


def keep(name: str, slurm: SlurmDaemons, method: str, path: str, body: Any = None, **options: Any) -> Reply:
    reply = raw(slurm, method, path, body, **options)
    check(name, f"{method} {path}", reply.status, reply.body)
    return reply


async def test_lists(slurm: SlurmDaemons) -> None:
    job = await running(slurm, "--nodelist=w-0", "--time=10")
    ended = slurm.submit("true")
    await until(lambda: slurm.job_state(ended) == "COMPLETED", "a finished job")
    raw(slurm, "POST", f"{V}/nodes/", {"name": ["w-0"], "state": ["DRAIN"], "reason": OURS})

    nodes = keep("nodes", slurm, "GET", f"{V}/nodes/")
    jobs = keep("jobs", slurm, "GET", f"{V}/jobs/?flags=ALL")
    for version in NEWEST_FIRST[1:]:
        keep(f"nodes-{version}", slurm, "GET", f"/slurm/{version}/nodes/")
        keep(f"jobs-{version}", slurm, "GET", f"/slurm/{version}/jobs/?flags=ALL")

    assert {node["name"] for node in nodes.body["nodes"]} == {"w-0", "w-1"}
    assert {found["job_id"] for found in jobs.body["jobs"]} >= {job, ended}


async def test_unchanged_lists(slurm: SlurmDaemons) -> None:
    await running(slurm)
    await asyncio.sleep(1.5)
    jobs = raw(slurm, "GET", f"{V}/jobs/?flags=ALL").body["last_update"]["number"]
    nodes = raw(slurm, "GET", f"{V}/nodes/").body["last_update"]["number"]

    keep("jobs-unchanged", slurm, "GET", f"{V}/jobs/?flags=ALL&update_time={jobs}")
    keep("nodes-unchanged", slurm, "GET", f"{V}/nodes/?update_time={nodes}")


def test_small_answers(slurm: SlurmDaemons) -> None:
    for name in ("partitions", "ping", "diag"):
        keep(name, slurm, "GET", f"{V}/{name}/")
        for version in NEWEST_FIRST[1:]:
            keep(f"{name}-{version}", slurm, "GET", f"/slurm/{version}/{name}/")
    keep("conf", slurm, "GET", f"{V}/conf")


def test_changes(slurm: SlurmDaemons) -> None:
    keep("reconfigure", slurm, "GET", f"{V}/reconfigure/")
    reservation = {
        "name": "op-maint",
        "start_time": {"set": True, "number": int(time.time()) + 600},
        "duration": {"set": True, "number": 60},
        "users": ["slurm"],
        "node_list": ["w-0"],
        "flags": ["MAINT", "IGNORE_JOBS"],
    }
    keep("reservation-create", slurm, "POST", f"{V}/reservation", reservation)
    keep("reservations", slurm, "GET", f"{V}/reservations/")
    for version in NEWEST_FIRST[1:]:
        keep(f"reservations-{version}", slurm, "GET", f"/slurm/{version}/reservations/")
    line = "NodeName=fut-[0-1] CPUs=1 RealMemory=100 Feature=all State=CLOUD"
    keep("new-node", slurm, "POST", f"{V}/new/node/", {"node_conf": line})


async def test_refusals(slurm: SlurmDaemons) -> None:
    await running(slurm, "--nodelist=w-1")
    drain = {"state": ["DRAIN"], "reason": OURS}

    keep("node-unknown-get", slurm, "GET", f"{V}/node/nope")
    keep("node-unknown-post", slurm, "POST", f"{V}/nodes/", {"name": ["w-0", "nope"], **drain})
    keep("node-delete-busy", slurm, "DELETE", f"{V}/node/w-1")
    keep("job-unknown", slurm, "DELETE", f"{V}/job/99999")
    keep("reservation-unknown", slurm, "DELETE", f"{V}/reservation/op-maint")
    keep("state-unknown", slurm, "POST", f"{V}/nodes/", {"name": ["w-0"], "state": ["BOGUS"]})
    keep("field-unknown", slurm, "POST", f"{V}/nodes/", {"name": ["w-0"], "bogus_field": 1})
    keep("version-not-served", slurm, "GET", "/slurm/v0.0.41/nodes/")
    keep("token-missing", slurm, "GET", f"{V}/nodes/", token="")
    keep("token-refused", slurm, "GET", f"{V}/nodes/", token=slurm.token(lifetime_s=-100))
    keep("not-allowed", slurm, "POST", f"{V}/nodes/", {"name": ["w-0"], **drain}, token=slurm.token("nobody"))


def test_slurmctld_away(new_slurm: Callable[..., SlurmDaemons]) -> None:
    slurm = new_slurm(settings={"MessageTimeout": "2"})

    slurm.slurmctld.pause()
    keep("nodes-slurmctld-hung", slurm, "GET", f"{V}/nodes/")
    keep("ping-slurmctld-hung", slurm, "GET", f"{V}/ping/")
    slurm.slurmctld.kill()
    keep("nodes-slurmctld-gone", slurm, "GET", f"{V}/nodes/")


def test_licences(new_slurm: Callable[..., SlurmDaemons]) -> None:
    keep("licenses", new_slurm(settings={"Licenses": "matlab:4"}), "GET", f"{V}/licenses/")


def test_books(slurm_with_accounting: SlurmDaemons) -> None:
    slurm = slurm_with_accounting
    job = slurm.submit("true")
    slurm.wait_for(lambda: slurm.job_state(job) == "COMPLETED", "a finished job")
    since = int(time.time()) - 3600

    def is_booked() -> bool:
        found = raw(slurm, "GET", f"{DB}/jobs/?start_time={since}&skip_steps=true").body["jobs"]
        return any(row["job_id"] == job and row["state"]["current"] == ["COMPLETED"] for row in found)

    slurm.wait_for(is_booked, "the job in the books")
    for name in ("accounts", "users", "qos", "associations", "clusters"):
        keep(f"books-{name}", slurm, "GET", f"{DB}/{name}/")
    keep("books-jobs", slurm, "GET", f"{DB}/jobs/?start_time={since}&skip_steps=true")


@pytest.mark.parametrize("capability", Capability)
def test_the_table_of_capabilities_is_what_slurmrestd_says_of_itself(
    slurm: SlurmDaemons, capability: Capability
) -> None:
    openapi = raw(slurm, "GET", "/openapi/v3").body
    needs = capability.value

    def has(version: str) -> bool:
        call = openapi["paths"].get(needs.path.replace("{version}", version), {}).get(needs.method.lower())
        if call is None or not needs.field:
            return call is not None
        schema = call["requestBody"]["content"]["application/json"]["schema"]["$ref"].split("/")[-1]
        return needs.field in openapi["components"]["schemas"][schema]["properties"]

    assert {version: has(version) for version in NEWEST_FIRST} == {
        version: capability.is_in(version) for version in NEWEST_FIRST
    }


async def test_the_newest_version_is_chosen(slurm: SlurmDaemons) -> None:
    client = client_of(slurm)
    await client.read.ping()

    assert client.version == NEWEST_FIRST[0]
