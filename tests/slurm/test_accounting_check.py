"""The look at the database before slurmdbd starts, with a real MariaDB; and what MariaDB is started with."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from slurm_operator import wire
from slurm_operator.api.schema import codec
from slurm_operator.api.shared.auth import SlurmUser
from slurm_operator.api.shared.refs import SecretKey
from slurm_operator.api.slinky.accounting import Accounting, ManagedDatabase
from slurm_operator.manifests.meta import Meta
from slurm_operator.manifests.objects import (
    ContainerState,
    ContainerStateTerminated,
    ContainerStatus,
    Pod,
    PodStatus,
)
from slurm_operator.manifests.secrets import SecretHandle, filled
from slurm_operator.reconcilers.accounting import check, conf, database
from testing.boxed.box import Box, box_in
from testing.boxed.head import MYSQL, SLURM

PASSWORD = "s3cret"
HANDLE = SecretHandle(namespace="ns", name="db", key="password")
ADMIN = "/run/mysqld/mysqld.sock"


@pytest.fixture(scope="module")
def box(rootfs: Path, tmp_path_factory) -> Iterator[Box]:
    """A MariaDB that listens on loopback, started as the operator starts it."""
    directory = tmp_path_factory.mktemp("database")
    with box_in(directory, rootfs, "db") as box:
        box.run("cp", "--archive", "/usr/share/slurm-operator/database", "/var/lib/mysql")
        box.run("install", "--directory", "--owner=mysql", "/run/mysqld")
        box.run("install", "--directory", "--owner=slurm", "/run/pod")
        box.run("ip", "link", "set", "lo", "up")
        box.append("/etc/hosts", "127.0.0.1 db")
        box.path("/etc/nsswitch.conf").write_text("hosts: files\n")  # An unknown name is told at once.
        options = [
            "--datadir=/var/lib/mysql",
            f"--socket={ADMIN}",
            "--skip-name-resolve",
            *database.container(ManagedDatabase(), HANDLE)["args"],
        ]
        process = box.start(["mariadbd", "--no-defaults", *options], directory / "mariadbd.log", user=MYSQL)
        deadline = time.monotonic() + 60
        while box.run("mariadb", "--execute=SELECT 1", check=False).returncode != 0:
            assert time.monotonic() < deadline, (directory / "mariadbd.log").read_text()[-2000:]
            time.sleep(0.1)
        yield box
    process.wait()


def sql(box: Box, text: str) -> str:
    return box.run("mariadb", "--batch", "--skip-column-names", f"--execute={text}").stdout


def address(**changes) -> database.Address:
    given = {
        "host": "127.0.0.1",
        "port": 3306,
        "database": "books",
        "user": "ada",
        "is_managed": False,
        **changes,
    }
    return database.Address(password=SecretKey(name="db", key="password"), **given)


def checked(box: Box, where: database.Address, password: str = PASSWORD) -> tuple[int, check.Verdict]:
    """The exit code of the check, and what its last words are read as."""
    container = check.container("image", where, SlurmUser())
    env = {one["name"]: one.get("value", password) for one in container["env"]}
    script = (
        container["command"][2]
        .replace("/dev/termination-log", "/run/pod/last-words")
        .replace("/run/check", "/run/pod/check")
    )
    box.run("rm", "-f", "/run/pod/last-words", "/run/pod/check-database")
    done = box.run("sh", "-c", script, user=SLURM, env=env, check=False, timeout_s=60)
    said = box.run("cat", "/run/pod/last-words", check=False).stdout
    ended = ContainerState(terminated=ContainerStateTerminated(exit_code=done.returncode, message=said))
    status = PodStatus(init_container_statuses=[ContainerStatus(name=check.CONTAINER, state=ended)])
    found = check.verdict(Pod(metadata=Meta(name="p"), status=status), where)
    assert found is not None
    return done.returncode, found


@pytest.fixture
def account(box: Box) -> Iterator[str]:
    sql(box, "DROP DATABASE IF EXISTS books; CREATE OR REPLACE USER ada@'%' IDENTIFIED BY '" + PASSWORD + "'")
    yield "ada"
    sql(box, "DROP USER IF EXISTS ada@'%'; DROP DATABASE IF EXISTS books")


def test_a_database_in_order_is_found_so_and_left_as_it_was(box, account):
    sql(box, "GRANT ALL ON books.* TO ada@'%'")
    box.run("mkdir", "-p", "/etc/slurm")
    box.write_secret(
        "/etc/slurm/slurmdbd.conf", b"DbdHost=localhost\nStorageType=accounting_storage/mysql\n", SLURM
    )
    box.write_secret("/etc/slurm/slurm.key", b"x" * 1024, SLURM)

    code, verdict = checked(box, address(), PASSWORD + "\n")

    assert (code, verdict.reason, verdict.advice) == (0, None, "")
    assert "MariaDB" in verdict.version
    assert verdict.slurm_version.startswith("26.")
    assert sql(box, "SHOW TABLES IN books; SHOW PROCEDURE STATUS WHERE Db = 'books'") == ""


ALL = "GRANT ALL ON books.* TO ada@'%'"


@pytest.mark.parametrize(
    ("grant", "where", "password", "reason"),
    [
        pytest.param(ALL, {"port": 3307}, PASSWORD, "DatabaseAddress", id="another port"),
        pytest.param(ALL, {"host": "nowhere.invalid"}, PASSWORD, "DatabaseAddress", id="no such host"),
        pytest.param(ALL, {}, "wrong", "DatabaseLogin", id="a wrong password"),
        pytest.param(ALL, {"user": "bob"}, PASSWORD, "DatabaseLogin", id="no such user"),
        pytest.param(ALL, {"database": "other"}, PASSWORD, "DatabaseGrant", id="rights to another database"),
        pytest.param("GRANT SELECT, INSERT, CREATE ON books.* TO ada@'%'", {}, PASSWORD, "DatabaseGrant", id="too few rights"),
        pytest.param(ALL + "; REVOKE CREATE ROUTINE ON books.* FROM ada@'%'", {}, PASSWORD, "DatabaseGrant", id="no right to make procedures"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told_apart(box, account, grant, where, password, reason):
    sql(box, grant)

    code, verdict = checked(box, address(**where), password)

    assert (code, verdict.reason) == (1, reason), verdict.message
    assert password not in verdict.message


def test_a_verdict_is_told_once_and_then_only_waited_for(box, account):
    where = address(user="ada")
    checked(box, where)  # No rights: this is told.
    script = check.container("image", where, SlurmUser())["command"][2]
    script = script.replace("/dev/termination-log", "/run/pod/last-words").replace(
        "/run/check", "/run/pod/check"
    )
    env = {
        one["name"]: one.get("value", PASSWORD) for one in check.container("image", where, SlurmUser())["env"]
    }
    # Ended from inside: one that goes on trying would write over the last words of the next check.
    waited = box.run("timeout", "8", "sh", "-c", script, user=SLURM, env=env, check=False)
    assert waited.returncode == 124

    sql(box, "GRANT ALL ON books.* TO ada@'%'")

    assert box.run("sh", "-c", script, user=SLURM, env=env, timeout_s=30).returncode == 0


def test_snapshot_isolation_is_advised_against(box, account):
    sql(box, "GRANT ALL ON books.* TO ada@'%'; SET GLOBAL innodb_snapshot_isolation=ON")
    try:
        code, verdict = checked(box, address())
    finally:
        sql(box, "SET GLOBAL innodb_snapshot_isolation=OFF")

    assert code == 0
    assert "Set it to OFF" in verdict.advice


def test_slurmdbd_starts_on_our_files_and_has_nothing_against_our_mariadb(box, account, tmp_path):
    """With the owner and mode that the kubelet gives files of a volume in a pod with an fsGroup."""
    sql(box, "GRANT ALL ON books.* TO ada@'%'")
    # The check also makes the database. slurmdbd 26.05.5 would do so too, but ends with an error of its client
    # library right after, and only its next start succeeds.
    assert checked(box, address())[0] == 0
    accounting = codec.read(
        Accounting,
        {"metadata": {"name": "slurm", "namespace": "ns"}, "spec": {"extraConf": "DebugLevel=info"}},
    )
    text = conf.slurmdbd_conf(accounting, address(), HANDLE).replace(
        f"{accounting.metadata.name}-accounting-0", "db"
    )
    whole = filled({"stringData": {conf.FILE: text}}, {wire.replace(HANDLE, form="conf"): PASSWORD})
    for name, content in {
        conf.FILE: whole["stringData"][conf.FILE].encode(),
        "slurm.key": bytes(1024),
        "jwt.key": bytes(32),
    }.items():
        box.write_secret(f"/etc/slurm/{name}", content, (0, SLURM[1]))
        box.run("chmod", "640", f"/etc/slurm/{name}")
    box.run("install", "--directory", "--owner=slurm", "/run/slurmdbd")

    log = tmp_path / "log"
    slurmdbd = box.start(["slurmdbd", "-D"], log, user=SLURM)
    try:
        until(lambda: "started" in log.read_text() or slurmdbd.poll() is not None, log)
        said = log.read_text()
        assert "slurmdbd version" in said
        assert "not recommended" not in said
        assert "innodb_snapshot_isolation" not in said
    finally:
        box.run("pkill", "slurmdbd", check=False)
        slurmdbd.wait()


def test_the_startup_probe_of_mariadb_knows_when_the_account_is_there(box, account):
    probe = database.container(ManagedDatabase(), HANDLE)["startupProbe"]
    env = {"MARIADB_USER": "ada", "MARIADB_PASSWORD": PASSWORD, "MARIADB_DATABASE": "books"}

    assert box.run(*probe["exec"]["command"], env=env, check=False).returncode != 0
    sql(box, "CREATE DATABASE books; GRANT ALL ON books.* TO ada@'%'")
    assert box.run(*probe["exec"]["command"], env=env, check=False).returncode == 0


def until(condition, log: Path) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, log.read_text()[-2000:]
        time.sleep(0.1)
