"""Our CRDs on a real API server: accepted, explained, and true to what people wrote."""

import re
from pathlib import Path
from typing import Any

import pytest
from crd_rig import (
    APPLY,
    EXAMPLES,
    MODELS,
    OLD_MANIFESTS,
    Api,
    api,
    changed,
    documents,
    example,
    install,
    leaves,
)

from slurm_operator import wire
from slurm_operator.api import KINDS, NodeSet
from slurm_operator.api.schema.codec import read
from slurm_operator.api.schema.crd import crd, root_schema
from slurm_operator.api.schema.problems import References
from slurm_operator.api.slinky.nodeset_updates import UpdateType
from testing.control_plane import Plane

__all__ = ["api"]

KIND_NAMES = [cls.KIND.kind for cls in KINDS]
EVERY_MANIFEST = sorted([*EXAMPLES.glob("*.yaml"), *OLD_MANIFESTS.glob("*.yaml")])


def test_every_definition_is_accepted_without_a_warning(api: Api) -> None:
    answers = install(api)

    assert {kind: (answer.status, answer.warnings) for kind, answer in answers.items()} == {
        kind: (200, []) for kind in KIND_NAMES
    }


@pytest.mark.parametrize("kind", KIND_NAMES)
def test_the_server_objects_to_nothing_in_a_definition(api: Api, kind: str) -> None:
    name = crd(MODELS[kind])["metadata"]["name"]

    conditions = api.send("GET", f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}").body[
        "status"
    ]["conditions"]

    assert {condition["type"]: condition["status"] for condition in conditions} == {
        "NamesAccepted": "True",
        "Established": "True",
    }


@pytest.mark.parametrize("kind", KIND_NAMES)
def test_a_definition_fits_into_what_kubectl_apply_keeps_of_it(kind: str) -> None:
    annotation = wire.encode(crd(MODELS[kind]))

    assert len(annotation) < 256 * 1024 - 4096


@pytest.mark.parametrize("kind", KIND_NAMES)
def test_kubectl_explains_every_field(api: Api, kind: str) -> None:
    plural = MODELS[kind].KIND.plural
    said = api.plane.kubectl("explain", f"{plural}.slinky.slurm.net", "--recursive")
    explained = re.findall(r"^ +(\w+)\t", said, re.MULTILINE)

    wanted = [path[-1] for path, _ in leaves(root_schema(MODELS[kind])) if path[-1] != "[]"]

    assert sorted(set(wanted) - set(explained)) == []
    # metadata is explained with all its own fields, which are not ours to count.
    assert len(explained) >= len(wanted)


@pytest.mark.parametrize(
    ("field", "words"),
    [
        ("nodeset.spec.drainPolicy.type", "Requeue: after the deadline, jobs that may be requeued are"),
        ("nodeset.spec.slurmd.resources.limits", "The most it may use"),
        ("cluster.slinky.slurm.net.spec.nodeSets.replicas", "somebody else scales them"),
        ("controller.spec.persistence.existingClaim", "A PersistentVolumeClaim of your own"),
        ("nodeset.status.drains.forecast", "When its last job ends at the latest"),
        ("token.spec.jwtHs256KeyRef", "Deprecated: use jwtKeyRef"),
    ],
)
def test_an_explanation_is_in_our_words(api: Api, field: str, words: str) -> None:
    said = api.plane.kubectl("explain", *explained(field))

    assert words in " ".join(said.split())


def explained(field: str) -> list[str]:
    kind, _, rest = field.replace(".slinky.slurm.net", "").partition(".")
    return [
        f"{MODELS[{'nodeset': 'NodeSet'}.get(kind, kind.capitalize())].KIND.plural}.{rest}",
        "--api-version=slinky.slurm.net/v1beta1",
    ]


@pytest.mark.parametrize("path", EVERY_MANIFEST, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_a_manifest_from_the_docs_or_from_older_releases_is_accepted(
    api: Api, namespace: str, path: Path
) -> None:
    for manifest in documents(path):
        answer = api.create(namespace, manifest)

        assert answer.status == 201, answer.body


@pytest.mark.parametrize("path", sorted(OLD_MANIFESTS.glob("*.yaml")), ids=lambda path: path.stem)
def test_what_an_old_manifest_said_is_still_there_in_both_versions(
    api: Api, namespace: str, path: Path
) -> None:
    for manifest in documents(path):
        api.create(namespace, manifest)

        old = api.get(namespace, manifest).body["spec"]
        new = api.get(namespace, {**manifest, "apiVersion": "slinky.slurm.net/v1beta1"}).body["spec"]

        assert old == new
        assert missing(manifest["spec"], new) == []


def missing(wanted: Any, there: Any, path: str = "spec") -> list[str]:
    """Paths whose value did not survive; null in a field of ours means absent, so it may go."""
    if isinstance(wanted, dict):
        return [
            gap
            for key, value in wanted.items()
            if value is not None
            for gap in missing(value, (there or {}).get(key), f"{path}.{key}")
        ]
    if isinstance(wanted, list):
        return [
            gap
            for index, value in enumerate(wanted)
            for gap in missing(value, there[index], f"{path}[{index}]")
        ]
    return [] if wanted == there else [path]


def test_v1alpha1_says_what_to_write_instead(api: Api, namespace: str) -> None:
    [manifest] = documents(OLD_MANIFESTS / "cluster.yaml")

    answer = api.create(namespace, manifest, dry_run=True)

    assert answer.warnings == [
        '299 - "slinky.slurm.net/v1alpha1 Cluster still works; write slinky.slurm.net/v1beta1 in new manifests"'
    ]


def test_the_operator_understands_an_old_worker_manifest_and_says_what_is_ignored(
    api: Api, namespace: str
) -> None:
    [manifest] = documents(OLD_MANIFESTS / "nodeset-0.3.yaml")
    api.create(namespace, manifest)

    nodeset = read(NodeSet, api.get(namespace, {**manifest, "apiVersion": "slinky.slurm.net/v1beta1"}).body)

    assert nodeset.spec.controller == "slurm"
    assert nodeset.spec.update_strategy.effective_type is UpdateType.ON_DELETE
    assert nodeset.slurm_name == "debug"
    assert [str(problem) for problem in nodeset.problems(None, References())] == [
        "spec.updateStrategy.rollingUpdate.paused: use type: OnDelete; it is read as that",
        "spec.clusterName: use controllerRef.name; it is read as that",
        "spec.selector: is ignored: workers are found by fixed labels",
        "spec.serviceName: is ignored: the workers of a Controller share one Service, slurm-workers-<controller>",
    ]


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.yaml")), ids=lambda path: path.stem)
def test_the_server_fills_in_the_defaults_that_the_code_sees(api: Api, namespace: str, path: Path) -> None:
    [manifest] = documents(path)
    cls = MODELS[manifest["kind"]]

    stored = api.create(namespace, manifest).body

    assert read(cls, {"spec": stored["spec"]}) == read(cls, {"spec": manifest["spec"]})


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.yaml")), ids=lambda path: path.stem)
def test_examples_give_no_cause_for_complaint(path: Path) -> None:
    [manifest] = documents(path)

    assert list(read(MODELS[manifest["kind"]], manifest).problems(None, References())) == []


def test_fields_of_kubernetes_that_we_do_not_know_reach_the_operator(api: Api, namespace: str) -> None:
    slurmd = {
        "image": "a",
        "stdin": True,
        "env": [{"name": "A", "value": None, "valueFrom": {"fieldRef": {"fieldPath": "b"}}, "new": 1}],
    }
    manifest = changed(
        example("nodeset"), {"spec.slurmd": slurmd, "spec.template.spec": {"setHostnameAsFQDN": True}}
    )

    stored = api.create(namespace, manifest).body["spec"]

    assert stored["slurmd"] == slurmd
    assert stored["template"]["spec"] == {"setHostnameAsFQDN": True}


@pytest.mark.parametrize("amount", [2, 0.5, "500m", "1e3", "0.25", ".5", "16Gi", "+1", None])
def test_every_way_in_which_kubernetes_writes_an_amount_is_accepted(
    api: Api, namespace: str, amount: object
) -> None:
    manifest = changed(example("nodeset"), {"spec.slurmd.resources.limits": {"cpu": amount}})

    assert api.create(namespace, manifest).body["spec"]["slurmd"]["resources"]["limits"] == {"cpu": amount}


def test_null_removes_in_overrides_and_is_the_same_as_absent_elsewhere(api: Api, namespace: str) -> None:
    overrides = {
        "image": None,
        "imagePullPolicy": None,
        "env": None,
        "livenessProbe": None,
        "resources": {"limits": {"cpu": None}},
    }
    manifest = changed(
        example("nodeset"),
        {
            "spec.slurmd": overrides,
            "spec.template.spec": {"hostname": None},
            "spec.partition": None,
            "spec.replicas": None,
        },
    )

    stored = api.create(namespace, manifest).body["spec"]

    assert stored["slurmd"] == overrides
    assert stored["template"]["spec"] == {"hostname": None}
    assert stored["partition"] == {"enabled": False}
    assert stored["replicas"] == 1


def test_a_field_we_do_not_have_is_refused_by_kubectl_s_strict_validation(api: Api, namespace: str) -> None:
    answer = api.create(namespace, changed(example("nodeset"), {"spec.replica": 2}), dry_run=True)

    assert answer.body["message"].endswith('strict decoding error: unknown field "spec.replica"')


def test_autoscalers_can_scale(api: Api, namespace: str) -> None:
    for name in ("nodeset", "loginset"):
        manifest = example(name)
        api.create(namespace, manifest)

        api.plane.kubectl("scale", f"{name}/{manifest['metadata']['name']}", "--replicas=0", "-n", namespace)

        assert api.get(namespace, manifest).body["spec"]["replicas"] == 0


@pytest.mark.parametrize(
    "name", ["cluster-smallest", "controller", "nodeset", "loginset", "accounting", "restapi", "token"]
)
def test_what_no_operator_has_looked_at_does_not_count_as_ready(api: Api, namespace: str, name: str) -> None:
    """Tools that ask whether `observedGeneration` is the generation, as `helm --wait` does, wait for an operator."""
    manifest = example(name)
    assert api.create(namespace, manifest).status == 201
    there = api.get(namespace, manifest).body
    assert (there["metadata"]["generation"], there["status"]) == (1, {"observedGeneration": -1})


def test_status_is_written_apart_from_spec_and_shows_in_kubectl_get(api: Api, namespace: str) -> None:
    manifest = example("cluster-smallest")
    api.create(namespace, manifest)
    condition = {
        "type": "Ready",
        "status": "True",
        "reason": "AllReady",
        "message": "",
        "lastTransitionTime": "2030-01-01T00:00:00Z",
    }
    status = {
        "conditions": [condition],
        "slurmVersion": "26.05.5",
        "nodes": {"total": 2},
        "jobs": {"running": 1, "pending": 0},
    }
    path = MODELS["Cluster"].KIND.path(namespace, "demo", "status")
    body = {
        "apiVersion": "slinky.slurm.net/v1beta1",
        "kind": "Cluster",
        "status": status,
        "spec": {"image": "ignored"},
    }

    answer = api.send("PATCH", f"{path}?fieldManager=test", body, APPLY)

    assert answer.body["spec"].get("image") is None
    [head, row] = api.plane.kubectl("get", "clusters.slinky.slurm.net", "-n", namespace).splitlines()
    assert head.split() == ["NAME", "READY", "VERSION", "NODES", "RUNNING", "PENDING", "AGE"]
    assert row.split()[:6] == ["demo", "True", "26.05.5", "2", "1", "0"]


@pytest.mark.parametrize(
    ("name", "columns"),
    [
        ("nss", "NAME DESIRED REPLICAS UPDATED READY IDLE ALLOCATED DOWN DRAIN STATUS AGE"),
        ("lss", "NAME REPLICAS READY ENDPOINT STATUS AGE"),
        ("jwt", "NAME USER IAT READY EXPIRES SECRET STATUS AGE"),
        ("slurmctld", "NAME READY VERSION ACTIVE STATUS AGE"),
        ("slurmdbd", "NAME READY VERSION DATABASE STATUS AGE"),
        ("slurmrestd", "NAME READY URL STATUS AGE"),
    ],
)
def test_short_names_work_and_columns_that_scripts_read_are_kept(
    api: Api, namespace: str, name: str, columns: str
) -> None:
    for example_name in ("nodeset", "loginset", "token", "controller", "accounting", "restapi"):
        api.create(namespace, example(example_name))

    head = api.plane.kubectl("get", name, "-o", "wide", "-n", namespace).splitlines()[0]

    assert " ".join(head.split()) == columns


def test_all_our_objects_are_found_under_one_word(api: Api, api_server: Plane, namespace: str) -> None:
    api.create(namespace, example("token"))
    api.create(namespace, example("restapi"))

    found = api_server.kubectl("get", "slurm", "-n", namespace, "-o", "name").split()

    assert found == ["restapi.slinky.slurm.net/slurm", "token.slinky.slurm.net/alice"]
