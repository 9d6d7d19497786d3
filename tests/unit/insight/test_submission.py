"""Scripts that are sent to slurmrestd, which reads no #SBATCH lines."""

import pytest

from slurm_operator.insight.jobs.submission import NotSubmittable, directives, job, names_job

SCRIPT = """\
#!/bin/bash
#SBATCH --job-name=train --time=1:30:00
#SBATCH -n 4
# a comment

#SBATCH -o "out %j.txt"  # where it goes
echo hello
#SBATCH --nodes=9
"""


def sent(script: str = "#!/bin/sh\ntrue\n", *options: str) -> dict[str, object]:
    fields = job(script, options, name="train.sh", user="ada")["job"]
    assert isinstance(fields, dict)
    return fields


def test_the_lines_before_the_first_command_are_read_and_no_others() -> None:
    assert directives(SCRIPT) == ["--job-name=train", "--time=1:30:00", "-n", "4", "-o", "out %j.txt"]

    fields = sent(SCRIPT)
    assert fields["name"] == "train"
    assert fields["time_limit"] == {"set": True, "number": 90}
    assert fields["tasks"] == 4
    assert fields["standard_output"] == "out %j.txt"
    assert "nodes" not in fields


def test_what_is_typed_goes_before_what_stands_in_the_script() -> None:
    assert sent(SCRIPT, "-n8", "--time", "5")["tasks"] == 8
    assert sent(SCRIPT, "-n8", "--time", "5")["time_limit"] == {"set": True, "number": 5}


def test_a_script_that_says_nothing_runs_in_its_user_s_home_under_its_own_name() -> None:
    fields = sent()

    assert (fields["name"], fields["current_working_directory"]) == ("train.sh", "/home/ada")


@pytest.mark.parametrize(
    ("option", "field", "value"),
    [
        ("--mem=4G", "memory_per_node", {"set": True, "number": 4096}),
        ("--mem-per-cpu=500", "memory_per_cpu", {"set": True, "number": 500}),
        ("--gres=gpu:a100:2", "tres_per_node", "gres/gpu:a100:2"),
        ("--array=0-3%2", "array", "0-3%2"),
        ("--nodelist=a,b", "required_nodes", ["a", "b"]),
        ("-N2", "nodes", "2"),
        ("-D/scratch", "current_working_directory", "/scratch"),
    ],
)
def test_each_option_becomes_the_field_that_slurmrestd_has_for_it(
    option: str, field: str, value: object
) -> None:
    assert sent("#!/bin/sh\n", option)[field] == value


@pytest.mark.parametrize(
    ("script", "options", "says"),
    [
        pytest.param("echo\n", [], "begin with #!", id="no program"),
        pytest.param("#!/bin/sh\n", ["--hint=x"], "'--hint=x' cannot be sent with a token", id="unknown"),
        pytest.param("#!/bin/sh\n", ["more"], "'more' cannot be sent", id="no option"),
        pytest.param("#!/bin/sh\n", ["--time=soon"], "no length of time", id="no time"),
        pytest.param("#!/bin/sh\n", ["--mem=lots"], "amount of memory such as 500M", id="no memory"),
        pytest.param("#!/bin/sh\n", ["--ntasks=few"], "--ntasks is a number", id="no number"),
        pytest.param("#!/bin/sh\n", ["--time"], "--time has no value", id="no value"),
        pytest.param("#!/bin/sh\n#SBATCH -J 'a\n", [], "A quote is not closed", id="an open quote"),
    ],
)
def test_what_cannot_be_sent_is_named_before_anything_is_sent(
    script: str, options: list[str], says: str
) -> None:
    with pytest.raises(NotSubmittable) as told:
        job(script, options, name="x", user="ada")

    assert says in str(told.value)


@pytest.mark.parametrize(
    ("script", "named"),
    [
        ("#!/bin/sh\n#SBATCH -J a\n", True),
        ("#!/bin/sh\n#SBATCH --job-name a\n", True),
        ("#!/bin/sh\n", False),
    ],
)
def test_a_script_that_names_its_job_keeps_the_name(script: str, named: bool) -> None:
    assert names_job(script) is named
