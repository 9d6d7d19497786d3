"""slurmdbd through slurmrestd, and its effect as sacctmgr and sacct show it."""

from datetime import UTC, datetime, timedelta

import pytest
from rest_rig import client_of, raw, until

from slurm_operator.slurm.accounting import Account, Association, Qos
from slurm_operator.slurmrest import errors
from testing.daemons import SlurmDaemons

DB = "/slurmdb/v0.0.45"


def listed(slurm: SlurmDaemons, *words: str) -> set[str]:
    return set(slurm.run("sacctmgr", "--noheader", "--parsable2", *words).split())


async def test_accounts_users_qos_and_associations_come_and_go(slurm_with_accounting: SlurmDaemons) -> None:
    slurm = slurm_with_accounting
    membership = Association(account="physics", user="tester", cluster="test")
    client = client_of(slurm)
    database = client.database
    await database.ping()
    await database.add_qos([Qos(name="urgent", description="now", priority=100)])
    await database.add_account(Account(name="physics", description="d", organization="o"), clusters=["test"])
    await database.add_users(["tester"], account="physics", clusters=["test"])

    assert "urgent|100" in listed(slurm, "list", "qos", "format=name,priority")
    assert "physics" in listed(slurm, "list", "account", "format=account")
    assert "physics|tester" in listed(slurm, "list", "assoc", "format=account,user")
    assert (await database.qos())["urgent"].priority == 100
    assert (await database.accounts())["physics"].organization == "o"
    assert (await database.users())["tester"].default_account == "physics"
    assert ("physics", "tester") in {(row.account, row.user) for row in await database.associations()}
    assert (await database.clusters())["test"].controller_host

    with pytest.raises(ValueError, match="all three"):
        await database.delete_association(Association(account="physics"))
    await database.delete_association(membership)
    await database.delete_user("tester")
    await database.delete_user("tester")
    await database.delete_account("physics")
    await database.delete_qos("urgent")

    assert "urgent" not in listed(slurm, "list", "qos", "format=name")
    assert "physics" not in listed(slurm, "list", "account", "format=account")
    assert "tester" not in listed(slurm, "list", "user", "format=user")
    assert "root" in listed(slurm, "list", "user", "format=user")


async def test_a_job_stays_in_the_books(slurm_with_accounting: SlurmDaemons) -> None:
    slurm = slurm_with_accounting
    began = datetime.now(UTC) - timedelta(minutes=1)
    job = slurm.submit("exit 3", "--nodelist=w-1", "--job-name=booked")
    await until(lambda: slurm.job_state(job) == "FAILED", "the job to fail")
    await until(lambda: "FAILED" in slurm.run("sacct", "--noheader", "-j", str(job)), "sacct to know")
    client = client_of(slurm)
    (booked,) = [row for row in await client.database.jobs(since=began) if row.job_id == job]

    assert (booked.name, booked.nodes, booked.state.base) == ("booked", ("w-1",), "FAILED")
    assert booked.return_code == 3
    assert booked.end_time is not None


async def test_slurmdbd_says_yes_to_an_association_and_makes_none(
    slurm_with_accounting: SlurmDaemons,
) -> None:
    """Why `add_users` goes another way. When this fails, slurmrestd has learnt it."""
    slurm = slurm_with_accounting
    rows = [{"account": "chemistry", "cluster": "test", "user": user} for user in ("", "tester")]
    raw(
        slurm,
        "POST",
        f"{DB}/accounts/",
        {"accounts": [{"name": "chemistry", "description": "", "organization": ""}]},
    )

    replies = [raw(slurm, "POST", f"{DB}/associations/", {"associations": [row]}) for row in rows]

    assert [(reply.status, reply.body["errors"]) for reply in replies] == [(200, [])] * 2
    assert "chemistry|" not in listed(slurm, "list", "assoc", "format=account,user")


async def test_a_database_that_is_away_is_said_so_and_comes_back(slurm_with_accounting: SlurmDaemons) -> None:
    slurm = slurm_with_accounting
    client = client_of(slurm)
    slurm.mariadbd.kill()
    with pytest.raises(errors.SlurmFailure) as gone:
        await client.database.accounts()
    listing = await client.read.nodes()
    slurm.mariadbd.start()

    async def answers() -> bool:
        try:
            return "root" in await client.database.accounts()
        except errors.SlurmFailure:
            return False

    for _ in range(100):
        if await answers():
            break
    assert await answers()

    assert isinstance(gone.value, errors.SlurmUnreachable | errors.SlurmTimedOut | errors.SlurmRefused)
    assert listing, "slurmctld needs no database to answer"


async def test_a_slurmdbd_that_is_away_is_unreachable(slurm_with_accounting: SlurmDaemons) -> None:
    slurm = slurm_with_accounting
    client = client_of(slurm)
    slurm.slurmdbd.stop()
    with pytest.raises(errors.SlurmUnreachable):
        await client.database.accounts()
    slurm.slurmdbd.start()

    await client.database.accounts()


async def test_without_accounting_the_books_are_not_served(slurm: SlurmDaemons) -> None:
    client = client_of(slurm)
    with pytest.raises(errors.NotServed, match="slurmdb"):
        await client.database.accounts()
