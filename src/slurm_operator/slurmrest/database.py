"""slurmdbd through slurmrestd: only where slurm.conf named slurmdbd when slurmrestd started."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import TypeVar

from slurm_operator import wire
from slurm_operator.slurm.accounting import Account, AccountedCluster, AccountedJob, Association, Qos, User
from slurm_operator.slurmrest import bookkeeping
from slurm_operator.slurmrest.envelope import Envelope
from slurm_operator.slurmrest.session import Session, segment, trusted

T = TypeVar("T", bound=Envelope)

_envelope = wire.decoder(Envelope)
_accounts_reply = wire.decoder(bookkeeping.AccountsReply)
_users_reply = wire.decoder(bookkeeping.UsersReply)
_qos_reply = wire.decoder(bookkeeping.QosReply)
_associations_reply = wire.decoder(bookkeeping.AssociationsReply)
_clusters_reply = wire.decoder(bookkeeping.ClustersReply)
_jobs_reply = wire.decoder(bookkeeping.BookedJobsReply)


class Database:
    """Reads give whole lists; adding what is there already changes it."""

    def __init__(self, session: Session) -> None:
        self._session = session

    async def ping(self) -> None:
        """Comes back when slurmdbd has its database; one without still accepts connections."""
        await self._get("ping slurmdbd", "/slurmdb/{version}/ping/", _envelope)

    async def accounts(self) -> dict[str, Account]:
        reply = await self._get("read the accounts", "/slurmdb/{version}/accounts/", _accounts_reply)
        return {found.name: found for found in map(bookkeeping.account, reply.accounts or ())}

    async def users(self) -> dict[str, User]:
        reply = await self._get("read the users", "/slurmdb/{version}/users/", _users_reply)
        return {found.name: found for found in map(bookkeeping.user, reply.users or ())}

    async def qos(self) -> dict[str, Qos]:
        reply = await self._get("read the QOS", "/slurmdb/{version}/qos/", _qos_reply)
        return {found.name: found for found in map(bookkeeping.qos, reply.qos or ())}

    async def associations(self) -> list[Association]:
        attempt, path = "read the associations", "/slurmdb/{version}/associations/"
        reply = await self._get(attempt, path, _associations_reply)
        return list(map(bookkeeping.association, reply.associations or ()))

    async def clusters(self) -> dict[str, AccountedCluster]:
        reply = await self._get("read the clusters", "/slurmdb/{version}/clusters/", _clusters_reply)
        return {found.name: found for found in map(bookkeeping.cluster, reply.clusters or ())}

    async def jobs(self, *, since: datetime, nodes: Sequence[str] = ()) -> list[AccountedJob]:
        """Jobs that ran after `since`, on these nodes or on any; their steps are left out."""
        query = {"start_time": str(int(since.timestamp())), "skip_steps": "true"}
        if nodes:
            query["node"] = ",".join(nodes)
        reply = await self._get("read the booked jobs", "/slurmdb/{version}/jobs/", _jobs_reply, query)
        return list(map(bookkeeping.booked_job, reply.jobs or ()))

    async def add_accounts(self, accounts: Iterable[Account]) -> None:
        rows = [
            {"name": row.name, "description": row.description, "organization": row.organization}
            for row in accounts
        ]
        await self._post("add accounts", "/slurmdb/{version}/accounts/", {"accounts": rows})

    async def add_users(self, users: Iterable[User]) -> None:
        """A user can do nothing before `add_associations` puts them into an account."""
        rows = [{"name": row.name, "default": {"account": row.default_account}} for row in users]
        await self._post("add users", "/slurmdb/{version}/users/", {"users": rows})

    async def add_qos(self, qos: Iterable[Qos]) -> None:
        rows = [
            {
                "name": row.name,
                "description": row.description,
                "priority": {"set": True, "number": row.priority},
                "flags": sorted(row.flags),
                "preempt": {"list": list(row.preempts)},
            }
            for row in qos
        ]
        await self._post("add QOS", "/slurmdb/{version}/qos/", {"qos": rows})

    async def add_associations(self, associations: Iterable[Association]) -> None:
        rows = [
            {
                "account": row.account,
                "cluster": row.cluster,
                "user": row.user,
                "partition": row.partition,
                "shares_raw": row.shares,
            }
            for row in associations
        ]
        await self._post("add associations", "/slurmdb/{version}/associations/", {"associations": rows})

    async def delete_account(self, name: str) -> None:
        await self._delete(f"delete the account {name}", f"/slurmdb/{{version}}/account/{segment(name)}")

    async def delete_user(self, name: str) -> None:
        await self._delete(f"delete the user {name}", f"/slurmdb/{{version}}/user/{segment(name)}")

    async def delete_qos(self, name: str) -> None:
        await self._delete(f"delete the QOS {name}", f"/slurmdb/{{version}}/qos/{segment(name)}")

    async def delete_cluster(self, name: str) -> None:
        await self._delete(f"delete the cluster {name}", f"/slurmdb/{{version}}/cluster/{segment(name)}")

    async def delete_association(self, association: Association) -> None:
        """All three must be given: what is left empty would match every association."""
        wanted = {"account": association.account, "user": association.user, "cluster": association.cluster}
        if not all(wanted.values()):
            raise ValueError("an association is deleted by its account, user and cluster, all three")
        attempt = f"delete {association.user} from {association.account}"
        await self._delete(attempt, "/slurmdb/{version}/association/", wanted)

    async def _get(
        self, attempt: str, path: str, decode: Callable[[bytes], T], query: Mapping[str, str] | None = None
    ) -> T:
        return await self._call(attempt, "GET", path, decode, query=query)

    async def _post(self, attempt: str, path: str, body: Mapping[str, object]) -> None:
        await self._call(attempt, "POST", path, _envelope, body=body)

    async def _delete(self, attempt: str, path: str, query: Mapping[str, str] | None = None) -> None:
        await self._call(attempt, "DELETE", path, _envelope, query=query)

    async def _call(
        self,
        attempt: str,
        method: str,
        path: str,
        decode: Callable[[bytes], T],
        *,
        query: Mapping[str, str] | None = None,
        body: Mapping[str, object] | None = None,
    ) -> T:
        reply = await self._session.call(attempt, method, path, query=query, body=body)
        content = await self._session.content(attempt, reply, decode)
        trusted(attempt, content)
        return content
