"""How kubelets are asked."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class KubeletSettings:
    """Kubelets get our token, so their certificates are checked: by `authority`, else by the API server's.

    Many kubelets show a certificate that they signed themselves. `insecure` takes any.
    """

    port: int = 10250
    timeout_seconds: float = 10.0
    authority: Path | None = None
    insecure: bool = False
    server_name: str = ""
    every_seconds: float = 60.0
    at_once: int = 50
