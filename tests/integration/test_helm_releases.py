"""Slurm releases with the real helm 4, which applies on the server: install, upgrade, uninstall, reinstall at once.

One chart is ours; the other is a stand-in whose objects are as Slinky's chart renders them, nulls included. With the
operator, and without: then nobody holds anything, and nothing is left. No pod ever runs here.
"""

import json
import subprocess
import uuid
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml
from chart_rig import CHARTS, HelmError, program
from kinds_rig import get, serving_kinds

from testing import rights
from testing.managers import running_manager, until
from testing.slinky_charts import write_charts

KINDS = ("controllers", "restapis", "nodesets", "loginsets")
OPERATOR = "releases-operator"


@pytest.fixture(scope="module")
def plane(tmp_path_factory):
    with serving_kinds(tmp_path_factory.mktemp("releases"), controller_manager=True) as plane:
        yield plane


@pytest.fixture(scope="module")
def slinky(tmp_path_factory) -> Path:
    place = tmp_path_factory.mktemp("slinky")
    write_charts(place)
    return place / "slurm"


@pytest.fixture
def ns(plane) -> str:
    name = f"release-{uuid.uuid4().hex[:8]}"
    plane.kubectl("create", "namespace", name)
    plane.wait_for_service_account(name)
    return name


@pytest.fixture(params=["ours", "as Slinky renders it"])
def chart(request, slinky) -> "tuple[Path, dict, dict]":
    """A chart with values to install it and to upgrade it. No worker, so that nothing has to be drained."""
    if request.param != "ours":
        return slinky, {"replicas": 0}, {"replicas": 0, "extraConf": "MinJobAge=600"}
    values = {
        "nodesets": {"slinky": {"enabled": True, "replicas": 0}},
        "loginsets": {"slinky": {"enabled": True}},
    }
    return CHARTS / "slurm", values, values | {"controller": {"extraConf": "MinJobAge=600"}}


@contextmanager
def operating(plane, ns: str, log: Path, is_there: bool):
    if not is_there:
        yield
        return
    flags = ("--namespaces", ns)
    with running_manager(rights.operator(plane, OPERATOR), log, *flags) as manager:
        yield manager.wait_ready()


def helm(plane, *args: str, values: dict | None = None) -> str:
    command = [str(program()), "--kubeconfig", str(plane.kubeconfig), *args]
    done = subprocess.run(
        [*command, *(["-f", "-"] if values is not None else [])],
        input=yaml.safe_dump(values or {}), capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    if done.returncode:
        raise HelmError(f"helm {' '.join(args)}: {done.stderr}")
    return done.stdout


def there(plane, ns: str) -> dict[str, dict]:
    kinds = ",".join(f"{plural}.slinky.slurm.net" for plural in KINDS)
    found = json.loads(plane.kubectl("get", kinds, "-n", ns, "-o", "json", "--show-managed-fields"))["items"]
    return {thing["kind"]: thing for thing in found}


def is_read(plane, ns: str) -> bool:
    """Whether the operator has looked at every object in its newest generation, and none is left out for its spec."""
    return all(
        thing.get("status", {}).get("observedGeneration") == thing["metadata"]["generation"]
        and "SpecInvalid" not in json.dumps(thing["status"])
        for thing in there(plane, ns).values()
    )


def test_the_helm_of_these_tests_is_version_4(plane):
    assert helm(plane, "version", "--template", "{{.Version}}").startswith("v4.")


@pytest.mark.timeout(240)
@pytest.mark.parametrize("is_there", [True, False], ids=["with the operator", "without the operator"])
def test_a_release_is_installed_upgraded_uninstalled_and_installed_again_at_once(
    plane, ns, chart, tmp_path, is_there
):
    path, values, changed = chart
    with operating(plane, ns, tmp_path / "log", is_there):
        helm(plane, "install", "slurm", str(path), "-n", ns, values=values)
        first = there(plane, ns)
        assert len(first) == len(KINDS)
        assert {entry["operation"] for thing in first.values() for entry in managed(thing, "helm")} == {
            "Apply"
        }
        if is_there:
            until(lambda: is_read(plane, ns), what="every object looked at")

        helm(plane, "upgrade", "slurm", str(path), "-n", ns, values=changed)
        second = there(plane, ns)
        assert uids(second) == uids(first)
        assert "MinJobAge=600" in second["Controller"]["spec"]["extraConf"]
        unchanged = {kind: thing["metadata"]["generation"] for kind, thing in second.items()}
        helm(plane, "upgrade", "slurm", str(path), "-n", ns, values=changed)
        assert {k: thing["metadata"]["generation"] for k, thing in there(plane, ns).items()} == unchanged
        if is_there:
            until(lambda: is_read(plane, ns), what="the change looked at")

        helm(plane, "uninstall", "slurm", "-n", ns, "--wait", "--timeout", "90s")
        assert there(plane, ns) == {}
        helm(plane, "install", "slurm", str(path), "-n", ns, values=values)
        third = there(plane, ns)
        assert len(third) == len(KINDS)
        assert set(uids(third).values()).isdisjoint(uids(first).values())
        if is_there:
            until(lambda: is_read(plane, ns), what="every object looked at again")
            until(lambda: get(plane, ns, "service", "slurm-controller") is not None, what="its Service")


def managed(thing: dict, manager: str) -> list[dict]:
    return [entry for entry in thing["metadata"]["managedFields"] if entry["manager"] == manager]


def uids(found: dict[str, dict]) -> "dict[str, str]":
    return {kind: thing["metadata"]["uid"] for kind, thing in found.items()}


@pytest.mark.parametrize("values", [{}, {"nodesets": {"a": {}}, "loginsets": {"b": {"enabled": True}}, "accounting": {"enabled": True}}], ids=["defaults", "more"])  # fmt: skip
def test_our_chart_writes_no_null_outside_of_overrides(plane, values):
    text = helm(plane, "template", "slurm", str(CHARTS / "slurm"), values=values)
    made = [thing for thing in yaml.safe_load_all(text) if thing]

    assert [null for thing in made for null in nulls(thing, thing["kind"])] == []


def nulls(value, path: str):
    if value is None:
        yield path
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from nulls(inner, f"{path}.{key}")
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from nulls(inner, f"{path}[{index}]")
