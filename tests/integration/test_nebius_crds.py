"""The kinds of slurm.nebius.ai on a real API server, beside those of slinky.slurm.net: accepted, refused, read back.

They have a server of their own: with two kinds of the name NodeSet, a bare `kubectl get nodesets` is ambiguous.
"""

import json
import re
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
from crd_rig import APPLY, Answer, Api, leaves
from crd_rig import install as install_first_kinds
from test_crd_rules import outside, planted, rules, shown

from slurm_local.slurm_cluster import wait_established
from slurm_operator import wire
from slurm_operator.api.nebius import KINDS
from slurm_operator.api.schema.codec import read
from slurm_operator.api.schema.crd import crd, root_schema
from testing import nebius
from testing.control_plane import ControlPlane
from testing.nebius import changed

MODELS = {cls.KIND.kind: cls for cls in KINDS}
ACCEPTED = nebius.accepted()
TABLE = nebius.fields()
BY_SERVER = [row for row in nebius.refused() if "server" in row]
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
SMALLEST = {
    "SlurmCluster": "smallest",
    "NodeSet": "cpu",
    "NodeSetPowerState": "gpu",
    "NodeConfigurator": "empty-configurator",
    "JailedConfig": "files",
    "ActiveCheck": "ssh",
}

Manifest = dict[str, Any]


class Server(Api):
    """The API server, asked about the kinds of this group."""

    def path(self, namespace: str, manifest: Manifest, *more: str) -> str:
        return MODELS[manifest["kind"]].KIND.path(namespace, *more)

    def create(self, namespace: str, manifest: Manifest, *, dry_run: bool = False) -> Answer:
        path = self.path(namespace, manifest) + "?fieldValidation=Strict"
        return self.send("POST", path + ("&dryRun=All" if dry_run else ""), manifest)

    def apply(self, namespace: str, manifest: Manifest, *subresource: str) -> Answer:
        path = self.path(namespace, manifest, manifest["metadata"]["name"], *subresource)
        return self.send("PATCH", f"{path}?fieldManager=test&fieldValidation=Strict", manifest, APPLY)

    def put(self, namespace: str, manifest: Manifest, *subresource: str) -> Answer:
        path = self.path(namespace, manifest, manifest["metadata"]["name"], *subresource)
        return self.send("PUT", f"{path}?fieldValidation=Strict", manifest)

    def get(self, namespace: str, manifest: Manifest) -> Answer:
        return self.send("GET", self.path(namespace, manifest, manifest["metadata"]["name"]))


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with ControlPlane(tmp_path_factory.mktemp("nebius")).running() as plane, closing(Server(plane)) as api:
        install_first_kinds(api)
        install(api)
        yield api


@pytest.fixture
def ns(api: Server) -> str:
    created = api.send("POST", "/api/v1/namespaces", {"metadata": {"generateName": "nebius-"}})
    return created.body["metadata"]["name"]


def install(api: Server) -> dict[str, Answer]:
    answers = {}
    for kind, cls in MODELS.items():
        body = crd(cls)
        path = f"{DEFINITIONS}/{body['metadata']['name']}?fieldManager=test&force=true"
        answers[kind] = api.send("PATCH", path, body, APPLY)
    wait_established(api.plane.kubectl)
    return answers


def as_read(manifest: Manifest) -> Any:
    return read(MODELS[manifest["kind"]], {"spec": manifest.get("spec")}).spec


# --- the definitions


def test_every_definition_is_accepted_without_a_warning(api: Server) -> None:
    answers = install(api)

    assert {kind: (answer.status, answer.warnings) for kind, answer in answers.items()} == {
        kind: (200, []) for kind in MODELS
    }


@pytest.mark.parametrize("kind", MODELS)
def test_the_server_objects_to_nothing_in_a_definition(api: Server, kind: str) -> None:
    found = api.send("GET", f"{DEFINITIONS}/{crd(MODELS[kind])['metadata']['name']}").body

    assert {one["type"]: one["status"] for one in found["status"]["conditions"]} == {
        "NamesAccepted": "True",
        "Established": "True",
    }


def test_kubectl_apply_keeps_a_copy_of_every_definition(api: Server, tmp_path: Any) -> None:
    """It keeps it in an annotation, which may have 256 KiB, and the server keeps both in one entry of etcd."""
    for cls in KINDS:
        body = crd(cls)
        path = tmp_path / "crd.json"
        path.write_text(json.dumps(body))
        api.plane.kubectl("apply", "-f", str(path))

        stored = api.send("GET", f"{DEFINITIONS}/{body['metadata']['name']}").body
        copy = stored["metadata"]["annotations"]["kubectl.kubernetes.io/last-applied-configuration"]
        assert json.loads(copy) == body
        assert len(wire.encode(stored)) < 1024 * 1024


@pytest.mark.parametrize("kind", MODELS)
def test_kubectl_explains_every_field(api: Server, kind: str) -> None:
    of = MODELS[kind].KIND
    said = api.plane.kubectl("explain", of.plural, f"--api-version={of.api_version}", "--recursive")
    explained = re.findall(r"^ +(\w+)\t", said, re.MULTILINE)

    wanted = [path[-1] for path, _ in leaves(root_schema(MODELS[kind])) if path[-1] != "[]"]

    assert sorted(set(wanted) - set(explained)) == []
    assert len(explained) >= len(wanted)


@pytest.mark.parametrize(
    ("field", "words"),
    [
        ("slurmclusters.spec.maintenance", "downscale: its pods are removed when their jobs are done."),
        (
            "slurmclusters.spec.slurmNodes.accounting.externalDB.tls.serverCASecretRef",
            "signs the certificate",
        ),
        (
            "slurmclusters.spec.volumeSources.persistentVolumeClaim.claimName",
            "Name of the PersistentVolumeClaim",
        ),
        ("slurmclusters.spec.clusterType", "Deprecated: use gpu.enabled of NodeSets"),
        ("nodesets.spec.slurmd.volumes.sharedMemorySize", "Size of /dev/shm"),
        ("nodesetpowerstates.status.nodeStates", "by ordinal"),
        ("nodeconfigurators.spec.hostIPC", "shared memory"),
        ("jailedconfigs.spec.items.path", "an absolute path"),
        ("activechecks.spec.failureReactions.drainSlurmNode.drainReasonPrefix", "[node_problem]"),
    ],
)
def test_an_explanation_is_in_our_words(api: Server, field: str, words: str) -> None:
    [version] = {cls.KIND.api_version for cls in KINDS if field.startswith(f"{cls.KIND.plural}.")}

    said = api.plane.kubectl("explain", field, f"--api-version={version}")

    assert words in " ".join(said.split())


# --- accepted, and read back


@pytest.mark.parametrize("name", ACCEPTED)
def test_an_accepted_manifest_is_stored_as_its_author_meant_it(api: Server, ns: str, name: str) -> None:
    """By create, by server-side apply, and by a typed client that reads it and writes it back as it was."""
    manifest = ACCEPTED[name]

    created = api.create(ns, manifest)
    assert created.status == 201, created.body
    assert as_read(created.body) == as_read(manifest)

    # An applied null is kept, and so is refused in most fields, as it is by the definitions of their releases.
    wanted = without_nulls(changed(manifest, {"metadata.name": "applied", "status": ...}))
    applied = api.apply(ns, wanted)
    assert applied.status == 201, applied.body
    assert as_read(applied.body) == as_read(wanted)

    written = api.put(ns, {**manifest, "metadata": created.body["metadata"]})
    assert written.status == 200, written.body
    assert as_read(written.body) == as_read(manifest)
    assert written.body["metadata"]["generation"] == 1


def without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: without_nulls(inner) for name, inner in value.items() if inner is not None}
    return [without_nulls(item) for item in value] if isinstance(value, list) else value


@pytest.mark.parametrize("kind", MODELS)
def test_a_value_in_every_field_is_kept(api: Server, ns: str, kind: str) -> None:
    manifest = nebius.filled(kind)

    created = api.create(ns, manifest)
    assert created.status == 201, created.body
    assert created.body["spec"] == manifest["spec"]

    status = api.put(ns, {**created.body, "status": manifest["status"]}, "status")
    assert status.status == 200, status.body
    assert status.body["status"] == manifest["status"]
    assert (status.body["spec"], status.body["metadata"]["generation"]) == (manifest["spec"], 1)


@pytest.mark.parametrize("kind", MODELS)
def test_defaults_are_filled_in(api: Server, ns: str, kind: str) -> None:
    """Every default of the table stands in the smallest manifest, wherever the object around it does."""
    stored = api.create(ns, ACCEPTED[f"{kind}/{SMALLEST[kind]}"]).body
    # Objects that are given as a whole have a default of their own, which another test compares.
    elsewhere = ("ncclInspectorPreConf", "podMonitorConfig")

    wrong = {
        path: (found, fact.facts["default"])
        for path, fact in TABLE[kind].items()
        if "default" in fact.facts and not any(name in path for name in elsewhere) and "[]" not in path
        for found in values(stored, path)
        if path.removeprefix("spec.") not in said(kind) and found != fact.facts["default"]
    }

    assert wrong == {}


def said(kind: str) -> set[str]:
    """Paths that the smallest manifest sets."""

    def below(value: Any, path: str) -> Iterator[str]:
        if isinstance(value, dict):
            for name, inner in value.items():
                yield from below(inner, f"{path}.{name}".lstrip("."))
        else:
            yield path

    return set(below(ACCEPTED[f"{kind}/{SMALLEST[kind]}"].get("spec", {}), ""))


def values(stored: Manifest, path: str) -> Iterator[Any]:
    """What stands at the path; nothing where the object around it is not there."""
    *parents, last = path.split(".")
    place: Any = stored
    for name in parents:
        if not isinstance(place, dict) or name not in place:
            return
        place = place[name]
    if isinstance(place, dict):
        yield place.get(last)


def test_objects_with_a_default_of_their_own_are_filled_in_as_a_whole_or_by_field(
    api: Server, ns: str
) -> None:
    absent = api.create(ns, ACCEPTED["SlurmCluster/smallest"]).body["spec"]
    given = changed(
        ACCEPTED["SlurmCluster/smallest"],
        {
            "metadata.name": "given",
            "spec.plugStackConfig": {"ncclInspectorPreConf": {}},
            "spec.slurmNodes.exporter.podMonitorConfig": {"interval": "1m"},
        },
    )
    partly = api.create(ns, given).body["spec"]

    assert absent["plugStackConfig"]["ncclInspectorPreConf"]["enabled"] is False
    assert partly["plugStackConfig"]["ncclInspectorPreConf"]["enabled"] is True
    assert absent["slurmNodes"]["exporter"]["podMonitorConfig"] == {
        "jobLabel": "slurm-exporter",
        "interval": "30s",
        "scrapeTimeout": "20s",
    }
    assert partly["slurmNodes"]["exporter"]["podMonitorConfig"] == {"interval": "1m"}


def test_an_object_without_a_spec_stays_without_one(api: Server, ns: str) -> None:
    for name in [name for name, one in ACCEPTED.items() if "spec" not in one]:
        assert "spec" not in api.create(ns, ACCEPTED[name]).body


# --- null


@pytest.mark.parametrize("kind", MODELS)
def test_null_is_taken_wherever_a_field_may_be_left_out_and_means_the_same(
    api: Server, ns: str, kind: str
) -> None:
    manifest = nebius.filled(kind)
    optional = [
        path for path, fact in TABLE[kind].items() if path.startswith("spec") and "R" not in fact.facts
    ]
    wrong = []

    for path in [one for one in optional if not one.endswith("[]")]:
        where = path.replace("[]", ".0")
        answer = api.create(ns, changed(manifest, {where: None}), dry_run=True)
        if answer.status != 201 or as_read(answer.body) != as_read(changed(manifest, {where: ...})):
            wrong.append((path, answer.status, answer.complaint))

    assert len(optional) > 1
    assert wrong == []


@pytest.mark.parametrize("kind", MODELS)
def test_null_is_refused_where_a_value_is_required(api: Server, ns: str, kind: str) -> None:
    manifest = nebius.filled(kind)
    required = [path for path, fact in TABLE[kind].items() if path.startswith("spec") and "R" in fact.facts]
    let_through = []

    for path in required:
        answer = api.create(ns, changed(manifest, {path.replace("[]", ".0"): None}), dry_run=True)
        if f"{path.replace('[]', '[0]')}: Required value" not in answer.complaint:
            let_through.append((path, answer.status, answer.complaint))

    assert let_through == []


@pytest.mark.parametrize("kind", MODELS)
def test_what_is_emptied_by_server_side_apply_means_the_same_as_absent(
    api: Server, ns: str, kind: str
) -> None:
    """The API server makes null of an object when its last entry is applied no more; that must not refuse the change."""
    whole = nebius.filled(kind)
    objects = [
        path
        for path, fact in TABLE[kind].items()
        if path.startswith("spec.") and "[]" not in path and "R" not in fact.facts and is_object(fact.type)
        if not any(
            other.startswith(f"{path}.") and "R" in inner.facts for other, inner in TABLE[kind].items()
        )
    ]
    wrong = []

    for index, path in enumerate(objects):
        given = changed(whole, {"metadata.name": f"emptied-{index}"})
        empty, absent = changed(given, {path: {}}), changed(given, {path: ...})
        for step, meant in ((given, given), (empty, absent), (given, given), (absent, absent)):
            answer = api.apply(ns, step)
            # What says nothing in an empty object may be read as the object or as none.
            if answer.status >= 300 or as_read(answer.body) not in (as_read(meant), as_read(step)):
                wrong.append((path, answer.status, answer.complaint))

    assert wrong == []


def is_object(type_: str) -> bool:
    return type_ in ("object", "open") or type_.startswith("map/")


# --- refused


@pytest.mark.parametrize("row", BY_SERVER, ids=lambda row: f"{row['of']} {row['changed']}"[:90])
def test_a_manifest_that_breaks_a_rule_is_refused_in_these_words(
    api: Server, ns: str, row: dict[str, Any]
) -> None:
    answer = api.create(ns, changed(ACCEPTED[row["of"]], row["changed"]), dry_run=True)

    assert answer.complaint == row["server"]


def test_every_rule_in_cel_is_broken_above() -> None:
    said = "\n".join(row["server"] for row in BY_SERVER)

    unheard = {
        rule["message"] for cls in KINDS for rule in rules(root_schema(cls)) if rule["message"] not in said
    }

    assert unheard == set()


@pytest.mark.parametrize("kind", MODELS)
def test_every_type_word_and_bound_of_every_field_is_enforced(api: Server, ns: str, kind: str) -> None:
    schema = root_schema(MODELS[kind])
    base = ACCEPTED[f"{kind}/{SMALLEST[kind]}"]
    facts = [
        (path, fact, bad)
        for path, inner in leaves(schema)
        if path[0] == "spec"
        for fact, bad in outside(inner)
    ]
    let_through = []

    for path, fact, bad in facts:
        answer = api.create(ns, planted(base, schema, path, bad), dry_run=True)
        if shown(path) not in answer.complaint:
            let_through.append((shown(path), fact, answer.status, answer.complaint))

    assert len(facts) > 3
    assert let_through == []


@pytest.mark.parametrize("kind", MODELS)
def test_a_field_that_nobody_knows_is_told_and_not_dropped_silently(api: Server, ns: str, kind: str) -> None:
    mistyped = changed(ACCEPTED[f"{kind}/{SMALLEST[kind]}"], {"spec.noSuchField": 1})

    assert 'unknown field "spec.noSuchField"' in api.create(ns, mistyped).body["message"]


# --- subresources and columns


def test_a_nodeset_is_scaled_and_its_pods_are_found(api: Server, ns: str) -> None:
    created = api.create(ns, ACCEPTED["NodeSet/cpu"]).body
    status = {"replicas": 1, "labelSelector": "slurm.nebius.ai/nodeset=cpu", "phase": "Ready"}
    api.put(ns, {**created, "status": status}, "status")

    api.plane.kubectl("scale", "nodesets.slurm.nebius.ai/cpu", "-n", ns, "--replicas=5")

    scale = api.send("GET", api.path(ns, created, "cpu", "scale")).body
    assert scale["spec"] == {"replicas": 5}
    assert scale["status"] == {"replicas": 1, "selector": "slurm.nebius.ai/nodeset=cpu"}
    assert api.get(ns, created).body["spec"]["replicas"] == 5


@pytest.mark.parametrize("kind", MODELS)
def test_a_status_is_written_apart_from_the_spec(api: Server, ns: str, kind: str) -> None:
    manifest = ACCEPTED[f"{kind}/{SMALLEST[kind]}"]
    condition = {
        "type": "Ready",
        "status": "False",
        "reason": "Waiting",
        "message": "",
        "lastTransitionTime": "2030-01-01T00:00:00Z",
    }
    status = {"conditions": [condition], "observedGeneration": 1}

    created = api.create(ns, {**manifest, "status": status}).body
    answer = api.apply(ns, {**changed(manifest, {"spec": ...}), "status": status}, "status")

    assert "status" not in created
    assert (answer.status, answer.body["spec"]) == (200, created["spec"])
    assert read(MODELS[kind], answer.body).status.conditions[0].reason == "Waiting"
    assert answer.body["metadata"]["generation"] == 1


@pytest.mark.parametrize("phase", ["Reconciling", "Not available"])
def test_a_status_of_an_older_release_is_kept(api: Server, ns: str, phase: str) -> None:
    created = api.create(ns, ACCEPTED["SlurmCluster/older"]).body
    status = {
        "phase": phase,
        "readyWorkers": 4,
        "readyLogin": 1,
        "readySConfigController": 1,
        "conditions": [],
    }

    answer = api.put(ns, {**created, "status": status}, "status")

    assert (answer.status, answer.body["status"]) == (200, status)


def test_a_typed_client_s_zero_values_are_taken_in_a_status(api: Server, ns: str) -> None:
    check = api.create(ns, ACCEPTED["ActiveCheck/ssh"]).body
    power = api.create(ns, ACCEPTED["NodeSetPowerState/gpu"]).body
    jobs = {
        "lastTransitionTime": None,
        "lastJobScheduleTime": None,
        "lastJobSuccessfulTime": None,
        "lastJobName": "",
        "lastJobStatus": "",
    }
    runs = {
        "lastTransitionTime": None,
        "lastRunId": "",
        "lastRunName": None,
        "lastRunStatus": "",
        "lastRunSubmitTime": None,
    }

    first = api.put(ns, {**check, "status": {"k8sJobsStatus": jobs, "slurmJobsStatus": runs}}, "status")
    second = api.put(
        ns,
        {**power, "status": {"nodeStates": {"0": {"phase": "Running", "lastTransitionTime": None}}}},
        "status",
    )

    assert (first.status, second.status) == (200, 200), (first.body, second.body)
    assert read(MODELS["ActiveCheck"], first.body).status.k8s_jobs_status.last_job_schedule_time is None
    assert read(MODELS["NodeSetPowerState"], second.body).status.node_states["0"].phase == "Running"


@pytest.mark.parametrize(
    ("kind", "narrow", "wide"),
    [
        (
            "SlurmCluster",
            "NAME STATUS CONTROLLERS LOGIN SCONFIGCTRL ACCOUNTING",
            "NAME STATUS CONTROLLERS LOGIN SCONFIGCTRL ACCOUNTING WORKERS AGE",
        ),
        ("NodeSet", "NAME STATUS DESIRED READY EPHEMERAL", "NAME STATUS DESIRED READY EPHEMERAL AGE"),
        ("NodeSetPowerState", "NAME NODESET ACTIVE READY AGE", "NAME NODESET ACTIVE READY AGE"),
        (
            "NodeConfigurator",
            "NAME REBOOTER ENABLED NODECONFIGURATOR ENABLED AGE",
            "NAME REBOOTER ENABLED NODECONFIGURATOR ENABLED AGE",
        ),
        (
            "JailedConfig",
            "NAME FILES WRITTEN RECONFIGURATION STATUS JAILED PATH AGE",
            "NAME FILES WRITTEN RECONFIGURATION STATUS JAILED PATH AGE",
        ),
        (
            "ActiveCheck",
            "NAME TYPE INIT SUSPEND SCHEDULE K8S STATUS SLURM STATUS SLURM SUBMIT TIME SLURM ID AGE",
            "NAME TYPE INIT SUSPEND SCHEDULE K8S STATUS SLURM STATUS SLURM SUBMIT TIME SLURM ID AGE",
        ),
    ],
)
def test_kubectl_shows_the_columns_that_scripts_read(
    api: Server, ns: str, kind: str, narrow: str, wide: str
) -> None:
    api.create(ns, ACCEPTED[f"{kind}/{SMALLEST[kind]}"])
    name = f"{MODELS[kind].KIND.plural}.slurm.nebius.ai"

    heads = [api.plane.kubectl("get", name, "-n", ns, *more).splitlines()[0] for more in ((), ("-o", "wide"))]

    assert [" ".join(head.split()) for head in heads] == [narrow, wide]


def test_both_kinds_of_nodesets_live_side_by_side(api: Server, ns: str) -> None:
    api.create(ns, ACCEPTED["NodeSet/cpu"])
    first = {"metadata": {"name": "cpu"}, "spec": {"controllerRef": {"name": "slurm"}}}
    body = {"apiVersion": "slinky.slurm.net/v1beta1", "kind": "NodeSet", **first}
    api.send("POST", f"/apis/slinky.slurm.net/v1beta1/namespaces/{ns}/nodesets", body)

    found = api.plane.kubectl(
        "get", "nodesets.slinky.slurm.net,nodesets.slurm.nebius.ai", "-n", ns, "-o", "name"
    )

    assert found.split() == ["nodeset.slinky.slurm.net/cpu", "nodeset.slurm.nebius.ai/cpu"]
