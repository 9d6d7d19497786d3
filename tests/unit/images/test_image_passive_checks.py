"""The runner of passive checks: which run, for how long at most, and what they do to the node."""

import json
import subprocess
import time

import pytest

from images.entry import passive_checks
from images.entry.passive_checks import (
    BadConfig,
    Check,
    Facts,
    Runner,
    Verdict,
    applies,
    carry_out,
    checks_from,
    in_order,
    main,
    node_from,
)

H100 = "NVIDIA H100 80GB HBM3\n"


class Commands:
    """scontrol and nvidia-smi as they answer; `reason` makes the node drain."""

    def __init__(self, *, reason: str = "", comment: str = "", gpus: str = "", answers: bool = True) -> None:
        self.reason, self.comment, self.gpus, self.answers = reason, comment, gpus, answers
        self.said: list[list[str]] = []

    def __call__(self, argv):
        self.said.append(list(argv))
        if argv[0] == "nvidia-smi":
            return subprocess.CompletedProcess(argv, 0 if self.gpus else 9, self.gpus, "")
        if not self.answers:
            return None
        if "update" in argv:
            return subprocess.CompletedProcess(argv, 0, "", "")
        state = "IDLE+DRAIN" if self.reason else "IDLE"
        line = f"NodeName=w-0 CPUTot=4 RealMemory=1000 State={state} "
        line += f"Comment={self.comment} " if self.comment else ""
        line += f"Reason={self.reason} [root@2026-01-01T12:00:00]" if self.reason else ""
        return subprocess.CompletedProcess(argv, 0, line + "\n", "")

    @property
    def updates(self):
        return [argv[3:] for argv in self.said if "update" in argv]


def runner(tmp_path, context="prolog", commands=None, **environment) -> Runner:
    environment = {"SLURMD_NODENAME": "w-0", "SLURM_JOB_COMMENT": "", "PATH": "/usr/bin:/bin", **environment}
    return Runner(
        Facts(context, environment, commands or Commands()), tmp_path, root=str(tmp_path / "no-root")
    )


def failing(**fields) -> Check:
    return Check("disk", **{"command": "echo full >&3; exit 1", "on_fail": "drain", **fields})


# ---- Which run


@pytest.mark.parametrize(
    ("check", "context", "environment", "gpus", "runs"),
    [
        ({}, "prolog", {}, "", True),
        ({"contexts": ("epilog",)}, "prolog", {}, "", False),
        ({"contexts": ("none",)}, "prolog", {}, "", False),
        ({"contexts": ("prolog", "hc_program")}, "hc_program", {}, "", True),
        ({"skip_for_cpu_jobs": True}, "prolog", {}, "", False),
        ({"skip_for_cpu_jobs": True}, "prolog", {"SLURM_JOB_GPUS": "0,1"}, "", True),
        ({"skip_for_cpu_jobs": True}, "hc_program", {}, "", True),
        ({"platforms": ("CPU",)}, "prolog", {}, "", True),
        ({"platforms": ("CPU",)}, "prolog", {}, H100, False),
        ({"platforms": ("8xH100",)}, "prolog", {}, H100 * 8, True),
        ({"platforms": ("8xGPU",)}, "prolog", {}, H100 * 8, True),
        ({"platforms": ("8xH200",)}, "prolog", {}, H100 * 8, False),
        ({"platforms": ("2xH100",)}, "prolog", {}, H100 + "NVIDIA H200\n", False),
        ({"platforms": ("2xGPU",)}, "prolog", {}, H100 + "NVIDIA H200\n", True),
        ({"skip_for_partial_gpu_jobs": True}, "epilog", {"SLURM_JOB_GPUS": "0"}, H100 * 8, False),
        ({"skip_for_partial_gpu_jobs": True}, "epilog", {"SLURM_JOB_GPUS": "0,1"}, H100 * 2, True),
        ({"node_states": ("drain",)}, "hc_program", {}, "", False),
    ],
)
def test_which_checks_run(check, context, environment, gpus, runs):
    facts = Facts(context, environment, Commands(gpus=gpus))

    assert applies(Check("c", "true", **check), facts) == runs


def test_cheap_filters_spare_costly_questions():
    commands = Commands(gpus=H100)
    check = Check("c", "true", contexts=("epilog",), platforms=("8xH100",), node_states=("drain",))
    applies(check, Facts("prolog", {}, commands))

    assert commands.said == []


def test_a_check_for_drained_nodes_runs_on_one():
    facts = Facts("hc_program", {"SLURMD_NODENAME": "w-0"}, Commands(reason="[user_problem] disk"))

    assert applies(Check("c", "true", node_states=("drain",)), facts)


def test_those_of_the_host_run_first():
    checks = [Check("a", "true", run_in_jail=True), Check("b", "true"), Check("c", "true")]

    assert [check.name for check in in_order(checks)] == ["b", "c", "a"]


# ---- What they do


def test_a_failed_check_of_a_prolog_drains_the_node_and_sends_the_job_elsewhere(tmp_path):
    commands = Commands()
    found = runner(tmp_path, commands=commands)

    assert found.run([failing(), Check("later", "touch /tmp/never-run-by-a-test")]) == 1
    assert commands.updates == [["state=drain", "reason=[node_problem] disk: full [prolog]"]]
    assert not any("later" in line for line in found.lines)


@pytest.mark.parametrize("context", ["epilog", "hc_program"])
def test_elsewhere_a_failed_check_stops_the_others_and_no_job(context, tmp_path):
    commands = Commands()

    assert runner(tmp_path, context, commands).run([failing()]) == 0
    assert commands.updates == [["state=drain", f"reason=[node_problem] disk: full [{context}]"]]


@pytest.mark.parametrize(
    ("commands", "why"),
    [(Commands(reason="grace: bad NIC"), "drains already"), (Commands(answers=False), "does not say")],
    ids=["a drain that is there keeps its reason", "slurmctld does not answer"],
)
def test_a_node_is_not_drained_when(commands, why, tmp_path):
    found = runner(tmp_path, commands=commands)

    assert found.run([failing()]) == 1
    assert commands.updates == []
    assert any(why in line for line in found.lines)


@pytest.mark.parametrize(
    ("reason", "lifted"),
    [
        ("[user_problem] disk: full [prolog]", True),
        ("grace: bad NIC", False),
        ("[node_problem] gpus: job 7 [slurm_job]", False),
        ("", False),
    ],
    ids=["its own", "a person's", "another check's", "no drain"],
)
def test_only_its_own_drain_is_lifted(reason, lifted, tmp_path):
    commands = Commands(reason=reason)
    check = Check("disk", "true", on_ok="undrain", reason_base="[user_problem] $name")

    runner(tmp_path, "hc_program", commands).run([check])

    assert commands.updates == ([["state=undrain"]] if lifted else [])


def test_a_prolog_lifts_nothing(tmp_path):
    commands = Commands(reason="[user_problem] disk: full [prolog]")
    runner(tmp_path, "prolog", commands).run(
        [Check("d", "true", on_ok="undrain", reason_base="[user_problem]")]
    )

    assert commands.updates == []


@pytest.mark.parametrize(
    ("comment", "written"),
    [("", True), ("[node_problem] disk: old", True), ("ask grace", False)],
)
def test_a_comment_of_somebody_else_stays(comment, written, tmp_path):
    commands = Commands(comment=comment)
    runner(tmp_path, "epilog", commands).run([failing(on_fail="comment")])

    assert bool(commands.updates) == written


def test_a_job_may_ask_for_no_checks(tmp_path):
    commands = Commands()

    assert runner(tmp_path, commands=commands, SLURM_JOB_COMMENT="skip_checks").run([failing()]) == 0
    assert commands.updates == []


def test_details_are_one_short_line():
    check = failing()

    assert check.reason("prolog", "a\nb\tc\x07 \n") == "[node_problem] disk: a b c [prolog]"
    assert len(check.reason("prolog", "x" * 5000)) == 256
    assert check.reason("prolog", "x" * 5000).endswith(" [prolog]")
    assert failing(reason_append_details=False).reason("prolog", "a") == "[node_problem] disk [prolog]"


# ---- Time


def test_a_check_that_hangs_holds_up_nobody(tmp_path):
    """It says neither yes nor no: the job starts, and the node stays as it is."""
    commands = Commands()
    found = runner(tmp_path, commands=commands)
    began = time.monotonic()

    assert found.run([failing(command="sleep 600", timeout_seconds=0.2), Check("next", "true")]) == 0
    assert time.monotonic() - began < 60
    assert commands.updates == []
    assert any("did not end within 0.2 s" in line for line in found.lines)
    assert any(line.startswith("next: ok") for line in found.lines)


def test_what_it_started_ends_with_it(tmp_path):
    mark = tmp_path / "alive"
    with (tmp_path / "log").open("wb") as log:
        outcome = carry_out(
            f"(while :; do touch {mark}; sleep 0.05; done) & wait", 0.3, {"PATH": "/usr/bin:/bin"}, log
        )
    time.sleep(0.3)
    mark.unlink(missing_ok=True)
    time.sleep(0.3)

    assert outcome.verdict is Verdict.UNKNOWN
    assert not mark.exists()


def test_one_that_ignores_signals_is_left_behind_in_time(tmp_path):
    with (tmp_path / "log").open("wb") as log:
        outcome = carry_out("trap '' TERM INT HUP; sleep 600", 0.2, {"PATH": "/usr/bin:/bin"}, log)

    assert outcome.verdict is Verdict.UNKNOWN


def test_a_hanging_check_may_count_as_failed(tmp_path):
    commands = Commands()
    found = runner(tmp_path, commands=commands)

    assert found.run([failing(command="sleep 600", timeout_seconds=0.2, on_timeout="fail")]) == 1
    assert "did not end within" in commands.updates[0][1]


def test_all_checks_together_have_a_limit(tmp_path):
    found = runner(tmp_path)
    times = iter([0.0, 0.0, 1000.0])
    found.clock = lambda: next(times)

    assert found.run([Check("a", "true"), Check("b", "exit 1")]) == 0
    assert found.lines[-1].startswith("b: left out")


def test_much_to_say_is_no_reason_to_hang(tmp_path):
    with (tmp_path / "log").open("wb") as log:
        outcome = carry_out("head -c 1000000 /dev/zero >&3; exit 1", 20, {"PATH": "/usr/bin:/bin"}, log)

    assert outcome.verdict is Verdict.FAILED


# ---- The list


BAD = [
    ("{", "no JSON"),
    ("{}", "a list of objects"),
    ('[{"name": "a"}]', "name and command"),
    ('[{"name": "a", "command": "b", "on_fail": "kill"}]', "on_fail is 'kill'"),
    ('[{"name": "a", "command": "b", "contexts": ["prologue"]}]', "contexts has 'prologue'"),
    ('[{"name": "a", "command": "b", "run_in_jail": "yes"}]', "run_in_jail must be true or false"),
    ('[{"name": "a", "command": "b", "timeout_seconds": 0}]', "timeout_seconds"),
]


@pytest.mark.parametrize(("text", "words"), BAD, ids=[words for _, words in BAD])
def test_a_bad_list_is_named_and_stops_no_job(text, words, tmp_path):
    with pytest.raises(BadConfig, match=words):
        checks_from(text)
    config, log = tmp_path / "checks.json", tmp_path / "log"
    config.write_text(text)
    environment = {"CHECKS_CONTEXT": "prolog", "CHECKS_CONFIG": str(config), "CHECKS_RUNNER_OUTPUT": str(log)}

    assert main({**environment, "SLURM_JOB_COMMENT": ""}) == 0
    assert words in log.read_text()


def test_a_list_of_soperator_is_read():
    body = [
        {
            "name": "boot_disk_full", "command": "boot_disk_full.sh", "platforms": ["any"],
            "contexts": ["prolog", "hc_program"], "node_states": ["any"], "skip_for_cpu_jobs": False,
            "skip_for_partial_gpu_jobs": False, "on_fail": "drain", "on_ok": "undrain",
            "reason_base": "[user_problem] $name", "reason_append_details": True, "run_in_jail": False,
            "log": "slurm_scripts/$worker.$name.$context.out", "need_env": ["CHECKS_PLATFORM_TAG"], "note": "x",
        }
    ]  # fmt: skip
    [check] = checks_from(json.dumps(body))

    assert check.contexts == ("prolog", "hc_program")
    assert check.base("prolog") == "[user_problem] boot_disk_full"


def test_no_list_and_no_context_stop_no_job(tmp_path):
    assert (
        main({"CHECKS_CONTEXT": "prolog", "CHECKS_CONFIG": str(tmp_path / "none"), "SLURM_JOB_COMMENT": ""})
        == 0
    )
    assert main({}) == 0


def test_variables_are_given_to_who_asks(tmp_path):
    commands = Commands(gpus=H100 * 8, reason="[user_problem] disk")
    out = tmp_path / "out"
    check = Check(
        "v",
        f'echo "$CHECKS_PLATFORM_TAG $CHECKS_NODE_REASON $CHECKS_NODE_REAL_MEM_BYTES $CHECKS_CONTEXT" > {out}',
        need_env=("CHECKS_PLATFORM_TAG", "CHECKS_NODE_REASON", "CHECKS_NODE_REAL_MEM_BYTES"),
    )
    runner(tmp_path, "hc_program", commands).run([check])

    assert out.read_text().strip() == f"8xH100 [user_problem] disk {1000 * 2**20} hc_program"


def test_output_goes_to_a_file_of_its_own(tmp_path):
    runner(tmp_path).run([Check("talks", "echo hello")])

    assert (tmp_path / "slurm_scripts/w-0.talks.prolog.out").read_text() == "hello\n"


@pytest.mark.parametrize(
    ("line", "reason", "comment"),
    [
        ("NodeName=a State=IDLE+DRAIN Comment=two words Reason=bad NIC [root@2026-01-01T12:00:00]", "bad NIC", "two words"),
        ("NodeName=a State=IDLE+DRAIN Reason=[node_problem] x: y [prolog] [slurm@2026-01-01T12:00:00]",
         "[node_problem] x: y [prolog]", ""),
        ("NodeName=a State=IDLE", "", ""),
    ],
)  # fmt: skip
def test_a_node_is_read_as_scontrol_prints_it(line, reason, comment):
    found = node_from(line + "\n")

    assert (found.reason, found.comment) == (reason, comment)


def test_it_works_as_a_script_of_its_own():
    code = subprocess.run(
        ["/usr/bin/env", "python3", passive_checks.__file__],
        env={"PATH": "/usr/bin:/bin"},
        capture_output=True,
        check=False,
    )

    assert code.returncode == 0
    assert b"CHECKS_CONTEXT" in code.stderr
