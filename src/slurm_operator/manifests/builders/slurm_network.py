"""Who reaches the daemons of Slurm clusters: NetworkPolicies for a namespace, for those who ask for them.

Generous: pods of one namespace reach each other on every port, as jobs want it. MariaDB is for slurmdbd.
slurmrestd wants a token from everybody, and is asked by the operator and through the API server. Logins and
exporters are not narrowed: users and Prometheus come from elsewhere.
"""

from collections.abc import Sequence
from typing import Final

from slurm_operator.api.shared import names
from slurm_operator.manifests.kinds import NETWORK_POLICY
from slurm_operator.manifests.meta import Manifest

DAEMONS: Final = ("slurmctld", "slurmd", "slurmdbd", "slurmrestd")
DATABASE: Final = "mariadb"


def network_policies(prefix: str = "slurm") -> list[Manifest]:
    """For a namespace with Slurm clusters."""
    slurmdbd = {"podSelector": {"matchLabels": {names.APP_NAME: "slurmdbd"}}}
    slurmrestd = {"ports": [_port(names.SLURMRESTD_PORT)]}
    database = {"from": [slurmdbd], "ports": [_port(names.DATABASE_PORT)]}
    return [
        _policy(f"{prefix}-daemons", DAEMONS, {"from": [{"podSelector": {}}]}),
        _policy(f"{prefix}-slurmrestd", ("slurmrestd",), slurmrestd),
        _policy(f"{prefix}-database", (DATABASE,), database),
    ]


def _policy(name: str, apps: Sequence[str], *ingress: Manifest) -> Manifest:
    chosen = {"key": names.APP_NAME, "operator": "In", "values": [*apps]}
    return {
        "apiVersion": NETWORK_POLICY.api_version,
        "kind": NETWORK_POLICY.kind,
        "metadata": {"name": name},
        "spec": {
            "podSelector": {"matchExpressions": [chosen]},
            "policyTypes": ["Ingress"],
            "ingress": [*ingress],
        },
    }


def _port(number: int) -> Manifest:
    return {"protocol": "TCP", "port": number}
