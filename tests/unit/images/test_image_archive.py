"""Layers and archives: the same contents always give the same bytes."""

import hashlib
import json
import os
import tarfile
from pathlib import Path

from images.entry.__main__ import ENTRIES
from slurm_local.image.archive import Image, write_archive
from slurm_local.image.images import (
    entry_layer,
    operator_images,
    populate_images,
    program_layer,
    slurm_image,
    slurm_images,
)
from slurm_local.image.tars import File, Link, digest_of, files_below, write_layer
from slurm_operator import __version__

IMAGES = [Image("local/a:1", ("/a",)), Image("local/b:1", ("/b",), ("-x",), {"HOME": "/"}, "7:7")]


def layers_in(directory: Path) -> list[Path]:
    below, above = directory / "below.tar", directory / "above.tar"
    write_layer(below, {"/etc/one": File(b"1")})
    write_layer(above, {"/usr/bin/two": File(b"2", 0o755), "/usr/bin/also": Link("two")})
    return [below, above]


def test_an_archive_holds_each_layer_once_and_every_image(tmp_path):
    layers = layers_in(tmp_path)
    write_archive(tmp_path / "images.tar", layers, IMAGES, "x86_64")

    with tarfile.open(tmp_path / "images.tar") as tar:
        names = tar.getnames()
        listed = json.loads(tar.extractfile("manifest.json").read())
        described = [json.loads(tar.extractfile(entry["Config"]).read()) for entry in listed]

    files = [f"{digest_of(layer)}.tar" for layer in layers]
    assert names[:2] == files
    assert len(names) == len(set(names))
    assert [entry["RepoTags"] for entry in listed] == [["local/a:1"], ["local/b:1"]]
    assert all(entry["Layers"] == files for entry in listed)
    assert all(
        one["rootfs"]["diff_ids"] == [f"sha256:{digest_of(path)}" for path in layers] for one in described
    )
    assert described[1]["config"]["Cmd"] == ["-x"]
    assert described[1]["config"]["User"] == "7:7"
    assert described[0]["architecture"] == "amd64"


def test_a_description_is_named_by_its_own_digest(tmp_path):
    write_archive(tmp_path / "images.tar", layers_in(tmp_path), IMAGES, "aarch64")

    with tarfile.open(tmp_path / "images.tar") as tar:
        for name in tar.getnames():
            if name.endswith(".json") and name != "manifest.json":
                assert hashlib.sha256(tar.extractfile(name).read()).hexdigest() == name.removesuffix(".json")


def test_the_same_contents_give_the_same_bytes(tmp_path):
    first, second = tmp_path / "first", tmp_path / "second"
    for directory in (first, second):
        directory.mkdir()
        write_archive(directory / "images.tar", layers_in(directory), IMAGES, "x86_64")

    assert digest_of(first / "images.tar") == digest_of(second / "images.tar")


def test_files_keep_whether_they_are_programs_and_lose_what_python_left(tmp_path):
    (tmp_path / "__pycache__").mkdir()
    (tmp_path / "__pycache__" / "x.pyc").touch()
    (tmp_path / "run").touch(mode=0o700)
    (tmp_path / "read").touch(mode=0o600)
    os.utime(tmp_path / "read", (1, 1))

    assert files_below(tmp_path, "/opt") == {"/opt/run": File(b"", 0o755), "/opt/read": File(b"", 0o644)}


def test_a_layer_leaves_the_modes_of_the_systems_directories_alone(tmp_path):
    write_layer(tmp_path / "layer.tar", {"/usr/lib/ours/entry": File(b"")})

    with tarfile.open(tmp_path / "layer.tar") as tar:
        assert tar.getnames() == ["usr/lib/ours", "usr/lib/ours/entry"]


def test_one_image_per_daemon_and_all_start_through_tini():
    names = {image.name.split("/")[-1].split(":")[0]: image for image in slurm_images()}

    assert names.keys() == {
        *("slurmctld", "slurmd", "slurmdbd", "slurmrestd", "sackd", "login", "mariadb", "slurm")
    }
    assert all(image.entrypoint[:2] == ("tini", "--") for image in names.values())
    assert names["slurmd"].entrypoint[-1] == "slurmd"
    assert names["slurmrestd"].command == ("0.0.0.0:6820",)


def test_the_image_that_populates_a_root_starts_the_program_for_it():
    [populate] = populate_images()

    assert populate.entrypoint[-1] in ENTRIES
    assert populate.name == slurm_image("populate-jail")


def test_the_operators_three_names_run_the_same_program_without_root():
    images = operator_images()

    assert [image.entrypoint[-1] for image in images] == ["manager", "webhook", "soperator"]
    assert len({image.entrypoint[:-1] for image in images}) == 1
    assert {image.user for image in images} == {"65532:65532"}


def test_the_command_that_soperator_s_chart_names_is_there():
    script = program_layer()["/usr/bin/slurm_operator"]

    assert script == File(b'#!/bin/sh\nexec python3 -m slurm_operator.cli soperator "$@"\n', 0o755)


def test_the_layers_carry_the_entry_points_and_the_program():
    assert "/usr/lib/slurm-operator/slurm_entry/follow.py" in entry_layer()
    assert "/usr/lib/slurm-operator/program/slurm_operator/wire.py" in program_layer()


def test_the_program_in_the_image_knows_its_version(tmp_path):
    metadata = [entry for name, entry in program_layer().items() if name.endswith("dist-info/METADATA")]

    assert metadata == [
        File(f"Metadata-Version: 2.1\nName: slurm-operator\nVersion: {__version__}\n".encode())
    ]
