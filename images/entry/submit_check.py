"""Submits the Slurm jobs of an ActiveCheck, and notes their ids on the Kubernetes Job of this pod.

The operator follows the jobs from there. It acts only when this program has ended, so the ids may be noted
bit by bit: what was submitted before a crash is known.
"""

import json
import os
import pwd
import random
import re
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from .slurmctld import command

SCRIPT = Path("/opt/bin/sbatch.sh")
ROOT = Path("/mnt/jail")
USER = "soperatorchecks"
PARTITION = "hidden"
OUTPUTS = "opt/soperator-outputs/local/slurm_jobs"

IDS, UNHANDLED, SKIPPED = "slurm-job-id", "unhandled-slurm-job-id", "slurm-skipped-reason"

# A node in one of these states runs no check now. A check that waits for it would hold up its whole run.
NOT_ELIGIBLE = frozenset({
    "DOWN", "ERROR", "FAIL", "DRAIN", "DRAINED", "DRAINING", "RESERVED", "MAINTENANCE", "INVALID_REG",
    "NOT_RESPONDING", "POWER_DOWN", "POWERING_DOWN", "POWERED_DOWN", "REBOOT_ISSUED", "REBOOT_REQUESTED",
    "FUTURE", "UNKNOWN",
})  # fmt: skip

_PAUSE_S = 0.3
_NOTED_EVERY = 10
_TRIES, _BETWEEN_TRIES_S = 40, 3.0
_SECRETS = Path("/var/run/secrets/kubernetes.io/serviceaccount")

_GPU = re.compile(r"^#SBATCH\s(.*\s)?(--gpus|--gres[= ]\S*gpu|--tres-per-\S*gpu|-G[\s\d])", re.MULTILINE)
_OPTION = re.compile(r"^#SBATCH\s+(?P<options>.*)$", re.MULTILINE)

Run = Callable[[Sequence[str]], "subprocess.CompletedProcess[str] | None"]
Note = Callable[[Mapping[str, str]], None]


class Refusal(Exception):  # noqa: N818 - it says what is the case
    """Why nothing can be submitted, and what to do about it."""


@dataclass(frozen=True)
class Node:
    name: str
    states: frozenset[str]
    gres: str = ""

    @property
    def is_eligible(self) -> bool:
        is_silent = any(state.endswith("*") for state in self.states)
        return not is_silent and self.states.isdisjoint(NOT_ELIGIBLE)

    @property
    def has_gpu(self) -> bool:
        return any(one.startswith("gpu") for one in self.gres.split(","))


@dataclass(frozen=True)
class Check:
    """What is submitted, and where."""

    name: str
    script: str
    for_each_worker: bool = False
    most: int = 0
    path: str = str(SCRIPT)

    @property
    def wants_gpu(self) -> bool:
        return _GPU.search(self.script) is not None

    def has(self, *options: str) -> bool:
        """Whether the script sets one of these options of sbatch itself."""
        words = [word for line in _OPTION.finditer(self.script) for word in line["options"].split()]
        return any(word.partition("=")[0] in options for word in words)


@dataclass
class Submission:
    """Runs commands of Slurm, and notes what came of them."""

    run: Run
    note: Note
    root: Path = ROOT
    pause: Callable[[float], None] = time.sleep
    shuffle: Callable[[list[Node]], None] = random.shuffle
    ids: list[str] = field(default_factory=list)

    def submit(self, check: Check) -> int:
        """0 when something was submitted, or there was nothing to check."""
        nodes = self._nodes()
        if check.wants_gpu and not any(node.has_gpu for node in nodes):
            self.note({SKIPPED: "no node of this cluster has a GPU"})
            return 0
        if not check.for_each_worker:
            self._sbatch(check)
        else:
            self._each(check, nodes)
        self._note_ids()
        if not self.ids:
            print("no job was submitted", file=sys.stderr)
        return 0 if self.ids else 1

    def _each(self, check: Check, nodes: Sequence[Node]) -> None:
        # Those of an earlier run that still wait for their turn. What runs is left to its end.
        self.run(["scancel", f"--name={check.name}", "--state=PENDING", "--me"])
        chosen = self._chosen(check, nodes)
        if not chosen:
            raise Refusal("No worker can run a check now: all are drained, down, reserved or silent.")
        for number, node in enumerate(chosen, 1):
            self._sbatch(check, f"--nodelist={node.name}", "--no-requeue")
            if number % _NOTED_EVERY == 0:
                self._note_ids()
            if number < len(chosen):
                self.pause(_PAUSE_S)

    def _chosen(self, check: Check, nodes: Sequence[Node]) -> list[Node]:
        busy = self._checked_now(check)
        found = [
            node
            for node in nodes
            if node.is_eligible and node.name not in busy and (node.has_gpu or not check.wants_gpu)
        ]
        self.shuffle(found)
        return found[: check.most] if check.most > 0 else found

    def _checked_now(self, check: Check) -> frozenset[str]:
        """Where a job of an earlier run is still at work."""
        done = self.run(["squeue", "--noheader", "--all", "--me", f"--name={check.name}", "--format=%N"])
        return frozenset(done.stdout.split()) if done is not None and done.returncode == 0 else frozenset()

    def _nodes(self) -> list[Node]:
        done = self.run(["scontrol", "--oneliner", "--all", "show", "node"])
        if done is None or done.returncode != 0:
            why = (done.stderr or done.stdout).strip() if done is not None else "no answer"
            raise Refusal(f"slurmctld does not say which nodes there are: {why}")
        return nodes_from(done.stdout)

    def _sbatch(self, check: Check, *more: str) -> None:
        done = self.run(["sbatch", "--parsable", *self._options(check), *more, check.path])
        found = (done.stdout.strip().partition(";")[0]) if done is not None and done.returncode == 0 else ""
        if found.isdecimal():
            self.ids.append(found)
            return
        why = (done.stderr or done.stdout).strip() if done is not None else "no answer"
        print(f"sbatch {' '.join(more)}: {why}", file=sys.stderr)

    def _options(self, check: Check) -> Iterable[str]:
        yield f"--job-name={check.name}"
        if not check.has("-p", "--partition") and self._has_partition():
            yield f"--partition={PARTITION}"
        if not check.has("-o", "--output"):
            has_outputs = (self.root / OUTPUTS).is_dir()
            yield f"--output=/{OUTPUTS}/%N.%x.%j.out" if has_outputs else "--output=/dev/null"
        if not check.has("-D", "--chdir"):
            yield "--chdir=/"

    def _has_partition(self) -> bool:
        """The partition that people do not see: checks wait in no queue of theirs."""
        done = self.run(["scontrol", "--oneliner", "show", "partition", PARTITION])
        return done is not None and done.returncode == 0 and f"PartitionName={PARTITION}" in done.stdout

    def _note_ids(self) -> None:
        if self.ids:
            listed = ",".join(self.ids)
            self.note({IDS: listed, UNHANDLED: listed})


def nodes_from(text: str) -> list[Node]:
    """The nodes of `scontrol --oneliner show node`."""
    found = []
    for line in text.splitlines():
        words = dict(word.partition("=")[::2] for word in line.split() if "=" in word)
        if "NodeName" in words:
            gres = words.get("Gres", "")
            states = frozenset(words.get("State", "UNKNOWN").split("+"))
            found.append(Node(words["NodeName"], states, "" if gres == "(null)" else gres))
    return found


def user_ids(name: str, root: Path = ROOT) -> tuple[int, int]:
    """Of whom jobs are submitted as: an account of the shared root, or of this image."""
    accounts = root / "etc" / "passwd"
    lines = accounts.read_text(errors="replace").splitlines() if accounts.is_file() else []
    for line in lines:
        fields = line.split(":")
        if len(fields) >= 4 and fields[0] == name and fields[2].isdecimal() and fields[3].isdecimal():
            return int(fields[2]), int(fields[3])
    try:
        found = pwd.getpwnam(name)
    except KeyError:
        raise Refusal(
            f"There is no user {name!r} in {accounts} or in this image. The check "
            "create-user-soperatorchecks makes it; other checks depend on that one."
        ) from None
    return found.pw_uid, found.pw_gid


def as_user(uid: int, gid: int, argv: Sequence[str]) -> "subprocess.CompletedProcess[str] | None":
    """A command of Slurm as this user; as whom we are where we may not change that."""
    if os.geteuid() != 0:
        return command(*argv)
    try:
        return subprocess.run(
            argv,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=60,
            check=False,
            user=uid,
            group=gid,
            extra_groups=[],
            cwd="/",
        )
    except (OSError, subprocess.SubprocessError):
        return None


def annotate(environment: Mapping[str, str], notes: Mapping[str, str], secrets: Path = _SECRETS) -> None:
    """Notes on our own Job. Raises Refusal when the API server does not take it for two minutes."""
    host, port = environment["KUBERNETES_SERVICE_HOST"], environment.get("KUBERNETES_SERVICE_PORT", "443")
    namespace, job = environment["K8S_POD_NAMESPACE"], environment["ACTIVE_CHECK_JOB"]
    address = f"[{host}]" if ":" in host else host
    url = f"https://{address}:{port}/apis/batch/v1/namespaces/{namespace}/jobs/{job}"
    body = json.dumps({"metadata": {"annotations": dict(notes)}}).encode()
    why = ""
    for attempt in range(_TRIES):
        if attempt:
            time.sleep(_BETWEEN_TRIES_S)
        try:
            _patch(url, body, secrets)
        except (OSError, ValueError) as error:  # HTTP and TLS errors are OSErrors.
            why = str(error)
        else:
            return
    raise Refusal(f"Cannot note {dict(notes)} on Job {namespace}/{job}: {why}")


def _patch(url: str, body: bytes, secrets: Path) -> None:
    headers = {
        "Authorization": f"Bearer {(secrets / 'token').read_text().strip()}",
        "Content-Type": "application/merge-patch+json",
    }
    request = urllib.request.Request(url, data=body, headers=headers, method="PATCH")  # noqa: S310
    context = ssl.create_default_context(cafile=str(secrets / "ca.crt"))
    with urllib.request.urlopen(request, timeout=15, context=context) as answer:  # noqa: S310
        answer.read()


def check_of(environment: Mapping[str, str], script: Path = SCRIPT) -> Check:
    most = environment.get("ACTIVE_CHECK_MAX_NUMBER_OF_JOBS", "0")
    return Check(
        name=environment["ACTIVE_CHECK_NAME"],
        script=script.read_text(errors="replace"),
        for_each_worker=environment.get("EACH_WORKER_JOBS", "false") == "true",
        most=int(most) if most.isdecimal() else 0,
        path=str(script),
    )


def main(environment: Mapping[str, str]) -> int:
    """What the pod of a check does. 1 when nothing could be submitted, with the reason."""
    try:
        uid, gid = user_ids(environment.get("CHECKS_USER", USER))
        submission = Submission(partial(as_user, uid, gid), partial(annotate, environment))
        return submission.submit(check_of(environment))
    except (Refusal, OSError, KeyError) as refusal:
        print(f"The check was not submitted: {refusal}", file=sys.stderr)
        return 1
