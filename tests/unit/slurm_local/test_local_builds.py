"""Builds: pinned, stamped, never trusted half done."""

import os
import re
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from slurm_local.build import builds, versions
from slurm_local.build.builds import GoBuild, directory_of
from slurm_local.build.stamps import STAMP, is_complete, latest_first, once
from slurm_local.build.toolchain import Go, go_version
from slurm_local.paths import Paths, module_files

PINNED = {
    "kubernetes": ("k8s.io/kubernetes", versions.KUBERNETES),
    "containerd": ("github.com/containerd/containerd/v2", versions.CONTAINERD),
    "coredns": ("github.com/coredns/coredns", versions.COREDNS),
    "kwok": ("sigs.k8s.io/kwok", versions.KWOK),
    "helm": ("helm.sh/helm/v4", versions.HELM),
}


@pytest.mark.parametrize("module", PINNED)
def test_the_module_files_ask_for_the_pinned_version(module: str) -> None:
    path, version = PINNED[module]

    assert f"{path} v{version} //" in (module_files(module) / "go.mod").read_text()


def test_etcd_is_the_one_kubernetes_asks_for() -> None:
    text = (module_files("kubernetes") / "go.mod").read_text()

    assert f"go.etcd.io/etcd/server/v3 v{versions.ETCD} //" in text


@pytest.mark.parametrize("module", PINNED)
def test_no_module_needs_a_newer_go_than_we_accept(module: str) -> None:
    text = (module_files(module) / "go.mod").read_text()
    wanted = re.search(r"^go (\d+)\.(\d+)\.(\d+)$", text, re.MULTILINE)

    assert wanted is not None
    assert tuple(map(int, wanted.groups())) <= versions.GO_OLDEST


def test_the_go_we_would_fetch_is_one_we_accept() -> None:
    assert go_version(f"go version go{versions.GO_WHEEL} linux/amd64") == versions.GO_OLDEST


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("go version go1.26.8 linux/amd64", (1, 26, 8)),
        ("go version go1.27 linux/arm64", (1, 27, 0)),
        ("go version devel go1.28-abcdef linux/amd64", None),
        ("go version go1.27rc1 linux/amd64", None),
        ("", None),
    ],
)
def test_the_age_of_a_go_on_the_path(text: str, version: tuple[int, ...] | None) -> None:
    assert go_version(text) == version


def test_another_go_or_another_version_is_another_build(tmp_path: Path) -> None:
    paths = Paths(tmp_path, tmp_path)
    newer = GoBuild("helm", "99.0.0", ("helm",), "long")

    directories = {
        directory_of(builds.HELM, Go("1.26.8", None), paths),
        directory_of(builds.HELM, Go("1.27.0", None), paths),
        directory_of(newer, Go("1.26.8", None), paths),
    }

    assert len(directories) == 3


def test_an_interrupted_build_is_taken_up_again(tmp_path: Path) -> None:
    def interrupted(directory: Path) -> None:
        (directory / "half").touch()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        once(tmp_path / "build", interrupted)
    assert not is_complete(tmp_path / "build")

    once(tmp_path / "build", lambda directory: (directory / "whole").touch())

    assert is_complete(tmp_path / "build")
    assert (tmp_path / "build" / "whole").exists()


def test_a_finished_build_is_not_made_again(tmp_path: Path) -> None:
    made: list[Path] = []
    once(tmp_path / "build", made.append)

    once(tmp_path / "build", made.append)

    assert made == [tmp_path / "build"]


def test_two_who_want_the_same_build_make_it_once(tmp_path: Path) -> None:
    made: list[Path] = []
    second_waits = threading.Event()

    def slow(directory: Path) -> None:
        made.append(directory)
        second_waits.wait(timeout=0.3)

    both = [threading.Thread(target=once, args=(tmp_path / "build", slow)) for _ in range(2)]
    for each in both:
        each.start()
    for each in both:
        each.join()

    assert len(made) == 1


def test_one_that_another_start_removes_meanwhile_is_left_out(tmp_path: Path) -> None:
    """Each start removes what is old, and two may run on one machine."""
    for age, name in enumerate(("new", "old", "older")):
        stamp = tmp_path / name / STAMP
        stamp.parent.mkdir()
        stamp.touch()
        os.utime(stamp, (1000 - age, 1000 - age))
    (tmp_path / "half").mkdir()
    (tmp_path / ".lock").touch()

    def while_somebody_removes() -> Iterator[Path]:
        for name in ("older", "old", "half", ".lock", "new"):
            if name == "old":
                shutil.rmtree(tmp_path / name)
            yield tmp_path / name

    assert [path.name for path in latest_first(while_somebody_removes())] == ["new", "older"]
