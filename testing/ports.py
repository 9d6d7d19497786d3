"""On which ports the pods of an installation listen, by three accounts that must not differ."""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from click import Command

from slurm_operator.cli import manager, webhook
from slurm_operator.runtime.settings import Address

PROGRAMS: dict[str, tuple[Command, Callable[[Any], Any]]] = {
    "manager": (manager.manager, manager.settings_of),
    "webhook": (webhook.webhook, webhook.settings_of),
}
OFF = Address("", 0)


class Ports(NamedTuple):
    """Of one Deployment: what its program listens on, what its pod declares, and what others may reach."""

    listened: set[int]
    declared: set[int]
    reachable: set[int]
    served: set[int]  # By Services.
    probed: set[int]


def ports(objects: Iterable[dict[str, Any]]) -> dict[str, Ports]:
    """By the name of the Deployment."""
    made = list(objects)
    return {thing["metadata"]["name"]: _ports(thing, made) for thing in made if thing["kind"] == "Deployment"}


def _ports(deployment: dict[str, Any], made: list[dict[str, Any]]) -> Ports:
    template = deployment["spec"]["template"]
    [container] = template["spec"]["containers"]
    numbers = {port["name"]: port["containerPort"] for port in container["ports"]}
    labels = template["metadata"]["labels"]

    def chosen(kind: str) -> Iterable[dict[str, Any]]:
        for thing in made:
            if thing["kind"] == kind and _selector(thing).items() <= labels.items():
                yield thing["spec"]

    rules = [rule for policy in chosen("NetworkPolicy") for rule in policy["ingress"]]
    return Ports(
        listened=_listened(container["name"], container.get("args", [])),
        declared=set(numbers.values()),
        reachable={numbers[port["port"]] for rule in rules for port in rule["ports"]},
        served={numbers[port["targetPort"]] for service in chosen("Service") for port in service["ports"]},
        probed={
            numbers[container[probe]["httpGet"]["port"]] for probe in ("livenessProbe", "readinessProbe")
        },
    )


def _selector(thing: dict[str, Any]) -> dict[str, str]:
    spec = thing["spec"]
    found: dict[str, str] = spec["podSelector"]["matchLabels"] if "podSelector" in spec else spec["selector"]
    return found


def _listened(program: str, args: list[str]) -> set[int]:
    """What the program makes of its flags, and of the absence of them."""
    command, read = PROGRAMS[program]
    settings = read(command.make_context(program, list(args)).params)
    addresses = [getattr(settings, name, OFF) for name in ("health", "metrics", "server")]
    return {address.port for address in addresses if not address.is_off}
