"""The scripts that tell dcgm-exporter whose a GPU is: they work, and never fail, for then Slurm drains the node."""

import subprocess

import pytest

from testing.chart_schema import CHARTS


def run(name: str, directory: str, **environment: str) -> int:
    text = (CHARTS / "slurm" / "files" / f"dcgm-{name}.sh").read_text().replace("@directory@", directory)
    found = subprocess.run(
        ["sh", "-c", text], env={"PATH": "/usr/bin:/bin", **environment}, capture_output=True, check=False
    )
    return found.returncode


def test_a_file_for_each_gpu_has_the_id_of_the_job_and_goes_with_it(tmp_path):
    place = tmp_path / "mapping"
    assert run("prolog", str(place), CUDA_VISIBLE_DEVICES="0,3", SLURM_JOB_ID="7") == 0
    assert {one.name: one.read_text().strip() for one in place.iterdir()} == {"0": "7", "3": "7"}
    assert run("epilog", str(place), SLURM_JOB_GPUS="0,3", SLURM_JOB_ID="7") == 0
    assert list(place.iterdir()) == []


@pytest.mark.parametrize("name", ["prolog", "epilog"])
@pytest.mark.parametrize(
    "environment",
    [
        pytest.param({"CUDA_VISIBLE_DEVICES": "0", "SLURM_JOB_ID": "7"}, id="a GPU"),
        pytest.param({"CUDA_VISIBLE_DEVICES": "0"}, id="no id"),
        pytest.param({}, id="no GPU"),
    ],
)
def test_they_never_fail_where_nothing_can_be_written(tmp_path, name, environment):
    in_the_way = tmp_path / "file"
    in_the_way.write_text("")
    assert run(name, str(in_the_way / "mapping"), **environment) == 0
