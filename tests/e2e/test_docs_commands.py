"""The tutorial as a reader types it, and on the cluster that it makes the commands of the guides."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from slurm_local import demo_cluster, image, slurm_cluster, stop
from slurm_local.build import wheels
from slurm_local.cluster import DEFAULT_NAME
from slurm_local.paths import Paths
from slurm_local.progress import Quiet
from testing.docs import ROOT, Block, Terminal, commands
from testing.readers import (
    FILES,
    ON_A_CLUSTER,
    SECTIONS_ON_A_CLUSTER,
    TUTORIAL,
    type_one,
    type_page,
    type_section,
    written_file,
)

pytestmark = [pytest.mark.minutes, pytest.mark.timeout(1500)]

STEPS = commands(ROOT / TUTORIAL)


@pytest.fixture(scope="module")
def terminal(tmp_path_factory: pytest.TempPathFactory, paths: Paths) -> Iterator[Terminal]:
    """A reader with a checkout, with builds in the cache, and nothing that runs."""
    place = tmp_path_factory.mktemp("reader")
    kubectl = wheels.kubectl(paths, Quiet())
    terminal = Terminal(place / "home", place / "kubeconfig", kubectl=kubectl)
    terminal.environment |= {
        "SLURM_OPERATOR_HOME": str(place / "state"),
        "SLURM_OPERATOR_CACHE": str(paths.cache),
    }
    yield terminal
    stop.down(DEFAULT_NAME, Paths.of(terminal.environment), Quiet())


def test_the_tutorial_can_be_typed_as_it_stands_and_what_the_guides_say_after_it(terminal: Terminal) -> None:
    assert (STEPS[0].text, STEPS[-1].text) == ("make up", "make down")
    for step in STEPS[:-1]:
        assert type_one(step, terminal, ROOT) == []
    be_at_home(terminal)

    troubles = [trouble for page in SECTIONS_ON_A_CLUSTER for trouble in type_section(page, terminal)]
    troubles += [trouble for page in ON_A_CLUSTER for trouble in type_page(page, terminal)]

    assert not troubles, "\n\n".join(troubles)
    assert type_one(STEPS[-1], terminal, ROOT) == []
    assert not list(Path(terminal.environment["SLURM_OPERATOR_HOME"]).glob("clusters/*/state.json"))


def be_at_home(terminal: Terminal) -> None:
    """Both workers back, the namespace of the cluster where kubectl looks first, and the files of the guides."""
    files = {
        "whole.yaml": [demo_cluster.whole_manifest(2, 2, 1024)],
        "demo.yaml": [demo_cluster.whole_manifest(1, 2, 1024)],
        "recording.yaml": slurm_cluster.installation(image.OPERATOR_IMAGE, is_recording=True),
    }
    for name, objects in files.items():
        (terminal.directory / name).write_text(yaml.safe_dump_all(objects))
    for name in FILES:
        (terminal.directory / name).write_text(written_file(name))
    own = Paths.of(terminal.environment).cluster(DEFAULT_NAME) / "kubeconfig"
    shutil.copy(own, terminal.environment["KUBECONFIG"])
    ready = (
        "kubectl config set-context --current --namespace=slurm",
        "kubectl apply --server-side --force-conflicts -f whole.yaml",
        "kubectl wait --for=condition=Ready nodeset/demo-cpu --timeout=10m",
    )
    for line in ready:
        assert type_one(Block(ROOT / TUTORIAL, 0, line), terminal) == []
