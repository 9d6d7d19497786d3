"""What `doctor` finds, with a remedy for each: golden files, and a table of single troubles."""

from datetime import UTC, datetime

import pytest

from slurm_operator import wire
from slurm_operator.api import KINDS
from slurm_operator.api.schema import codec
from slurm_operator.api.schema.crd import crd
from slurm_operator.api.shared import names
from slurm_operator.api.shared.meta import Meta, ObjectKey
from slurm_operator.api.slinky.accounting import Accounting
from slurm_operator.insight.doctor.checkup import findings, grouped, is_fit, report
from slurm_operator.insight.doctor.collection import has_plain_metrics, in_cluster_service
from slurm_operator.insight.doctor.facts import (
    Facts,
    Kubelet,
    Machine,
    MachineStatus,
    NodeInfo,
    Operator,
    Right,
    Serving,
    Webhook,
)
from slurm_operator.insight.doctor.finding import Level, ok, warn
from slurm_operator.insight.doctor.installation import crd_name
from slurm_operator.insight.doctor.rights import operators_needs
from slurm_operator.install.objects import Installation, installation
from slurm_operator.manifests.builders.slurm_network import network_policies
from slurm_operator.manifests.objects import (
    Container,
    ContainerState,
    ContainerStateWaiting,
    ContainerStatus,
    KubeNodeSpec,
    Pod,
    PodCondition,
    PodSpec,
    PodStatus,
    Probe,
    Unread,
)
from slurm_operator.manifests.platform import Namespace, StorageClass
from slurm_operator.reconcilers.cluster.isolation import Chosen, Isolation
from slurm_operator.reconcilers.controller.configuration.slurm_conf import CGROUP_CONF
from testing import slinky_crds
from testing.texts import assert_text

PINNED = Kubelet(single_process_oom_kill=True, cpu_manager_policy="static")

DENIED = Unread(why="list nodes: nodes is forbidden")


def machine(name: str, *, arch="amd64", kubelet="v1.36.3", ready=True, cordoned=False) -> Machine:
    return Machine(
        metadata=Meta(name=name),
        spec=KubeNodeSpec(unschedulable=cordoned),
        status=MachineStatus(
            conditions=[PodCondition(type="Ready", status="True" if ready else "False")],
            node_info=NodeInfo(architecture=arch, kubelet_version=kubelet),
        ),
    )


def storage_class(name: str, *, default: bool) -> StorageClass:
    note = {"storageclass.kubernetes.io/is-default-class": "true"} if default else {}
    return StorageClass(metadata=Meta(name=name, annotations=note))


def namespace(level: str = "") -> Namespace:
    labels = {"pod-security.kubernetes.io/enforce": level} if level else {}
    return Namespace(metadata=Meta(name="slurm", labels=labels))


def accounting(*conditions: dict) -> Accounting:
    spec = {"storageConfig": {"host": "mariadb.db", "passwordKeyRef": {"name": "db", "key": "password"}}}
    meta = {"name": "books", "namespace": "slurm"}
    return codec.read(
        Accounting, {"metadata": meta, "spec": spec, "status": {"conditions": list(conditions)}}
    )


def imageless() -> Pod:
    waiting = ContainerStateWaiting(reason="ImagePullBackOff", message='image "slurmd:nope" not found')
    status = ContainerStatus(name="slurmd", state=ContainerState(waiting=waiting))
    return Pod(metadata=Meta(name="cpu-0"), status=PodStatus(phase="Pending", container_statuses=[status]))


def probed(name: str, *, liveness: bool = True) -> Pod:
    slurmd = Container(name="slurmd", liveness_probe=Probe() if liveness else None)
    labels = {names.APP_NAME: "slurmd"}
    return Pod(metadata=Meta(name=name, namespace="slurm", labels=labels), spec=PodSpec(containers=[slurmd]))


def allowed(name: str, **fields) -> Pod:
    """A worker that may be deleted under its jobs."""
    pod = probed(name, liveness=False)
    annotations = {names.ALLOW_DELETION: "true"}
    return wire.replace(pod, metadata=wire.replace(pod.metadata, annotations=annotations, **fields))


def confined(name: str) -> Pod:
    """A worker that this version made."""
    pod = probed(name, liveness=False)
    annotations = {names.POD_SECURITY: names.POD_SECURITY_NOW}
    return wire.replace(pod, metadata=wire.replace(pod.metadata, annotations=annotations))


MISSING = (
    Right(verb="list", resource="pods", namespace="slurm"),
    Right(verb="get", resource="secrets", namespace="slurm"),
    Right(verb="list", resource="jobs", group="batch", namespace="slurm"),
    Right(verb="list", resource="nodes"),
)

OPERATOR = Operator(
    namespace="slurm-operator", name="slurm-operator", image="slurm-operator:1", account="slurm-operator/slurm-operator", wanted=1, ready=1,
)  # fmt: skip

FIT = Facts(
    namespace="slurm",
    version="v1.36.3",
    user="ada",
    machines=(machine("m1"), machine("m2")),
    cgroups={"m1": 2, "m2": 2},
    missing_rights=(),
    storage_classes=(storage_class("disk", default=True), storage_class("slow", default=False)),
    home=namespace(),
    crds={crd_name(kind.KIND): crd(kind) for kind in KINDS},
    operators=(OPERATOR,),
    webhooks=(),
    is_protected=True,
    are_crds_protected=True,
    has_monitoring=True,
    dns=(Serving(namespace="kube-system", name="kube-dns", ready=2),),
    accountings=(),
    databases={},
    pods=(),
    network_policies=(),
    forced=(),
)


def told(facts: Facts, check: str) -> tuple[Level, str]:
    """The worst that was found under this name."""
    order = list(Level)
    found = [one for one in findings(facts) if one.check == check]
    worst = max(found, key=lambda one: order.index(one.level))
    return worst.level, worst.message


def test_a_cluster_that_fits():
    assert is_fit(findings(FIT))
    assert_text("doctor/fit.txt", report(findings(FIT)).plain)


def test_a_bare_kubernetes_is_told_what_to_install():
    bare = wire.replace(
        FIT,
        crds={},
        operators=(),
        is_protected=False,
        are_crds_protected=False,
        has_monitoring=False,
        storage_classes=(),
        home=None,
    )

    assert not is_fit(findings(bare))
    assert_text("doctor/bare.txt", report(findings(bare)).plain)


def test_a_user_who_may_look_at_nothing_is_told_so_for_each_thing():
    blind = wire.replace(
        FIT, **{name: DENIED for name in Facts.__struct_fields__ if name not in ("namespace", "databases", "user")}
    )  # fmt: skip

    found = findings(blind)

    assert {one.level for one in found} == {Level.WARN, Level.NOTE}
    assert all("forbidden" in one.message for one in found)


def test_somebody_who_may_see_nothing_is_never_told_that_it_is_fit():
    blind = wire.replace(
        FIT, **{name: DENIED for name in Facts.__struct_fields__ if name not in ("namespace", "databases", "user")}
    )  # fmt: skip
    found = findings(blind)
    told = report(found).plain

    assert not is_fit(found)
    assert "Fit for Slurm" not in told
    assert "Nobody can say whether it is fit: " in told
    assert told.count("Run this as somebody who may look there.") == 1
    assert "You may not look at Kubernetes, Nodes, " in told


def test_equal_findings_are_told_once():
    twice = [warn("A", "too old.", "Renew it."), warn("B", "too old.", "Renew it."), ok("C", "fine.")]
    same = [warn("A", "too old.", "Renew it.")] * 2

    assert [one.check for one in grouped(twice)] == ["A, B", "C"]
    assert [one.message for one in grouped(same)] == ["too old. (2 times)"]


def test_what_could_be_checked_is_said_to_be_fit_and_how_much_was_not():
    partly = findings(wire.replace(FIT, machines=DENIED, cgroups=DENIED))

    assert is_fit(partly)
    assert "What could be checked is fit for Slurm; " in report(partly).plain


@pytest.mark.parametrize(
    ("changes", "check", "level", "words"),
    [
        ({"version": "v1.28.4"}, "Kubernetes", Level.FAIL, "v1.28.4 is too old"),
        ({"version": "v1.29.0+k3s1"}, "Kubernetes", Level.WARN, "no admission policies"),
        ({"machines": (machine("m1", ready=False), machine("m2", cordoned=True))}, "Nodes", Level.FAIL, "None of 2"),
        ({"machines": (machine("m1"), machine("m2", kubelet="v1.27.1"))}, "Nodes", Level.FAIL, "on m2"),
        ({"machines": (machine("m1"), machine("m2", arch="s390x"))}, "Architecture", Level.WARN, "1 s390x"),
        ({"machines": (machine("m1"), machine("m2", arch="arm64"))}, "Architecture", Level.NOTE, "1 amd64, 1 arm64"),
        ({"cgroups": {"m1": 2, "m2": 1}}, "cgroups", Level.WARN, "Version 1 on m2"),
        ({"cgroups": DENIED}, "cgroups", Level.NOTE, "forbidden"),
        ({"cgroups": {}}, "cgroups", Level.NOTE, "No kubelet tells"),
        ({"kubelets": {"m1": Kubelet(cgroup_driver="systemd")}}, "cgroups", Level.OK, "driver systemd"),
        ({"kubelets": {"m1": Kubelet()}}, "Kubelets", Level.NOTE, "On m1 the kernel ends a whole container"),
        ({"kubelets": {"m2": PINNED}}, "Kubelets", Level.NOTE, "The CPU manager on m2"),
        ({"cgroup_files": {"slurm": CGROUP_CONF}}, "Isolation", Level.NOTE, "ConstrainRAMSpace, ConstrainCores"),
        ({"dns": (Serving(namespace="kube-system", name="kube-dns", ready=0),)}, "DNS", Level.FAIL, "cannot find slurmctld"),
        ({"dns": ()}, "DNS", Level.WARN, "k8s-app=kube-dns"),
        ({"storage_classes": (storage_class("slow", default=False),)}, "Storage", Level.WARN, "There are slow"),
        ({"home": namespace("restricted")}, "Pod Security", Level.FAIL, "no slurmd can start"),
        ({"home": namespace("baseline")}, "Pod Security", Level.NOTE, "isolation: process"),
        ({"missing_rights": MISSING}, "Your rights", Level.WARN, "ada may not list pods, jobs.batch; get secrets (in namespace slurm); list nodes (in the whole cluster)."),
        ({"operators": (wire.replace(OPERATOR, ready=0),)}, "Operator", Level.FAIL, "0 of 1 pods ready"),
        ({"operators": (OPERATOR, wire.replace(OPERATOR, namespace="slinky"))}, "Operator", Level.WARN, "Several are installed"),
        ({"operators": (wire.replace(OPERATOR, missing=(Right(verb="patch", resource="pods"),)),)}, "Operator's rights", Level.FAIL, "may not patch pods"),
        ({"operators": (wire.replace(OPERATOR, missing=(Right(verb="create", resource="events"),)),)}, "Operator's rights", Level.WARN, "may not create events"),
        ({"operators": (wire.replace(OPERATOR, has_plain_metrics=True),)}, "Metrics", Level.NOTE, "Every pod can read those of slurm-operator/slurm-operator"),
        ({"operators": (wire.replace(OPERATOR, missing=DENIED),)}, "Operator's rights", Level.NOTE, "forbidden"),
        ({"webhooks": (Webhook(configuration="w", service="a/b", is_blocking=True, trouble="refused"),)}, "Webhook", Level.FAIL, "cannot be changed"),
        ({"webhooks": (Webhook(configuration="w", service="a/b", is_blocking=False, trouble="refused"),)}, "Webhook", Level.WARN, "left out"),
        ({"webhooks": (Webhook(configuration="w", service="a/b", is_blocking=True),)}, "Webhook", Level.OK, "w answers"),
        ({"accountings": (accounting(),), "databases": {"books": Serving(namespace="db", name="mariadb", ready=0)}}, "Database", Level.FAIL, "nothing is ready behind Service db/mariadb"),
        ({"accountings": (accounting({"type": "Degraded", "status": "True", "reason": "DatabaseLogin", "message": "refuses user 'slurm'"}),)}, "Database", Level.FAIL, "refuses user 'slurm'"),
        ({"accountings": (accounting({"type": "Ready", "status": "True", "reason": "Serving"}),)}, "Database", Level.OK, "books works"),
        ({"accountings": (accounting(),)}, "Database", Level.NOTE, "not ready yet"),
        ({"pods": (probed("cpu-0"), probed("cpu-1", liveness=False))}, "Liveness probes", Level.WARN, "1 of 2 workers have one: cpu-0."),
        ({"pods": (probed("cpu-0", liveness=False),)}, "Liveness probes", Level.OK, "None of 1 workers"),
        ({"pods": (allowed("cpu-1"), allowed("cpu-0"), probed("cpu-2", liveness=False))}, "Overrides", Level.WARN, "cpu-0, cpu-1 may be deleted with running jobs"),
        ({"forced": ("nodesets.slinky.slurm.net/cpu",)}, "Forced deletions", Level.WARN, "nodesets.slinky.slurm.net/cpu: deleting it does not wait for jobs"),
        ({"pods": (confined("cpu-0"), probed("cpu-1", liveness=False))}, "Confinement", Level.NOTE, "1 of 2 pods are as an earlier version made them, which confined daemons less: cpu-1."),
        ({"pods": (imageless(),)}, "Images", Level.FAIL, 'image "slurmd:nope" not found'),
    ],
)  # fmt: skip
def test_a_single_trouble_is_found_with_its_remedy(changes, check, level, words):
    facts = wire.replace(FIT, **changes)

    assert told(facts, check)[0] is level
    assert words in told(facts, check)[1]
    assert is_fit(findings(facts)) == (level is not Level.FAIL)
    assert all(one.remedy for one in findings(facts) if one.level is not Level.OK)


def test_a_worker_that_is_being_deleted_needs_its_override():
    ending = wire.replace(FIT, pods=(allowed("cpu-0", deletion_timestamp=datetime(2026, 1, 1, tzinfo=UTC)),))

    assert [one for one in findings(ending) if one.check == "Overrides"] == []


def test_a_definition_of_another_version_is_noticed():
    older = {name: wire.decode_any(wire.encode(body)) for name, body in FIT.crds.items()}
    version = older["nodesets.slinky.slurm.net"]["spec"]["versions"][0]
    version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"].popitem()

    level, message = told(wire.replace(FIT, crds=older), "CRDs")

    assert (level, "another version than this program: NodeSet." in message) == (Level.WARN, True)


def made_by_helm(crds: dict, *, policy: str = "", by: str = "helm") -> dict:
    """The same CRDs as they are after `helm install`; `by` wrote what becomes of them when it is uninstalled."""
    notes = {"meta.helm.sh/release-name": "slurm-operator", "meta.helm.sh/release-namespace": "slinky"}
    kept = {"f:metadata": {"f:annotations": {"f:helm.sh/resource-policy": {}}}} if policy else {}
    fields = {"helm": {"f:spec": {}}}
    fields[by] = fields.get(by, {}) | kept
    managed = [{"manager": manager, "fieldsV1": owned} for manager, owned in fields.items()]
    notes |= {"helm.sh/resource-policy": policy} if policy else {}
    return {
        name: {**crd, "metadata": {"name": name, "annotations": notes, "managedFields": managed}}
        for name, crd in crds.items()
    }


@pytest.mark.parametrize(
    ("release", "command"),
    [
        pytest.param("", "kubectl apply --server-side -f -`", id="nobody's"),
        pytest.param(
            "slurm-operator", "kubectl apply --server-side --force-conflicts -f -`", id="a sub-chart"
        ),
        pytest.param(
            "slurm-operator-crds",
            "`helm upgrade slurm-operator-crds charts/slurm-operator-crds -n slinky --server-side=true --force-conflicts`",
            id="a release of their own",
        ),
    ],
)
def test_the_command_for_other_crds_works_for_whoever_owns_them(release, command):
    theirs = {one["metadata"]["name"]: one for one in slinky_crds.crds()}
    notes = (
        {"meta.helm.sh/release-name": release, "meta.helm.sh/release-namespace": "slinky"} if release else {}
    )
    owned = {name: {**one, "metadata": {"name": name, "annotations": notes}} for name, one in theirs.items()}
    [missing, other] = [one for one in findings(wire.replace(FIT, crds=owned)) if one.check == "CRDs"]

    assert "Not installed: Cluster." in missing.message
    assert "statuses are written without what is missing" in other.remedy
    assert command in other.remedy
    assert command in missing.remedy


@pytest.mark.parametrize(
    ("changes", "level", "words"),
    [
        pytest.param({}, Level.OK, "A policy keeps the CRDs", id="kept"),
        pytest.param({"crds": made_by_helm(FIT.crds, policy="keep")}, Level.OK, "A policy keeps", id="our chart"),
        pytest.param({"crds": made_by_helm(FIT.crds)}, Level.WARN, "`helm uninstall slurm-operator -n slinky` deletes accountings.slinky.slurm.net, ", id="a chart without keep"),
        pytest.param({"crds": made_by_helm(FIT.crds, policy="delete")}, Level.WARN, "does not say helm.sh/resource-policy: keep", id="another word"),
        pytest.param({"crds": made_by_helm(FIT.crds, policy="keep", by="kubectl-annotate")}, Level.NOTE, "which cannot be seen here", id="kept by hand: the release may not know"),
        pytest.param({"are_crds_protected": False}, Level.WARN, "No policy protects the CRDs", id="no policy"),
        pytest.param({"are_crds_protected": DENIED}, Level.WARN, "forbidden", id="nobody knows"),
        pytest.param({"crds": {name: {**crd, "metadata": {"annotations": {"slinky.slurm.net/allow-deletion": "true"}}} for name, crd in FIT.crds.items()}}, Level.WARN, "may be deleted", id="left allowed"),
    ],
)  # fmt: skip
def test_crds_that_could_be_deleted_by_mistake_are_told_beforehand(changes, level, words):
    facts = wire.replace(FIT, **changes)

    assert told(facts, "CRD deletion")[0] is level
    assert words in told(facts, "CRD deletion")[1]
    assert all(one.remedy for one in findings(facts) if one.level is not Level.OK)


@pytest.mark.parametrize(
    ("host", "service"),
    [
        ("mariadb", ObjectKey("slurm", "mariadb")),
        ("mariadb.db", ObjectKey("db", "mariadb")),
        ("mariadb.db.svc", ObjectKey("db", "mariadb")),
        ("mariadb.db.svc.cluster.local", ObjectKey("db", "mariadb")),
        ("mysql.example.com", None),
        ("10.1.2.3", None),
    ],
)
def test_only_names_that_must_be_services_are_taken_for_one(host, service):
    assert in_cluster_service(host, "slurm") == service


def test_the_operators_rights_are_those_of_its_own_role():
    asked = {(one.group, one.resource, one.verb) for one in operators_needs("slurm")}
    role = next(o for o in installation(Installation(image="x")) if o["kind"] == "ClusterRole")

    granted = {
        (group, resource, verb)
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }
    assert asked == granted


@pytest.mark.parametrize(
    ("arguments", "is_plain"),
    [
        ([], True),
        (["--metrics-secure=false"], True),
        (["--metrics-secure=true"], False),
        (["--metrics-secure"], False),
        (["--metrics-addr=0"], False),
        (["--config=/etc/slurm-operator"], False),
    ],
)
def test_whether_everybody_can_read_metrics_as_far_as_arguments_tell(arguments, is_plain):
    assert has_plain_metrics(arguments) is is_plain


def of(daemon: str) -> Pod:
    return Pod(metadata=Meta(name=f"{daemon}-0", namespace="slurm", labels={names.APP_NAME: daemon}))


DAEMONS = tuple(map(of, ("slurmctld", "slurmd", "slurmdbd", "mariadb", "slurmrestd", "login")))


def policy(app: str, *ingress: dict, **spec) -> dict:
    return {"spec": {"podSelector": {"matchLabels": {names.APP_NAME: app}}, "ingress": list(ingress), **spec}}


def port(number: int | str, **more) -> list[dict]:
    return [{"port": number, **more}]


EVERYBODY = {"from": [{"podSelector": {}}]}
STRANGERS = {"from": [{"podSelector": {"matchLabels": {"app": "web"}}}]}


@pytest.mark.parametrize(
    ("policies", "level", "words"),
    [
        pytest.param((), Level.NOTE, "every pod of the cluster reaches their ports", id="none"),
        pytest.param((policy("web"),), Level.NOTE, "No NetworkPolicy is about", id="about others"),
        pytest.param(network_policies(), Level.OK, "let them reach each other", id="those of the chart"),
        pytest.param((policy("slurmctld"),), Level.WARN, "slurmd to slurmctld on port 6817", id="nobody may come"),
        pytest.param((policy("slurmctld", STRANGERS),), Level.WARN, "login to slurmctld", id="others may come"),
        pytest.param((policy("slurmctld", STRANGERS), policy("slurmctld", EVERYBODY)), Level.OK, "", id="one of two lets them in"),
        pytest.param((policy("slurmd", {**EVERYBODY, "ports": port(22)}),), Level.WARN, "slurmctld to slurmd on port 6818", id="another port"),
        pytest.param((policy("slurmd", {"ports": port(6800, endPort=6900)}),), Level.OK, "", id="a range of ports"),
        pytest.param((policy("slurmd", {"ports": port("slurmd")}),), Level.OK, "", id="a port by its name"),
        pytest.param((policy("slurmd", {"ports": port(6818, protocol="UDP")}),), Level.WARN, "slurmd to slurmd", id="not TCP"),
        pytest.param((policy("mariadb", {"from": [{"ipBlock": {"cidr": "10.0.0.0/8"}}]}),), Level.OK, "", id="by address: nobody can tell"),
        pytest.param((policy("slurmdbd", policyTypes=["Egress"]),), Level.WARN, "slurmdbd to mariadb on port 3306", id="kept in"),
        pytest.param((policy("slurmdbd", policyTypes=["Egress"], egress=[{}]),), Level.OK, "", id="free to go"),
    ],
)  # fmt: skip
def test_network_policies_let_daemons_reach_each_other_or_the_flow_is_named(policies, level, words):
    facts = wire.replace(FIT, pods=DAEMONS, network_policies=tuple(policies))

    assert told(facts, "Network")[0] is level
    assert words in told(facts, "Network")[1]


@pytest.mark.parametrize(
    "facts",
    [
        pytest.param(
            {"cgroup_files": {"slurm": Chosen(Isolation.CGROUP, "").file}}, id="a Cluster's: all are on"
        ),
        pytest.param({"cgroup_files": {"slurm": Chosen(Isolation.PROCESS, "").file}}, id="without cgroups"),
        pytest.param({"cgroup_files": {"slurm": ""}}, id="no file yet"),
        pytest.param({"kubelets": {"m1": Kubelet(single_process_oom_kill=True)}}, id="only the process ends"),
        pytest.param(
            {"kubelets": {"m1": Kubelet()}, "cgroups": {"m1": 1}}, id="version 1 never ends a group"
        ),
    ],
)
def test_nothing_is_said_about_jobs_that_are_held_to_what_they_asked_for(facts):
    checks = {one.check for one in findings(wire.replace(FIT, **facts))}

    assert checks.isdisjoint({"Isolation", "Kubelets"})
