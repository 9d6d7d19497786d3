"""Replies made from recorded ones by changing what a test is about."""

import copy
from typing import Any

from fake_slurmrestd import FakeSlurmrestd, answer, body_of, http

NODES = "GET /slurm/{v}/nodes/"
JOBS = "GET /slurm/{v}/jobs/"
RESERVATIONS = "GET /slurm/{v}/reservations/"
PARTITIONS = "GET /slurm/{v}/partitions/"
PING = "GET /slurm/{v}/ping/"
CONF = "GET /slurm/{v}/conf"
UPDATE = "POST /slurm/{v}/nodes/"
RECONFIGURE = "GET /slurm/{v}/reconfigure/"

OK = answer("reconfigure")


def nodes(mark: int = 1000, **states: str | tuple[str, str]) -> bytes:
    """A node list: `nodes(a="IDLE", b=("IDLE+DRAIN", "the reason"))`."""
    body = copy.deepcopy(body_of("nodes"))
    body["nodes"] = [_node(body["nodes"][0], name, state) for name, state in states.items()]
    body["last_update"]["number"] = mark
    return http(200, body)


def _node(model: dict[str, Any], name: str, state: str | tuple[str, str]) -> dict[str, Any]:
    words, reason = state if isinstance(state, tuple) else (state, "")
    return model | {"name": name.replace("_", "-"), "state": words.split("+"), "reason": reason}


IDLE4 = nodes(a="IDLE", b="IDLE", c="IDLE", d="IDLE")


def jobs(mark: int = 1000, *, is_listed: bool = True, **on: str) -> bytes:
    """A job list: `jobs(j7="a")` is job 7 running on a. If not listed, only its batch host says so."""
    body = copy.deepcopy(body_of("jobs"))
    model = body["jobs"][0]
    body["jobs"] = [
        model
        | {
            "job_id": int(name[1:]),
            "nodes": node if is_listed else "",
            "required_nodes": "",
            "batch_host": node,
        }
        | {"job_state": ["RUNNING"]}
        for name, node in on.items()
    ]
    body["last_update"]["number"] = mark
    return http(200, body)


def reservations(clock: int = 10**9, *found: dict[str, Any]) -> bytes:
    """They tell slurmctld's clock; later than every other mark here, unless a test is about that."""
    return http(200, body_of("reservations") | {"reservations": list(found), "last_update": clock})


def partitions(mark: int = 1000) -> bytes:
    return http(200, body_of("partitions") | {"last_update": mark})


def serve(
    slurmrestd: FakeSlurmrestd, *, node_lists: list[bytes], job_lists: list[bytes] | None = None
) -> None:
    """A whole cluster: these lists one after the other, and nothing special around them."""
    slurmrestd.on(NODES, *node_lists)
    slurmrestd.on(JOBS, *(job_lists or [jobs()]))
    slurmrestd.on(RESERVATIONS, reservations())
    slurmrestd.on(PARTITIONS, partitions())
    parameters = {"slurm_conf": {"SlurmctldParameters": ["enable_configless"]}, "errors": [], "warnings": []}
    slurmrestd.on(CONF, http(200, parameters))
    slurmrestd.on(UPDATE, OK)
    slurmrestd.on(RECONFIGURE, OK)
