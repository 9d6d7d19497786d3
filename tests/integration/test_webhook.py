"""What a real API server hears from the webhook, and what it does without it."""

import json

import pytest
from kinds_rig import apply, config_map, get, ns, ours, plane
from webhook_rig import at, running_webhook, wait_known

from slurm_local.errors import LocalError
from slurm_local.kubernetes.api_call import Refused
from slurm_operator.manifests.builders import admission
from testing.managers import until
from testing.rights import webhook

__all__ = ["ns", "plane"]

KEYS = {"slurmKeyRef": {"name": "k", "key": "slurm.key"}, "jwtKeyRef": {"name": "k", "key": "jwt.key"}}
WORKERS = {"controllerRef": {"name": "slurm"}, "template": {"spec": {"hostname": "gpu-"}}}
GUARDED = {"labels": {admission.GUARD_LABEL: "true"}}


@pytest.fixture(scope="module")
def hook(plane, tmp_path_factory):
    """A webhook with certificates of its own. `Fail`, so that no test passes because it was not asked."""
    log = tmp_path_factory.mktemp("hook") / "log"
    with running_webhook(webhook(plane, "webhook"), log) as hook:
        client = at(hook.port)
        apply(
            plane,
            admission.validating(client, failure_policy="Fail", guards_secrets=True),
            admission.mutating(client),
        )
        hook.wait_ready()
        wait_known(plane, admission.NAME)
        wait_known(plane, admission.NAME, "mutatingwebhookconfiguration")
        until(lambda: is_asked(plane), what="the API server trusting the webhook")
        yield hook


def is_asked(plane) -> bool:
    """Whether the API server's own copy of the configuration has the authority by now."""
    try:
        post(plane, "default", ours("Controller", "default", "probe", KEYS))
    except Refused as refusal:
        if "failed calling webhook" in str(refusal):
            return False
        raise
    return True


def post(plane, ns: str, manifest: dict) -> dict:
    plural = f"{manifest['kind'].lower()}s"
    return plane.caller.call(
        "POST", f"/apis/{manifest['apiVersion']}/namespaces/{ns}/{plural}?dryRun=All", manifest
    )


def complaint(plane, manifest: dict) -> str:
    """What kubectl prints, warnings included, when this is applied; nothing is stored."""
    try:
        plane.kubectl("apply", "--dry-run=server", "-f", "-", stdin=json.dumps(manifest))
    except LocalError as error:
        return str(error)
    return ""


def warnings(plane, ns: str, manifest: dict) -> list[str]:
    connection = plane.caller.connection(timeout_s=30)
    path = f"/apis/{manifest['apiVersion']}/namespaces/{ns}/{manifest['kind'].lower()}s?dryRun=All"
    connection.request("POST", path, json.dumps(manifest), {"Content-Type": "application/json"})
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    assert answer.status == 201, body
    return answer.headers.get_all("Warning") or []


def test_a_controller_is_refused_for_a_file_that_is_ours_and_accepted_without_it(plane, ns, hook):
    apply(plane, config_map(ns, "mine", {"slurm.conf": ""}), config_map(ns, "good", {"gres.conf": ""}))
    spec = {**KEYS, "configFileRefs": [{"name": "mine"}]}

    said = complaint(plane, ours("Controller", ns, "slurm", spec))

    assert "The request is invalid: spec.configFileRefs[0].name: ConfigMap 'mine' has slurm.conf" in said
    assert (
        complaint(plane, ours("Controller", ns, "slurm", {**KEYS, "configFileRefs": [{"name": "good"}]}))
        == ""
    )


def test_a_controller_with_backups_needs_a_volume_for_several(plane, ns, hook):
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "state", "namespace": ns},
             "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}  # fmt: skip
    apply(plane, claim)
    spec = {**KEYS, "ha": {"enabled": True}, "persistence": {"enabled": True, "existingClaim": "state"}}

    assert "must contain ReadWriteMany" in complaint(plane, ours("Controller", ns, "slurm", spec))
    elsewhere = {**spec, "persistence": {"enabled": True, "existingClaim": "comes-later"}}
    assert complaint(plane, ours("Controller", ns, "slurm", elsewhere)) == ""


def test_two_controllers_on_one_accounting_have_two_names(plane, ns, hook):
    named = {**KEYS, "clusterName": "lab", "accountingRef": {"name": "books"}}
    apply(plane, ours("Controller", ns, "one", named))

    said = complaint(plane, ours("Controller", ns, "two", named))

    assert "Controller 'one' is already known as 'lab' to the same Accounting" in said
    assert complaint(plane, ours("Controller", ns, "two", {**named, "clusterName": "lab2"})) == ""


def test_a_cluster_whose_name_slurm_cannot_keep_is_refused(plane, ns, hook):
    long = "a-cluster-with-quite-a-long-name"

    assert "longer than 40 characters; give it a shorter clusterName" in complaint(
        plane, ours("Cluster", ns, long, {})
    )
    assert complaint(plane, ours("Cluster", ns, long, {"clusterName": "short"})) == ""


@pytest.mark.parametrize("kind", ["Cluster", "Controller"])
@pytest.mark.parametrize(
    ("before", "after", "names"),
    [
        pytest.param({}, {"clusterName": "two"}, "'{ns}_kept' to 'two'", id="named later"),
        pytest.param({"clusterName": "one"}, {}, "'one' to '{ns}_kept'", id="no longer named"),
    ],
)
def test_a_cluster_keeps_the_name_under_which_its_records_are(plane, ns, hook, kind, before, after, names):
    """The name that comes from the namespace is out of sight for the rules in the CRD."""
    spec = KEYS if kind == "Controller" else {}
    apply(plane, ours(kind, ns, "kept", {**spec, **before}))

    said = complaint(plane, ours(kind, ns, "kept", {**spec, **after}))

    assert f"cannot change from {names.format(ns=ns)}: state and accounting records are kept" in said
    assert complaint(plane, ours(kind, ns, "kept", {**spec, **before, "extraConf": "MinJobAge=60"})) == ""


def test_two_nodesets_that_slurm_would_confuse_are_refused(plane, ns, hook):
    apply(plane, ours("NodeSet", ns, "first", WORKERS))

    said = complaint(plane, ours("NodeSet", ns, "second", WORKERS))

    assert (
        "NodeSet 'first' is already known as 'gpu' to the same Controller; use another hostname prefix"
        in said
    )
    assert complaint(plane, ours("NodeSet", ns, "second", {"controllerRef": {"name": "slurm"}})) == ""
    plane.kubectl("label", "nodeset", "first", "-n", ns, "team=a")


@pytest.mark.parametrize(
    ("kind", "spec", "words"),
    [
        ("LoginSet", {"controllerRef": {"name": "slurm"}, "service": {"spec": {"externalIPs": ["1.2.3.4"]}}}, "spec.service.spec.externalIPs: is dropped"),
        ("Accounting", {}, "spec.storageConfig: slurmdbd starts when it has a database"),
        ("RestApi", {"controllerRef": {"name": ""}}, "spec.controllerRef.name: is empty"),
        ("Token", {"jwtKeyRef": {"name": "k", "key": "jwt.key"}, "username": ""}, "spec.username: is empty, so the token speaks for user nobody"),
        ("NodeSet", {"controllerRef": {"name": "slurm"}, "scalingMode": "DaemonSet", "pinToNode": True}, "spec.pinToNode: makes no difference in DaemonSet mode"),
        ("Cluster", {"server": "http://slurm:6820", "token": {"secretRef": "t"}, "extraConf": "X=1"}, "spec.extraConf: makes no difference"),
    ],
)  # fmt: skip
def test_whoever_writes_something_useless_is_warned(plane, ns, hook, kind, spec, words):
    assert any(words in one for one in warnings(plane, ns, ours(kind, ns, "slurm", spec)))


def test_an_older_version_is_judged_the_same(plane, ns, hook):
    old = {
        **ours("Cluster", ns, "a-cluster-with-quite-a-long-name", {}),
        "apiVersion": "slinky.slurm.net/v1alpha1",
    }

    assert "give it a shorter clusterName" in complaint(plane, old)


def test_a_guarded_secret_cannot_change_and_others_can(plane, ns, hook):
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "root", "namespace": ns, **GUARDED},
              "stringData": {"password": "a"}}  # fmt: skip
    assert "annotate it with slurm.nebius.ai/cluster" in complaint(plane, secret)
    secret["metadata"]["annotations"] = {"slurm.nebius.ai/cluster": "soperator"}
    plane.kubectl("create", "-f", "-", stdin=json.dumps(secret))

    assert "cannot change" in complaint(plane, {**secret, "stringData": {"password": "b"}})

    plane.kubectl("create", "secret", "generic", "free", "-n", ns, "--from-literal=a=1")
    plane.kubectl("delete", "secret", "free", "root", "-n", ns)  # There is no such SlurmCluster.


def test_a_worker_has_the_topology_of_its_machine_from_the_first_moment(plane, ns, hook):
    switch = {"topology.slinky.slurm.net/spec": "topo-switch:s2"}
    apply(plane, {"apiVersion": "v1", "kind": "Node", "metadata": {"name": ns, "annotations": switch}})
    for name, app in (("gpu-0", "slurmd"), ("other", "web")):
        pod = {"metadata": {"name": name, "labels": {"app.kubernetes.io/name": app}},
               "spec": {"containers": [{"name": "c", "image": "none"}]}}  # fmt: skip
        plane.caller.call("POST", f"/api/v1/namespaces/{ns}/pods", pod)
        binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name},
                   "target": {"kind": "Node", "name": ns}}  # fmt: skip
        plane.caller.call("POST", f"/api/v1/namespaces/{ns}/pods/{name}/binding", binding)

    assert get(plane, ns, "pod", "gpu-0")["metadata"]["annotations"] == switch
    assert get(plane, ns, "pod", "gpu-0")["spec"]["nodeName"] == ns
    assert "annotations" not in get(plane, ns, "pod", "other")["metadata"]


@pytest.mark.parametrize(
    ("path", "body", "status", "words"),
    [
        ("/validate-slinky-slurm-net-v1beta1-nodeset", b"{", 400, "no AdmissionReview"),
        ("/validate-slinky-slurm-net-v1beta1-nodeset", b"x" * (9 * 1024 * 1024), 413, "bytes are not read"),
        ("/validate-slinky-slurm-net-v1beta1-nothing", b"{}", 404, "Not Found"),
        ("/convert", b"{}", 404, "Not Found"),
        ("/validate-slinky-slurm-net-v1beta1-nodeset", None, 405, "Not Allowed"),
    ],
)
def test_strangers_get_a_clear_answer_and_the_next_one_is_served(plane, ns, hook, path, body, status, words):
    answer = hook.post(path, body)

    assert (answer[0], words in answer[1]) == (status, True), answer
    assert complaint(plane, ours("NodeSet", ns, "fine", WORKERS)) == ""


def test_health_and_metrics_are_served(plane, ns, hook):
    complaint(plane, ours("NodeSet", ns, "fine", WORKERS))

    assert hook.get("/healthz") == (200, "ok\n")
    text = hook.get("/metrics", hook.metrics)[1]
    assert (
        'slurm_operator_admission_reviews_total{answer="allowed",path="/validate-slinky-slurm-net-v1beta1-nodeset"}'
        in text
    )
    assert "slurm_operator_webhook_certificate_expires_seconds 1." in text


def test_with_the_webhook_away_kinds_can_be_edited_and_what_matters_is_still_refused(
    plane, ns, hook, tmp_path
):
    configuration = get(plane, "", "validatingwebhookconfiguration", admission.NAME)
    try:
        apply(plane, admission.validating(at(1)))  # Nobody listens there.
        until(
            lambda: "connection refused" not in complaint(plane, ours("NodeSet", ns, "edited", WORKERS)),
            what="Ignore",
        )

        apply(plane, ours("NodeSet", ns, "edited", WORKERS))
        plane.kubectl("patch", "nodeset", "edited", "-n", ns, "--type=merge", "-p", '{"spec":{"replicas":3}}')

        moved = {**WORKERS, "controllerRef": {"name": "another"}}
        assert "controllerRef cannot change" in complaint(plane, ours("NodeSet", ns, "edited", moved))
    finally:
        configuration["metadata"] = {"name": admission.NAME}
        apply(plane, configuration)
        until(lambda: is_asked(plane), what="the webhook asked again")


def test_who_scales_or_edits_a_part_of_a_cluster_is_warned_by_name(plane, ns, hook):
    apply(plane, ours("Cluster", ns, "demo", {"nodeSets": [{"name": "cpu", "replicas": 1}]}))
    owner = get(plane, ns, "cluster", "demo")["metadata"]["uid"]
    part = ours("NodeSet", ns, "demo-cpu", {"controllerRef": {"name": "demo"}, "replicas": 1})
    reference = {
        "apiVersion": part["apiVersion"],
        "kind": "Cluster",
        "name": "demo",
        "uid": owner,
        "controller": True,
    }
    part["metadata"]["ownerReferences"] = [reference]
    apply(plane, part, ours("NodeSet", ns, "own", {"controllerRef": {"name": "demo"}, "replicas": 1}))

    def warned(name: str, subresource: str, body: dict) -> str:
        connection = plane.caller.connection(timeout_s=30)
        path = f"/apis/{part['apiVersion']}/namespaces/{ns}/nodesets/{name}{subresource}"
        headers = {"Content-Type": "application/merge-patch+json"}
        connection.request("PATCH", path, json.dumps(body), headers)
        answer = connection.getresponse()
        assert answer.status == 200, answer.read()
        found = answer.headers.get_all("Warning") or []
        connection.close()
        return " ".join(found)

    scaled = warned("demo-cpu", "/scale", {"spec": {"replicas": 3}})
    edited = warned("demo-cpu", "", {"spec": {"extraConf": "Weight=2"}})

    assert "Set them in spec.nodeSets of Cluster demo, entry cpu." in scaled
    assert "this edit is reverted. Change it in spec.nodeSets of Cluster demo, entry cpu." in edited
    assert warned("own", "/scale", {"spec": {"replicas": 3}}) == ""
