"""A Go compiler: the one on PATH if it is new enough, else one from a Python package."""

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from slurm_local.build import versions, wheels
from slurm_local.paths import Paths
from slurm_local.progress import Progress


@dataclass(frozen=True)
class Go:
    """A Go toolchain. `program` is None for the one that is fetched when it is first needed."""

    version: str
    program: Path | None

    def ready(self, paths: Paths, progress: Progress) -> tuple[Path, dict[str, str]]:
        """The `go` program, and the environment to run it in."""
        environment = os.environ | {"CGO_ENABLED": "0", "GOTOOLCHAIN": "local", "GOWORK": "off"}
        # Flags of the user's own projects (vendoring, tags) would change what we build.
        environment["GOFLAGS"] = "-mod=readonly -buildvcs=false"
        if self.program is not None:
            return self.program, environment
        root = wheels.go_root(paths, progress)
        own = {"GOROOT": str(root), "GOCACHE": str(paths.cache / "go-build")}
        own["GOFLAGS"] = f"{environment['GOFLAGS']} -modcacherw"  # So that the cache can be deleted.
        own |= {"GOPATH": str(paths.cache / "go"), "GOMODCACHE": str(paths.cache / "go" / "mod")}
        return root / "bin" / "go", environment | own


def go() -> Go:
    """The toolchain that builds will use. Fetches nothing: its version tells whether a build is there."""
    found = shutil.which("go")
    if found is not None:
        text = subprocess.run([found, "version"], capture_output=True, text=True, check=False).stdout
        version = go_version(text)
        if version is not None and version >= versions.GO_OLDEST:
            return Go(".".join(map(str, version)), Path(found))
    return Go(versions.GO_WHEEL, None)


def go_version(text: str) -> tuple[int, ...] | None:
    """(1, 26, 8) from `go version go1.26.8 linux/amd64`; None for a development build: its age is unknown."""
    match = re.search(r"\bgo(\d+)\.(\d+)(?:\.(\d+))?(?:\s|$)", text)
    return tuple(int(part or 0) for part in match.groups()) if match else None
