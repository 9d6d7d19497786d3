"""Events for people: events.k8s.io, repeats counted instead of repeated, never in anybody's way."""

from typing import Literal

from slurm_operator import wire
from slurm_operator.api.kind import Kind
from slurm_operator.api.meta import Meta
from slurm_operator.kube.client import Client


class Regarding(wire.CamelRecord):
    """The object an event is about."""

    api_version: str
    kind: str
    name: str
    uid: str = ""
    namespace: str = ""
    resource_version: str = ""


def regarding(kind: Kind, meta: Meta) -> Regarding:
    raise NotImplementedError


class Recorder:
    """Sends events in the background. A full queue drops new ones and counts them in `dropped`."""

    sent: int
    dropped: int
    failed: int

    def __init__(
        self, client: Client, *, component: str = "slurm-operator", instance: str = "", limit: int = 1000
    ) -> None:
        raise NotImplementedError

    def record(
        self,
        about: Regarding,
        reason: str,
        note: str,
        *,
        action: str = "Reconcile",
        type_: Literal["Normal", "Warning"] = "Normal",
        related: Regarding | None = None,
    ) -> None:
        """Tell people. Returns at once; equal events within minutes become one with a count."""
        raise NotImplementedError

    async def run(self) -> None:
        """Send what is recorded, until cancelled."""
        raise NotImplementedError
