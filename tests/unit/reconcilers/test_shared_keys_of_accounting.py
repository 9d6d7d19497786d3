"""Several Controllers on one Accounting: they have its keys, generated or named by it, and so does everybody else."""

from slurm_operator.api.schema import codec
from slurm_operator.api.shared import names
from slurm_operator.api.shared.meta import ObjectKey
from slurm_operator.api.slinky.token import Token
from slurm_operator.plan.actions import Create, GenerateSecret
from slurm_operator.reconcilers import nodeset
from slurm_operator.reconcilers.accounting.observe import observe as observe_accounting
from slurm_operator.reconcilers.accounting.status import key_complaints, missing_keys
from slurm_operator.reconcilers.controller import RECONCILER
from slurm_operator.reconcilers.controller.observe import observe
from slurm_operator.reconcilers.nodeset.creation.pod import volumes
from slurm_operator.reconcilers.nodeset.observe import observe as observe_nodeset
from slurm_operator.reconcilers.shared import dependencies
from slurm_operator.reconcilers.shared.slurm_servers import slurm_servers
from slurm_operator.reconcilers.token.observe import observe as observe_token
from testing.controller_play import NOON
from testing.controllers import KEY, NS, controller, secret, thing, world

NAMED = {"slurmKeyRef": {"name": "own", "key": "k"}, "jwtKeyRef": {"name": "own", "key": "j"}}
BOOKED = {"accountingRef": {"name": "books"}}
RESTAPI = thing("RestApi", "rest", {"controllerRef": {"name": "slurm"}})
CPU = thing("NodeSet", "cpu", {"controllerRef": {"name": "slurm"}})
OWN = secret("own", k="k1", j="j1")


def test_keys_that_an_accounting_names_are_those_of_its_controllers_and_their_clients():
    token = codec.read(
        Token,
        {"metadata": {"name": "robot", "namespace": NS}, "spec": {"controllerRef": {"name": "slurm"}, "username": "robot"}},
    )  # fmt: skip
    made = world(
        controller(BOOKED), thing("Accounting", "books", NAMED), RESTAPI, CPU, token, OWN, keys=False
    )

    seen = observe(KEY, made)
    assert (seen.slurm_key.ref.name, seen.slurm_key.ref.key, seen.slurm_key.digest) == ("own", "k", "k1")
    assert (seen.signing_key.ref.key, seen.signing_key.digest) == ("j", "j1")
    assert slurm_servers(made)[KEY].key.name == "own"
    assert observe_token(ObjectKey(NS, "robot"), made).key.name == "own"
    assert dependencies.controllers_slurm_key(made, seen.controller).name == "own"
    worker = observe_nodeset(ObjectKey(NS, "cpu"), made)
    [etc] = [one for one in volumes(worker.nodeset, worker.controller) if one["name"] == "slurm-etc"]
    assert [one["secret"]["name"] for one in etc["projected"]["sources"]] == ["own", "own-ring"]
    assert key_complaints(observe_accounting(ObjectKey(NS, "books"), made)) == []


def test_what_a_controller_names_itself_stands_and_is_complained_about():
    mine = {"slurmKeyRef": {"name": "mine", "key": "k"}}
    made = world(
        controller({**BOOKED, **mine}), thing("Accounting", "books", NAMED), OWN, secret("mine", k="k2")
    )

    assert observe(KEY, made).slurm_key.ref.name == "mine"
    assert observe(KEY, made).signing_key.ref.name == "own"
    [complaint] = key_complaints(observe_accounting(ObjectKey(NS, "books"), made))
    assert complaint.reason == "KeysDiffer"


def test_no_key_is_made_before_the_accounting_is_there_to_bring_one():
    def generated(*things):
        made = world(controller(BOOKED), *things, keys=False)
        plan = RECONCILER.decide(RECONCILER.observe(KEY, made), NOON)
        return [one.manifest["metadata"]["name"] for one in plan.actions() if isinstance(one, GenerateSecret)]

    assert generated() == []
    alone = world(controller(BOOKED), keys=False)
    told = RECONCILER.decide(RECONCILER.observe(KEY, alone), NOON).waits
    assert [one.reason for one in told] == ["AccountingNotFound"], "the one thing to fix"
    assert generated(thing("Accounting", "books")) == [
        names.auth_slurm_secret("books"),
        names.auth_jwt_secret("books"),
    ]


def test_the_key_of_a_slurmdbd_elsewhere_is_asked_for_not_made():
    """One of ours would lock slurmctld out there for ever, and nobody would say why."""
    where = {"external": True, "externalConfig": {"host": "dbd.example.org", "port": 6819}}
    made = world(controller(BOOKED), thing("Accounting", "books", where), keys=False)

    plan = RECONCILER.decide(RECONCILER.observe(KEY, made), NOON)

    generated = [
        one.manifest["metadata"]["name"] for one in plan.actions() if isinstance(one, GenerateSecret)
    ]
    assert generated == [names.auth_jwt_secret("books")]
    [wait] = [one for one in plan.waits if one.reason == "KeyMissing"]
    assert names.auth_slurm_secret("books") in wait.message
    [complaint] = missing_keys(observe_accounting(ObjectKey(NS, "books"), made))
    assert "dbd.example.org:6819" in complaint.message
    assert names.auth_slurm_secret("books") in complaint.message


def arriving(*things, **kwargs):
    """What comes of a NodeSet of two that has no pod yet."""
    made = world(controller(BOOKED), thing("NodeSet", "cpu", {"controllerRef": {"name": "slurm"}, "replicas": 2}, finalizers=[names.WORKERS_FINALIZER]), *things, keys=False, **kwargs)  # fmt: skip
    plan = nodeset.RECONCILER.decide(nodeset.RECONCILER.observe(ObjectKey(NS, "cpu"), made), NOON)
    pods = [
        one.manifest for one in plan.actions() if isinstance(one, Create) and one.manifest["kind"] == "Pod"
    ]
    named = {
        source["secret"]["name"]
        for pod in pods
        for volume in pod["spec"]["volumes"]
        for source in volume.get("projected", {}).get("sources", ())
    }
    return len(pods), named, [one.reason for one in plan.waits]


def test_workers_wait_for_the_accounting_that_says_which_key_they_have():
    """A pod made before would name a Secret that nobody ever makes, and wait for it for ever."""
    books = thing("Accounting", "books", NAMED)

    assert arriving() == (0, set(), ["AccountingNotFound"])
    assert arriving(books, OWN) == (2, {"own", "own-ring"}, [])
    kept = secret(names.auth_slurm_secret("books"), **{"slurm.key": "k1"})
    assert arriving(kept)[0] == 2, "an Accounting that is gone left its key, which daemons go on with"
    assert set(nodeset.booked_in(books, world(controller(BOOKED), CPU))) == {ObjectKey(NS, "cpu")}
