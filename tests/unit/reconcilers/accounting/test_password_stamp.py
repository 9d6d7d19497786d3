"""Pods of a database follow its password, and nothing that others can read follows from it."""

import json

import pytest

from slurm_operator import wire
from slurm_operator.api.shared import names
from slurm_operator.api.shared.meta import ObjectKey
from slurm_operator.api.slinky.accounting import Accounting
from slurm_operator.manifests import kinds
from slurm_operator.manifests.digests import digest
from slurm_operator.manifests.objects import Secret, Unread
from slurm_operator.plan.actions import Apply
from slurm_operator.reconcilers.accounting import RECONCILER, conf, database
from slurm_operator.reconcilers.accounting.password_stamp import DIGEST, STAMP
from testing.children import carried_out, put, read, running, secret, with_secrets
from testing.world import HandmadeWorld
from unit.reconcilers.accounting.test_accounting_decisions import KEY, NOW

ELSEWHERE = {
    "host": "db.example.org",
    "username": "slurm",
    "passwordKeyRef": {"name": "db", "key": "password"},
}
KINDS = {
    "external": ({"storageConfig": ELSEWHERE}, "db", ["slurm-accounting"]),
    "managed": ({"managed": {}}, "slurm-mariadb", ["slurm-accounting", "slurm-mariadb"]),
}
CONFIG = ObjectKey("ns", "slurm-accounting")
PASSWORD = "0123456789abcdef"  # As digests of values look.
ANOTHER = "fedcba9876543210"

every_kind = pytest.mark.parametrize(("spec", "holder", "workloads"), KINDS.values(), ids=KINDS)


def world(spec: dict, holder: str, password: str = PASSWORD) -> HandmadeWorld:
    there = HandmadeWorld(things=[read(Accounting, spec)])
    return with_secrets(there, secret(holder, password=password))


def decide(there: HandmadeWorld):
    return RECONCILER.decide(RECONCILER.observe(KEY, there), NOW)


def settled(there: HandmadeWorld) -> HandmadeWorld:
    for _ in range(6):
        carried_out(there, decide(there))
        for child in there.children_.get(kinds.STATEFUL_SET, []):
            running(there, kinds.STATEFUL_SET, child.metadata.name)
    return there


def templates(there: HandmadeWorld) -> dict[str, dict]:
    found = there.children_.get(kinds.STATEFUL_SET, [])
    return {child.metadata.name: child.body["spec"]["template"] for child in found}


def replaced(there: HandmadeWorld) -> list[str]:
    """Whose pods are made again until nothing is left to do."""
    before = templates(there)
    after = templates(settled(there))
    assert not any(isinstance(action, Apply) for action in decide(there).actions())
    return sorted(name for name in after if after[name] != before[name])


def made_by_earlier_version(spec: dict, holder: str) -> HandmadeWorld:
    """The same objects, with the digest itself in templates and nothing noted beside slurmdbd.conf."""
    there = world(spec, holder)
    noted = wire.replace(secret("slurm-accounting").metadata, annotations={STAMP: PASSWORD, DIGEST: PASSWORD})
    settled(with_secrets(there, Secret(metadata=noted, digests={})))
    config = there.named[Secret, CONFIG]
    notes = {key: text for key, text in config.metadata.annotations.items() if key not in (STAMP, DIGEST)}
    bare = wire.replace(config, metadata=wire.replace(config.metadata, annotations=notes))
    return with_secrets(there, bare)


def annotations(there: HandmadeWorld, workload: str) -> dict[str, str]:
    return there.child(kinds.STATEFUL_SET, "ns", workload).body["spec"]["template"]["metadata"]["annotations"]


@every_kind
def test_nothing_but_secrets_says_anything_about_the_password(spec, holder, workloads):
    one, other = settled(world(spec, holder)), settled(world(spec, holder, ANOTHER))

    for name in workloads:
        bodies = [there.child(kinds.STATEFUL_SET, "ns", name).body for there in (one, other)]
        assert bodies[0] == bodies[1]
        assert PASSWORD not in json.dumps(bodies[0])


@every_kind
def test_pods_are_replaced_with_each_password_and_then_no_more(spec, holder, workloads):
    there = settled(world(spec, holder))
    assert replaced(there) == []

    for password in (ANOTHER, PASSWORD):
        with_secrets(there, secret(holder, password=password))
        assert replaced(there) == workloads
        assert not [name for name in workloads if password in json.dumps(annotations(there, name))]


@every_kind
def test_a_digest_of_earlier_versions_stays_until_the_password_changes(spec, holder, workloads):
    there = made_by_earlier_version(spec, holder)
    seen = RECONCILER.observe(KEY, there)
    text = conf.slurmdbd_conf(seen.accounting, seen.address, seen.password)
    assert annotations(there, "slurm-accounting")[names.SLURMDBD_CONF_HASH] == digest({conf.FILE: text})

    assert replaced(there) == []
    with_secrets(there, secret(holder, password=ANOTHER))

    assert replaced(there) == workloads
    if len(workloads) > 1:
        assert annotations(there, "slurm-mariadb")[database.PASSWORD_HASH] not in (PASSWORD, ANOTHER)


@every_kind
def test_a_password_that_changes_with_the_operator_leaves_no_digest(spec, holder, workloads):
    there = made_by_earlier_version(spec, holder)
    with_secrets(there, secret(holder, password=ANOTHER))

    assert replaced(there) == workloads
    assert there.named[Secret, CONFIG].metadata.annotations[STAMP] not in (PASSWORD, ANOTHER)


@every_kind
def test_what_was_noted_is_lost_with_its_secret_and_nothing_is_replaced_again_and_again(
    spec, holder, workloads
):
    there = settled(world(spec, holder))
    with_secrets(there, secret(holder, password=ANOTHER))
    settled(there)
    del there.named[Secret, CONFIG]

    # The data of our own MariaDB know one password only; of another database nobody knows.
    assert replaced(there) == ([] if len(workloads) > 1 else workloads)
    assert replaced(there) == []


def test_mariadb_waits_until_its_new_stamp_is_noted_whatever_keeps_it_from_that():
    there = settled(world({"managed": {}}, "slurm-mariadb"))
    with_secrets(there, secret("slurm-mariadb", password=ANOTHER))
    for _ in range(5):
        for child in list(there.children_[kinds.STATEFUL_SET]):
            put(there, json.loads(json.dumps(child.body)))  # Its generation goes on meanwhile.
        applied = [action.manifest for action in decide(there).actions() if isinstance(action, Apply)]
        assert "slurm-mariadb" not in [one["metadata"]["name"] for one in applied]

    assert replaced(there) == ["slurm-accounting", "slurm-mariadb"]


@every_kind
def test_what_is_noted_and_cannot_be_read_replaces_nothing(spec, holder, workloads):
    there = settled(world(spec, holder))
    with_secrets(there, secret(holder, password=ANOTHER))
    there.with_secret(Unread(why="forbidden"), CONFIG)

    assert not [action for action in decide(there).actions() if isinstance(action, Apply)]
    assert [wait.reason for wait in decide(there).waits] == ["SecretUnread"]
