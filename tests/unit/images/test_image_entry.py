"""What the entry points make of files and answers."""

import os
from datetime import timedelta
from pathlib import Path

import pytest

from images.entry import database, slurmctld, ssh
from images.entry.__main__ import ENTRIES
from images.entry.follow import named_main
from images.entry.leave import drain_reason, takes_jobs
from images.entry.slurmctld import NodeRecord, Unreachable, node_name, record_from
from images.entry.steps import steps_here, work_here
from images.entry.watch import SURE_AFTER_S
from slurm_local.image.images import SLURM_DAEMONS
from slurm_operator.safety.gate import PROOF_LIFETIME
from slurm_operator.slurm.reasons import OurReason


@pytest.mark.parametrize(
    ("states", "takes"),
    [
        pytest.param("IDLE+DYNAMIC_NORM", True, id="idle"),
        pytest.param("MIXED", True, id="busy"),
        pytest.param("IDLE+POWERING_DOWN", True, id="it may be up again"),
        pytest.param("IDLE+DRAIN", False, id="drained"),
        pytest.param("DOWN+DYNAMIC_NORM", False, id="down, as somebody may have said"),
        pytest.param("DOWN*", False, id="down and silent"),
    ],
)
def test_a_worker_that_leaves_drains_only_where_a_job_may_start(states, takes):
    assert takes_jobs(NodeRecord(True, frozenset(states.split("+")))) is takes
    assert not takes_jobs(NodeRecord(False))


def test_every_daemon_image_has_an_entry():
    assert set(SLURM_DAEMONS) <= set(ENTRIES)


def test_only_supervisord_says_that_it_starts_programs_again():
    assert ssh.is_supervised({"SUPERVISOR_ENABLED": "1"})
    assert not ssh.is_supervised({"PATH": "/bin"})


@pytest.mark.parametrize(
    ("notice", "pid"),
    [
        ("MAINPID=42", 42),
        ("READY=1\nMAINPID=42\nSTATUS=fine", 42),
        ("READY=1", None),
        ("BARRIER=1", None),
        ("MAINPID=", None),
    ],
)
def test_the_successor_is_named_in_a_notice(notice, pid):
    assert named_main(notice) == pid


@pytest.mark.parametrize(
    ("code", "text", "expected"),
    [
        pytest.param(
            0,
            "NodeName=w-0 State=IDLE+DRAIN+DYNAMIC_NORM Owner=N/A Reason=disk is loud [root@noon]\n",
            NodeRecord(True, frozenset({"IDLE", "DRAIN", "DYNAMIC_NORM"}), "disk is loud [root@noon]"),
            id="drained by somebody",
        ),
        pytest.param(
            0,
            "NodeName=w-0 State=MIXED\n",
            NodeRecord(True, frozenset({"MIXED"})),
            id="no reason: not drained",
        ),
        pytest.param(1, "Node w-0 not found\n", NodeRecord(False), id="forgotten"),
        pytest.param(
            1,
            "slurm_load_node error: Unable to contact slurm controller",
            Unreachable.NO_ANSWER,
            id="weather",
        ),
        pytest.param(0, "", Unreachable.NO_ANSWER, id="an empty answer says nothing"),
    ],
)
def test_silence_is_not_taken_for_a_forgotten_node(code, text, expected):
    assert record_from(code, text) == expected


@pytest.fixture
def commands(tmp_path, monkeypatch):
    """Makes a command that says these bytes."""
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)

    def command(name: str, said: bytes) -> None:
        (tmp_path / f"{name}.said").write_bytes(said)
        (tmp_path / name).write_text(f"#!/bin/sh\ncat {tmp_path / name}.said\n")
        (tmp_path / name).chmod(0o755)

    return command


def test_a_reason_in_any_encoding_is_an_answer(commands):
    commands("scontrol", "NodeName=w-0 State=MIXED+DRAIN Reason=f\u00fcr Wartung\n".encode("latin-1"))

    assert slurmctld.node_record("w-0") == NodeRecord(True, frozenset({"MIXED", "DRAIN"}), "f\ufffdr Wartung")


def test_a_command_that_cannot_be_started_is_no_answer(tmp_path, monkeypatch):
    """As when a job has taken every process that the pod may have."""
    monkeypatch.setenv("PATH", str(tmp_path))

    assert slurmctld.unfinished_jobs("w-0") is Unreachable.NO_ANSWER
    assert slurmctld.node_record("w-0") is Unreachable.NO_ANSWER


def test_a_worker_without_a_record_is_not_back_before_its_pod_has_followed():
    assert timedelta(seconds=SURE_AFTER_S) > 2 * PROOF_LIFETIME


@pytest.mark.parametrize(
    ("arguments", "name"),
    [([], "w-0"), (["-N", "other"], "other"), (["-Nother", "-Z"], "other"), (["-Z", "-N"], "w-0")],
)
def test_a_worker_has_the_name_it_registers_with(arguments, name):
    assert node_name(arguments, "w-0.workers.example") == name


def test_the_operator_reads_the_drain_of_a_leaving_worker_as_its_own():
    read = OurReason.read(drain_reason("4f1c-22"))

    assert read is not None
    assert (read.cause, read.pod_uid) == ("PodTerminating", "4f1c-22")


def running(proc, *processes: tuple[int, int, str]):
    """/proc with these: number, number of the parent, command line."""
    for pid, parent, line in processes:
        (proc / str(pid)).mkdir()
        (proc / str(pid) / "cmdline").write_text(line.replace(" ", "\0") + "\0")
        (proc / str(pid) / "stat").write_text(f"{pid} (a) b) S {parent} 1 1 0")
    (proc / "99").mkdir()  # Has just ended.
    return proc


def test_jobs_are_seen_by_their_steps(tmp_path):
    there = running(
        tmp_path, (1, 0, "tini"), (2, 1, "slurmstepd: [17.batch]"), (3, 1, "slurmstepd: [17.0]"), (4, 1, "slurmstepd: [9.extern]"), (5, 3, "sleep 600")
    )  # fmt: skip

    assert steps_here(there) == {"17", "9"}


def test_a_step_that_only_waits_for_slurmctld_is_no_work(tmp_path):
    there = running(
        tmp_path,
        (1, 0, "tini"), (2, 1, "slurmd -Z"),
        (10, 1, "slurmstepd: [17.batch]"), (11, 10, "bash script"), (12, 11, "python train.py"),
        (20, 1, "slurmstepd: [18.batch]"),
        (30, 1, "slurmstepd: [19.extern]"), (31, 30, "sleep 100000000"),
        (40, 1, "slurmstepd: [20.extern]"), (41, 40, "sleep 100000000"), (42, 40, "sshd: ada"),
        (50, 1, "slurmstepd: [21.0]"), (51, 50, "sleep 600"),
    )  # fmt: skip

    assert work_here(there) == {"17", "20", "21"}


def test_a_mounted_file_is_told_from_one_of_the_image():
    table = (
        "36 35 0:32 / / rw - overlay overlay rw\n37 36 8:1 /x /etc/ssh/sshd_config ro - ext4 /dev/vda rw\n"
    )

    assert ssh.is_mounted(Path("/etc/ssh/sshd_config"), table)
    assert not ssh.is_mounted(Path("/etc/sssd/sssd.conf"), table)


def test_pam_asks_slurm_before_a_rule_can_let_anybody_in_and_once_only():
    pam = "@include common-auth\n@include common-account\n@include common-session\n"
    once = ssh.with_adopt(pam, "action_unknown=allow")

    assert once.splitlines()[1:3] == [
        "account    required     pam_slurm_adopt.so action_unknown=allow",
        "@include common-account",
    ]
    assert ssh.with_adopt(once, "action_unknown=allow") == once


def test_supervisord_runs_what_is_asked_for():
    text = ssh.supervisor_config({"sshd": "sshd -o Banner=100%"})

    assert "[program:sshd]\ncommand=sshd -o Banner=100%%\n" in text
    assert "files=/etc/supervisor/conf.d/*.conf" in text


def test_quotes_in_a_password_stay_in_the_password():
    sql = database.account_sql(
        {"MARIADB_DATABASE": "acct`db", "MARIADB_USER": "o'hara", "MARIADB_PASSWORD": "a'b\\c"}
    )

    assert "CREATE DATABASE IF NOT EXISTS `acct``db`;" in sql
    assert "CREATE USER IF NOT EXISTS 'o''hara'@'%' IDENTIFIED BY 'a''b\\\\c';" in sql
    assert "GRANT ALL ON `acct``db`.* TO 'o''hara'@'%';" in sql


def test_no_account_is_made_unless_somebody_asks():
    assert database.account_sql({}) == ""


def test_an_interrupted_copy_of_the_database_is_made_again(tmp_path):
    template, data = tmp_path / "template", tmp_path / "data"
    (template / "mysql").mkdir(parents=True)
    (template / "mysql" / "user.frm").write_text("users")
    (template / "ibdata1").write_text("all of it")
    (data / "sys").mkdir(parents=True)
    (data / "ibdata1").write_text("half")

    database.prepare(data, template)

    assert (data / "ibdata1").read_text() == "all of it"
    assert (data / "mysql" / "user.frm").read_text() == "users"


def test_a_database_in_use_is_left_alone(tmp_path):
    template, data = tmp_path / "template", tmp_path / "data"
    template.mkdir()
    (template / "ibdata1").write_text("empty")
    (data / "mysql").mkdir(parents=True)
    (data / "ibdata1").write_text("years of accounting")

    database.prepare(data, template)

    assert (data / "ibdata1").read_text() == "years of accounting"
