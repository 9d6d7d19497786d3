"""Everything a connection to one API server needs."""

from dataclasses import dataclass, field

from slurm_operator.kube.auth.credentials import Credentials, Fixed
from slurm_operator.kube.auth.tls import Trust


@dataclass(frozen=True)
class Access:
    """One API server and one identity.

    `namespace` is the context's or the pod's own; `notes` are for the person who wrote the configuration.
    """

    server: str
    namespace: str = "default"
    trust: Trust = field(default_factory=Trust)
    credentials: Credentials = field(default_factory=Fixed)
    notes: tuple[str, ...] = ()
