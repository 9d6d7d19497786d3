"""Where things are kept: the state of clusters in one directory, what can be made again in another."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

PACKAGE = Path(__file__).parent


@dataclass(frozen=True)
class Paths:
    """`home` holds one directory per cluster; `cache` holds builds, wheels and images and may be deleted."""

    home: Path
    cache: Path

    @classmethod
    def of(cls, environment: Mapping[str, str] = os.environ) -> "Paths":
        """The directories the environment asks for, else the user's XDG ones."""
        return cls(
            home=_directory(environment, "SLURM_OPERATOR_HOME", "XDG_STATE_HOME", ".local/state"),
            cache=_directory(environment, "SLURM_OPERATOR_CACHE", "XDG_CACHE_HOME", ".cache"),
        )

    @property
    def builds(self) -> Path:
        return self.cache / "builds"

    @property
    def wheels(self) -> Path:
        return self.cache / "wheels"

    @property
    def images(self) -> Path:
        return self.cache / "images"

    @property
    def locks(self) -> Path:
        return self.cache / "locks"

    @property
    def clusters(self) -> Path:
        return self.home / "clusters"

    @property
    def homes(self) -> Path:
        return self.home / "homes"

    def cluster(self, name: str) -> Path:
        """Everything one cluster keeps: certificates, logs, container state, volumes, the ledger."""
        return self.clusters / name

    def home_of(self, name: str) -> Path:
        """What is /home in one Slurm cluster; outside of the cluster's directory, as it may outlive it."""
        return self.homes / name


def image_files(name: str) -> Path:
    """A directory of what goes into images: in the installed package, or beside the sources of a checkout."""
    installed = PACKAGE / "images" / name
    return installed if installed.is_dir() else PACKAGE.parents[1] / "images" / name


def module_files(name: str) -> Path:
    """The directory with the go.mod and go.sum of one build; part of the installed package."""
    return PACKAGE / "modules" / name


def _directory(environment: Mapping[str, str], own: str, xdg: str, default: str) -> Path:
    if chosen := environment.get(own):
        return Path(chosen).absolute()
    # The XDG specification says to ignore relative paths.
    if (base := environment.get(xdg)) and base.startswith("/"):
        return Path(base) / "slurm-operator"
    return Path(environment.get("HOME", "/")) / default / "slurm-operator"
