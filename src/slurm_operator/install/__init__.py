"""The installation as data: who the operator is, what it may do, and what runs. Knows no client.

The charts and `slurm-operator manifests` say the same; a test compares them object by object.
"""

from slurm_operator.install.chosen import Installation
from slurm_operator.install.objects import installation

__all__ = ["Installation", "installation"]
