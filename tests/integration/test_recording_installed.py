"""An operator that keeps its decisions is installed the same way by the chart and by the manifests."""

from chart_rig import OPERATOR_IMAGE, objects, rendered
from click.testing import CliRunner

import slurm_operator
from slurm_operator.cli import main


def test_the_chart_and_the_manifests_record_into_the_same_folder():
    by_helm = objects(rendered("slurm-operator", {"operator": {"record": True}}, "--skip-tests"))
    image = f"--image={OPERATOR_IMAGE}:{slurm_operator.__version__}"
    printed = objects(CliRunner().invoke(main, ["manifests", image, "--no-crds", "--record"]).output)
    specs = [
        found["Deployment", "slurm-operator"]["spec"]["template"]["spec"] for found in (by_helm, printed)
    ]
    recorders = [
        (spec["containers"][0]["args"], spec["containers"][0]["volumeMounts"], spec["volumes"])
        for spec in specs
    ]

    assert sorted(recorders[0][0]) == sorted(recorders[1][0])
    assert recorders[0][1:] == recorders[1][1:]
    assert "--record=/var/lib/slurm-operator" in recorders[0][0]
