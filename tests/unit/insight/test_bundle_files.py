"""An archive is packed, read again, and becomes the World it was made of."""

import io
import tarfile

import pytest
from click.testing import CliRunner

from slurm_operator import wire
from slurm_operator.api import Cluster, NodeSet
from slurm_operator.api.shared.images import PATTERN_VARIABLE, default_image
from slurm_operator.api.shared.meta import Meta, ObjectKey
from slurm_operator.cli.kubectl import kubectl_slurm
from slurm_operator.insight.bundle.archive import (
    ABOUT,
    CONFIG_MAPS,
    EVENTS,
    SECRETS,
    SLURM,
    About,
    Facts,
    Named,
    NotABundle,
    about,
    object_path,
    pack,
    replayed,
    unpack,
)
from slurm_operator.insight.bundle.collection import without_guessable
from slurm_operator.insight.collect import Unseen
from slurm_operator.manifests import kinds
from slurm_operator.manifests.events import Event
from slurm_operator.manifests.objects import ConfigMap, Secret, Unread
from slurm_operator.operator import program
from slurm_operator.runtime.settings import Settings
from slurm_operator.slurm.snapshot import Unreachable
from testing.workers import NOW, job, slurm, slurm_node, worker

PROGRAM = program(Settings())
CLUSTER = {"metadata": {"name": "demo", "namespace": "ns", "uid": "1"}, "spec": {}}
BUDGET = {"metadata": {"name": "pdb", "namespace": "ns", "ownerReferences": [{"apiVersion": "v1", "kind": "Controller", "name": "demo", "uid": "2"}]}}  # fmt: skip


def files(*, facts=None) -> dict[str, bytes]:
    meta = Meta(name="keys", namespace="ns")
    about = About(
        version="1", taken_at=NOW, kubernetes="v1.36.3", namespace="ns", is_scrubbed=True,
        served=(Cluster.KIND, kinds.POD), unseen=(Unseen(what="nodes", why="forbidden", right="list nodes"),),
    )  # fmt: skip
    secrets = [
        Named(namespace="ns", name="keys", secret=Secret(metadata=meta, digests={"slurm.key": "0123456789abcdef"})),
        Named(namespace="ns", name="gone"),
        Named(namespace="ns", name="hidden", unread="forbidden"),
    ]  # fmt: skip
    maps = [Named(namespace="ns", name="conf", config_map=ConfigMap(metadata=meta, data={"a.conf": "A=1\n"}))]
    return {
        ABOUT: wire.encode(about),
        object_path(Cluster.KIND): wire.encode([CLUSTER]),
        object_path(kinds.DISRUPTION_BUDGET): wire.encode([BUDGET]),
        SECRETS: wire.encode(secrets),
        CONFIG_MAPS: wire.encode(maps),
        SLURM: wire.encode([Facts(namespace="ns", name="demo", facts=facts)] if facts is not None else []),
    }


def test_what_is_packed_is_what_is_read(tmp_path):
    path = tmp_path / "bundle.tar.gz"

    size = pack(files(), path, NOW)

    assert unpack(path) == files()
    assert path.stat().st_size == size
    assert path.stat().st_mode & 0o077 == 0, "others may not read it"


@pytest.mark.parametrize("content", [b"", b"no archive", b"\x1f\x8b\x08 torn"])
def test_another_file_is_refused_in_words(tmp_path, content):
    path = tmp_path / "bundle.tar.gz"
    path.write_bytes(content)

    with pytest.raises(NotABundle, match="is no archive"):
        unpack(path)


def test_an_archive_of_something_else_is_refused_and_nothing_of_it_is_written(tmp_path):
    path = tmp_path / "evil.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        entry = tarfile.TarInfo("../../escaped")
        entry.size = 4
        archive.addfile(entry, io.BytesIO(b"evil"))

    with pytest.raises(NotABundle, match="was not made by"):
        unpack(path)
    assert [one.name for one in tmp_path.iterdir()] == ["evil.tar.gz"]


def test_an_archive_becomes_the_world_it_was_made_of():
    pod = worker(0)
    facts = slurm(slurm_node(pod, "MIXED", "DRAIN", reason="ada: x", changed_at=NOW), jobs=[job(7, "gpu-0")])

    sight = replayed(files(facts=facts), PROGRAM)

    world = sight.picture
    assert world.now == NOW
    assert world.get(Cluster, "ns", "demo").metadata.uid == "1"
    assert world.all(NodeSet) == []
    assert [child.metadata.name for child in world.children(kinds.DISRUPTION_BUDGET, "2")] == ["pdb"]
    assert world.secret("ns", "keys").digests == {"slurm.key": "0123456789abcdef"}
    assert world.secret("ns", "gone") is None
    assert world.secret("ns", "hidden") == Unread(why="forbidden")
    assert world.config_map("ns", "conf").data == {"a.conf": "A=1\n"}
    assert world.slurm("ns", "demo") == facts
    assert world.serves(kinds.POD)
    assert [one.right for one in sight.unseen] == ["list nodes"]


def test_an_archive_is_judged_with_the_images_of_its_operator():
    made = files()
    told = wire.replace(about(made), images={PATTERN_VARIABLE: "there/{daemon}:1"})

    sight = replayed({**made, ABOUT: wire.encode(told)}, PROGRAM)

    with sight.as_operator():
        assert default_image("slurmd") == "there/slurmd:1"
    assert default_image("slurmd") != "there/slurmd:1"


def test_an_archive_is_explained_without_a_cluster(tmp_path):
    path, pod = tmp_path / "bundle.tar.gz", worker(0)
    reason = {"reason": "ada: fan is loud", "changed_at": NOW}
    pack(files(facts=slurm(slurm_node(pod, "IDLE", "DRAIN", **reason))), path, NOW)

    found = CliRunner().invoke(
        kubectl_slurm, ["explain", "node/gpu-0", "--bundle", str(path)], env={"KUBECONFIG": "/nowhere"}
    )

    assert found.exit_code == 1
    assert "UTC: fan is loud. The operator never lifts a drain that is not its own." in found.output
    assert "kubectl slurm undrain gpu-0 --force -n ns" in found.output
    assert "list nodes" in found.output, "what was not seen then is not seen now"


def test_complaints_of_kubernetes_are_in_the_world_of_an_archive():
    told = [
        {"metadata": {"name": kind, "namespace": "ns"}, "type": kind, "note": "no", "reason": "R"}
        for kind in ("Normal", "Warning")
    ]

    world = replayed({**files(), EVENTS: wire.encode(told)}, PROGRAM).picture

    assert [event.metadata.name for event in world.all(Event)] == ["Warning"]


def test_a_slurm_that_was_away_is_away_in_the_archive_too():
    away = Unreachable(since=NOW, why="no connection")

    assert replayed(files(facts=away), PROGRAM).picture.slurms == {ObjectKey("ns", "demo"): away}


def test_an_archive_of_another_version_that_does_not_fit_is_refused_in_words():
    with pytest.raises(NotABundle, match="does not fit this version"):
        replayed({**files(), SLURM: b'[{"namespace": 7}]'}, PROGRAM)


def test_digests_of_what_could_be_guessed_are_left_out():
    key, password = b"k" * 32, b"hunter2"
    secret = Secret(metadata=Meta(name="x"), digests={"slurm.key": "a", "password": "b", "unread": "c"})

    kept = without_guessable(secret, {"slurm.key": key, "password": password})

    assert len(kept.digests["slurm.key"]) == 16
    assert kept.digests["password"] == kept.digests["unread"] == "[redacted]"
