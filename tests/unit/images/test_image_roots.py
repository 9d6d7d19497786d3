"""What the root filesystems are made of."""

from pathlib import Path

import pytest

from slurm_local.errors import LocalError
from slurm_local.image.debian import BuiltRoot, DebianRoot, User
from slurm_local.image.roots import SLURM_ROOT, SLURM_SERIES, check_series

PLAIN = DebianRoot("plain", ("tini",), "a minute")


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(DebianRoot("plain", ("tini", "curl"), "a minute"), id="another package"),
        pytest.param(DebianRoot("plain", ("tini",), "a minute", (User("slurm", 401),)), id="another user"),
        pytest.param(DebianRoot("plain", ("tini",), "a minute", finish="true"), id="another last step"),
    ],
)
def test_another_recipe_is_another_root(other):
    assert other.digest != PLAIN.digest


def test_what_people_are_told_does_not_change_the_root():
    assert DebianRoot("plain", ("tini",), "an hour").digest == PLAIN.digest


def test_user_slurm_has_the_number_that_pods_expect():
    assert {user.name: user.number for user in SLURM_ROOT.users}["slurm"] == 401


def test_another_slurm_series_stops_with_a_message_that_names_both():
    with pytest.raises(LocalError, match=f"27.11.0-1.*{SLURM_SERIES}"):
        check_series("27.11.0-1", Path("/somewhere"))


def test_an_update_within_the_series_is_welcome():
    check_series(f"{SLURM_SERIES}.99-1", Path("/somewhere"))


def test_versions_are_read_back_from_beside_the_root(tmp_path):
    (tmp_path / "packages.txt").write_text("slurmctld 26.05.5-1\npython3 3.14.7-3\n")

    assert BuiltRoot(tmp_path).versions() == {"slurmctld": "26.05.5-1", "python3": "3.14.7-3"}
