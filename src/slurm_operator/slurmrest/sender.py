"""Everything we ask slurmctld to do through slurmrestd, one call each. Who may, and when: see the writer."""

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta

from slurm_operator import wire
from slurm_operator.listing import first_few
from slurm_operator.slurm import writes
from slurm_operator.slurmrest.answers.envelope import Envelope, JobReply, troubles_text
from slurm_operator.slurmrest.errors import NotServed, SlurmAnswerUnreadable
from slurm_operator.slurmrest.session import Session, failure, segment, trusted
from slurm_operator.slurmrest.versions import Capability

_envelope = wire.decoder(Envelope)
_job_reply = wire.decoder(JobReply)


class Submitted(Envelope):
    """What slurmrestd answers to a new job."""

    job_id: int | None = None


_submitted = wire.decoder(Submitted)

# A reconfigure answers when slurmctld has read everything again, and that takes long with thousands of nodes.
RECONFIGURE_SECONDS = 60.0

_SHOWN_NAMES = 5

_IGNORED = "Ignoring unknown field"


def few_names(names: Sequence[str]) -> str:
    """A few of these names, for a message."""
    return first_few(names, _SHOWN_NAMES)


class Sender:
    """Each call comes back when slurmctld has done it, or raises a SlurmFailure."""

    def __init__(self, session: Session) -> None:
        self._session = session

    async def update_nodes(self, attempt: str, nodes: Sequence[str], fields: Mapping[str, object]) -> None:
        """One request for all; all or nothing: a single unknown name and no node is changed."""
        needs = Capability.SET_TOPOLOGY if Capability.SET_TOPOLOGY.value.field in fields else None
        await self._post(attempt, "/slurm/{version}/nodes/", {"name": list(nodes), **fields}, needs=needs)

    async def delete_nodes(self, nodes: Sequence[str]) -> None:
        """One request for all. Refused for some, slurmctld has removed the others all the same (seen)."""
        path = f"/slurm/{{version}}/node/{segment(','.join(nodes))}"
        await self._call(f"delete the node{'s' * (len(nodes) > 1)} {few_names(nodes)}", "DELETE", path)

    async def add_nodes(self, nodes: Sequence[str], conf: str) -> None:
        """One request for all; all or nothing: for a single name that is there already, none is made."""
        attempt, body = f"add {few_names(nodes)}", {"node_conf": f"NodeName={','.join(nodes)} {conf}"}
        await self._post(attempt, "/slurm/{version}/new/node/", body, needs=Capability.ADD_NODES)

    async def reconfigure(self) -> None:
        await self._call(
            "reconfigure", "GET", "/slurm/{version}/reconfigure/", deadline_s=RECONFIGURE_SECONDS
        )

    async def reserve(self, wanted: writes.Reserve) -> None:
        """Makes the reservation, or changes the one of that name."""
        body = {
            "name": wanted.name,
            "start_time": _number(wanted.start_time.timestamp() if wanted.start_time is not None else None),
            "duration": _number(
                wanted.duration / timedelta(minutes=1) if wanted.duration is not None else None
            ),
            "node_list": list(wanted.nodes),
            "users": list(wanted.users),
            "accounts": list(wanted.accounts),
            "flags": list(wanted.flags),
        }
        filled = {key: value for key, value in body.items() if value not in ([], None)}
        attempt = f"reserve {few_names(wanted.nodes)} as {wanted.name}"
        await self._post(attempt, "/slurm/{version}/reservation", filled, needs=Capability.RESERVE)

    async def unreserve(self, name: str) -> None:
        path = f"/slurm/{{version}}/reservation/{segment(name)}"
        await self._call(f"delete the reservation {name}", "DELETE", path)

    async def update_job(self, job_id: int, fields: Mapping[str, object]) -> None:
        await self._post(
            f"update job {job_id}", f"/slurm/{{version}}/job/{job_id}", fields, decode=_job_reply
        )

    async def signal_job(self, address: str, signal: str) -> None:
        path, query = f"/slurm/{{version}}/job/{segment(address)}", {"signal": signal}
        await self._call(f"send {signal} to job {address}", "DELETE", path, query=query, decode=_job_reply)

    async def cancel_job(self, address: str) -> None:
        path = f"/slurm/{{version}}/job/{segment(address)}"
        await self._call(f"cancel job {address}", "DELETE", path, decode=_job_reply)

    async def submit_job(self, body: Mapping[str, object]) -> int:
        """The id of a new job. Without an answer there may be one all the same: see SlurmFailure."""
        attempt = "submit a job"
        reply = await self._session.call(attempt, "POST", "/slurm/{version}/job/submit", body=body)
        content = await self._session.content(attempt, reply, _submitted)
        trusted(attempt, content)
        _complete(attempt, content)
        if not content.job_id:
            raise SlurmAnswerUnreadable(attempt, "it names no job")
        return content.job_id

    async def requeue_job(self, address: str, *, hold: bool = False) -> None:
        path, query = f"/slurm/{{version}}/job/{segment(address)}/requeue", {"Hold": "true"} if hold else {}
        attempt, needs = f"requeue job {address}", Capability.REQUEUE_JOB
        await self._call(attempt, "GET", path, query=query, needs=needs, decode=_job_reply)

    async def _post(
        self,
        attempt: str,
        path: str,
        body: Mapping[str, object],
        needs: Capability | None = None,
        decode: Callable[[bytes], Envelope] = _envelope,
    ) -> None:
        await self._call(attempt, "POST", path, body=body, needs=needs, decode=decode)

    async def _call(
        self,
        attempt: str,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Mapping[str, object] | None = None,
        needs: Capability | None = None,
        deadline_s: float | None = None,
        decode: Callable[[bytes], Envelope] = _envelope,
    ) -> None:
        reply = await self._session.call(
            attempt, method, path, query=query, body=body, needs=needs, deadline_s=deadline_s
        )
        content = await self._session.content(attempt, reply, decode)
        trusted(attempt, content)
        if isinstance(content, JobReply) and content.troubles:
            raise failure(attempt, content.troubles)
        _complete(attempt, content)


def _complete(attempt: str, content: Envelope) -> None:
    """Raises when a field was passed over: slurmrestd says 200 and only warns, but nothing was set."""
    ignored = [warning for warning in content.warnings or () if _IGNORED in (warning.description or "")]
    if ignored:
        raise NotServed(attempt, troubles_text(ignored))


def _number(value: float | None) -> dict[str, object] | None:
    """As slurmrestd wants numbers, whole ones; None stays away."""
    return {"set": True, "number": int(value)} if value is not None else None


def node_fields(write: writes.NodeWrite) -> dict[str, object]:
    """The body of an update of nodes. To add or to delete them is no update and has none."""
    match write:
        case writes.DrainNodes(reason=reason):
            return {"state": ["DRAIN"], "reason": reason}
        case writes.SetNodesDown(reason=reason):
            return {"state": ["DOWN"], "reason": reason}
        case writes.ExplainNodes(reason=reason):
            return {"reason": reason}
        case writes.ResumeNodes(from_down=from_down):
            # UNDRAIN leaves DOWN as it is, and RESUME is refused for a node that is neither down nor drained.
            return {"state": ["RESUME" if from_down else "UNDRAIN"]}
        case writes.PowerNodes(up=up):
            return {"state": ["POWER_UP" if up else "POWER_DOWN"]}
        case writes.UpdateNodes():
            return _set_fields(write)
        case writes.DeleteNodes() | writes.AddNodes():
            return {}


def _set_fields(write: writes.UpdateNodes) -> dict[str, object]:
    weight = None if write.weight is None else {"set": True, "number": write.weight}
    wanted: dict[str, object | None] = {
        "comment": write.comment,
        "extra": write.extra,
        "features": write.features,
        "features_act": write.active_features,
        "topology_str": write.topology,
        "weight": weight,
        "gres": write.gres,
    }
    return {key: value for key, value in wanted.items() if value is not None}


def job_fields(write: writes.UpdateJob) -> dict[str, object]:
    wanted: dict[str, object | None] = {
        "admin_comment": write.admin_comment,
        "comment": write.comment,
        "extra": write.extra,
        "excluded_nodes": write.excluded_nodes,
        "hold": write.hold,
    }
    return {key: value for key, value in wanted.items() if value is not None}
