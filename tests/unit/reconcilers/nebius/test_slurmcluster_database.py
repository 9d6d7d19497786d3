"""Who makes the database of a SlurmCluster: the MariaDB operator where there is one, we ourselves, or nobody."""

import pytest

from slurm_operator import operator
from slurm_operator.api.nebius import SlurmCluster, names
from slurm_operator.api.shared.names import GROUP as SLINKY
from slurm_operator.api.slinky.accounting import Accounting
from slurm_operator.api.slinky.restapi import RestApi
from slurm_operator.manifests import kinds
from slurm_operator.manifests.objects import Secret
from slurm_operator.plan.actions import Apply, DeleteObject, GenerateSecret
from slurm_operator.runtime.settings import Settings
from testing import children
from testing.slurmclusters import carried_out, decide, manifest, report, saying, settled, world

NAME = "smallest"
THEIRS = {kinds.MARIADB, kinds.MARIADB_GRANT}
DATABASE = {
    "enabled": True, "image": "registry.example/mariadb:12", "storage": {"size": "1Gi", "ephemeral": False},
    "resources": {"cpu": 1, "memory": "4Gi"}, "replication": {"enabled": True}, "replicas": 2,
}  # fmt: skip


def cluster(**changes):
    accounting = {
        "enabled": True, "k8sNodeFilterName": "all", "slurmdbd": {"image": "registry.example/slurmdbd:1"},
        "mariadbOperator": {**DATABASE, **changes},
    }  # fmt: skip
    return manifest("SlurmCluster", NAME, spec__slurmNodes__accounting=accounting)


def there_is(*bodies, served=THEIRS):
    there = world(*(bodies or (cluster(),)))
    there.served |= set(served)
    return there


def accounting(there):
    return there.get(Accounting, "ns", NAME).spec


def mariadb(there):
    return there.child(kinds.MARIADB, "ns", names.database(NAME))


def test_the_mariadb_operator_makes_the_database_where_there_is_one():
    there = settled(there_is(), (SlurmCluster, NAME))
    spec = mariadb(there).body["spec"]

    assert accounting(there).managed is None
    assert accounting(there).storage_config.host == "smallest-acct-db.ns.svc"
    assert accounting(there).storage_config.username == spec["username"] == "slurm"
    password = accounting(there).storage_config.password_key_ref
    assert spec["passwordSecretKeyRef"] == {"name": password.name, "key": password.key}
    assert "innodb_buffer_pool_size=2048M" in spec["myCnf"]
    assert (spec["replicas"], spec["replication"]) == (2, {"enabled": True})
    grant = there.child(kinds.MARIADB_GRANT, "ns", names.database(NAME)).body["spec"]
    assert (grant["database"], grant["table"], grant["username"]) == ("slurm_acct_db", "*", "slurm")


@pytest.mark.parametrize("served", [(), (kinds.MARIADB,)], ids=["no kinds", "one of the two kinds"])
def test_we_make_it_ourselves_elsewhere(served):
    there = settled(there_is(served=served), (SlurmCluster, NAME))

    assert accounting(there).managed.storage.size == "1Gi"
    assert mariadb(there) is None
    told = report(there, SlurmCluster, NAME)["FieldsSupported"][2]
    for field in ("replicas", "replication", "storage"):
        assert f"mariadbOperator.{field}" in told


def test_a_database_of_ours_is_not_left_when_the_kinds_appear():
    there = settled(there_is(served=()), (SlurmCluster, NAME))
    there.served |= THEIRS
    settled(there, (SlurmCluster, NAME))

    assert accounting(there).managed is not None
    assert mariadb(there) is None


def test_a_database_is_not_left_when_its_kinds_cannot_be_seen():
    """Its records would stay behind in a database that nobody reads."""
    there = settled(there_is(), (SlurmCluster, NAME))
    there.served -= THEIRS
    there.children_[kinds.MARIADB] = []
    _, plan = decide(there, SlurmCluster, NAME)
    settled(there, (SlurmCluster, NAME))

    assert accounting(there).managed is None
    assert accounting(there).storage_config.host == "smallest-acct-db.ns.svc"
    made = [one.manifest["kind"] for one in plan.actions() if isinstance(one, Apply)]
    assert "MariaDB" not in made


def test_passwords_are_made_once_and_guarded_on_request():
    _, plan = decide(there_is(cluster(protectedSecret=True)), SlurmCluster, NAME)
    made = {
        one.manifest["metadata"]["name"]: one for one in plan.actions() if isinstance(one, GenerateSecret)
    }
    one = made[names.database_password(NAME)].manifest["metadata"]
    assert one["labels"][names.GUARD_LABEL] == "true"
    assert one["annotations"] == {names.GUARDING_CLUSTER[0]: NAME}
    assert "ownerReferences" not in one

    there = settled(there_is(), (SlurmCluster, NAME))
    assert [key for type_, key in there.named if type_ is Secret and "acct-db" in key.name]
    _, plan = decide(there, SlurmCluster, NAME)
    assert not [step for step in plan.actions() if isinstance(step, GenerateSecret)]


def test_the_passwords_of_a_database_that_is_there_are_used_on():
    there = there_is()
    body = {
        "apiVersion": "k8s.mariadb.com/v1alpha1", "kind": "MariaDB",
        "metadata": {"name": names.database(NAME), "namespace": "ns"},
        "spec": {"passwordSecretKeyRef": {"name": "mariadb-password", "key": "password"}},
    }  # fmt: skip
    children.put(there, body)
    settled(there, (SlurmCluster, NAME))

    assert accounting(there).storage_config.password_key_ref.name == "mariadb-password"
    assert mariadb(there).body["spec"]["passwordSecretKeyRef"]["name"] == "mariadb-password"


def says(there, kind, ready: str) -> None:
    child = there.child(kind, "ns", names.database(NAME))
    child.body["status"] = {"conditions": [{"type": "Ready", "status": ready}]}


def test_what_is_said_of_accounting():
    there = there_is()
    assert report(there, SlurmCluster, NAME)["AccountingAvailable"][:2] == ("Unknown", "SetUpCondition")
    settled(there, (SlurmCluster, NAME))
    saying(there, Accounting, NAME)
    told = []
    for kind in (None, kinds.MARIADB, kinds.MARIADB_GRANT):
        if kind is not None:
            says(there, kind, "True")
        told.append(report(there, SlurmCluster, NAME)["AccountingAvailable"])

    assert told == [
        ("False", "NotAvailable", "MariaDB is not ready"),
        ("False", "NotAvailable", "MariaDB Grant is not ready"),
        ("True", "Available", "Slurm accounting is available"),
    ]
    saying(there, Accounting, NAME, "False", "it starts.")
    last = report(there, SlurmCluster, NAME)["AccountingAvailable"]
    assert last == ("False", "NotAvailable", "Slurm accounting is not available yet: it starts.")


def test_without_accounting_its_database_leaves_after_slurmdbd():
    there = settled(there_is(), (SlurmCluster, NAME))
    off = manifest("SlurmCluster", NAME)
    there.things = [t for t in there.things if not isinstance(t, SlurmCluster)] + world(off).things
    deleted = []
    for _ in range(4):
        _, plan = decide(there, SlurmCluster, NAME)
        deleted.append(sorted(one.kind.kind for one in plan.actions() if isinstance(one, DeleteObject)))
        carried_out(there, plan)

    assert [one for one in deleted if one] == [["Accounting"], ["Grant", "MariaDB"]]


def test_rest_needs_no_accounting():
    rest = {
        "enabled": True,
        "size": 2,
        "k8sNodeFilterName": "all",
        "rest": {"image": "slurmrestd:1"},
        "threadCount": 8,
    }
    there = settled(
        there_is(manifest("SlurmCluster", NAME, spec__slurmNodes__rest=rest)), (SlurmCluster, NAME)
    )
    found = there.get(RestApi, "ns", NAME).spec

    assert found.replicas == 2
    assert found.slurmrestd["args"] == ["-t", "8", "--max-connections", "10"]
    assert there.get(Accounting, "ns", NAME) is None


@pytest.mark.parametrize("groups", [[SLINKY], [SLINKY, names.GROUP], [names.GROUP]])
def test_what_reconcilers_ask_for_is_watched_whichever_groups_are_on(groups):
    """A kind that nobody watches ends the operator when somebody asks for it."""
    made = operator.program(Settings(groups=tuple(groups)))
    watched = set(made.sources.children)

    assert set(made.sources.optional_children) <= watched
    for reconciler in made.reconcilers:
        assert set(reconciler.children) - {kinds.SECRET} <= watched, reconciler.name
