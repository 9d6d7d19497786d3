"""What the shared root needs of the images: the plugin by which job steps enter it, and its own content."""

import hashlib
import subprocess
import tarfile
from pathlib import Path

from slurm_local.build.stamps import once
from slurm_local.errors import LocalError
from slurm_local.image.debian import BuiltRoot, DebianRoot, User, built, unpacked
from slurm_local.image.roots import check_series
from slurm_local.image.tars import Entry, File
from slurm_local.paths import Paths, image_files
from slurm_local.progress import Progress

# The directory is shown to job steps, whose clients load the plugin as well; the programs beside it are not.
PLUGINS = "/usr/lib/slurm-operator/plugins"
PLUGIN = f"{PLUGINS}/shared_root.so"
ENTER_ROOT = "/usr/lib/slurm-operator/enter-root"
COMPLEMENT_ROOT = "/usr/lib/slurm-operator/complement-root"
CONTENT = "/usr/share/slurm-operator"

_SOURCES = image_files("plugins")

COMPILER_ROOT = DebianRoot(
    name="compiler",
    minutes="about a minute, once",
    packages=("gcc", "libc6-dev", "libslurm-dev"),
)

# Nodes are made and removed all the time, and all have the same host keys: nobody is asked about each.
_SSH_CONFIG = "Host *\\n    StrictHostKeyChecking accept-new\\n"

# What users find in the root: Slurm's clients with what they need to talk to slurmctld, and the usual tools.
CONTENT_ROOT = DebianRoot(
    name="shared-root",
    minutes="about a minute, once",
    # Daemons outside the root look up all accounts in it, their own included: sshd asks for the user sshd.
    users=(User("slurm", 401, "/var/lib/slurm"), User("munge", 102), User("sshd", 104, "/run/sshd")),
    packages=(
        *("slurm-client", "slurm-wlm-jwt-plugin", "munge", "libpam-slurm-adopt", "libnss-sss"),
        *("bash", "openssh-client", "sudo", "python3", "ca-certificates", "curl", "iproute2", "procps"),
    ),
    finish=f"""set -e
rm -f "$1/etc/slurm/plugstack.conf" "$1/etc/munge/munge.key"
rm -rf "$1/etc/slurm/plugstack.conf.d"
printf '{_SSH_CONFIG}' > "$1/etc/ssh/ssh_config.d/slurm-operator.conf"
""",
)

_FLAGS = (
    "-std=gnu11",
    "-O2",
    "-Wall",
    "-Wextra",
    "-Werror",
    "-D_FORTIFY_SOURCE=3",
    "-fstack-protector-strong",
)
_LINKED = ("-Wl,-z,relro,-z,now", "-o")
_PROGRAMS = {"enter-root": "enter_root.c", "complement-root": "complement_root.c"}
_COMMANDS = (
    ("gcc", *_FLAGS, "-shared", "-fPIC", *_LINKED, "shared_root.so", "shared_root.c", "root.c"),
    *(
        ("gcc", *_FLAGS, "-pie", "-fPIE", *_LINKED, program, source, "root.c")
        for program, source in _PROGRAMS.items()
    ),
)

# The compiler's root is not written to: sources and results lie in memory, in mounts that nobody else sees.
_COMPILE = """
set -eu
root=$1 sources=$2 results=$3
mount -t tmpfs tmpfs "$root/tmp"
cp "$sources"/*.c "$sources"/*.h "$root/tmp"
{commands}
for made in shared_root.so enter-root complement-root; do cp "$root/tmp/$made" "$results"; done
"""


def plugins(paths: Paths, progress: Progress) -> Path:
    """A directory with the plugin and the programs beside it, compiled for the Slurm of our images."""
    compiler = unpacked(COMPILER_ROOT, paths, progress)
    installed = built(COMPILER_ROOT, paths, progress)
    check_series(installed.versions()["libslurm-dev"], installed.directory)
    sources = b"".join(path.read_bytes() for path in sorted(_SOURCES.glob("*.[ch]")))
    recipe = f"{COMPILER_ROOT.digest} {_script()}\n".encode() + sources

    def fill(directory: Path) -> None:
        with progress.step("Compiling the plugin of the shared root"):
            _compile(compiler, directory)

    return once(paths.images / f"plugins-{hashlib.sha256(recipe).hexdigest()[:12]}", fill)


def plugin_layer(paths: Paths, progress: Progress) -> dict[str, Entry]:
    """The plugin and its programs where images have them."""
    compiled = plugins(paths, progress)
    return {
        PLUGIN: File((compiled / "shared_root.so").read_bytes(), 0o755),
        ENTER_ROOT: File((compiled / "enter-root").read_bytes(), 0o755),
        COMPLEMENT_ROOT: File((compiled / "complement-root").read_bytes(), 0o755),
    }


def content_root(paths: Paths, progress: Progress) -> BuiltRoot:
    """The content of a new shared root, as an archive for the program that populates it."""
    root = built(CONTENT_ROOT, paths, progress)
    check_series(root.versions()["slurm-client"], root.directory)
    return root


def content_layer(paths: Paths, progress: Progress) -> Path:
    """The same as a layer of an image, where the program that populates a root looks for it."""
    content = content_root(paths, progress)

    def fill(directory: Path) -> None:
        archive = directory / "root.tar.gz"
        with progress.step("Packing the content of the shared root"):
            with archive.open("wb") as packed:
                subprocess.run(["gzip", "-1", "--stdout", content.tar], stdout=packed, check=True)
            with tarfile.open(directory / "layer.tar", "w", format=tarfile.GNU_FORMAT) as layer:
                layer.add(archive, f"{CONTENT[1:]}/{archive.name}", filter=_anonymous)
        archive.unlink()

    return once(paths.images / f"content-layer-{content.directory.name}", fill) / "layer.tar"


def _anonymous(file: tarfile.TarInfo) -> tarfile.TarInfo:
    file.uid, file.gid, file.uname, file.gname, file.mtime, file.mode = 0, 0, "", "", 0, 0o644
    return file


def _compile(compiler: Path, results: Path) -> None:
    scratch = ["unshare", "--mount", "sh", "-c", _script(), "compile"]
    done = subprocess.run(
        [*scratch, compiler, _SOURCES, results], capture_output=True, text=True, check=False, cwd="/"
    )
    if done.returncode != 0:
        raise LocalError(f"The plugin of the shared root does not compile:\n{done.stderr.strip()}")


def _script() -> str:
    lines = (f'chroot "$root" sh -c "cd /tmp && {" ".join(command)}"' for command in _COMMANDS)
    return _COMPILE.format(commands="\n".join(lines))
