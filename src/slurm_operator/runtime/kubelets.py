"""How kubelets are asked."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class KubeletSettings:
    """Most kubelets show a certificate that they signed themselves. With an authority it is checked."""

    port: int = 10250
    timeout_seconds: float = 10.0
    authority: Path | None = None
    insecure: bool = True
    server_name: str = ""
    every_seconds: float = 60.0
    at_once: int = 50
