"""Command lines from variables and pod arguments, and what one worker says about itself."""

import re
from collections.abc import Mapping, Sequence

_VARIABLE = re.compile(r"\$(?:\{(\w+)\}|(\w+))")

# What a shell takes for one thing. Pieces without a gap between them are one word.
_PIECE = re.compile(
    r"""
      '(?P<as_is>[^']*)'
    | \$'(?P<spelled>[^']*)'
    | "(?P<filled_in>(?:[^"\\]|\\.)*)"
    | \\(?P<escaped>.)
    | (?P<gap>\s+)
    | (?P<bare>\$\{\w+\} | \$\w+ | [^\s'"\\$]+ | .)
    """,
    re.VERBOSE | re.DOTALL,
)
_SPELLED = re.compile(r"\\x([0-9a-fA-F]{2})")
_ESCAPED = re.compile(r'\\([\\"$`])')

# An item of --conf, as Slurm reads it: a value with a space stands in quotes.
_ITEM = re.compile(r'([^\s=]+)=("[^"]*"(?=\s|$)|\S*)')

# Items of --conf that say how many CPUs there are.
_SHAPE = ("cpus", "procs", "boards", "sockets", "socketsperboard", "corespersocket", "threadspercore")


def words(text: str, environment: Mapping[str, str]) -> list[str]:
    """The words of an option variable, quotes and `$NAME` read as a shell would."""
    found: list[str] = []
    follows_a_gap = True
    for piece in _PIECE.finditer(text):
        if follows_a_gap and not piece["gap"]:
            found.append("")
        if not piece["gap"]:
            found[-1] += _meant(piece, environment)
        follows_a_gap = bool(piece["gap"])
    return found


def _meant(piece: re.Match[str], environment: Mapping[str, str]) -> str:
    kind = piece.lastgroup or ""
    text = piece[kind]
    if kind == "spelled":
        return _SPELLED.sub(lambda found: chr(int(found[1], 16)), text)
    if kind == "filled_in":
        parts = _ESCAPED.split(text)  # Between the others, what was escaped and so stays.
        parts[::2] = [_expanded(part, environment) for part in parts[::2]]
        return "".join(parts)
    return _expanded(text, environment) if kind == "bare" else text


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
    rest, said = _taken_apart(command)
    known = {name.lower() for name in said}
    if "cpuspeclist" in known:
        known.add("corespeccount")  # Which cores are set aside says how many.
    said |= {name: value for name, value in items.items() if name.lower() not in known}
    text = " ".join(f"{name}={value}" for name, value in said.items() if value)
    return [*rest, *(["--conf", text] if text else [])]


def machine(hardware: Mapping[str, str], command: Sequence[str]) -> dict[str, str]:
    """The machine as slurmd will describe it: by its --conf, else by `hardware`, as `slurmd -C` says it.

    A --conf with any number of CPUs, sockets or the like describes all of them: what it leaves out is one, or
    follows from CPUs, whatever the hardware has. If it has as many CPUs as cores, a core is one CPU, however
    many threads it has. All this was tried with slurmd.
    """
    _, items = _taken_apart(command)
    said = {name.lower(): _number(value) for name, value in items.items()}
    memory = {"RealMemory": str(said["realmemory"])} if said.get("realmemory") else {}
    if not any(said.get(name) for name in _SHAPE):
        return {**hardware, **memory}
    sockets = said.get("sockets") or (said.get("boards") or 1) * (said.get("socketsperboard") or 0)
    threads = said.get("threadspercore") or 1
    cores = (said.get("corespersocket") or 1) * (sockets or 1)
    cpus = said.get("cpus") or said.get("procs") or cores * threads
    if not sockets:
        cores = max(1, cpus // threads)
    return {**hardware, **memory, "CPUs": str(cpus), "ThreadsPerCore": str(max(1, cpus // cores))}


def _taken_apart(command: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    """A command line without its --conf, and the items in that."""
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
    return rest, said


def resource_items(environment: Mapping[str, str], hardware: Mapping[str, str]) -> dict[str, str]:
    """What of the machine is not this pod's, in Slurm's words, and where the machine stands.

    `hardware` is the machine as slurmd describes it. A pod without limits (0, or nothing) has all of it.
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
    return dict(_ITEM.findall(text))


def _positive(name: str, value: int) -> dict[str, str]:
    return {name: str(value)} if value > 0 else {}


def _number(text: str | None) -> int:
    return int(text) if text and text.isdigit() else 0


def _expanded(word: str, environment: Mapping[str, str]) -> str:
    return _VARIABLE.sub(lambda found: environment.get(found[1] or found[2], ""), word)
