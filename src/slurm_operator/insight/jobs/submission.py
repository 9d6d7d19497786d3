"""A batch script as slurmrestd takes it: it reads no #SBATCH lines, so they are read here."""

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence

from slurm_operator.slurm import durations

_DIRECTIVE = re.compile(r"#SBATCH\s+(.*)")
_MEMORY = re.compile(r"(\d+)([KMGT]?)B?", re.IGNORECASE)
_MEBIBYTES = {"k": 1 / 1024, "": 1, "m": 1, "g": 1024, "t": 1024**2}

# What a job has of its surroundings when it was not submitted from a shell.
_ENVIRONMENT = ("PATH=/usr/local/bin:/usr/bin:/bin",)

_SHORT: Mapping[str, str] = {
    "A": "account",
    "D": "chdir",
    "J": "job-name",
    "N": "nodes",
    "a": "array",
    "c": "cpus-per-task",
    "d": "dependency",
    "e": "error",
    "n": "ntasks",
    "o": "output",
    "p": "partition",
    "q": "qos",
    "t": "time",
    "w": "nodelist",
    "x": "exclude",
    "C": "constraint",
}
# The fields of a job in slurmrestd's words, by sbatch's.
_TEXTS: Mapping[str, str] = {
    "account": "account",
    "array": "array",
    "chdir": "current_working_directory",
    "comment": "comment",
    "constraint": "constraints",
    "dependency": "dependency",
    "error": "standard_error",
    "job-name": "name",
    "nodes": "nodes",
    "output": "standard_output",
    "partition": "partition",
    "qos": "qos",
    "reservation": "reservation",
}
_NUMBERS: Mapping[str, str] = {
    "cpus-per-task": "cpus_per_task",
    "ntasks": "tasks",
    "ntasks-per-node": "tasks_per_node",
}
_MEMORIES: Mapping[str, str] = {"mem": "memory_per_node", "mem-per-cpu": "memory_per_cpu"}
_LISTS: Mapping[str, str] = {"nodelist": "required_nodes", "exclude": "excluded_nodes"}
_GRES = "gres"
_TIME = "time"
_KNOWN = {*_TEXTS, *_NUMBERS, *_MEMORIES, *_LISTS, _GRES, _TIME}


class NotSubmittable(ValueError):  # noqa: N818 - it says what is the case
    """Something in the script or the options cannot be sent, and what to do."""


def job(script: str, options: Sequence[str], *, name: str, user: str) -> dict[str, object]:
    """The body of a submission. What stands on the command line goes before what stands in the script."""
    if not script.startswith("#!"):
        raise NotSubmittable(
            "The script has to begin with #! and the program that reads it, such as #!/bin/bash."
        )
    wanted = {**dict(_given(directives(script))), **dict(_given(options))}
    fields: dict[str, object] = {
        "name": name,
        "current_working_directory": f"/home/{user}" if user else "/tmp",  # noqa: S108 - where jobs may write
        "environment": list(_ENVIRONMENT),
    }
    for option, value in wanted.items():
        fields |= _field(option, value)
    return {"script": script, "job": fields}


def directives(script: str) -> list[str]:
    """The words of its #SBATCH lines. As with sbatch, the first command ends them."""
    words: list[str] = []
    for line in script.splitlines()[1:]:
        if line.strip() and not line.startswith("#"):
            break
        if found := _DIRECTIVE.match(line):
            words += _words(found[1])
    return words


def names_job(script: str) -> bool:
    """Whether the script gives its job a name."""
    return any(word.startswith(("-J", "--job-name")) for word in directives(script))


def _words(text: str) -> list[str]:
    try:
        return shlex.split(text, comments=True)
    except ValueError as error:
        raise NotSubmittable(f"A quote is not closed in: #SBATCH {text}") from error


def _given(words: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Options with their values, however they are written: `--time=5`, `--time 5`, `-t 5`, `-t5`."""
    rest = iter(words)
    for word in rest:
        if word.startswith("--"):
            option, sign, value = word[2:].partition("=")
        else:
            option, sign, value = _SHORT.get(word[1:2], ""), word[2:], word[2:]
        if not word.startswith("-") or option not in _KNOWN:
            raise NotSubmittable(
                f"{word!r} cannot be sent with a token. These can: {', '.join(sorted(_KNOWN))}. With --user, "
                "sbatch itself reads the script, and every option of sbatch works."
            )
        found = value if sign else next(rest, "")
        if not found:
            raise NotSubmittable(f"--{option} has no value.")
        yield option, found


def _field(option: str, value: str) -> dict[str, object]:
    if option in _TEXTS:
        return {_TEXTS[option]: value}
    if option in _LISTS:
        return {_LISTS[option]: value.split(",")}
    if option == _GRES:
        return {"tres_per_node": ",".join(f"gres/{one.removeprefix('gres/')}" for one in value.split(","))}
    if option == _TIME:
        return {"time_limit": _number(_minutes(value))}
    if option in _MEMORIES:
        return {_MEMORIES[option]: _number(_mebibytes(option, value))}
    if not value.isdecimal():
        raise NotSubmittable(f"--{option} is a number, not {value!r}.")
    return {_NUMBERS[option]: int(value)}


def _minutes(value: str) -> int:
    try:
        return durations.minutes(durations.duration(value))
    except durations.DurationError as error:
        raise NotSubmittable(f"--time: {error}.") from error


def _mebibytes(option: str, value: str) -> int:
    found = _MEMORY.fullmatch(value)
    if found is None:
        raise NotSubmittable(f"--{option} is an amount of memory such as 500M or 4G, not {value!r}.")
    return max(1, int(int(found[1]) * _MEBIBYTES[found[2].lower()]))


def _number(value: int) -> dict[str, object]:
    return {"set": True, "number": value}
