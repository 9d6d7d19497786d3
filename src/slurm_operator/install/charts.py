"""The files in the charts that are made from code, so that neither can drift from the other."""

from typing import Any

import yaml

from slurm_operator.api import KINDS
from slurm_operator.api.crd import crd
from slurm_operator.install import rights
from slurm_operator.manifests.admission import mutating, validating
from slurm_operator.manifests.admission import service as through
from slurm_operator.manifests.crd_protection import crd_protection
from slurm_operator.manifests.protection import protection

_MADE = "# Made from the code by tests/unit/charts; change it there.\n"

# The chart puts in its place who may delete workers.
_OPERATOR = "@operator@"
_USERS = "@users@"


def generated() -> dict[str, str]:
    """Text by path below `charts/`."""
    return {
        **{f"slurm-operator-crds/templates/{kind.KIND.plural}.yaml": _yaml([crd(kind)]) for kind in KINDS},
        "slurm-operator/files/rights.yaml": _MADE + _yaml([_rights()]),
        "slurm-operator/files/admission.yaml": _MADE + _yaml(_admission()),
        "slurm-operator/files/protection.yaml": _MADE + _yaml(_protection()),
        "slurm-operator/files/crd-protection.yaml": _MADE + _yaml(crd_protection()),
    }


def _rights() -> dict[str, Any]:
    return {
        "clusterWide": rights.rules(rights.CLUSTER_WIDE),
        "inNamespaces": rights.rules(rights.IN_NAMESPACES),
        "atHome": rights.rules(rights.AT_HOME),
        "secureMetrics": rights.rules(rights.SECURE_METRICS),
        "webhookLookups": rights.rules(rights.WEBHOOK_LOOKUPS),
        "webhookBinding": rights.rules(rights.WEBHOOK_BINDING),
        "webhookGuard": rights.rules(rights.WEBHOOK_GUARD),
        "webhookCertificates": rights.rules(rights.webhook_certificates("@name@")),
        "webhookConfigurations": rights.rules(rights.webhook_configurations("@name@")),
    }


def _admission() -> list[dict[str, Any]]:
    """Both configurations; the chart fills in names and what its values say."""
    client = through("@namespace@", name="@name@")
    return [validating(client, name="@name@", guards_secrets=True), mutating(client, name="@name@")]


def _protection() -> list[dict[str, Any]]:
    """Policy and binding, with a mark where the list of users belongs."""
    policy, binding = protection(_OPERATOR)
    for condition in policy["spec"]["matchConditions"]:
        before, found, rest = condition["expression"].partition("[")
        if _OPERATOR in rest:
            condition["expression"] = before + _USERS + rest.partition("]")[2]
            assert found
    return [policy, binding]


class _Plain(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]
    """Without anchors: people read these files."""

    def ignore_aliases(self, data: object) -> bool:
        return True


def _yaml(objects: list[dict[str, Any]]) -> str:
    return str(yaml.dump_all(objects, Dumper=_Plain, sort_keys=False, width=10_000, allow_unicode=True))
