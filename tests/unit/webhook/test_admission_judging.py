"""What the webhook answers about manifests: the problems that api/ knows, with paths, all at once."""

import asyncio
import base64
import json
from typing import Any

import pytest

from slurm_operator.api import KINDS
from slurm_operator.api.schema.codec import read
from slurm_operator.api.schema.problems import Problem, References, warning
from slurm_operator.kube.errors import Unreachable
from slurm_operator.runtime.settings import Address
from slurm_operator.webhook.metrics import Metrics
from slurm_operator.webhook.process import Settings, answerers
from slurm_operator.webhook.review import VERSIONS, Asked, Request, Verdict, answer
from slurm_operator.webhook.server import Admission

OFF = Address("127.0.0.1", 0)
GROUP = "slinky.slurm.net"
CONTROLLER = f"/validate-{GROUP.replace('.', '-')}-v1beta1-controller"
NODESET = CONTROLLER.replace("controller", "nodeset")
SECRET = "/validate--v1-secret"
BINDING = "/mutate--v1-binding"


class Facts:
    """What a handmade cluster holds."""

    def __init__(self, refs: References = References(), things: dict[str, Any] | None = None) -> None:  # noqa: B008
        self._refs, self._things = refs, things or {}

    async def references(self, thing: Any) -> References:
        return self._refs

    async def exists(self, kind: Any, key: Any) -> bool:
        return await self.metadata(kind, key) is not None

    async def metadata(self, kind: Any, key: Any) -> Any:
        found = self._things.get(f"{kind.kind} {key}")
        if isinstance(found, Exception):
            raise found
        return found


def ask(path: str, facts: Facts, namespaces: tuple[str, ...] = (), **request: Any) -> dict[str, Any]:
    settings = Settings(server=OFF, health=OFF, metrics=OFF, namespaces=namespaces)
    admission = Admission(answerers(facts, settings), Metrics())
    review = {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {"uid": "u1", **request},
    }
    reply = asyncio.run(admission.reply(path, json.dumps(review).encode()))
    assert (reply.status, reply.word != "unchecked") == (200, True), reply
    return json.loads(reply.body)["response"]


def kind(name: str, group: str = GROUP, version: str = "v1beta1") -> dict[str, str]:
    return {"group": group, "version": version, "kind": name}


def thing(spec: dict, name: str = "slurm", **metadata: Any) -> dict:
    return {"metadata": {"name": name, "namespace": "lab", **metadata}, "spec": spec}


def controller(
    spec: dict, facts: Facts | None = None, old: dict | None = None, **metadata: Any
) -> dict[str, Any]:
    return ask(
        CONTROLLER, facts or Facts(), kind=kind("Controller"), namespace="lab", name="slurm",
        operation="UPDATE" if old is not None else "CREATE", object=thing(spec, **metadata),
        **({"oldObject": thing(old)} if old is not None else {}),
    )  # fmt: skip


FILES = References(config_maps={"files": frozenset({"slurm.conf", "slurmdbd.conf", "gres.conf"})})
REFS = {"configFileRefs": [{"name": "files"}]}


def test_every_path_of_the_operator_before_us_is_answered():
    paths = set(answerers(Facts(), Settings(server=OFF, health=OFF, metrics=OFF)))

    theirs = {"controller", "nodeset", "loginset", "accounting", "restapi", "token"}
    assert {f"/validate-slinky-slurm-net-v1beta1-{one}" for one in theirs} | {SECRET, BINDING} <= paths
    assert {f"/validate-slinky-slurm-net-{v}-cluster" for v in ("v1beta1", "v1alpha1")} <= paths


def test_without_the_switch_nobody_answers_about_bindings():
    assert BINDING not in answerers(
        Facts(), Settings(server=OFF, health=OFF, metrics=OFF, pods_binding=False)
    )


def test_all_problems_are_told_at_once_with_their_paths():
    spec = {**REFS, "clusterName": "x" * 41}

    response = controller(spec, Facts(FILES))

    assert response["allowed"] is False
    assert response["status"]["code"] == 422
    assert [cause["field"] for cause in response["status"]["details"]["causes"]] == [
        "spec.configFileRefs[0].name",
        "spec.configFileRefs[0].name",
        "spec.clusterName",
    ]
    assert (
        "has slurm.conf, which the operator writes; use extraConf; spec.config"
        in response["status"]["message"]
    )


def test_what_is_accepted_but_useless_is_warned_about():
    response = controller({"service": {"spec": {"externalIPs": ["1.2.3.4"]}}})

    assert response == {
        "uid": "u1",
        "allowed": True,
        "warnings": [
            "spec.service.spec.externalIPs: is dropped: it would let this Service catch traffic of others"
        ],
    }


@pytest.mark.parametrize(
    ("found", "message", "shown", "last"),
    [
        pytest.param(19, "x", 19, "f18: x", id="there is room for many short ones"),
        pytest.param(16, "x" * 300, 16, f"f15: {'x' * 251}", id="and for some long ones"),
        pytest.param(
            17, "x" * 300, 16, "and 2 more warnings, about f15, f16", id="no room for the last ones"
        ),
    ],
)
def test_warnings_that_there_is_no_room_for_are_counted_and_name_their_fields(found, message, shown, last):
    warnings = Verdict(problems=tuple(warning(f"f{number}", message) for number in range(found))).warnings

    assert len(warnings) == shown
    assert warnings[-1] == last
    assert sum(map(len, warnings)) <= 4096


def test_what_a_refusal_or_a_warning_quotes_is_shown_and_never_obeyed():
    text = "a\x1b]0;owned\x07\nb\u202e"
    verdict = Verdict(problems=(warning("f", text), Problem("g", text)))
    response = json.loads(answer(Asked(version=VERSIONS[0], request=Request(uid="u1")), verdict))["response"]

    shown = r"a\x1b]0;owned\x07\nb\u202e"
    assert response["warnings"] == [f"f: {shown}"]
    assert response["status"]["message"] == f"g: {shown}"
    assert response["status"]["details"]["causes"][0]["message"] == shown


def test_a_changed_cluster_name_is_refused_and_a_kept_one_is_not():
    assert controller({"clusterName": "a"}, old={"clusterName": "a"})["allowed"]

    refused = controller({"clusterName": "b"}, old={"clusterName": "a"})

    assert refused["status"]["message"].startswith("spec.clusterName: cannot change from 'a' to 'b'")


def test_what_was_wrong_before_stands_in_nobody_s_way():
    response = controller({**REFS, "extraConf": "X=1"}, Facts(FILES), old=REFS)

    assert response["allowed"] is True
    assert len(response["warnings"]) == 2


def test_a_finalizer_can_go_whatever_else_is_wrong():
    ending = {"deletionTimestamp": "2030-01-01T00:00:00Z"}

    assert controller(REFS, Facts(FILES), old={}, **ending) == {"uid": "u1", "allowed": True}


@pytest.mark.parametrize(
    ("before", "after", "warned"),
    [
        pytest.param(["x"], ["x"], True, id="applied again by an installer that comes too soon"),
        pytest.param(["x", "y"], ["x"], False, id="a finalizer goes"),
    ],
)
def test_who_applies_what_is_being_deleted_is_told_that_it_goes_all_the_same(before, after, warned):
    ending = {"deletionTimestamp": "2030-01-01T00:00:00Z"}
    response = ask(
        CONTROLLER, Facts(), kind=kind("Controller"), namespace="lab", name="slurm", operation="UPDATE",
        object=thing({}, **ending, finalizers=after), oldObject=thing({}, **ending, finalizers=before),
    )  # fmt: skip

    assert response["allowed"] is True
    assert any("Controller slurm is being deleted" in one for one in response.get("warnings", ())) is warned


def test_names_that_slurm_would_confuse_are_refused():
    refs = References(node_set_names={"gpu": ("other",)})
    spec = {"controllerRef": {"name": "slurm"}, "template": {"spec": {"hostname": "gpu-"}}}

    response = ask(
        NODESET, Facts(refs), kind=kind("NodeSet"), namespace="lab", operation="CREATE", object=thing(spec)
    )

    assert "NodeSet 'other' is already known as 'gpu' to the same Controller" in response["status"]["message"]


@pytest.mark.parametrize(
    ("plain", "complaint"),
    [
        (None, "cannot be read: CREATE came without an object"),
        ({"metadata": 7, "spec": {}}, "metadata: cannot be read: Expected `object`, got `int`"),
        (thing({"clusterName": ["a"]}), "spec.clusterName: cannot be read: Expected `str`, got `array`"),
        (thing({"ha": {"backups": "two"}}), "spec.ha.backups: cannot be read: Expected `int`, got `str`"),
    ],
)
def test_an_object_that_nobody_could_read_is_refused_with_the_place(plain, complaint):
    response = ask(
        CONTROLLER, Facts(), kind=kind("Controller"), namespace="lab", operation="CREATE", object=plain
    )

    assert response["status"]["message"] == complaint


@pytest.mark.parametrize(
    "request_",
    [
        pytest.param({"operation": "DELETE"}, id="deletes pass"),
        pytest.param({"operation": "CONNECT"}, id="connects pass"),
        pytest.param({"subResource": "status"}, id="the status is ours"),
        pytest.param({"namespace": "elsewhere"}, id="another namespace is not ours"),
    ],
)
def test_these_are_not_examined(request_):
    asked = {"kind": kind("Controller"), "namespace": "lab", "operation": "CREATE", "object": thing(REFS)}

    response = ask(CONTROLLER, Facts(FILES), ("lab",), **{**asked, **request_})

    assert response == {"uid": "u1", "allowed": True}


def test_another_kind_passes_with_a_word():
    response = ask(CONTROLLER, Facts(), kind=kind("Pod", ""), operation="CREATE", object={})

    assert response["allowed"] is True
    assert response["warnings"] == ["only Controller.slinky.slurm.net is examined here; this passed unseen"]


@pytest.mark.parametrize("cls", KINDS)
def test_every_kind_is_judged_and_a_good_manifest_passes(cls):
    spec = {"controllerRef": {"name": "slurm"}, "username": "root", "managed": {}}

    response = ask(
        f"/validate-slinky-slurm-net-v1beta1-{cls.KIND.kind.lower()}", Facts(), kind=kind(cls.KIND.kind),
        namespace="lab", operation="CREATE", object=thing(spec),
    )  # fmt: skip

    assert response == {"uid": "u1", "allowed": True}


CLUSTER = {"slurm.nebius.ai/cluster": "soperator"}
OLDER = {"slurm.nebius.ai/cluster-name": "soperator"}
GUARDED = {"labels": {"slurm.nebius.ai/webhook": "true"}}
ENDING = {**GUARDED, "annotations": CLUSTER, "deletionTimestamp": "2030-01-01T00:00:00Z"}
THERE = {"SlurmCluster lab/soperator": {}}


def secret(value: str = "a", **metadata: Any) -> dict:
    return {"metadata": {"name": "mariadb-root", **metadata}, "data": {"password": value}}


@pytest.mark.parametrize(
    ("operation", "new", "old", "things", "complaint"),
    [
        pytest.param("CREATE", secret(), None, {}, "", id="somebody else's Secret"),
        pytest.param("CREATE", secret(**GUARDED, annotations=CLUSTER), None, {}, "", id="a new one with its cluster"),
        pytest.param("CREATE", secret(**GUARDED), None, {}, "a guarded Secret says whose it is", id="a new one without"),
        pytest.param("UPDATE", secret(**GUARDED), secret(), {}, "a guarded Secret says whose", id="guarded later, without"),
        pytest.param("UPDATE", secret("b", **GUARDED, annotations=CLUSTER), secret(**GUARDED, annotations=CLUSTER), {}, "cannot change", id="another password"),
        pytest.param("UPDATE", secret(), secret(**GUARDED, annotations=CLUSTER), {}, "cannot change", id="the label taken away"),
        pytest.param("UPDATE", secret(**GUARDED, annotations=CLUSTER, finalizers=["x"]), secret(**GUARDED, annotations=CLUSTER), {}, "cannot change", id="a finalizer added"),
        pytest.param("UPDATE", secret(**GUARDED, annotations=CLUSTER), secret(**GUARDED, annotations=CLUSTER), {}, "cannot change", id="applied again as it is"),
        pytest.param("UPDATE", secret("b", **GUARDED, annotations=OLDER), secret(**GUARDED, annotations=OLDER), {}, "SlurmCluster 'soperator' uses it", id="its cluster by the other annotation"),
        pytest.param("UPDATE", secret(**ENDING), secret(**ENDING, finalizers=["x"]), THERE, "", id="on its way out"),
        pytest.param("CREATE", secret(**GUARDED, annotations=OLDER), None, {}, "", id="a new one with the other annotation"),
        pytest.param("DELETE", None, secret(**GUARDED, annotations=OLDER), THERE, "SlurmCluster 'soperator' uses it", id="deleted under the cluster of the other annotation"),
        pytest.param("DELETE", None, secret(**GUARDED, annotations=CLUSTER), THERE, "SlurmCluster 'soperator' uses it", id="deleted under its cluster"),
        pytest.param("DELETE", None, secret(**GUARDED, annotations=CLUSTER), {}, "", id="deleted after its cluster"),
        pytest.param("DELETE", None, secret(**GUARDED, annotations=CLUSTER), {"SlurmCluster lab/soperator": Unreachable("no answer")}, "cannot be told: no answer", id="nobody knows whether it is used"),
        pytest.param("DELETE", None, secret(), THERE, "", id="somebody else's deleted"),
    ],
)  # fmt: skip
def test_a_guarded_secret_stays_with_its_cluster(operation, new, old, things, complaint):
    response = ask(
        SECRET, Facts(things=things), kind=kind("Secret", "", "v1"), namespace="lab", operation=operation,
        object=new, oldObject=old,
    )  # fmt: skip

    assert response["allowed"] is not bool(complaint)
    assert complaint in response.get("status", {}).get("message", "")


WORKER = {"labels": {"app.kubernetes.io/name": "slurmd"}}
SWITCH = {"annotations": {"topology.slinky.slurm.net/spec": "topo-switch:s2"}}


def bound(things: dict[str, Any], binding: dict | None = None) -> dict[str, Any]:
    made = binding or {"metadata": {"name": "gpu-0"}, "target": {"kind": "Node", "name": "m1"}}
    return ask(
        BINDING, Facts(things=things), kind=kind("Binding", "", "v1"), subResource="binding", name="gpu-0",
        namespace="lab", operation="CREATE", object=made,
    )  # fmt: skip


def test_a_worker_learns_the_topology_of_the_machine_it_is_bound_to():
    response = bound({"Pod lab/gpu-0": WORKER, "Node m1": SWITCH})

    assert response["patchType"] == "JSONPatch"
    assert json.loads(base64.b64decode(response["patch"])) == [
        {"op": "add", "path": "/metadata/annotations", "value": SWITCH["annotations"]}
    ]


@pytest.mark.parametrize(
    "things",
    [
        pytest.param({"Pod lab/gpu-0": {}, "Node m1": SWITCH}, id="a pod that is no worker"),
        pytest.param({"Node m1": SWITCH}, id="no such pod"),
        pytest.param({"Pod lab/gpu-0": WORKER}, id="no such machine"),
        pytest.param({"Pod lab/gpu-0": {**WORKER, **SWITCH}, "Node m1": SWITCH}, id="it knows already"),
        pytest.param({"Pod lab/gpu-0": Unreachable("no answer")}, id="nobody answers"),
    ],
)
def test_whatever_is_missing_the_pod_is_bound(things):
    response = bound(things)

    assert response["allowed"] is True
    assert "patch" not in response


class Named(Facts):
    """With one NodeSet that can be found by its name."""

    def __init__(self, there: dict) -> None:
        super().__init__()
        self._there = there

    async def live_object(self, cls: Any, namespace: str, name: str) -> Any:
        assert (namespace, name) == ("lab", "demo-cpu")
        return read(cls, self._there)


PART = {
    "name": "demo-cpu",
    "ownerReferences": [{"apiVersion": f"{GROUP}/v1beta1", "kind": "Cluster", "name": "demo", "uid": "c", "controller": True}],
}  # fmt: skip
ALONE = {"name": "demo-cpu", "ownerReferences": []}
WORKERS = {"controllerRef": {"name": "demo"}, "replicas": 2}


def edited(new: dict, meta: dict, manager: str = "kubectl-edit") -> list[str]:
    answer_ = ask(
        NODESET, Facts(), kind=kind("NodeSet"), namespace="lab", name="demo-cpu", operation="UPDATE",
        object=thing(new, **meta), oldObject=thing(WORKERS, **meta), options={"fieldManager": manager},
    )  # fmt: skip
    assert answer_["allowed"]
    return answer_.get("warnings", [])


@pytest.mark.parametrize(
    ("new", "meta", "manager", "words"),
    [
        pytest.param({**WORKERS, "extraConf": "Weight=2"}, PART, "kubectl-edit", "this edit is reverted. Change it in spec.nodeSets of Cluster demo, entry cpu.", id="a field"),
        pytest.param({**WORKERS, "replicas": 5}, PART, "kubectl-edit", "where that sets replicas, this is reverted", id="its size"),
        pytest.param(WORKERS, PART, "kubectl-edit", "", id="no change"),
        pytest.param({**WORKERS, "extraConf": "Weight=2"}, PART, "slurm-operator", "", id="by the operator"),
        pytest.param({**WORKERS, "extraConf": "Weight=2"}, ALONE, "kubectl-edit", "", id="nobody's part"),
    ],
)  # fmt: skip
def test_who_edits_a_part_of_a_cluster_is_told_where_to_do_that(new, meta, manager, words):
    found = edited(new, meta, manager)

    assert bool(found) == bool(words)
    assert all(words in one for one in found)


@pytest.mark.parametrize(
    ("meta", "replicas", "warned"), [(PART, 5, True), (PART, 2, False), (ALONE, 5, False)]
)
def test_who_scales_a_part_of_a_cluster_is_told_where_to_do_that(meta, replicas, warned):
    scale = {"metadata": {"name": "demo-cpu", "namespace": "lab"}}
    answer_ = ask(
        NODESET, Named(thing(WORKERS, **meta)), kind=kind("Scale", "autoscaling", "v1"), subResource="scale",
        namespace="lab", name="demo-cpu", operation="UPDATE", object={**scale, "spec": {"replicas": replicas}},
        oldObject={**scale, "spec": {"replicas": 2}},
    )  # fmt: skip

    assert answer_["allowed"]
    assert bool(answer_.get("warnings")) == warned
    assert not warned or "Set them in spec.nodeSets of Cluster demo, entry cpu." in answer_["warnings"][0]
