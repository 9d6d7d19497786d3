"""`doctor --from soperator` and `--to soperator`: what they say of clusters as Soperator or we leave them."""

import copy

import pytest

from slurm_operator import wire
from slurm_operator.api import nebius
from slurm_operator.api.nebius import names as nebius_names
from slurm_operator.api.schema.crd import crd
from slurm_operator.api.shared import names
from slurm_operator.api.slinky.controller import Controller
from slurm_operator.api.slinky.loginset import LoginSet
from slurm_operator.api.slinky.nodeset import NodeSet as WorkerPart
from slurm_operator.insight.doctor.finding import Finding, Level
from slurm_operator.insight.doctor.helm_releases import Release
from slurm_operator.insight.doctor.hooks import Hook
from slurm_operator.insight.doctor.soperator import facts, way_back
from slurm_operator.insight.doctor.soperator.facts import KINDS, KRUISE_CRD, Found, Lead
from slurm_operator.insight.doctor.soperator.way_over import findings
from slurm_operator.insight.doctor.way_back import Installed, Part, leftovers, without
from slurm_operator.kube.presence import IDENTITY
from slurm_operator.manifests import kinds
from slurm_operator.manifests.compare.differences import APPLIED_DIGEST
from slurm_operator.manifests.objects import Unread
from testing import soperator
from testing.slurmclusters import with_our_images
from testing.texts import assert_text
from unit.kube.fake_api_server import Answer, FakeApi

LAB = "lab"


def there(body: dict, **meta) -> dict:
    """As an API server has it."""
    return {**body, "metadata": {"namespace": LAB, **body["metadata"], "uid": "u", **meta}}


CLUSTER, WORKERS = there(soperator.cluster()), there(soperator.workers())
OWNERS = soperator.owner(CLUSTER, "u-c"), soperator.owner(WORKERS, "u-w")
SETS = [there(one) for one in soperator.stateful_sets(*OWNERS)]
AROUND = [there(one) for one in soperator.around(*OWNERS)]
RELEASED = {"annotations": {"meta.helm.sh/release-name": "soperator"}}


def of_kind(kind: str) -> tuple[dict, ...]:
    return tuple(one for one in AROUND if one["kind"] == kind)


def definitions(*names_: str) -> dict:
    made = {
        one["metadata"]["name"]: {**one, "metadata": {**one["metadata"], **RELEASED}}
        for one in map(crd, KINDS.models)
    }
    return made | {name: {"metadata": {"name": name}, "spec": {}} for name in names_}


def job(succeeded: int = 1) -> dict:
    return {**there(soperator.populated(OWNERS[0])), "status": {"succeeded": succeeded}}


HOOK = Hook(
    plural="validatingwebhookconfigurations", name=soperator.webhook()["metadata"]["name"], is_blocking=True,
    service="soperator-system/soperator-webhook-service", is_served=True, is_ours=False,
)  # fmt: skip
LIVING = Found(
    programs=(soperator.manager(),),
    leads=(Lead(place=f"soperator-system/{nebius_names.SOPERATOR_LEASE}", holder="soperator-manager-0_x", is_renewed=True),),
    crds=definitions(KRUISE_CRD),
    hooks=(HOOK,),
    certificates=("-n soperator-system certificates.cert-manager.io/soperator-serving-cert",),
    released=(
        Release(name="soperator", namespace="soperator-system", chart="soperator", version="5.0.0"),
        Release(name="slurm", namespace=LAB, chart="slurm-cluster", version="5.0.0"),
        Release(name="other", namespace=LAB, chart="nginx", version="1"),
    ),
    flux=(
        {"metadata": {"name": "soperator", "namespace": "flux-system"}, "spec": {"chart": {"spec": {"chart": "soperator"}}}},
        {"metadata": {"name": "nodesets", "namespace": "flux-system"}, "spec": {"chart": {"spec": {"chart": "nodesets"}}}},
    ),
    objects={one.kind.kind: [] for one in KINDS} | {"SlurmCluster": [CLUSTER], "NodeSet": [WORKERS]},
    stateful_sets=tuple(SETS),
    deployments=of_kind("Deployment"),
    pods=tuple(
        there(one) for one in soperator.pods({one["metadata"]["name"]: soperator.owner(one, "u") for one in SETS})
    ),
    jobs=(job(),),
    claims=of_kind("PersistentVolumeClaim"),
    secrets={f"{LAB}/{name}": (entry,) for name, entry in soperator.SECRETS.items()},
)  # fmt: skip


def said(found: Found, check: str) -> list[Finding]:
    return [one for one in findings(found) if one.check == check]


def steps(found: Found) -> list[str]:
    return [one.remedy for one in said(found, "Order") if one.message.startswith("Step")]


def plain(found: list[Finding]) -> str:
    return "".join(
        f"{one.level:<4} {one.check}: {one.message}\n" + (f"     -> {one.remedy}\n" if one.remedy else "")
        for one in found
    )


def test_a_living_installation_is_told_whole():
    assert not any(one.level is Level.FAIL for one in findings(LIVING))
    assert_text("doctor/from-soperator.txt", plain(findings(LIVING)))


def test_the_manager_is_stopped_before_its_webhook_goes_and_that_before_anything_is_deleted():
    every = steps(LIVING)
    of_jobs = [number for number, step in enumerate(every) if "annotate" in step or "Or without" in step]
    commands = [*every[: of_jobs[0]], *every[of_jobs[1] :]]  # Without taking workers over.
    order = [
        "scale deployment/soperator-manager",
        "delete validatingwebhookconfiguration",
        "squeue -h -t",
        "delete statefulsets.apps.kruise.io cpu smallest-controller smallest-login",
        "delete deployment",
        "wait --for=condition=Ready",
    ]
    found = [next(number for number, step in enumerate(commands) if wanted in step) for wanted in order]
    assert found == sorted(found)
    assert "-n soperator-system" in commands[found[0]]
    assert f"-n {LAB}" in commands[found[3]]


def test_workers_are_taken_over_before_anything_of_their_cluster_is_deleted():
    commands = steps(LIVING)
    order = [
        f"annotate slurmclusters.slurm.nebius.ai smallest {nebius_names.TAKE_OVER}=true",
        "jsonpath",
        "delete deployment",
        "delete statefulsets.apps.kruise.io smallest-controller`",
        "delete statefulsets.apps.kruise.io smallest-login`",
        "wait --for=condition=Ready",
        "Or without taking workers",
        "squeue -h -t",
    ]
    assert len(order) == 8
    found = [next(number for number, step in enumerate(commands) if wanted in step) for wanted in order]
    assert found == sorted(found)
    assert "restarts once" in commands[found[3]]


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        pytest.param({"ephemeralNodes": True}, "ephemeralNodes", id="Slurm decides which of them run"),
        pytest.param({"slurmd": {"image": {"repository": "ghcr.io/slinkyproject/slurmd", "tag": "26.05"}}}, "images of this", id="they are to have our images"),
    ],
)  # fmt: skip
def test_where_workers_cannot_be_taken_over_jobs_end_first(spec, says):
    living = LIVING.objects["NodeSet"][0]
    changed = {**living, "spec": {**living["spec"], **spec}}
    found = wire.replace(LIVING, objects={**LIVING.objects, "NodeSet": [changed]})
    assert not [step for step in steps(found) if "annotate" in step]
    [told] = said(found, "Takeover")
    assert says in told.message


def test_workers_that_soperator_is_replacing_are_named_with_the_way_out():
    assert said(LIVING, "Updates") == []
    first, *others = LIVING.pods
    phase = {**first["metadata"]["labels"], names.UPDATE_PHASE: "stopping"}
    updated = {**first, "metadata": {**first["metadata"], "labels": phase}}

    [told] = said(wire.replace(LIVING, pods=(updated, *others)), "Updates")

    assert told.level is Level.WARN
    assert f"Soperator is replacing {first['metadata']['name']}." in told.message
    assert "scontrol cancel_reboot" in told.remedy


def test_nothing_but_what_makes_pods_is_ever_deleted():
    deleted = " ".join(step for step in steps(LIVING) if " delete " in step)
    for name in (
        *soperator.SECRETS,
        *soperator.SERVICES,
        soperator.CLAIM,
        "crd",
        "slurmcluster",
        "configmap",
    ):
        assert name not in deleted


def test_of_older_releases_slurmctld_is_asked_under_its_own_name():
    old = {**SETS[0], "metadata": {**SETS[0]["metadata"], "name": "controller"}}
    assert any(
        "exec controller-0 -c slurmctld" in step for step in steps(wire.replace(LIVING, stateful_sets=(old,)))
    )


def test_what_is_done_is_not_among_the_steps():
    done = wire.replace(
        LIVING, programs=(soperator.manager(replicas=0),), hooks=(), stateful_sets=(), pods=(), deployments=()
    )
    assert not [step for step in steps(done) if "scale" in step or "delete" in step or "squeue" in step]
    [finding] = said(done, "Workloads")
    assert (finding.level, "nothing of Soperator's runs it" in finding.message) == (Level.OK, True)


def test_deployments_of_ours_are_not_taken_for_soperators():
    ours = tuple(
        {**one, "metadata": {**one["metadata"], "annotations": {APPLIED_DIGEST: "d"}}}
        for one in LIVING.deployments
    )
    assert not [step for step in steps(wire.replace(LIVING, deployments=ours)) if "delete deployment" in step]


@pytest.mark.parametrize(
    ("spec", "jobs", "level", "says"),
    [
        pytest.param({}, (job(),), Level.OK, "stays as it is", id="populated"),
        pytest.param({}, (job(0),), Level.WARN, "has not succeeded", id="not populated"),
        pytest.param({}, (), Level.WARN, "is gone", id="no Job"),
        pytest.param(
            {"spec__populateJail__overwrite": True},
            (),
            Level.FAIL,
            "would be overwritten",
            id="no Job, and it overwrites",
        ),
        pytest.param(
            {"spec__populateJail__overwrite": True},
            (job(),),
            Level.OK,
            "stays as it is",
            id="has overwritten",
        ),
        pytest.param(
            {"spec__populateJail__overwrite": True, "spec__maintenance": "skipPopulateJail"},
            (),
            Level.OK,
            "stays as it is",
            id="skipped",
        ),
    ],
)
def test_a_root_that_would_be_overwritten_is_found_before_the_move(spec, jobs, level, says):
    cluster = there(soperator.cluster(**spec))
    found = wire.replace(LIVING, objects={**LIVING.objects, "SlurmCluster": [cluster]}, jobs=jobs)
    [finding] = said(found, "Shared root")
    assert (finding.level, says in finding.message) == (level, True)


SPOOL = "spec__slurmNodes__controller__volumes__spool"
SOURCES = "spec__volumeSources"


@pytest.mark.parametrize(
    ("source", "claims", "level", "says"),
    [
        pytest.param(None, LIVING.claims, Level.OK, soperator.CLAIM, id="a claim by a template"),
        pytest.param(None, (), Level.NOTE, "no PersistentVolumeClaim", id="no claim"),
        pytest.param(
            {"persistentVolumeClaim": {"claimName": "spool"}},
            (),
            Level.OK,
            "goes on with its volume",
            id="a claim of the user's",
        ),
        pytest.param(
            {"emptyDir": {}}, (), Level.WARN, "does not outlive its pod", id="a volume that ends with the pod"
        ),
    ],
)
def test_whether_the_queue_stays_depends_on_slurmctlds_volume(source, claims, level, says):
    cluster = copy.deepcopy(CLUSTER)
    if source is not None:
        cluster["spec"]["volumeSources"].append({"name": "state", **source})
        cluster["spec"]["slurmNodes"]["controller"]["volumes"]["spool"] = {"volumeSourceName": "state"}
    found = wire.replace(LIVING, objects={**LIVING.objects, "SlurmCluster": [cluster]}, claims=claims)
    [finding] = said(found, "State")
    assert (finding.level, says in finding.message) == (level, True)


@pytest.mark.parametrize(("policy", "is_told"), [("Delete", True), ("Retain", False)])
def test_volumes_of_workers_that_go_with_their_statefulset_are_told(policy, is_told):
    workers = copy.deepcopy(WORKERS)
    volumes = workers["spec"]["slurmd"]["volumes"]
    volumes["jailSubMounts"] = [{"name": "scratch", "mountPath": "/scratch", "volumeClaimTemplateSpec": {}}]
    volumes["persistentVolumeClaimRetentionPolicy"] = {"whenDeleted": policy}
    told = said(wire.replace(LIVING, objects={**LIVING.objects, "NodeSet": [workers]}), "Volumes")
    assert bool(told) is is_told


def test_a_missing_key_is_told():
    told = said(wire.replace(LIVING, secrets={}), "Secrets")
    assert [one.level for one in told] == [Level.WARN]


@pytest.mark.parametrize(
    ("lead", "level"),
    [
        (Lead(place="x/y", holder="soperator-0_1", is_renewed=True), Level.NOTE),
        (Lead(place="x/y", holder="soperator-0_1", is_renewed=False), Level.OK),
        (Lead(place="x/y", holder=f"{IDENTITY}pod", is_renewed=True), Level.OK),
    ],
    ids=["Soperator", "left behind", "our operator"],
)
def test_who_holds_the_lease_is_told(lead, level):
    [finding] = said(wire.replace(LIVING, leads=(lead,)), "Lease")
    assert finding.level == level


@pytest.mark.parametrize("field", list(Found.__struct_fields__))
def test_what_may_not_be_looked_at_is_said_and_hides_nothing_else(field):
    told = findings(wire.replace(LIVING, **{field: Unread(why="list x is not allowed to you")}))
    assert [one.is_unread for one in told].count(True) == 1
    assert len(told) > 8


def test_a_spec_that_we_would_refuse_is_told_before_the_move():
    cluster = there(
        soperator.cluster(spec__partitionConfiguration={"configType": "structured", "partitions": []})
    )
    told = said(wire.replace(LIVING, objects={**LIVING.objects, "SlurmCluster": [cluster]}), "Objects")
    assert Level.FAIL in [one.level for one in told]


def test_fields_without_an_effect_are_named():
    cluster = there(soperator.cluster(spec__slurmNodes__exporter__size=3))
    told = said(wire.replace(LIVING, objects={**LIVING.objects, "SlurmCluster": [cluster]}), "Objects")
    assert [one for one in told if "no effect: slurmNodes.exporter.size" in one.message]


# The way back


def part(kind, name: str, owner: dict, **spec) -> dict:
    meta = {
        "name": name,
        "namespace": LAB,
        "ownerReferences": [owner],
        "finalizers": [names.IN_USE_FINALIZER],
    }
    return {"metadata": meta, "spec": spec}


def given_back(cluster: dict, **persistence) -> way_back.Found:
    of_cluster, of_workers = OWNERS
    ref = {"controllerRef": {"name": soperator.CLUSTER}}
    return way_back.Found(
        installed=Installed(
            objects={
                nebius.SlurmCluster.KIND: [cluster],
                WorkerPart.KIND: [part(WorkerPart, "cpu", of_workers, **ref)],
                LoginSet.KIND: [part(LoginSet, "smallest-login", of_cluster, **ref)],
                Controller.KIND: [part(Controller, "smallest", of_cluster, persistence=persistence)],
            }
        )
    )


OURS = {**CLUSTER, "metadata": {**CLUSTER["metadata"], "finalizers": [names.WORKERS_FINALIZER]}}


def test_the_way_back_is_told_whole():
    told = way_back.findings(given_back(OURS, existingClaim=soperator.CLAIM))
    assert not any(one.level is Level.FAIL for one in told)
    assert_text("doctor/to-soperator.txt", plain(told))


def test_workers_leave_before_our_operator_stops_and_parts_go_after_it():
    told = way_back.findings(given_back(OURS, existingClaim=soperator.CLAIM))
    commands = [one.remedy for one in told if one.message.startswith("Step")]
    order = [
        '"maintenance":"downscale"',
        "wait --for=delete pod",
        "deployment/slurm-operator --replicas=0",
        "--release",
        "loginsets.slinky.slurm.net/smallest-login --cascade=orphan",
        "controllers.slinky.slurm.net/smallest",
        "Start Soperator",
        '"maintenance":"none"',
    ]
    found = [next(number for number, step in enumerate(commands) if wanted in step) for wanted in order]
    assert found == sorted(found)
    deleted = " ".join(step for step in commands if " delete " in step)
    for kept in ("slurmcluster", "secret", "pvc"):
        assert kept not in deleted


@pytest.mark.parametrize(
    ("persistence", "level"),
    [({"existingClaim": soperator.CLAIM}, Level.OK), ({}, Level.WARN)],
    ids=["Soperator's volume", "a volume of ours"],
)
def test_a_queue_that_soperator_would_not_find_is_told(persistence, level):
    told = way_back.findings(given_back(OURS, **persistence))
    assert [one.level for one in told if one.check == "State"] == [level]


def test_images_that_soperator_cannot_run_are_told():
    told = way_back.findings(given_back(there(with_our_images(soperator.cluster()))))
    assert [one.level for one in told if one.check == "Images"] == [Level.WARN]
    assert not [one for one in way_back.findings(given_back(OURS)) if one.check == "Images"]


def test_where_nothing_is_left_it_says_so():
    [fine] = way_back.findings(way_back.Found(installed=Installed(objects={})))
    assert fine.level is Level.OK


def test_conditions_that_soperator_keeps_up_to_date_stay():
    theirs, ours = {"type": "LoginAvailable"}, {"type": "RootPopulated"}
    cluster = {**CLUSTER, "status": {"conditions": [theirs, ours, {"type": "Ready"}]}}
    found = Installed(objects={nebius.SlurmCluster.KIND: [cluster]})
    [left] = [one for one in leftovers(found) if one.part is Part.CONDITIONS]
    assert left.what == "RootPopulated, Ready"
    [operation], _ = without(cluster, Part.CONDITIONS, nebius.SlurmCluster.KIND)
    assert operation["value"] == [theirs]


# What is read, and what is not


async def test_the_installation_is_read_and_no_value_of_a_secret_is_kept():
    bodies = [CLUSTER, WORKERS, *AROUND, *SETS]

    async def answer(to: Answer) -> None:
        path = to.asked.path
        for body in bodies:
            kind = kinds.kind_of(body)
            if path == kind.path(LAB, body["metadata"]["name"]):
                await to.json({**body, "data": {"munge.key": "aHVudGVyMg=="}})
                return
        listed = [one for one in bodies if path in (kinds.kind_of(one).path(), kinds.kind_of(one).path(LAB))]
        await to.json({"items": listed})

    async with FakeApi(lists=[answer], others=[answer]) as api, api.client() as client:
        found = await facts.look(client)
    assert isinstance(found.secrets, dict)
    assert found.secrets[f"{LAB}/smallest-munge"] == ("munge.key",)
    assert "hunter2" not in repr(found)
    assert "aHVudGVyMg" not in repr(found)
    assert isinstance(found.stateful_sets, tuple)
    assert len(found.stateful_sets) == len(SETS)


@pytest.mark.parametrize(
    ("image", "command", "is_theirs"),
    [
        ("cr.example/slurm-operator:5.0.0", "/usr/bin/slurm_operator", True),
        ("cr.example/copied:1@sha256:ab", "/usr/bin/slurm_operator", True),
        ("cr.example:5000/soperatorchecks:5.0.0", "", True),
        ("cr.example/slurm-operator-soperator:1", "/usr/bin/slurm_operator", False),
        ("cr.example/slurm-operator:1", "", False),
    ],
    ids=["its manager", "under another name", "its checks", "ours in its place", "ours"],
)
async def test_soperators_programs_are_found_by_command_or_image(image, command, is_theirs):
    container = {"name": "manager", "image": image, **({"command": [command]} if command else {})}
    deployment = there(soperator.manager())
    deployment = {
        **deployment,
        "spec": {**deployment["spec"], "template": {"spec": {"containers": [container]}}},
    }

    async def answer(to: Answer) -> None:
        await to.json({"items": [deployment] if to.asked.path == kinds.DEPLOYMENT.path() else []})

    async with FakeApi(lists=[answer], others=[answer]) as api, api.client() as client:
        found = await facts.look(client)
    assert isinstance(found.programs, tuple)
    assert bool(found.programs) is is_theirs
