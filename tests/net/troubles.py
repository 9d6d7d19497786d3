"""Troubles that befall the later worlds: things are lost, cannot be read, or are deleted all at once."""

from collections.abc import Callable
from datetime import timedelta

from net.draws import NAMESPACE, ref
from net.stage import Stage
from simulation.apiserver import HUMAN, Object, text
from slurm_operator.api.schema.kind import Kind
from slurm_operator.api.shared import names
from slurm_operator.api.shared.meta import ObjectKey
from slurm_operator.api.slinky.accounting import Accounting
from slurm_operator.api.slinky.cluster import Cluster
from slurm_operator.api.slinky.controller import Controller
from slurm_operator.api.slinky.loginset import LoginSet
from slurm_operator.api.slinky.nodeset import NodeSet
from slurm_operator.api.slinky.restapi import RestApi
from slurm_operator.api.slinky.token import Token
from slurm_operator.manifests import kinds
from slurm_operator.reconcilers.accounting import check
from slurm_operator.slurm.snapshot import Unreachable

SHARE = 0.15
OURS = (Accounting, Controller, LoginSet, NodeSet, RestApi, Token, Cluster)
WORKLOADS = (kinds.STATEFUL_SET, kinds.DEPLOYMENT)
# What the look at a database ends with: its exit code, and what it says.
FOUND = (
    (0, "version\t11.4.2\ninnodb_lock_wait_timeout\t900"),
    (0, "version\t11.4.2\ninnodb_lock_wait_timeout\t50"),
    (0, "version\t11.4.2\ninnodb_snapshot_isolation\tON"),
    *((1, f"ERROR {number}: no") for number in (2003, 2005, 1045, 1044, 1040, 1290, 9)),
)


def befall(stage: Stage, *, is_end: bool) -> None:
    """A few of them, by chance; in the end somebody deletes everything."""
    for trouble in TROUBLES:
        if stage.chance.random() < SHARE:
            trouble(stage)
    if is_end:
        stage.chance.choice(ENDINGS)(stage)


def _unread(stage: Stage) -> None:
    """The API server keeps something from us that pods were made from."""
    workers = [pod["metadata"]["labels"] for pod in _pods(stage, "slurmd")]
    revisions = {f"{labels[names.APP_INSTANCE]}-{labels.get(names.LABEL_HASH)}" for labels in workers}
    stage.unread.update(ObjectKey(NAMESPACE, name) for name in {"slurm-config", *revisions})


def _handed_over(stage: Stage) -> None:
    """Workers turn out to be those of the Slinky operator, which notes revisions under another label."""

    def hand_over(pod: Object) -> None:
        labels = pod["metadata"]["labels"]
        labels[names.LABEL_HASH] = labels.pop(names.LABEL_REVISION, "r1")

    for pod in _pods(stage, "slurmd"):
        stage.server.change(kinds.POD, _key(pod), hand_over, HUMAN)


def _secret_lost(stage: Stage) -> None:
    secrets = stage.server.all(kinds.SECRET)
    if secrets:
        stage.server.delete(kinds.SECRET, _key(stage.chance.choice(secrets)), HUMAN)


def _release_deleted(stage: Stage) -> None:
    """With its Secrets, so that no daemon comes back that could be asked."""
    for kind in OURS:
        for found in stage.server.all(kind.KIND):
            stage.server.delete(kind.KIND, _key(found), HUMAN)
    for found in stage.server.all(kinds.SECRET):
        if not found["metadata"].get("ownerReferences"):
            stage.server.delete(kinds.SECRET, _key(found), HUMAN)
    _no_answer(stage)


def _namespace_deleted(stage: Stage) -> None:
    """Sometimes with a slurmctld that is elsewhere and goes on."""
    if stage.chance.random() < 0.5:
        _change_all(
            stage, Controller.KIND, external=True, externalConfig={"host": "ctl.example", "port": 6817}
        )
    for found in stage.server.all(kinds.NAMESPACE):
        ending = {"deletionTimestamp": text(stage.now), "finalizers": ["kubernetes"]}
        stage.server.change(
            kinds.NAMESPACE, _key(found), lambda it, ending=ending: it["metadata"].update(ending), HUMAN
        )
    for kind in (NodeSet.KIND, *stage.chance.sample(WORKLOADS, stage.chance.randint(0, 2))):
        for found in stage.server.all(kind):
            stage.server.delete(kind, _key(found), HUMAN)
    _no_answer(stage)


def _no_answer(stage: Stage) -> None:
    why = Unreachable(since=stage.now - timedelta(seconds=stage.chance.choice([5, 70])), why="no answer")
    stage.slurms[ObjectKey(NAMESPACE, "slurm")] = why


def _database_checked(stage: Stage) -> None:
    code, said = stage.chance.choice(FOUND)
    ended = {"exitCode": code, "message": said, "finishedAt": text(stage.now)}
    checked = {"name": check.CONTAINER, "state": {"terminated": ended}}

    def note(pod: Object) -> None:
        pod.setdefault("status", {})["initContainerStatuses"] = [checked]

    for pod in _pods(stage, "slurmdbd"):
        stage.server.change(kinds.POD, _key(pod), note, HUMAN)


def _other_key_set(stage: Stage) -> None:
    _change_all(stage, Accounting.KIND, jwksKeyRef=ref(stage.chance.choice(["files", "none"]), "jwks.json"))


def _other_service(stage: Stage) -> None:
    """A StatefulSet that somebody else has made differs in what cannot be changed in place."""
    _change_all(stage, kinds.STATEFUL_SET, serviceName="former")


def _other_partitions(stage: Stage) -> None:
    name = stage.chance.choice(["gpu", "cpu", "new"])
    _change_all(stage, Cluster.KIND, partitions=[{"name": name, "default": True}])


TROUBLES: tuple[Callable[[Stage], None], ...] = (
    _handed_over,
    _unread,
    _secret_lost,
    _database_checked,
    _other_key_set,
    _other_service,
    _other_partitions,
)
ENDINGS: tuple[Callable[[Stage], None], ...] = (_release_deleted, _namespace_deleted)


def _pods(stage: Stage, app: str) -> list[Object]:
    return [
        pod
        for pod in stage.server.all(kinds.POD)
        if pod["metadata"].get("labels", {}).get(names.APP_NAME) == app
    ]


def _change_all(stage: Stage, kind: Kind, **fields: object) -> None:
    for found in stage.server.all(kind):
        stage.server.change(kind, _key(found), lambda it: it["spec"].update(fields), HUMAN)


def _key(found: Object) -> ObjectKey:
    return ObjectKey(found["metadata"].get("namespace", ""), found["metadata"]["name"])
