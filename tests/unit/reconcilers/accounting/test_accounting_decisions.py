"""How slurmdbd and its database come up, what they wait for, and when an Accounting may go."""

from datetime import UTC, datetime

import pytest

from slurm_operator.api.shared.meta import ObjectKey
from slurm_operator.api.slinky.accounting import Accounting
from slurm_operator.api.slinky.controller import Controller
from slurm_operator.manifests import kinds
from slurm_operator.manifests.objects import Secret, Unread
from slurm_operator.plan.actions import Apply, DeleteObject, GenerateSecret, PatchObject
from slurm_operator.reconcilers.accounting import RECONCILER, of_controller, of_pod
from slurm_operator.reconcilers.shared.deletion_hold import FINALIZER, FORCE_DELETION
from slurm_operator.slurm.conf.lines import parse
from testing.children import carried_out, pod, read, report, running, secret, with_config, with_secrets
from testing.golden import assert_golden
from testing.world import HandmadeWorld

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
KEY = ObjectKey("ns", "slurm")
STORAGE = {"host": "db.example.org", "username": "slurm", "passwordKeyRef": {"name": "db", "key": "password"}}
EVERYTHING = {
    "slurmKeyRef": {"name": "keys", "key": "slurm"},
    "jwtKeyRef": {"name": "keys", "key": "jwt"},
    "jwksKeyRef": {"name": "jwks", "key": "keys"},
    "storageConfig": {**STORAGE, "port": 3307, "database": "books"},
    "extraConf": "DebugLevel=debug\nAuthInfo=cred_expire=60",
    "slurmdbd": {"image": "registry.example.org/slurmdbd:1", "resources": {"requests": {"cpu": "500m"}}, "startupProbe": {"failureThreshold": 9}},
    "template": {
        "metadata": {"labels": {"team": "hpc", "helm.sh/chart": "slurm-1"}, "annotations": {"example.org/scrape": "no"}},
        "spec": {"priorityClassName": "high", "initContainers": [{"name": "mine", "image": "busybox"}], "containers": [{"name": "beside", "image": "busybox"}]},
    },
    "service": {"port": 7000, "spec": {"type": "LoadBalancer"}},
}  # fmt: skip
MANAGED_EVERYTHING = {
    "managed": {
        "storage": {"size": "20Gi", "storageClassName": "fast"},
        "mariadb": {"image": "registry.example.org/mariadb:11", "resources": {"limits": {"memory": "4Gi"}}},
        "template": {"metadata": {"labels": {"team": "db"}}, "spec": {"nodeSelector": {"disk": "ssd"}}},
        "extraConf": "# more memory\ninnodb_buffer_pool_size = 2G\n\nskip-name-resolve\n",
    }
}
CONTROLLER = read(Controller, {"accountingRef": {"name": "slurm"}}, name="head")


def accounting(spec: dict, **meta) -> Accounting:
    return read(Accounting, spec, **meta)


def world(made: Accounting, *more) -> HandmadeWorld:
    """What users bring: keys, a password, a JWKS file."""
    there = HandmadeWorld(things=[made, *more])
    with_secrets(there, Secret(metadata=secret("keys").metadata, digests={"slurm": "s1", "jwt": "j1"}))
    return with_config(with_secrets(there, secret("db", password="p1")), "jwks", keys="{}")


def decide(there: HandmadeWorld):
    seen = RECONCILER.observe(KEY, there)
    return seen, RECONCILER.decide(seen, NOW)


def settled(there: HandmadeWorld, passes: int = 4) -> HandmadeWorld:
    """The world after some passes, with a MariaDB of our own ready as soon as it is made."""
    for _ in range(passes):
        carried_out(there, decide(there)[1])
        if there.child(kinds.STATEFUL_SET, "ns", "slurm-mariadb"):
            running(there, kinds.STATEFUL_SET, "slurm-mariadb")
    return there


def written(there: HandmadeWorld, passes: int = 4) -> list[dict]:
    """Every manifest in the order of its first writing; generated Secrets as they are described."""
    found = {}
    for _ in range(passes):
        _, plan = decide(there)
        for action in plan.actions():
            if isinstance(action, Apply | GenerateSecret):
                found.setdefault(
                    (action.manifest["kind"], action.manifest["metadata"]["name"]), action.manifest
                )
        settled(there, 1)
    return list(found.values())


@pytest.mark.parametrize(
    ("name", "spec"),
    [
        ("defaults", {"storageConfig": STORAGE}),
        ("everything", EVERYTHING),
        ("managed", {"managed": {}}),
        ("managed-everything", MANAGED_EVERYTHING),
        ("managed-existing-claim", {"managed": {"storage": {"existingClaim": "mine"}}}),
    ],
)
def test_the_objects_of_an_accounting(name, spec):
    assert_golden("accounting", name, written(world(accounting(spec))))


def test_an_external_slurmdbd_needs_no_objects():
    spec = {"external": True, "externalConfig": {"host": "dbd.example.org", "port": 6819}}
    seen, plan = decide(world(accounting(spec)))

    assert list(plan.actions()) == []
    told = report(RECONCILER, seen, plan)
    assert told["Ready"] == ("True", "External", "slurmdbd runs elsewhere, at dbd.example.org:6819.")
    assert told["endpoint"] == "dbd.example.org:6819"


def test_an_external_slurmdbd_has_a_key_that_only_the_user_can_bring():
    spec = {"external": True, "externalConfig": {"host": "dbd.example.org", "port": 6819}}
    there = world(accounting(spec, finalizers=[FINALIZER]), CONTROLLER)
    told = report(RECONCILER, *decide(there))
    assert told["Degraded"][:2] == ("True", "KeysMissing")
    assert "Secret 'slurm-auth-slurm' as 'slurm.key'" in told["Degraded"][2]

    with_secrets(there, secret("slurm-auth-slurm", slurm_key="k"))
    assert report(RECONCILER, *decide(there))["Degraded"][0] == "False"


@pytest.mark.parametrize(
    "spec", [{"storageConfig": STORAGE}, EVERYTHING, {"managed": {}}, MANAGED_EVERYTHING]
)
def test_what_is_there_is_not_written_again(spec):
    there = settled(world(accounting(spec)))

    assert list(decide(there)[1].actions()) == []


@pytest.mark.parametrize(
    ("spec", "gone", "reason", "word"),
    [
        pytest.param({}, None, "DatabaseNotConfigured", "spec.managed", id="no database"),
        pytest.param({"storageConfig": STORAGE}, "db", "SecretNotFound", "'db'", id="no password"),
        pytest.param(EVERYTHING, "keys", "SecretNotFound", "spec.slurmKeyRef", id="no key of the user's"),
        pytest.param({"storageConfig": {**STORAGE, "passwordKeyRef": {"name": "db", "key": "pw"}}}, None, "SecretEntryNotFound", "it has: password", id="a typo in the entry"),
        pytest.param({"storageConfig": STORAGE, "extraConf": "A=b\nDebugLevle=3"}, None, "ConfigRefused", "line 2", id="a line that would stop slurmdbd"),
        pytest.param({**EVERYTHING, "jwksKeyRef": {"name": "other", "key": "k"}}, None, "JwksNotFound", "ConfigMap other", id="no JWKS"),
    ],
)  # fmt: skip
def test_slurmdbd_is_not_started_before_it_has_all_it_needs(spec, gone, reason, word):
    there = world(accounting(spec))
    if gone:
        del there.named[Secret, ObjectKey("ns", gone)]
    settled(there)

    seen, plan = decide(there)

    assert there.child(kinds.STATEFUL_SET, "ns", "slurm-accounting") is None
    assert reason in [wait.reason for wait in plan.waits]
    status, told, message = report(RECONCILER, seen, plan)["Ready"]
    assert (status, told) == ("False", reason)
    assert word in message


def test_a_bad_line_leaves_the_running_slurmdbd_and_its_file_alone():
    there = running(
        settled(world(accounting({"storageConfig": STORAGE}))), kinds.STATEFUL_SET, "slurm-accounting"
    )
    there.things[0] = accounting({"storageConfig": STORAGE, "extraConf": "Nonsense=1"})

    seen, plan = decide(there)

    assert not [action for action in plan.actions() if isinstance(action, Apply)]
    told = report(RECONCILER, seen, plan)
    assert told["Ready"][0] == "True"
    assert told["Degraded"][:2] == ("True", "ConfigRefused")


def test_keys_are_generated_once_without_an_owner_and_only_if_not_named():
    _, plan = decide(world(accounting({"storageConfig": STORAGE})))
    made = {a.manifest["metadata"]["name"]: a for a in plan.actions() if isinstance(a, GenerateSecret)}

    assert {name: (a.entry, a.size) for name, a in made.items()} == {
        "slurm-auth-slurm": ("slurm.key", 1024), "slurm-auth-jwt": ("jwt.key", 32),
    }  # fmt: skip
    assert not any("ownerReferences" in a.manifest["metadata"] for a in made.values())
    assert not [
        a for a in decide(world(accounting(EVERYTHING)))[1].actions() if isinstance(a, GenerateSecret)
    ]

    unread = world(accounting({"storageConfig": STORAGE}))
    unread.with_secret(Unread(why="forbidden"), ObjectKey("ns", "slurm-auth-slurm"))
    names = [
        a.manifest["metadata"]["name"] for a in decide(unread)[1].actions() if isinstance(a, GenerateSecret)
    ]
    assert names == ["slurm-auth-jwt"]


def test_the_password_is_never_in_a_plan_and_a_new_one_replaces_the_pod():
    there = settled(world(accounting({"storageConfig": STORAGE})))
    with_secrets(there, secret("db", password="p2"))

    [config, workload] = decide(there)[1].actions()

    line = next(
        line for line in config.manifest["stringData"]["slurmdbd.conf"].splitlines() if "Pass" in line
    )
    assert line == "StoragePass=⟦secret ns/db/password p2 conf⟧"
    assert workload.manifest["kind"] == "StatefulSet"


def test_slurmdbd_conf_has_ours_then_theirs_then_the_union():
    there = settled(world(accounting(EVERYTHING)))
    [config] = [m for m in written(world(accounting(EVERYTHING))) if m["kind"] == "Secret"]
    conf = parse(config["stringData"]["slurmdbd.conf"], "slurmdbd.conf")

    assert there.named[Secret, ObjectKey("ns", "slurm-accounting")].digests.keys() == {"slurmdbd.conf"}
    assert conf.last("AuthInfo") == "cred_expire=60,use_client_ids"
    assert conf.last("AuthAltParameters") == "jwt_key=/etc/slurm/jwt.key,jwks=/etc/slurm/jwks.json"
    assert (conf.last("StorageHost"), conf.last("StoragePort"), conf.last("StorageLoc")) == (
        "db.example.org",
        "3307",
        "books",
    )
    assert conf.last("DebugLevel") == "debug"


def test_labels_of_the_template_reach_the_pods_but_a_chart_version_does_not():
    [workload] = [m for m in written(world(accounting(EVERYTHING))) if m["kind"] == "StatefulSet"]
    labels = workload["spec"]["template"]["metadata"]["labels"]

    assert labels["team"] == "hpc"
    assert "helm.sh/chart" not in labels


def test_slurmdbd_waits_for_its_own_mariadb_at_the_first_start_only():
    there = world(accounting({"managed": {}}))
    for _ in range(3):
        carried_out(there, decide(there)[1])
    seen, plan = decide(there)
    assert [wait.reason for wait in plan.waits] == ["DatabaseStarting"]
    told = report(RECONCILER, seen, plan)
    assert told["Ready"][2] == "waiting for MariaDB at slurm-mariadb.ns:3306: it is starting."
    assert told["Degraded"][0] == "False"

    settled(there)
    running(there, kinds.STATEFUL_SET, "slurm-accounting")
    running(there, kinds.STATEFUL_SET, "slurm-mariadb", ready=0)
    assert list(decide(there)[1].actions()) == []


@pytest.mark.parametrize(
    ("limits", "size"),
    [
        ({}, "4096M"),
        ({"memory": "2Gi"}, "1024M"),
        ({"memory": "64Gi"}, "4096M"),
        ({"memory": 1073741824}, "512M"),
    ],
)
def test_mariadb_takes_no_more_memory_than_it_may(limits, size):
    spec = {"managed": {"mariadb": {"resources": {"limits": limits}}}}
    [workload] = [
        m
        for m in written(world(accounting(spec)))
        if m["metadata"]["name"] == "slurm-mariadb" and m["kind"] == "StatefulSet"
    ]
    [mariadb] = workload["spec"]["template"]["spec"]["containers"]

    assert f"--innodb-buffer-pool-size={size}" in mariadb["args"]


def test_data_password_and_keys_stay_when_the_accounting_goes():
    kept = {
        (manifest["kind"], manifest["metadata"]["name"])
        for manifest in written(world(accounting({"managed": {}})))
        if "ownerReferences" not in manifest["metadata"]
    }

    assert kept == {
        ("PersistentVolumeClaim", "slurm-mariadb"), ("Secret", "slurm-mariadb"),
        ("Secret", "slurm-auth-slurm"), ("Secret", "slurm-auth-jwt"),
    }  # fmt: skip


def test_a_mariadb_that_was_replaced_is_deleted_but_not_its_data():
    there = settled(world(accounting({"managed": {}})))
    there.things[0] = accounting({"storageConfig": STORAGE})

    deleted = [action for action in decide(there)[1].actions() if isinstance(action, DeleteObject)]

    assert {(a.kind.kind, a.key.name) for a in deleted} == {
        ("Service", "slurm-mariadb"),
        ("StatefulSet", "slurm-mariadb"),
    }
    there.things[0] = accounting({})
    assert not [action for action in decide(there)[1].actions() if isinstance(action, DeleteObject)]


def test_a_slurmdbd_that_moved_out_leaves_nothing_behind():
    there = settled(world(accounting({"storageConfig": STORAGE})))
    there.things[0] = accounting({"external": True, "externalConfig": {"host": "x", "port": 1}})

    deleted = [action for action in decide(there)[1].actions() if isinstance(action, DeleteObject)]

    assert {(a.kind.kind, a.key.name) for a in deleted} == {
        (kind, "slurm-accounting") for kind in ("Service", "StatefulSet", "Secret")
    }


def checked(message: str, exit_code: int) -> HandmadeWorld:
    """slurmdbd's pod after the check of its database ended like this, and was started again if it failed."""
    there = running(
        settled(world(accounting({"storageConfig": STORAGE}))),
        kinds.STATEFUL_SET,
        "slurm-accounting",
        ready=int(not exit_code),
    )
    ended = {"terminated": {"exitCode": exit_code, "message": message}}
    states = {"state": ended} if not exit_code else {"state": {"running": {}}, "lastState": ended}
    there.things.append(
        pod(
            "slurm-accounting-0",
            "slurmdbd",
            "slurm",
            initContainerStatuses=[{"name": "check-database", **states}],
        )
    )
    return there


@pytest.mark.parametrize(
    ("said", "reason", "word"),
    [
        pytest.param("ERROR 2005 (HY000): Unknown server host 'db.example.org' (-2)", "DatabaseAddress", "is unknown. Correct the host", id="no such host"),
        pytest.param("ERROR 2002 (HY000): Can't connect to server on 'db' (115)", "DatabaseAddress", "does not answer", id="nobody there"),
        pytest.param("ERROR 1045 (28000): Access denied for user 'slurm'@'10.0.0.1' (using password: YES)", "DatabaseLogin", "password in Secret 'db'", id="wrong password"),
        pytest.param("ERROR 1130 (HY000): Host '10.0.0.1' is not allowed to connect", "DatabaseLogin", "'slurm'@'%'", id="not from here"),
        pytest.param("ERROR 1044 (42000) at line 1: Access denied for user 'slurm'@'%' to database 'slurm_acct_db'", "DatabaseGrant", "GRANT ALL ON `slurm_acct_db`.* TO 'slurm'@'%'", id="no right to the database"),
        pytest.param("ERROR 1370 (42000) at line 1: alter routine command denied", "DatabaseGrant", "GRANT ALL", id="no right to make procedures"),
        pytest.param("ERROR 9999: {odd} %s", "DatabaseUnusable", "{odd} %s", id="something else, in its own words"),
        pytest.param("", "DatabaseUnusable", "cannot be used", id="no last words"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_the_database_is_named(said, reason, word):
    told = report(RECONCILER, *decide(checked(said, 1)))

    assert told["Ready"][:2] == ("False", reason)
    assert told["Ready"][2].startswith("waiting for the database at db.example.org:3306: it ")
    assert word in told["Ready"][2]
    assert told["Degraded"][:2] == ("True", reason)
    assert told["database"] == {
        "address": "db.example.org:3306", "managed": False, "reachable": False, "version": "", "message": told["Ready"][2],
    }  # fmt: skip


def test_a_good_database_is_told_with_its_version_and_a_dangerous_setting_with_a_warning():
    told = report(
        RECONCILER,
        *decide(checked("slurmdbd\t26.05.5\ninnodb_lock_wait_timeout\t900\nversion\t11.8.9-MariaDB", 0)),
    )
    assert told["Ready"] == ("True", "Serving", "slurmdbd answers at slurm-accounting.ns:6819.")
    assert told["Degraded"][0] == "False"
    assert (told["database"]["reachable"], told["database"]["version"]) == (True, "11.8.9-MariaDB")
    assert told["slurmVersion"] == "26.05.5"

    told = report(RECONCILER, *decide(checked("innodb_snapshot_isolation\tON\nversion\t11.8", 0)))
    assert told["Ready"][0] == "True"
    assert told["Degraded"][:2] == ("True", "DatabaseSettings")
    assert "Set it to OFF" in told["Degraded"][2]


def test_a_controller_with_another_key_is_told_before_anybody_wonders():
    own = {"accountingRef": {"name": "slurm"}, "slurmKeyRef": {"name": "own", "key": "k"}}
    there = settled(
        world(
            accounting({"storageConfig": STORAGE}, finalizers=[FINALIZER]),
            CONTROLLER,
            read(Controller, own, name="odd"),
        )
    )
    running(there, kinds.STATEFUL_SET, "slurm-accounting")

    told = report(RECONCILER, *decide(there))

    assert told["controllers"] == ["head", "odd"]
    assert told["Ready"][0] == "True"
    assert told["Degraded"][:2] == ("True", "KeysDiffer")
    assert "Controller 'odd' uses the Slurm key in Secret 'own'" in told["Degraded"][2]


GOING = {"deletionTimestamp": "2026-01-01T11:00:00Z", "finalizers": [FINALIZER]}


@pytest.mark.parametrize(
    ("made", "more", "finalizers", "waits"),
    [
        pytest.param(accounting({"managed": {}}), (), None, False, id="nobody needs it"),
        pytest.param(accounting({"managed": {}}), (CONTROLLER,), [FINALIZER], False, id="a Controller needs it"),
        pytest.param(accounting({"managed": {}}, **GOING), (CONTROLLER,), None, True, id="deleted: it waits"),
        pytest.param(accounting({"managed": {}}, **GOING, annotations={FORCE_DELETION: "true"}), (CONTROLLER,), [], False, id="deleted by force"),
        pytest.param(accounting({"managed": {}}, **GOING), (), [], False, id="deleted, and the last Controller is gone"),
    ],
)  # fmt: skip
def test_an_accounting_stays_while_controllers_depend_on_it(made, more, finalizers, waits):
    seen, plan = decide(world(made, *more))

    patches = [action for action in plan.actions() if isinstance(action, PatchObject)]
    assert [patch.operations[-1]["value"] for patch in patches] == (
        [] if finalizers is None else [finalizers]
    )
    assert ["InUse"] * waits == [wait.reason for wait in plan.waits if wait.reason == "InUse"]
    if made.metadata.is_terminating and not waits:
        assert not [action for action in plan.actions() if isinstance(action, Apply | GenerateSecret)]
    if waits:
        assert "Controller head" in report(RECONCILER, seen, plan)["Progressing"][2]


@pytest.mark.parametrize(
    ("lost", "comes"),
    [
        pytest.param((), set(), id="what runs stays as it is"),
        pytest.param((kinds.STATEFUL_SET, "slurm-mariadb"), {"slurm-mariadb"}, id="its database"),
        pytest.param((kinds.STATEFUL_SET, "slurm-accounting"), {"slurm-accounting"}, id="slurmdbd"),
        pytest.param((kinds.SERVICE, "slurm-accounting"), {"slurm-accounting"}, id="its Service"),
    ],
)
def test_one_that_goes_later_gets_what_it_lacks_and_no_other_change(lost, comes):
    there = settled(world(accounting({"managed": {}}), CONTROLLER))
    changed = {"managed": {"mariadb": {"image": "registry.example.org/mariadb:12"}}}
    there.things = [accounting(changed, **GOING), CONTROLLER]
    for kind, children in there.children_.items():
        there.children_[kind] = [one for one in children if (kind, one.metadata.name) != lost]

    _, plan = decide(there)

    assert {one.manifest["metadata"]["name"] for one in plan.actions() if isinstance(one, Apply)} == comes


def test_one_that_is_deleted_before_it_was_made_is_made_while_it_is_needed():
    there = settled(world(accounting({"managed": {}}, **GOING), CONTROLLER))

    assert there.child(kinds.STATEFUL_SET, "ns", "slurm-accounting") is not None


def test_who_wakes_an_accounting():
    assert list(of_controller(CONTROLLER, HandmadeWorld())) == [KEY]
    assert list(of_controller(read(Controller, {}), HandmadeWorld())) == []
    assert list(of_pod(pod("p", "mariadb", "slurm"), HandmadeWorld())) == [KEY]
    assert list(of_pod(pod("p", "slurmd", "slurm"), HandmadeWorld())) == []
