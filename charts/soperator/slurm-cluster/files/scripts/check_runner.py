"""Runs the passive checks of a worker: from Prolog, Epilog or HealthCheckProgram, by a JSON list of checks.

This file needs nothing but the standard library and the commands of Slurm, so it also works as a script of
its own. Whatever goes wrong with the runner itself lets the job start: a broken list of checks must not stop
a cluster. A check that hangs says neither yes nor no: it is ended, and holds up nobody beyond its limit.
"""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cached_property
from pathlib import Path
from string import Template
from typing import IO, Any

CONFIG = "/opt/slurm_scripts/checks.json"
OUTPUTS = "/opt/soperator-outputs/local"
ROOT = "/mnt/jail"
METADATA = "/run/soperator/node_metadata.env"

PROLOG, EPILOG, HEALTH = "prolog", "epilog", "hc_program"
CONTEXTS = (PROLOG, EPILOG, HEALTH)
ANY, NONE = "any", "none"
DRAIN, COMMENT, UNDRAIN, UNCOMMENT = "drain", "comment", "undrain", "uncomment"

# Whoever submits a job with this comment takes the nodes as they are.
SKIPPED_BY = "skip_checks"

# How long one check may take, and all of them together. slurmd waits for a prolog without an end of its own
# unless PrologEpilogTimeout says otherwise, and a job waits with it.
CHECK_SECONDS = {PROLOG: 30.0, EPILOG: 30.0, HEALTH: 60.0}
ALL_SECONDS = {PROLOG: 60.0, EPILOG: 60.0, HEALTH: 110.0}
_COMMAND_SECONDS = 10.0
_KILLED_WITHIN_SECONDS = 2.0

# slurmd gives its scripts hardly any environment.
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

_MOST_DETAILS = 4096
_MOST_REASON = 256
_MODELS = ("GB300", "B300", "B200", "H200", "H100")


class Verdict(Enum):
    OK = "ok"
    FAILED = "failed"
    UNKNOWN = "unknown"  # It hung, or could not be started.


class BadConfig(Exception):  # noqa: N818 - it says what is the case
    """What is wrong with the list of checks, and where."""


@dataclass(frozen=True)
class Check:
    """One entry of the list."""

    name: str
    command: str
    platforms: tuple[str, ...] = (ANY,)
    contexts: tuple[str, ...] = (ANY,)
    node_states: tuple[str, ...] = (ANY,)
    skip_for_cpu_jobs: bool = False
    skip_for_partial_gpu_jobs: bool = False
    on_fail: str = NONE
    on_ok: str = NONE
    on_timeout: str = NONE  # Ours: `fail` takes a check that hangs for one that failed.
    timeout_seconds: float = 0.0  # Ours; 0 is that of the context.
    reason_base: str = "[node_problem] $name"
    reason_append_details: bool = True
    run_in_jail: bool = False
    log: str = "slurm_scripts/$worker.$name.$context.out"
    need_env: tuple[str, ...] = ()

    def base(self, context: str) -> str:
        return one_line(Template(self.reason_base).safe_substitute(name=self.name, context=context))

    def reason(self, context: str, details: str) -> str:
        """As it stands in Slurm: `[node_problem] name: details [prolog]`."""
        end, said = f" [{context}]", one_line(details) if self.reason_append_details else ""
        head = self.base(context) + (f": {said}" if said else "")
        return head[: _MOST_REASON - len(end)].rstrip() + end


_CHOICES: Mapping[str, tuple[str, ...]] = {
    "on_fail": (NONE, DRAIN, COMMENT),
    "on_ok": (NONE, UNDRAIN, UNCOMMENT),
    "on_timeout": (NONE, "fail"),
}
_LISTS = {
    "platforms": None,
    "contexts": (ANY, NONE, *CONTEXTS),
    "node_states": (ANY, DRAIN),
    "need_env": None,
}
_FLAGS = ("skip_for_cpu_jobs", "skip_for_partial_gpu_jobs", "reason_append_details", "run_in_jail")
_TEXTS = ("name", "command", "reason_base", "log")


def checks_from(text: str) -> list[Check]:
    """The checks of a list. Raises BadConfig; fields that nobody knows are passed over."""
    try:
        found = json.loads(text)
    except ValueError as error:
        raise BadConfig(f"it is no JSON: {error}") from error
    if not isinstance(found, list) or not all(isinstance(one, dict) for one in found):
        raise BadConfig("it must be a list of objects")
    return [_check(number, one) for number, one in enumerate(found)]


def _check(number: int, body: Mapping[str, Any]) -> Check:
    where = f"check {number} ({body.get('name', 'without a name')})"
    fields: dict[str, Any] = {}
    for name in _TEXTS:
        if name in body:
            fields[name] = _of(where, name, body[name], str)
    for name in _FLAGS:
        if name in body:
            fields[name] = _of(where, name, body[name], bool)
    for name, choices in _CHOICES.items():
        if name in body:
            fields[name] = _chosen(where, name, body[name], choices)
    for name, known in _LISTS.items():
        if name in body:
            fields[name] = _listed(where, name, body[name], known)
    if "timeout_seconds" in body:
        seconds = body["timeout_seconds"]
        if isinstance(seconds, bool) or not isinstance(seconds, int | float) or seconds <= 0:
            raise BadConfig(f"{where}: timeout_seconds must be a number of seconds above 0")
        fields["timeout_seconds"] = float(seconds)
    if not fields.get("name") or not fields.get("command"):
        raise BadConfig(f"{where}: name and command are required")
    return Check(**fields)


def _of(where: str, name: str, value: Any, type_: type) -> Any:
    if not isinstance(value, type_):
        raise BadConfig(f"{where}: {name} must be {'text' if type_ is str else 'true or false'}")
    return value


def _chosen(where: str, name: str, value: Any, choices: Sequence[str]) -> str:
    if value not in choices:
        raise BadConfig(f"{where}: {name} is {value!r}; it must be one of {', '.join(choices)}")
    return str(value)


def _listed(where: str, name: str, value: Any, known: Sequence[str] | None) -> tuple[str, ...]:
    words = [value] if isinstance(value, str) else value
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise BadConfig(f"{where}: {name} must be a list of words")
    if known is not None and (unknown := [word for word in words if word not in known]):
        raise BadConfig(f"{where}: {name} has {unknown[0]!r}; known are {', '.join(known)}")
    return tuple(words)


def one_line(text: str) -> str:
    return " ".join("".join(char if char.isprintable() else " " for char in text).split())


# ---- What is known of the node and the job; each is looked up once, and only if a check asks


@dataclass(frozen=True)
class NodeRecord:
    states: frozenset[str] = frozenset()
    reason: str = ""
    comment: str = ""
    real_memory_mb: int = 0

    @property
    def is_drain(self) -> bool:
        return any(word.rstrip("*") in ("DRAIN", "DRAINED", "DRAINING") for word in self.states)


Run = Callable[[Sequence[str]], "subprocess.CompletedProcess[str] | None"]


def slurm(argv: Sequence[str]) -> "subprocess.CompletedProcess[str] | None":
    """A command that is over within a moment; None when it is not."""
    try:
        return subprocess.run(
            argv,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_COMMAND_SECONDS,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return None


@dataclass
class Facts:
    """The node and the job, as far as anybody asks."""

    context: str
    environment: Mapping[str, str]
    run: Run = slurm

    @cached_property
    def worker(self) -> str:
        return self.environment.get("SLURMD_NODENAME") or socket.gethostname().partition(".")[0]

    @cached_property
    def node(self) -> NodeRecord | None:
        """None when slurmctld does not say: then nobody is drained or undrained."""
        done = self.run(["scontrol", "--oneliner", "show", "node", self.worker])
        if done is None or done.returncode != 0 or not done.stdout.startswith("NodeName="):
            return None
        return node_from(done.stdout)

    @cached_property
    def gpus(self) -> tuple[str, ...]:
        """Model names; none where they cannot be found out."""
        done = self.run(["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"])
        if done is None or done.returncode != 0:
            return ()
        return tuple(line.strip() for line in done.stdout.splitlines() if line.strip())

    @cached_property
    def platform_tags(self) -> tuple[str, ...]:
        """The narrowest first: 8xH100, 8xGPU, any."""
        if not self.gpus:
            return ("CPU", ANY)
        models = {next((model for model in _MODELS if model in name), "") for name in self.gpus}
        count, model = len(self.gpus), models.pop() if len(models) == 1 else ""
        return (*([f"{count}x{model}"] if model else []), f"{count}xGPU", ANY)

    @cached_property
    def job_gpus(self) -> int:
        listed = self.environment.get("SLURM_JOB_GPUS") or self.environment.get("CUDA_VISIBLE_DEVICES") or ""
        return len([word for word in listed.split(",") if word.strip() and "NoDev" not in word])

    @property
    def is_about_job(self) -> bool:
        return self.context in (PROLOG, EPILOG)

    @cached_property
    def job_comment(self) -> str:
        if "SLURM_JOB_COMMENT" in self.environment:
            return self.environment["SLURM_JOB_COMMENT"]
        job = self.environment.get("SLURM_JOB_ID", "")
        done = self.run(["scontrol", "--oneliner", "show", "job", job]) if job else None
        found = re.search(r" Comment=(.*?)(?= \w+=|$)", done.stdout.strip()) if done is not None else None
        return found[1] if found else ""

    def variable(self, name: str) -> str:
        """What a check asked for by need_env."""
        node = self.node if name.startswith("CHECKS_NODE_") else None
        match name:
            case "CHECKS_PLATFORM_TAG":
                return self.platform_tags[0]
            case "CHECKS_PLATFORM_TAGS":
                return ",".join(self.platform_tags)
            case "CHECKS_NODE_STATE_FLAGS":
                return "+".join(sorted(node.states)) if node is not None else ""
            case "CHECKS_NODE_REASON":
                return node.reason if node is not None else ""
            case "CHECKS_NODE_COMMENT":
                return node.comment if node is not None else ""
            case "CHECKS_NODE_REAL_MEM_BYTES":
                return self._memory(node)
            case "CHECKS_JOB_ALLOC_MEM_BYTES":
                per_node = self.environment.get("SLURM_MEM_PER_NODE", "")
                return str(int(per_node) * 2**20) if per_node.isdecimal() else ""
            case _:
                return ""

    def _memory(self, node: NodeRecord | None) -> str:
        with suppress(OSError):
            for line in Path(METADATA).read_text(errors="replace").splitlines():
                name, _, value = line.partition("=")
                if name.strip() == "SOPERATOR_NODE_REAL_MEMORY_BYTES" and value.strip().isdecimal():
                    return value.strip()
        return str(node.real_memory_mb * 2**20) if node is not None and node.real_memory_mb else ""


def node_from(text: str) -> NodeRecord:
    """A line of `scontrol --oneliner show node`."""
    words = dict(word.partition("=")[::2] for word in text.split() if "=" in word)
    said = re.search(r" Reason=(.*?)(?: \[[^\[\]]*@\d{4}-\d\d-\d\dT[\d:]+\])?\s*$", text)
    comment = re.search(
        r" Comment=(.*?)(?= (?:Extra|InstanceId|InstanceType|Reason|AvailableFeatures)=|\s*$)", text
    )
    reason = re.sub(r" (?:Comment|Extra|InstanceId|InstanceType)=.*$", "", said[1]) if said else ""
    memory = words.get("RealMemory", "")
    return NodeRecord(
        states=frozenset(words.get("State", "").split("+")),
        reason=reason,
        comment=comment[1] if comment else "",
        real_memory_mb=int(memory) if memory.isdecimal() else 0,
    )


# ---- Which checks run


def applies(check: Check, facts: Facts) -> bool:
    """In this order, so that what is cheap to know spares what is not."""
    if facts.context not in check.contexts and ANY not in check.contexts:
        return False
    if check.skip_for_cpu_jobs and facts.is_about_job and facts.job_gpus == 0:
        return False
    if ANY not in check.platforms and set(check.platforms).isdisjoint(facts.platform_tags):
        return False
    if check.skip_for_partial_gpu_jobs and facts.is_about_job and facts.job_gpus < len(facts.gpus):
        return False
    if ANY in check.node_states:
        return True
    return facts.node is not None and facts.node.is_drain


def in_order(checks: Sequence[Check]) -> list[Check]:
    """Those of the host before those of the jail."""
    return sorted(checks, key=lambda check: check.run_in_jail)


# ---- Running one


@dataclass(frozen=True)
class Outcome:
    verdict: Verdict
    details: str = ""


def carry_out(
    command: str, seconds: float, environment: Mapping[str, str], log: IO[bytes], root: str = ""
) -> Outcome:
    """Runs a command of the shell. What hangs is killed with all it started, and waited for no longer."""

    with tempfile.TemporaryFile() as details:

        def prepare() -> None:
            os.dup2(details.fileno(), 3)
            if root:
                os.chroot(root)
            os.chdir("/")

        try:
            process = subprocess.Popen(
                ["/bin/sh", "-c", command],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=dict(environment),
                start_new_session=True,
                pass_fds=(3,),
                preexec_fn=prepare,
            )
        except (OSError, subprocess.SubprocessError) as error:
            return Outcome(Verdict.UNKNOWN, f"could not be started: {error}")
        try:
            code = process.wait(seconds)
        except subprocess.TimeoutExpired:
            _kill(process)
            return Outcome(Verdict.UNKNOWN, f"did not end within {seconds:g} s")
        details.seek(0)
        said = details.read(_MOST_DETAILS).decode(errors="replace")
        return Outcome(Verdict.OK if code == 0 else Verdict.FAILED, said)


def _kill(process: "subprocess.Popen[bytes]") -> None:
    """A process that waits for a dead device cannot be killed either; it is left behind."""
    with suppress(OSError):
        os.killpg(process.pid, signal.SIGKILL)
    with suppress(subprocess.TimeoutExpired):
        process.wait(_KILLED_WITHIN_SECONDS)


@dataclass
class Runner:
    """Runs the checks of one context, and does what they ask for."""

    facts: Facts
    outputs: Path = Path(OUTPUTS)
    root: str = ROOT
    clock: Callable[[], float] = time.monotonic
    lines: list[str] = field(default_factory=list)

    def run(self, checks: Sequence[Check]) -> int:
        """1 when a check of a prolog failed, and the job has to run elsewhere; else 0."""
        context = self.facts.context
        if self.facts.is_about_job and self.facts.job_comment == SKIPPED_BY:
            self.say(f"the job says {SKIPPED_BY}: nothing is checked")
            return 0
        ends = self.clock() + ALL_SECONDS[context]
        for check in in_order(checks):
            if not applies(check, self.facts):
                continue
            left = ends - self.clock()
            if left <= 0:
                self.say(f"{check.name}: left out, as all checks took {ALL_SECONDS[context]:g} s")
                continue
            if not self._passed(check, min(left, check.timeout_seconds or CHECK_SECONDS[context])):
                return 1 if context == PROLOG else 0
        return 0

    def _passed(self, check: Check, seconds: float) -> bool:
        outcome = self._outcome(check, seconds)
        self.say(f"{check.name}: {outcome.verdict.value} {one_line(outcome.details)}".rstrip())
        is_failed = outcome.verdict is Verdict.FAILED
        if outcome.verdict is Verdict.UNKNOWN and check.on_timeout == "fail":
            is_failed = True
        if is_failed:
            self._failed(check, outcome.details)
        elif outcome.verdict is Verdict.OK and self.facts.context == HEALTH:
            self._recovered(check)
        return not is_failed

    def _outcome(self, check: Check, seconds: float) -> Outcome:
        root = self.root if check.run_in_jail and Path(self.root).is_dir() else ""
        wanted = {name: self.facts.variable(name) for name in check.need_env}
        given = {"PATH": _PATH, **self.facts.environment}
        environment = {**given, "CHECKS_CONTEXT": self.facts.context, **wanted}
        with self._log(check) as log:
            return carry_out(check.command, seconds, environment, log, root)

    def _log(self, check: Check) -> IO[bytes]:
        names = {"worker": self.facts.worker, "name": check.name, "context": self.facts.context}
        path = self.outputs / Template(check.log).safe_substitute(names).lstrip("/")
        with suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            return path.open("ab")
        return Path(os.devnull).open("wb")

    def _failed(self, check: Check, details: str) -> None:
        node, reason = self._node_now(), check.reason(self.facts.context, details)
        if check.on_fail == DRAIN and node is not None and not node.is_drain:
            self._update("state=drain", f"reason={reason}")
        elif check.on_fail == DRAIN:
            why = "it drains already" if node is not None else "slurmctld does not say how it stands"
            self.say(f"{check.name}: {self.facts.worker} is not drained: {why}")
        is_free = node is not None and (
            not node.comment or node.comment.startswith(check.base(self.facts.context))
        )
        if check.on_fail == COMMENT and is_free:
            self._update(f"comment={reason}")

    def _recovered(self, check: Check) -> None:
        """Only what this check said is taken back; a person's drain stays."""
        if check.on_ok == NONE:
            return
        node, base = self._node_now(), check.base(self.facts.context)
        if node is None or not base:
            return
        if check.on_ok == UNDRAIN and node.is_drain and node.reason.startswith(base):
            self._update("state=undrain")
        if check.on_ok == UNCOMMENT and node.comment.startswith(base):
            self._update("comment=")

    def _node_now(self) -> NodeRecord | None:
        """As it is in this moment: a person, or another check, may have been faster."""
        return replace(self.facts).node

    def _update(self, *words: str) -> None:
        done = self.facts.run(["scontrol", "update", f"nodename={self.facts.worker}", *words])
        if done is None or done.returncode != 0:
            why = one_line(done.stderr or done.stdout) if done is not None else "no answer"
            self.say(f"scontrol update {' '.join(words)}: {why}")

    def say(self, line: str) -> None:
        self.lines.append(line)


def main(environment: Mapping[str, str]) -> int:
    """What a prolog, an epilog or HealthCheckProgram calls. Trouble of its own never stops a job."""
    context = environment.get("CHECKS_CONTEXT", "")
    if context not in CONTEXTS:
        print(f"CHECKS_CONTEXT is {context!r}; it must be one of {', '.join(CONTEXTS)}", file=sys.stderr)
        return 0
    outputs = Path(environment.get("CHECKS_OUTPUTS_BASE_DIR") or OUTPUTS)
    runner = Runner(Facts(context, environment), outputs)
    path, code = Path(environment.get("CHECKS_CONFIG") or CONFIG), 0
    try:
        code = runner.run(checks_from(path.read_text()))
    except BadConfig as bad:
        runner.say(f"nothing is checked: {path}: {bad}")
    except Exception as error:
        runner.say(f"nothing more is checked: {type(error).__name__}: {error}")
    _log_of(runner, environment, outputs)
    if code:
        print(
            f"{runner.facts.worker} failed a check, so this job runs elsewhere: {runner.lines[-1]}",
            file=sys.stderr,
        )
    return code


def _log_of(runner: Runner, environment: Mapping[str, str], outputs: Path) -> None:
    name = f"{runner.facts.worker}.check_runner.{runner.facts.context}.out"
    path = Path(environment.get("CHECKS_RUNNER_OUTPUT") or outputs / "slurm_scripts" / name)
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a") as log:
            log.writelines(f"{line}\n" for line in _dated(runner.lines))


def _dated(lines: Sequence[str]) -> Iterator[str]:
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    return (f"{now} {line}" for line in lines)


if __name__ == "__main__":
    sys.exit(main(os.environ))
