"""The program that submits the jobs of a check: which nodes it chooses, and what it notes."""

import subprocess

import pytest

from images.entry import submit_check
from images.entry.submit_check import Check, Refusal, Submission, nodes_from, user_ids

NODES = """\
NodeName=cpu-0 Arch=x86_64 CPUTot=4 Gres=(null) State=IDLE+DYNAMIC_NORM ThreadsPerCore=1
NodeName=cpu-1 Arch=x86_64 CPUTot=4 Gres=(null) State=MIXED ThreadsPerCore=1
NodeName=cpu-2 Arch=x86_64 CPUTot=4 Gres=(null) State=IDLE+DRAIN ThreadsPerCore=1
NodeName=cpu-3 Arch=x86_64 CPUTot=4 Gres=(null) State=DOWN* ThreadsPerCore=1
NodeName=gpu-0 Arch=x86_64 CPUTot=4 Gres=gpu:h100:8 State=IDLE ThreadsPerCore=1
NodeName=gpu-1 Arch=x86_64 CPUTot=4 Gres=gpu:h100:8 State=IDLE+POWERED_DOWN ThreadsPerCore=1
"""


class Slurm:
    """Commands of Slurm, as they answer."""

    def __init__(
        self, nodes: str = NODES, *, running: str = "", refuses: str = "", hidden: bool = True
    ) -> None:
        self.nodes, self.running, self.refuses, self.hidden = nodes, running, refuses, hidden
        self.said: list[list[str]] = []
        self.noted: list[dict[str, str]] = []
        self.next_id = 100

    def run(self, argv):
        self.said.append(list(argv))
        if argv[0] == "scontrol" and argv[-1] == "node":
            return self._done(self.nodes)
        if argv[0] == "scontrol":
            return self._done("PartitionName=hidden" if self.hidden else "", code=0 if self.hidden else 1)
        if argv[0] == "squeue":
            return self._done(self.running)
        if argv[0] == "scancel":
            return self._done("")
        if self.refuses and self.refuses in " ".join(argv):
            return self._done("", code=1, error="sbatch: error: no such node")
        self.next_id += 1
        return self._done(f"{self.next_id};smallest\n")

    def _done(self, text, code=0, error=""):
        return subprocess.CompletedProcess([], code, text, error)

    @property
    def submitted(self):
        return [argv for argv in self.said if argv[0] == "sbatch"]

    @property
    def places(self):
        return [
            word.removeprefix("--nodelist=") for argv in self.submitted for word in argv if "nodelist" in word
        ]


def submitted(slurm: Slurm, check: Check, tmp_path):
    pauses: list[float] = []
    submission = Submission(
        slurm.run, lambda notes: slurm.noted.append(dict(notes)), tmp_path, pauses.append, lambda nodes: None
    )
    return submission.submit(check)


def test_each_worker_that_can_run_a_check_gets_a_job(tmp_path):
    slurm = Slurm()

    assert submitted(slurm, Check("all", "#!/bin/bash\ntrue\n", for_each_worker=True), tmp_path) == 0
    assert slurm.places == ["cpu-0", "cpu-1", "gpu-0"]
    assert slurm.noted[-1] == {"slurm-job-id": "101,102,103", "unhandled-slurm-job-id": "101,102,103"}
    assert all("--no-requeue" in argv and "--job-name=all" in argv for argv in slurm.submitted)


def test_only_waiting_jobs_of_an_earlier_run_are_taken_back_and_running_ones_are_waited_for(tmp_path):
    slurm = Slurm(running="cpu-0\n")
    submitted(slurm, Check("all", "true", for_each_worker=True), tmp_path)
    [cancelled] = [argv for argv in slurm.said if argv[0] == "scancel"]

    assert "--state=PENDING" in cancelled
    assert slurm.places == ["cpu-1", "gpu-0"]


def test_no_more_than_so_many(tmp_path):
    slurm = Slurm()
    submitted(slurm, Check("all", "true", for_each_worker=True, most=2), tmp_path)

    assert len(slurm.submitted) == 2


@pytest.mark.parametrize(
    "line",
    ["--gpus=8", "--gres=gpu:8", "--gpus-per-node 8", "-G 8", "--tres-per-task=gres/gpu:1", "-N 1 --gpus=1"],
)
def test_a_check_of_gpus_goes_where_there_are_some(line, tmp_path):
    slurm = Slurm()
    submitted(slurm, Check("gpus", f"#!/bin/bash\n#SBATCH {line}\n", for_each_worker=True), tmp_path)

    assert slurm.places == ["gpu-0"]


def test_without_any_gpu_there_is_nothing_to_check(tmp_path):
    slurm = Slurm("NodeName=cpu-0 Gres=(null) State=IDLE\n")

    assert submitted(slurm, Check("gpus", "#SBATCH --gpus=8\n", for_each_worker=True), tmp_path) == 0
    assert not slurm.submitted
    assert list(slurm.noted[0]) == ["slurm-skipped-reason"]


def test_a_refused_submission_is_passed_over(tmp_path):
    slurm = Slurm(refuses="cpu-0")

    assert submitted(slurm, Check("all", "true", for_each_worker=True), tmp_path) == 0
    assert slurm.noted[-1]["slurm-job-id"] == "101,102"


def test_nothing_submitted_is_a_failure(tmp_path):
    assert submitted(Slurm(refuses="sbatch"), Check("one", "true"), tmp_path) == 1


def test_no_worker_is_said_so(tmp_path):
    with pytest.raises(Refusal, match="No worker"):
        submitted(Slurm("NodeName=a State=DOWN\n"), Check("all", "true", for_each_worker=True), tmp_path)


@pytest.mark.parametrize(
    ("script", "absent", "present"),
    [
        ("true", [], ["--partition=hidden", "--output=/dev/null", "--chdir=/"]),
        (
            "#SBATCH -p main\n#SBATCH --output=x.out",
            ["--partition=hidden", "--output=/dev/null"],
            ["--chdir=/"],
        ),
    ],
    ids=["a script without options", "one that knows better"],
)
def test_what_the_script_says_itself_is_not_said_again(script, absent, present, tmp_path):
    slurm = Slurm()
    submitted(slurm, Check("one", script), tmp_path)
    [argv] = slurm.submitted

    assert [word for word in present if word not in argv] == []
    assert [word for word in absent if word in argv] == []


def test_outputs_go_where_they_are_collected(tmp_path):
    (tmp_path / submit_check.OUTPUTS).mkdir(parents=True)
    slurm = Slurm(hidden=False)
    submitted(slurm, Check("one", "true"), tmp_path)
    [argv] = slurm.submitted

    assert f"--output=/{submit_check.OUTPUTS}/%N.%x.%j.out" in argv
    assert not [word for word in argv if word.startswith("--partition")]


def test_ids_are_noted_on_the_way(tmp_path):
    nodes = "".join(f"NodeName=n-{number} State=IDLE\n" for number in range(25))
    slurm = Slurm(nodes)
    submitted(slurm, Check("all", "true", for_each_worker=True), tmp_path)

    assert [len(notes["slurm-job-id"].split(",")) for notes in slurm.noted] == [10, 20, 25]


def test_nodes_are_read_as_scontrol_prints_them():
    found = {node.name: node for node in nodes_from(NODES)}

    assert [name for name, node in found.items() if node.is_eligible] == ["cpu-0", "cpu-1", "gpu-0"]
    assert found["gpu-0"].has_gpu
    assert not found["cpu-0"].has_gpu


def test_the_user_is_one_of_the_shared_root(tmp_path):
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/passwd").write_text(
        "root:x:0:0::/:/bin/sh\nsoperatorchecks:x:1700:1701::/opt:/bin/bash\n"
    )

    assert user_ids("soperatorchecks", tmp_path) == (1700, 1701)
    with pytest.raises(Refusal, match="create-user-soperatorchecks"):
        user_ids("nobody-like-this", tmp_path)
