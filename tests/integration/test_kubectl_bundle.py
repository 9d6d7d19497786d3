"""Archives of a real API server's objects: nothing secret in them, and the same plans when they are replayed."""

import asyncio
import base64
import tarfile

import pytest
from click.testing import CliRunner
from kinds_rig import apply, config_map, get, ns, operator, ours, secret, wait_for

from slurm_operator.cli.kubectl import kubectl_slurm
from slurm_operator.insight.bundle.archive import replayed, unpack
from slurm_operator.insight.bundle.collection import Collector
from slurm_operator.insight.collect import Looker
from slurm_operator.insight.evaluation import verdicts
from slurm_operator.kube.auth import config
from slurm_operator.kube.client import Client
from slurm_operator.kube.secret_values import value_digest
from slurm_operator.operator import program
from slurm_operator.runtime.settings import Settings
from testing.managers import running_manager, until

__all__ = ["ns"]

PROGRAM = program(Settings())
SPEC = {"nodeSets": [{"name": "cpu", "replicas": 2}], "logins": [{"name": "login"}]}


@pytest.fixture
def managed(plane, ns, tmp_path):
    """A namespace whose objects an operator looks after."""
    with running_manager(operator(plane, f"op-{ns}"), tmp_path / "log", "--namespaces", ns) as manager:
        yield manager.wait_ready()


def kubectl_slurm_(plane, *arguments: str) -> str:
    kubeconfig = plane.kubeconfig_for("support", "system:masters")
    result = CliRunner().invoke(kubectl_slurm, [*arguments, "--kubeconfig", str(kubeconfig)])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result.output


def wait_made(plane, ns: str) -> None:
    """Until the operator has made what it can without a kubelet, and has told so."""
    wait_for(plane, ns, "secret", "demo-auth-jwt")
    told = lambda: (get(plane, ns, "cluster", "demo").get("status") or {}).get("components") or ()  # noqa: E731
    until(lambda: len(told()) == 4, what="a status of every part")


def test_nothing_that_was_planted_is_in_the_archive(plane, ns, managed, tmp_path):
    password = "correct-horse"  # Not under a name that says so, wherever it turns up below.
    files = {"job_submit.lua": f"-- {password}\nlocal password = 'planted-in-lua'\n"}
    container = {
        "env": [{"name": "INNOCENT", "value": "planted-in-env"}],
        "args": ["--token=planted-in-args", "-D"],
    }
    spec = {
        **SPEC,
        "extraConf": "AccountingStoragePass=planted-in-conf\nJobCompLoc=http://ada:planted-in-url@es:9200\n",
        "controller": {"configFileRefs": [{"name": "files"}], "slurmctld": container},
    }
    cluster = ours("Cluster", ns, "demo", spec)
    cluster["metadata"]["annotations"] = {"example.org/vault-token": "planted-in-annotation", "example.org/note": password}  # fmt: skip
    apply(plane, secret(ns, "mine", something=password), config_map(ns, "files", files), cluster)
    wait_for(plane, ns, "cluster", "demo")
    wait_for(plane, ns, "controller", "demo")
    to = tmp_path / "bundle.tar.gz"

    output = kubectl_slurm_(plane, "bundle", "-n", ns, "-f", str(to))

    assert f"{to}: " in output
    assert "could not be read" not in output
    whole = b"".join(unpack(to).values()).decode()
    assert "planted" not in whole
    for form in (password, base64.b64encode(password.encode()).decode(), value_digest(password.encode())):
        assert form not in whole
    for name in ("slurm.key", "jwt.key"):
        values = keys(plane, ns, name)
        assert not any(value in whole for value in values)
    assert "[redacted]" in whole
    assert '"kind": "Secret"' not in whole


def keys(plane, ns: str, entry: str) -> list[str]:
    """The generated keys in base64, as a Secret has them."""
    found = plane.kubectl("get", "secrets", "-n", ns, "-o", f"jsonpath={{.items[*].data['{entry.replace('.', chr(92) + '.')}']}}")  # fmt: skip
    return found.split()


def test_a_replayed_archive_gives_the_plans_that_the_cluster_gave(plane, ns, managed, tmp_path):
    apply(plane, ours("Cluster", ns, "demo", SPEC))
    wait_made(plane, ns)
    managed.process.terminate()
    managed.wait()

    live, files = asyncio.run(look_and_collect(plane, ns))

    told = [plans(sight) for sight in (live, replayed(files, PROGRAM))]
    assert told[0] == told[1]
    assert {kind for kind, _ in told[0]} == {"Cluster", "Controller", "RestApi", "LoginSet", "NodeSet"}


async def look_and_collect(plane, ns: str):
    access = config.find(plane.kubeconfig_for("support", "system:masters"))
    async with Client(access, may_write=lambda: False) as client:
        looker = Looker(client, PROGRAM, ns)
        files = await Collector(looker, tail=10).collect()
        return await looker.look(), files


def plans(sight) -> dict[tuple[str, str], list[str]]:
    """Every action of every plan in words."""
    return {
        (verdict.reconciler.kind.kind, verdict.about.metadata.name): [
            f"{type(action).__name__} {getattr(action, 'reason', '')}: {getattr(action, 'message', '')}"
            for action in verdict.plan.actions()
        ]
        for verdict in verdicts(PROGRAM.reconcilers, sight.picture)
    }


def test_an_archive_shows_the_same_screen_without_a_cluster(plane, ns, managed, tmp_path):
    apply(plane, ours("Cluster", ns, "demo", SPEC))
    wait_made(plane, ns)
    managed.process.terminate()  # What is being changed may be in one file and not yet in the next.
    managed.wait()
    to = tmp_path / "bundle.tar.gz"

    kubectl_slurm_(plane, "bundle", "-n", ns, "-f", str(to))
    shown = CliRunner().invoke(kubectl_slurm, ["status", "--bundle", str(to)], env={"KUBECONFIG": "/nowhere"})

    assert unpack(to)["status.txt"].decode() == shown.output
    assert f"Cluster {ns}/demo" in shown.output
    assert "slurmctld    Controller demo" in shown.output
    with tarfile.open(to) as archive:
        assert all(name.startswith("slurm-bundle/") for name in archive.getnames())


def test_a_bundle_of_nothing_is_an_error(plane, ns, tmp_path):
    to = tmp_path / "bundle.tar.gz"
    found = CliRunner().invoke(
        kubectl_slurm,
        [
            "bundle",
            "-n",
            ns,
            "-f",
            str(to),
            "--kubeconfig",
            str(plane.kubeconfig_for("support", "system:masters")),
        ],
    )

    assert found.exit_code == 1
    assert f"There is no Slurm cluster in namespace '{ns}', so there is nothing to pack." in found.output
    assert not to.exists()
