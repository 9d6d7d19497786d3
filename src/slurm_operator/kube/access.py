"""Everything a connection to one API server needs."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Access:
    """One API server and one identity. `namespace` is the context's or the pod's own."""

    server: str
    namespace: str = "default"
