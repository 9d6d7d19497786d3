"""What the Job that populates a root asks for, in its variables."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from . import places
from .failure import Failure, Reason


@dataclass(frozen=True)
class Settings:
    """What the Job asks for, in its variables."""

    root: Path = Path("/mnt/jail")
    source: str = ""
    identity: str = ""
    request: str = ""
    overwrite: bool = False
    delete_others: bool = False
    must_be_mounted: bool = True
    deadline_s: float | None = None
    keep: tuple[str, ...] = ()
    mount_points: tuple[str, ...] = ()

    @classmethod
    def read(cls, environment: Mapping[str, str]) -> "Settings":
        deadline = environment.get("POPULATE_DEADLINE_SECONDS", "")
        if deadline and not deadline.isdigit():
            raise Failure(
                Reason.WRONG_SETTING, f"POPULATE_DEADLINE_SECONDS={deadline}: a whole number is expected."
            )
        return cls(
            root=Path(environment.get("POPULATE_ROOT") or cls.root),
            source=environment.get("POPULATE_SOURCE", ""),
            identity=environment.get("POPULATE_IDENTITY", ""),
            request=environment.get("POPULATE_REQUEST", ""),
            overwrite=_flag(environment, "OVERWRITE"),
            delete_others=_flag(environment, "POPULATE_DELETE_OTHERS"),
            must_be_mounted=_flag(environment, "POPULATE_MUST_BE_MOUNTED", default=True),
            deadline_s=float(deadline) if deadline else None,
            keep=_paths(environment, "POPULATE_KEEP"),
            mount_points=_paths(environment, "POPULATE_MOUNT_POINTS"),
        )


def _flag(environment: Mapping[str, str], name: str, *, default: bool = False) -> bool:
    value = environment.get(name, "")
    if value not in ("", "0", "1"):
        raise Failure(Reason.WRONG_SETTING, f"{name}={value}: 0 or 1 is expected.")
    return value == "1" if value else default


def _paths(environment: Mapping[str, str], name: str) -> tuple[str, ...]:
    return tuple("/".join(places.parts(path)) for path in environment.get(name, "").split())
