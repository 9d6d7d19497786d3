"""What is in the repository, in the wheel and in the operator's image, and that the last two work alone."""

import os
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest
from hatchling.builders.wheel import WheelBuilder

import slurm_operator
from slurm_local.image.images import program_layer
from slurm_local.image.tars import File

ROOT = Path(__file__).parents[2]

IN_ROOT = {
    ".ci", ".git-blame-ignore-revs", ".gitignore", ".pre-commit-config.yaml", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "Makefile", "README.md",
    "SECURITY.md", "STYLE.md",
    "bench", "changes", "chaos", "charts", "docs", "images", "mkdocs.yml", "pyproject.toml", "requirements", "src",
    "testing", "tests",
}  # fmt: skip

IN_LOCAL = {
    "__init__.py", "build", "cluster.py", "demo.py", "demo_cluster.py", "errors.py", "home.py", "image", "images", "kubernetes", "machine", "modules",
    "own_command.py", "paths.py", "preflight.py", "progress.py", "requirements.txt", "shared_root_cluster.py", "slurm_cluster.py", "start.py", "state.py",
    "status.py", "stop.py",
}  # fmt: skip

IN_OPERATOR = {
    "__init__.py", "agents", "api", "backoff.py", "certificates.py", "cli", "clock.py", "conditions.py", "exporter", "http", "insight", "install", "kube", "listing.py", "manifests", "operator.py",
    "plan", "printable.py", "py.typed", "reconcilers", "redaction", "runtime", "safety", "slurm", "slurmrest", "slurmsync", "startup.py", "webhook",
    "wire.py",
}  # fmt: skip

ABOUT = f"slurm_operator-{slurm_operator.__version__}.dist-info"
HOME = "/usr/lib/slurm-operator"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built as pip builds it, from this checkout."""
    folder = tmp_path_factory.mktemp("wheel")
    [path] = WheelBuilder(str(ROOT)).build(directory=str(folder), versions=["standard"])
    return Path(path)


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("installed")
    zipfile.ZipFile(wheel).extractall(folder)
    return folder


@pytest.fixture(scope="module")
def in_image(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program as the operator's image has it, beside nothing else."""
    folder = tmp_path_factory.mktemp("image")
    for name, entry in program_layer().items():
        if name.startswith(f"{HOME}/program/") and isinstance(entry, File):
            path = folder / Path(name).relative_to(f"{HOME}/program")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(entry.content)
    return folder


def files(folder: Path) -> set[str]:
    return {
        str(path.relative_to(folder))
        for path in folder.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


@pytest.fixture(scope="module", autouse=True)
def libraries(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What is installed beside this program: an editable installation leaves folders of its own there."""
    folder = tmp_path_factory.mktemp("libraries", numbered=False)
    for installed_in in {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}:
        for entry in Path(installed_in).iterdir():
            if not entry.name.startswith(("slurm_operator", "slurm_local", "_slurm", "_editable")):
                (folder / entry.name).symlink_to(entry)
    return folder


def run(program: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """Python with this program and the libraries, and without the checkout that tests are run from."""
    path = os.pathsep.join([str(program), str(program.with_name("libraries"))])
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(
        [sys.executable, "-S", *command],
        env=environment,
        cwd=program,
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_root_of_the_repository_has_these_entries_and_no_others() -> None:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout

    assert {name.partition("/")[0] for name in listed.splitlines()} == IN_ROOT


def test_the_wheel_has_both_packages_the_images_and_what_they_are_pinned_to(wheel: Path) -> None:
    found = set(zipfile.ZipFile(wheel).namelist())
    about = {
        f"{ABOUT}/{name}" for name in ("METADATA", "RECORD", "WHEEL", "entry_points.txt", "licenses/LICENSE")
    }
    images = {f"slurm_local/images/{name}" for name in files(ROOT / "images")}

    assert found == files(ROOT / "src") | images | about | {"slurm_local/requirements.txt"}
    assert {name.split("/")[1] for name in found if name.startswith("slurm_local/")} == IN_LOCAL
    assert {name.split("/")[1] for name in found if name.startswith("slurm_operator/")} == IN_OPERATOR
    assert {"slurm_local/images/entry/__main__.py", "slurm_local/images/plugins/shared_root.c"} <= found
    assert "slurm_local/modules/kubernetes/go.sum" in found


def test_the_operators_image_has_the_operator_alone() -> None:
    found = set(program_layer())
    program = f"{HOME}/program"

    assert found == {
        *(f"{program}/slurm_operator/{name}" for name in files(ROOT / "src" / "slurm_operator")),
        f"{program}/{ABOUT}/METADATA",
        "/usr/local/bin/slurm-operator",
        "/opt/soperator/bin/power-manager",
        "/usr/bin/slurm_operator",  # As Soperator's charts name them.
        "/usr/bin/rebooter",
    }


def test_libraries_of_the_image_are_those_of_the_program_and_none_of_the_tests() -> None:
    pinned = (ROOT / "requirements" / "runtime.txt").read_text().splitlines()
    names = {line.partition("==")[0] for line in pinned if "==" in line}

    assert {"aiohttp", "click", "msgspec", "structlog"} <= names
    assert names.isdisjoint({"hatchling", "hypothesis", "mypy", "pytest", "ruff", "import-linter"})


def test_an_installed_wheel_finds_what_images_are_made_of(installed: Path) -> None:
    code = (
        "from slurm_local.image.dependencies import _requirements; from slurm_local.image.images import entry_layer; "
        "from slurm_local.paths import image_files, module_files; "
        "print(_requirements(), image_files('entry'), image_files('plugins'), module_files('kwok')); "
        f"assert '{HOME}/slurm_entry/__main__.py' in entry_layer()"
    )
    done = run(installed, "-c", code)
    local = installed / "slurm_local"

    assert done.returncode == 0, done.stderr
    assert [Path(one) for one in done.stdout.split()] == [
        local / "requirements.txt", local / "images" / "entry", local / "images" / "plugins", local / "modules" / "kwok",
    ]  # fmt: skip
    assert (local / "requirements.txt").read_bytes() == (ROOT / "requirements" / "runtime.txt").read_bytes()
    assert (local / "modules" / "kwok" / "go.mod").is_file()


def test_an_installed_wheel_runs(installed: Path) -> None:
    shown = run(installed, "-m", "slurm_operator.cli", "--help")
    crds = run(installed, "-m", "slurm_operator.cli", "crds")
    local = run(installed, "-m", "slurm_operator.cli", "up", "--help")

    assert (shown.returncode, crds.returncode, local.returncode) == (0, 0, 0), crds.stderr + local.stderr
    assert "Print the custom resource definitions" in shown.stdout
    assert crds.stdout.count("kind: CustomResourceDefinition") == 7
    assert "--fake-nodes" in local.stdout


@pytest.mark.parametrize(
    "command", [["up"], ["down"], ["local", "status"], ["local", "--help"]], ids=" ".join
)
def test_the_operators_image_says_that_it_has_no_local_cluster(in_image: Path, command: list[str]) -> None:
    done = run(in_image, "-m", "slurm_operator.cli", *command)

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        f"Error: `slurm-operator {command[0]}` is for local clusters, which the operator's image leaves out; "
        "install slurm-operator on the machine that is to run the cluster, and run it there.\n"
    )


@pytest.mark.parametrize(
    "command", [["--help"], ["manager", "--help"], ["webhook", "--help"], ["crds"]], ids=" ".join
)
def test_the_operators_image_runs_all_else(in_image: Path, command: list[str]) -> None:
    done = run(in_image, "-m", "slurm_operator.cli", *command)

    assert done.returncode == 0, done.stderr


def test_another_missing_library_is_not_taken_for_the_local_cluster(in_image: Path) -> None:
    hidden = "import sys; sys.modules['yaml'] = None; from slurm_operator.cli import main; main(['crds'])"
    done = run(in_image, "-c", hidden)

    assert "ModuleNotFoundError" in done.stderr
    assert "local clusters" not in done.stderr
