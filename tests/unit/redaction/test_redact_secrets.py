"""Planted secrets: in environments, arguments, annotations, files and logs. None comes through."""

import base64
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm_operator.redaction.names import REDACTED, speaks_of_secret
from slurm_operator.redaction.redactor import Redactor, secret_values

JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdW4iOiJzbHVybSJ9.c2lnbmF0dXJlLXBsYW50ZWQ"
PEM = "-----BEGIN RSA PRIVATE KEY-----\nMIIEplanted\nplantedtoo\n-----END RSA PRIVATE KEY-----"


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("StoragePass=hunter2", "StoragePass="),
        ("StoragePass = 'hunter2 and more'", "StoragePass = "),
        ("storagepass=hunter2  # of the database", "storagepass="),
        ("JobCompPass=hunter2\nJobCompUser=slurm", "JobCompUser=slurm"),
        ("AccountingStoragePass: hunter2", "AccountingStoragePass: "),
        ("ldap_default_authtok = hunter2", "ldap_default_authtok = "),
        ('{"password": "hunter2", "user": "ada"}', '"user": "ada"'),
        ("connecting to mysql://slurm:hunter2@mariadb.db:3306/acct", "@mariadb.db:3306/acct"),
        ("SLURM_JWT=hunter2hunter2", "SLURM_JWT="),
        ("Authorization: Bearer hunter2hunter2", "Authorization: "),
        ("curl -H 'X-SLURM-USER-TOKEN: hunter2'", "curl -H"),
        ("api_key=hunter2hunter2hunter2", "api_key="),
    ],
)
def test_a_secret_in_a_line_goes_and_the_rest_of_the_line_stays(text, kept):
    redacted = Redactor().text(text)

    assert "hunter2" not in redacted
    assert REDACTED in redacted
    assert kept in redacted


@pytest.mark.parametrize(
    "text",
    [
        "AuthAltParameters=jwt_key=/etc/slurm/jwt.key",
        "AuthType=auth/slurm\nCredType=cred/slurm",
        "SlurmctldParameters=enable_configless,config_digest=0123456789abcdef",
        "PartitionName=all Nodes=ALL Default=YES State=UP MaxTime=UNLIMITED",
        "Passing 3 jobs to the scheduler: passed=3",
        "image: ghcr.io/slinkyproject/slurmd@sha256:0123456789abcdef0123456789abcdef",
        "GresTypes=gpu KeepAliveTime=30",
        "[2026-11-16T02:42:27.707] rest_auth/jwt: slurm_rest_auth_p_authenticate: attempting it",
    ],
)
def test_what_is_no_secret_stays_as_it_is(text):
    assert Redactor().text(text) == text


def test_tokens_and_keys_go_wherever_they_stand():
    redacted = Redactor().text(f"got {JWT} and\n{PEM}\nthe end")

    assert "planted" not in redacted
    assert JWT.split(".")[1] not in redacted
    assert redacted.endswith("the end")


def planted() -> dict:
    container = {
        "name": "slurmd",
        "image": "slurmd:26.05",
        "args": ["--conf-server", "demo:6817", "--password", "planted1", "--token=planted2", "-v", "PGPASSWORD=planted3"],
        "env": [
            {"name": "INNOCENT", "value": "planted4"},
            {"name": "SOCKET", "value": "/var/log/slurm/slurmd.log"},
            {"name": "SLURM_JWT", "value": "daemon"},
            {"name": "FROM", "valueFrom": {"secretKeyRef": {"name": "db", "key": "a-rather-long-password-entry"}}},
        ],
    }  # fmt: skip
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "demo-cpu-0",
            "managedFields": [{"manager": "kubectl"}],
            "annotations": {
                "kubectl.kubernetes.io/last-applied-configuration": '{"spec":{"x":"planted5"}}',
                "example.org/vault-token": "planted6",
                "example.org/dsn": "postgres://ada:planted7@db/acct",
                "slinky.slurm.net/jwt-key-hash": "0123456789abcdef",
                "slinky.slurm.net/database-password-hash": "fedcba9876543210",
            },
        },
        "spec": {"containers": [container], "volumes": [{"secret": {"secretName": "demo-auth-slurm"}}]},
    }


def test_an_object_keeps_its_shape_and_loses_its_secrets():
    redacted = Redactor().manifest(planted())

    text = json.dumps(redacted)
    assert "planted" not in text
    assert "fedcba9876543210" not in text
    assert "managedFields" not in text
    [container] = redacted["spec"]["containers"]
    assert container["args"][:2] == ["--conf-server", "demo:6817"]
    assert container["env"][1:] == planted()["spec"]["containers"][0]["env"][1:]
    assert redacted["spec"]["volumes"] == planted()["spec"]["volumes"]
    assert redacted["metadata"]["annotations"]["slinky.slurm.net/jwt-key-hash"] == "0123456789abcdef"


def test_a_stamp_of_a_password_stays_because_it_follows_from_none():
    stamped = {"slinky.slurm.net/database-password-hash": "0-1", "example.org/password-hash": "0-1"}

    redacted = Redactor().manifest({"kind": "Pod", "metadata": {"name": "x", "annotations": stamped}})

    assert redacted["metadata"]["annotations"] == {
        "slinky.slurm.net/database-password-hash": "0-1",
        "example.org/password-hash": REDACTED,
    }


def test_config_files_in_objects_are_redacted_line_by_line():
    files = {"slurmdbd.conf": "DbdPort=6819\nStoragePass=planted\nStorageHost=mariadb\n"}

    redacted = Redactor().manifest({"kind": "ConfigMap", "metadata": {"name": "x"}, "data": files})

    assert redacted["data"]["slurmdbd.conf"] == f"DbdPort=6819\nStoragePass={REDACTED}\nStorageHost=mariadb\n"


def test_a_secret_is_refused_altogether():
    with pytest.raises(ValueError, match="no place"):
        Redactor().manifest({"kind": "Secret", "metadata": {"name": "x"}, "data": {"key": "cGxhbnRlZA=="}})


SECRET = {"password": b"correct horse\n", "username": b"slurm-user", "sssd.conf": b"[domain]\nldap_default_authtok = battery\n"}  # fmt: skip


def test_known_secrets_go_under_any_name_and_in_base64_and_user_names_stay():
    redactor = Redactor([SECRET])
    text = f"slurm-user logs in with correct horse ({base64.b64encode(b'correct horse').decode()}) or battery"

    assert redactor.text(text) == f"slurm-user logs in with {REDACTED} ({REDACTED}) or {REDACTED}"


def test_what_of_a_secret_is_secret():
    assert set(secret_values(SECRET)) == {b"correct horse\n", SECRET["sssd.conf"], b"battery"}


@given(
    st.text(st.characters(codec="ascii", categories=("L", "N")), min_size=6, max_size=40),
    st.text(max_size=60),
)
def test_no_text_around_a_known_secret_brings_it_through(secret, around):
    redactor = Redactor([{"entry": secret.encode()}])

    text = redactor.text(f"{around}{secret}{around}")

    assert secret not in text.replace(REDACTED, "")


@given(st.text(max_size=200))
def test_redacting_twice_changes_nothing_more(text):
    once = Redactor().text(text)

    assert Redactor().text(once) == once


@pytest.mark.parametrize(
    ("name", "value", "is_secret"),
    [
        ("password", "x", True),
        ("passwordKeyRef", "db", False),
        ("secretName", "db", False),
        ("key", "slurm.key.of.the.cluster", False),
        ("ssh_host_key", "AAAAB3NzaC1yc2EAAAADAQAB", True),
        ("JwtKey", "/etc/slurm/jwt.key", False),
        ("password", "/etc/looks/like/a/path", True),
        ("SackKey", "/etc/slurm/slurm.key", False),
        ("passed", "3", False),
    ],
)
def test_names_speak_of_secrets(name, value, is_secret):
    assert speaks_of_secret(name, value) is is_secret
