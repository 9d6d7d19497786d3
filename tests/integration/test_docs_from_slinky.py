"""Moving over from Slinky as the guide says, typed as it stands, on a real API server with the real helm.

Slinky's charts are stand-ins (`testing.slinky_charts`). Clusters and pods are there before, and the real garbage
collector: what a command deletes is gone.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from chart_rig import program
from kinds_rig import apply, get

from slurm_local.errors import LocalError
from testing.control_plane import ControlPlane, Plane
from testing.docs import ROOT, Terminal, section
from testing.managers import until
from testing.nulls import SMALLEST
from testing.readers import GUIDE_FROM_SLINKY, type_one
from testing.slinky_charts import GROUP, KINDS, write_charts

CRDS = " ".join(f"{plural}.{GROUP}" for plural in KINDS.values())
ANNOTATE = f"kubectl annotate --overwrite crd {CRDS} helm.sh/resource-policy=keep"

# How the CRDs came there, as Slinky's own guide says it.
SEPARATE = (
    "helm install slurm-operator-crds slinky/slurm-operator-crds @how@;"
    "helm install slurm-operator slinky/slurm-operator -n slinky --create-namespace @how@"
)
IMAGE = "--set global.image.repository=registry.example/slurm-operator"
SUB_CHART = "helm install slurm-operator slinky/slurm-operator -n slinky --create-namespace --set crds.enabled=true @how@"
BY_HAND = (
    "helm template slinky/slurm-operator-crds | kubectl apply -f -;"
    "helm install slurm-operator slinky/slurm-operator -n slinky --create-namespace @how@"
)
# Helm 4 applies on the server; a release of Helm 3, or of Helm 4 asked to, is written by the client.
SERVER, CLIENT = "--server-side=true", "--server-side=false"


class Reader:
    """Somebody with Slinky's operator and one cluster."""

    def __init__(self, plane: Plane, terminal: Terminal) -> None:
        self.plane = plane
        self.terminal = terminal

    def type(self, text: str) -> str:
        done = self.terminal.type(text)
        assert done.returncode == 0, f"{text}\n{done.stdout}{done.stderr}"
        return done.stdout

    def type_section(self, title: str) -> None:
        commands = section(ROOT / GUIDE_FROM_SLINKY, title)
        assert commands, f"the guide has nothing to type under {title!r}"
        troubles = [trouble for command in commands for trouble in type_one(command, self.terminal)]
        assert not troubles, "\n\n".join(troubles)

    def uids(self) -> dict[str, str]:
        """Of every CRD, object and pod that is not on its way out."""
        kinds = ",".join(f"{plural}.{GROUP}" for plural in KINDS.values())
        try:
            there = self.plane.kubectl("get", f"crd,pods,{kinds}", "-A", "-o", "json")
        except LocalError:  # Without its CRD a kind is unknown.
            there = self.plane.kubectl("get", "crd,pods", "-A", "-o", "json")
        return {
            f"{thing['kind']} {thing['metadata']['name']}": thing["metadata"]["uid"]
            for thing in json.loads(there)["items"]
            if "deletionTimestamp" not in thing["metadata"]
            and thing["metadata"].get("namespace", "slurm") == "slurm"
            and thing["metadata"]["name"] != f"clusters.{GROUP}"
        }


@contextmanager
def reading(place: Path, installed: str) -> Iterator[Reader]:
    with ControlPlane(place / "plane", controller_manager=True).running() as plane:
        terminal = Terminal(place / "home", plane.kubeconfig, kubectl=plane.kubectl_program, helm=program())
        write_charts(terminal.directory / "slinky")
        image = "global: {image: {repository: registry.example/slurm-operator}}\n"
        for name, more in (("values.yaml", image), ("slinky-values.yaml", "")):
            (terminal.directory / name).write_text("operator: {replicas: 1}\n" + more)
        reader = Reader(plane, terminal)
        reader.type(installed)
        plane.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=60s")
        reader.type("helm install slurm slinky/slurm -n slurm --create-namespace")
        plane.wait_for_service_account("slurm")
        apply(plane, *(worker(plane, f"slinky-{index}") for index in range(2)))
        yield reader


def worker(plane: Plane, name: str) -> dict:
    """A pod that its NodeSet owns: without the NodeSet the garbage collector deletes it."""
    owner = get(plane, "slurm", "nodesets.slinky.slurm.net", "slurm-worker-slinky")
    reference = {
        "apiVersion": owner["apiVersion"], "kind": "NodeSet", "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"], "controller": True, "blockOwnerDeletion": True,
    }  # fmt: skip
    metadata = {"name": name, "namespace": "slurm", "ownerReferences": [reference]}
    spec = {"containers": [{"name": "slurmd", "image": "none"}], "terminationGracePeriodSeconds": 0}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


@pytest.mark.full
@pytest.mark.timeout(300)
@pytest.mark.parametrize("how", [SERVER, CLIENT], ids=["applied by the server", "applied by the client"])
@pytest.mark.parametrize(
    ("installed", "title"),
    [
        pytest.param(SEPARATE, "CRDs in a chart of their own", id="separate"),
        pytest.param(SUB_CHART, "CRDs as a sub-chart", id="sub-chart"),
        pytest.param(SUB_CHART, "With another release name or namespace", id="elsewhere"),
        pytest.param(SEPARATE, "Swap the image", id="image, separate"),
        pytest.param(SUB_CHART, "Swap the image", id="image, sub-chart"),
        pytest.param(BY_HAND, "Swap the image", id="image, without Helm"),
    ],
)
def test_each_way_of_the_guide_keeps_every_crd_object_and_pod(tmp_path, installed, title, how):
    with reading(tmp_path, installed.replace("@how@", how)) as reader:
        before = reader.uids()
        assert len(before) == len(KINDS) + 4 + 2, "six CRDs, four objects, two workers"

        reader.type_section("Never uninstall the CRDs")
        reader.type_section(title)

        until_settled(reader)
        assert reader.uids() == before
        if title != "Swap the image":
            is_guarded_and_kept(reader, before)


@pytest.mark.full
@pytest.mark.timeout(300)
@pytest.mark.parametrize("how", [SERVER, CLIENT], ids=["applied by the server", "applied by the client"])
@pytest.mark.parametrize(
    ("installed", "title"),
    [
        pytest.param(SEPARATE, "CRDs in a chart of their own", id="separate"),
        pytest.param(SUB_CHART, "CRDs as a sub-chart", id="sub-chart"),
    ],
)
def test_who_swapped_the_image_before_moves_to_our_charts_as_well(tmp_path, installed, title, how):
    with reading(tmp_path, installed.replace("@how@", how)) as reader:
        before = reader.uids()
        reader.type_section("Swap the image")

        reader.type_section(title)

        until_settled(reader)
        assert reader.uids() == before
        deployment = get(reader.plane, "slinky", "deployment", "slurm-operator")
        [container] = deployment["spec"]["template"]["spec"]["containers"]
        assert container["image"].startswith("registry.example/slurm-operator")
        is_guarded_and_kept(reader, before)


def until_settled(reader: Reader) -> None:
    """The garbage collector follows a deletion within a second or two: after that, what is there stays."""
    reader.plane.kubectl("create", "configmap", "owner", "-n", "slurm")
    owner = get(reader.plane, "slurm", "configmap", "owner")
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["metadata"]["uid"]}
    meta = {"name": "owned", "namespace": "slurm", "ownerReferences": [reference]}
    apply(reader.plane, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta})
    reader.plane.kubectl("delete", "configmap", "owner", "-n", "slurm")
    until(lambda: get(reader.plane, "slurm", "configmap", "owned") is None, what="the garbage collected")


def is_guarded_and_kept(reader: Reader, before: dict[str, str]) -> None:
    """Our charts run now: nobody deletes a CRD by mistake, and not even uninstalling everything does."""

    def refused() -> bool:
        done = reader.terminal.type(f"kubectl delete crd nodesets.{GROUP} --dry-run=server")
        return "would delete every NodeSet" in done.stderr

    until(refused, what="the policy at work")
    for release in json.loads(reader.type("helm list -A -o json")):
        if release["name"] != "slurm":
            reader.type(f"helm uninstall {release['name']} -n {release['namespace']} --wait")
    until_settled(reader)
    assert reader.uids() == before


OURS = ["nodeset.slinky.slurm.net/workers", "slinky.slurm.net/in-use"]
THEIRS = "nodeset.slinky.slurm.net/reservation"
OTHER = "example.com/held"
HELD = {
    "Controller a": [OURS[1]],
    "Controller b": [OTHER, OURS[1]],
    "RestApi a": [OURS[1], OTHER],
    "Accounting a": [OTHER],
    "NodeSet a": [THEIRS, OURS[0], OTHER],
    "NodeSet b": [OURS[0]],
    "LoginSet a": [],
    "Token a": [OTHER, THEIRS],
}


@pytest.mark.full
@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("ways", "finalizers"),
    [
        pytest.param(["Swap the image", "Back by image"], HELD, id="by image"),
        pytest.param(
            ["CRDs as a sub-chart", "Back by chart"], HELD | {"Cluster a": [OURS[1]]}, id="by chart"
        ),
    ],
)
def test_going_back_takes_off_our_finalizers_and_no_others(tmp_path, ways, finalizers):
    there, back = ways
    with reading(tmp_path, SUB_CHART.replace("@how@", SERVER)) as reader:
        reader.type_section(there)
        for namespace in ("red", "blue"):
            reader.plane.kubectl("create", "namespace", namespace)
            apply(reader.plane, *(held(namespace, *each) for each in finalizers.items()))
        before = reader.uids()

        reader.type_section("Going back")
        reader.plane.kubectl("delete", "nodesets.slinky.slurm.net", "b", "-n", "red", "--wait=false")

        for namespace in ("red", "blue"):
            left = {f"{thing['kind']} a": thing for thing in objects(reader.plane, namespace, finalizers)}
            for name, had in finalizers.items():
                if name.endswith(" a"):
                    kept = [one for one in had if one not in OURS]
                    assert left[name]["metadata"].get("finalizers", []) == kept, name
        until(
            lambda: get(reader.plane, "red", "nodesets.slinky.slurm.net", "b") is None, what="NodeSet b gone"
        )
        deployment = get(reader.plane, "slinky", "deployment", "slurm-operator")
        assert deployment["spec"]["replicas"] == 0

        reader.type_section(back)

        deployment = get(reader.plane, "slinky", "deployment", "slurm-operator")
        [container] = deployment["spec"]["template"]["spec"]["containers"]
        assert container["image"] == "ghcr.io/slinkyproject/slurm-operator:1.3.0"
        assert (container["name"], deployment["spec"]["replicas"]) == ("slurm-operator", 1)
        until_settled(reader)
        assert reader.uids() == before


def held(namespace: str, what: str, finalizers: list[str]) -> dict:
    kind, name = what.split()
    metadata = {"name": name, "namespace": namespace, "finalizers": finalizers}
    return {"apiVersion": f"{GROUP}/v1beta1", "kind": kind, "metadata": metadata, "spec": SMALLEST[kind]}


def objects(plane: Plane, namespace: str, finalizers: dict[str, list[str]]) -> list[dict]:
    """Those called `a`."""
    kinds = sorted({what.split()[0].lower() + f"s.{GROUP}" for what in finalizers})
    found = json.loads(plane.kubectl("get", ",".join(kinds), "-n", namespace, "-o", "json"))["items"]
    return [thing for thing in found if thing["metadata"]["name"] == "a"]


@pytest.mark.full
@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("commands", "kept"),
    [
        pytest.param("helm uninstall slurm-operator -n slinky", False, id="uninstalled"),
        pytest.param(f"{ANNOTATE}; helm uninstall slurm-operator -n slinky", False, id="annotated, uninstalled"),
        pytest.param(f"helm upgrade slurm-operator charts/slurm-operator -n slinky {IMAGE} --set protection.enabled=false", False, id="upgraded without, our policies off"),
        pytest.param(f"{ANNOTATE}; helm upgrade slurm-operator charts/slurm-operator -n slinky {IMAGE}", True, id="annotated, upgraded without"),
        pytest.param(f"helm upgrade slurm-operator charts/slurm-operator -n slinky {IMAGE} --set crds.enabled=true --force-conflicts", True, id="upgraded with"),
    ],
)  # fmt: skip
def test_helm_does_with_crds_what_the_guide_says(tmp_path, commands, kept):
    with reading(tmp_path, SUB_CHART.replace("@how@", SERVER)) as reader:
        before = reader.uids()

        reader.type(commands)

        until_settled(reader)
        if kept:
            assert reader.uids() == before
        else:
            # The garbage collector deletes the pods when it next looks which kinds there are.
            until(lambda: all("Pod" in what for what in reader.uids()), what="every CRD and object gone")
