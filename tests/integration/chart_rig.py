"""helm as people run it, on the charts of this repository."""

import subprocess
from pathlib import Path
from typing import Any

import yaml

from slurm_local.build import builds
from slurm_local.paths import Paths
from slurm_local.progress import Quiet

CHARTS = Path(__file__).parents[2] / "charts"
OPERATOR_IMAGE = "registry.example/slurm-operator"
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
# Only Helm says these, and they change with the version of a chart.
_HELMS = (
    "helm.sh/chart",
    "app.kubernetes.io/version",
    "app.kubernetes.io/managed-by",
    "app.kubernetes.io/part-of",
)


class HelmError(Exception):
    """helm ended with an error; its words."""


def program() -> Path:
    return builds.binaries(builds.HELM, Paths.of(), Quiet()) / "helm"


def helm(*args: str, stdin: str = "") -> str:
    done = subprocess.run(
        [program(), *args], input=stdin, capture_output=True, text=True, check=False, timeout=120
    )
    if done.returncode != 0:
        raise HelmError(done.stderr)
    return done.stdout


# Charts by which users of Soperator move over that run no program of ours.
WITHOUT_IMAGES = ("soperator-crds", "slurm-cluster-storage")


def with_image(chart: str, values: dict[str, Any]) -> dict[str, Any]:
    """The values, and an image for the operator where they name none: the chart has no default."""
    if chart.startswith("soperator/") and chart.rpartition("/")[2] not in WITHOUT_IMAGES:
        return {"localImages": True, **values}
    if chart != "slurm-operator":
        return values
    said = values.get("global", {})
    return {**values, "global": {**said, "image": {"repository": OPERATOR_IMAGE, **said.get("image", {})}}}


def rendered(chart: str, values: dict[str, Any], *flags: str, release: str = "", namespace: str = "") -> str:
    """What `helm template` prints. The image of the operator need not be said."""
    name = release or chart
    values = with_image(chart, values)
    return helm(
        "template",
        name,
        str(CHARTS / chart),
        "-n",
        namespace or name,
        "-f",
        "-",
        *flags,
        stdin=yaml.safe_dump(values),
    )


def objects(text: str) -> dict[tuple[str, str], dict[str, Any]]:
    """Rendered objects by kind and name; two of the same name in different namespaces by `namespace/name`."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for thing in yaml.load_all(text, Loader=_LOADER):
        if thing:
            key = (thing["kind"], thing["metadata"]["name"])
            if key in found:
                key = (thing["kind"], f"{thing['metadata']['namespace']}/{thing['metadata']['name']}")
            assert key not in found
            found[key] = thing
    return found


def without_helm(thing: dict[str, Any]) -> dict[str, Any]:
    """The same object as somebody else than Helm would write it."""
    metadata = thing["metadata"]
    labels = {key: value for key, value in metadata.get("labels", {}).items() if key not in _HELMS}
    return {**thing, "metadata": {**metadata, "labels": labels}}
