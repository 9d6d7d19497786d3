"""slurmdbd through slurmrestd: only where slurm.conf named slurmdbd when slurmrestd started."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import TypeVar

from slurm_operator import wire
from slurm_operator.slurm.accounting import Account, AccountedCluster, AccountedJob, Association, Qos, User
from slurm_operator.slurmrest.answers import accounting
from slurm_operator.slurmrest.answers.envelope import Envelope
from slurm_operator.slurmrest.sender import few_names
from slurm_operator.slurmrest.session import Session, segment, trusted

T = TypeVar("T", bound=Envelope)

_envelope = wire.decoder(Envelope)
_accounts_reply = wire.decoder(accounting.AccountsReply)
_users_reply = wire.decoder(accounting.UsersReply)
_qos_reply = wire.decoder(accounting.QosReply)
_associations_reply = wire.decoder(accounting.AssociationsReply)
_clusters_reply = wire.decoder(accounting.ClustersReply)
_job = wire.decoder(accounting.WireBookedJob)
_jobs_reply = wire.decoder(accounting.BookedJobsReply)


class Database:
    """Reads give whole lists.

    There is no plain adding of associations: where the account has no place in the cluster yet, slurmrestd
    says 200 and makes none. They come with `add_account` and `add_users`.
    """

    def __init__(self, session: Session) -> None:
        self._session = session

    async def ping(self) -> None:
        """Comes back when slurmdbd has its database; one without still accepts connections."""
        await self._get("ping slurmdbd", "/slurmdb/{version}/ping/", _envelope)

    async def accounts(self) -> dict[str, Account]:
        reply = await self._get("read the accounts", "/slurmdb/{version}/accounts/", _accounts_reply)
        return {found.name: found for found in map(accounting.account, reply.accounts or ())}

    async def users(self) -> dict[str, User]:
        # Without their associations users come without their default account.
        query = {"with_assocs": "true"}
        reply = await self._get("read the users", "/slurmdb/{version}/users/", _users_reply, query)
        return {found.name: found for found in map(accounting.user, reply.users or ())}

    async def qos(self) -> dict[str, Qos]:
        reply = await self._get("read the QOS", "/slurmdb/{version}/qos/", _qos_reply)
        return {found.name: found for found in map(accounting.qos, reply.qos or ())}

    async def associations(self) -> list[Association]:
        attempt, path = "read the associations", "/slurmdb/{version}/associations/"
        reply = await self._get(attempt, path, _associations_reply)
        return list(map(accounting.association, reply.associations or ()))

    async def clusters(self) -> dict[str, AccountedCluster]:
        reply = await self._get("read the clusters", "/slurmdb/{version}/clusters/", _clusters_reply)
        return {found.name: found for found in map(accounting.cluster, reply.clusters or ())}

    async def jobs(self, *, since: datetime) -> list[AccountedJob]:
        """Jobs that ran after `since`, without their steps.

        All of them: slurmdbd learns late of dynamic nodes, and until then it finds no job on them when asked
        for the jobs of one node.
        """
        query = {"start_time": str(int(since.timestamp())), "skip_steps": "true"}
        return await self._jobs("read the booked jobs", "/slurmdb/{version}/jobs/", query)

    async def job(self, job_id: int) -> list[AccountedJob]:
        """One job by its id, or all tasks of an array; also long after slurmctld has forgotten it."""
        return await self._jobs(f"read job {job_id} in the books", f"/slurmdb/{{version}}/job/{job_id}")

    async def _jobs(
        self, attempt: str, path: str, query: Mapping[str, str] | None = None
    ) -> list[AccountedJob]:
        def read(entry: bytes) -> AccountedJob:
            return accounting.booked_job(_job(entry))

        def made(found: list[AccountedJob], rest: bytes) -> list[AccountedJob]:
            trusted(attempt, _jobs_reply(rest))
            return found

        return await self._session.listed(attempt, path, "jobs", read, made, query) or []

    async def add_account(self, account: Account, *, clusters: Sequence[str]) -> None:
        """An account, and its place in these clusters: without one it can be listed, but not used."""
        body = {
            "association_condition": {"accounts": [account.name], "clusters": list(clusters)},
            "account": {"description": account.description, "organization": account.organization},
        }
        await self._post(f"add the account {account.name}", "/slurmdb/{version}/accounts_association/", body)

    async def add_users(self, users: Sequence[str], *, account: str, clusters: Sequence[str]) -> None:
        """These users in an account, made where they are new; the first account of a user is the default."""
        where = {"users": list(users), "accounts": [account], "clusters": list(clusters)}
        body = {"association_condition": where, "user": {}}
        attempt = f"add {few_names(users)} to the account {account}"
        await self._post(attempt, "/slurmdb/{version}/users_association/", body)

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
        """What is not there is answered by 304, and is as good as deleted."""
        reply = await self._session.call(attempt, "DELETE", path, query=query)
        if reply.status != 304:
            trusted(attempt, await self._session.content(attempt, reply, _envelope))

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
