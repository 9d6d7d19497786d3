"""Command lines from variables and pod arguments, and what one worker says about itself."""

import re
import shlex
from collections.abc import Mapping, Sequence

_VARIABLE = re.compile(r"\$(?:\{(\w+)\}|(\w+))")


def words(text: str, environment: Mapping[str, str]) -> list[str]:
    """The words of an option variable, quotes and `$NAME` read as a shell would."""
    return [_expanded(word, environment) for word in shlex.split(text)]


def argument_words(arguments: Sequence[str], environment: Mapping[str, str]) -> list[str]:
    """The words of a pod's arguments.

    Some pods write for a shell (`'Features=a Topology='"$NAME"`), others give one word per argument as
    Kubernetes means it. Quotes tell the first kind; of the second, only things like `-N name` are two words.
    """
    result: list[str] = []
    for argument in arguments:
        is_for_a_shell = any(quote in argument for quote in "'\"") or argument.startswith("-")
        result += words(argument, environment) if is_for_a_shell else [_expanded(argument, environment)]
    return result


def with_node_items(command: Sequence[str], items: Mapping[str, str]) -> list[str]:
    """slurmd's command line with `items` added to its --conf. What the pod said stays; empty items go."""
    rest: list[str] = []
    said: dict[str, str] = {}
    pending = iter(command)
    for word in pending:
        if word == "--conf":
            said |= _node_items(next(pending, ""))
        elif word.startswith("--conf="):
            said |= _node_items(word.removeprefix("--conf="))
        else:
            rest.append(word)
    known = {name.lower() for name in said}
    said |= {name: value for name, value in items.items() if name.lower() not in known}
    text = " ".join(f"{name}={value}" for name, value in said.items() if value)
    return [*rest, *(["--conf", text] if text else [])]


def resource_items(environment: Mapping[str, str], hardware: Mapping[str, str]) -> dict[str, str]:
    """What of the machine is not this pod's, in Slurm's words, and where the machine stands.

    `hardware` is what `slurmd -C` says. A pod without limits (0, or nothing) has the whole machine.
    """
    items: dict[str, str] = {}
    threads = _number(hardware.get("ThreadsPerCore")) or 1
    cores = _number(hardware.get("CPUs")) // threads
    if pod_cpus := _number(environment.get("POD_CPUS")):
        pod_cores = max(1, pod_cpus // threads)
        items |= _positive("CoreSpecCount", cores - pod_cores)
    if pod_mebibytes := _number(environment.get("POD_MEMORY")):
        items |= _positive("MemSpecLimit", _number(hardware.get("RealMemory")) - pod_mebibytes)
    if topology := environment.get("POD_TOPOLOGY") or environment.get("SLINKY_TOPOLOGY"):
        items["Topology"] = topology
    return items


def _node_items(text: str) -> dict[str, str]:
    pairs = (word.partition("=") for word in text.split())
    return {name: value for name, _, value in pairs}


def _positive(name: str, value: int) -> dict[str, str]:
    return {name: str(value)} if value > 0 else {}


def _number(text: str | None) -> int:
    return int(text) if text and text.isdigit() else 0


def _expanded(word: str, environment: Mapping[str, str]) -> str:
    return _VARIABLE.sub(lambda found: environment.get(found[1] or found[2], ""), word)
