"""The files in the charts that are made from code, so that neither can drift from the other."""

from typing import Any

import yaml

from slurm_operator.api import registry
from slurm_operator.api.nebius import names as nebius_names
from slurm_operator.api.registry import Registered, Registry
from slurm_operator.api.schema.crd import crd
from slurm_operator.install import rights
from slurm_operator.manifests.builders.admission import mutating, validating
from slurm_operator.manifests.builders.admission import service as through
from slurm_operator.manifests.builders.crd_protection import crd_protection
from slurm_operator.manifests.builders.protection import protection
from slurm_operator.manifests.builders.slurm_network import network_policies
from slurm_operator.manifests.builders.user_policies import roles, user_policies
from testing.chart_schema import CHARTS, known, passed_on

MADE = "# Made from the code by tests/unit/charts; change it there.\n"

# The group that a value of the charts switches on.
SECOND = registry.ALL.on([nebius_names.GROUP])

# The chart puts in its place who may delete workers.
_OPERATOR = "@operator@"
_USERS = "@users@"

# So many roles come before the policies.
_ROLES = 2


def generated(kinds: Registry = registry.DEFAULT) -> dict[str, str]:
    """Text by path below `charts/`."""
    return {
        **{f"slurm-operator-crds/templates/{one.resource}.yaml": as_yaml([crd(one.model)]) for one in kinds},
        **{f"slurm-operator-crds/templates/{one.resource}.yaml": _switched(one) for one in SECOND},
        "slurm-operator/files/rights-nebius.yaml": MADE + as_yaml([_rights_beside(SECOND)]),
        "slurm-operator/files/admission-nebius.yaml": MADE + as_yaml([_validating(SECOND)]),
        "slurm-operator/files/rights.yaml": MADE + as_yaml([_rights(kinds)]),
        "slurm-operator/files/people.yaml": MADE + as_yaml([_people(kinds)]),
        "slurm-operator/files/admission.yaml": MADE + as_yaml(_admission(kinds)),
        "slurm-operator/files/protection.yaml": MADE + as_yaml(_protection()),
        "slurm-operator/files/user-policies.yaml": MADE + as_yaml(_user_policies(kinds)),
        "slurm-operator/files/user-policies-nebius.yaml": MADE + as_yaml(_user_policies(SECOND)[_ROLES:]),
        "slurm-operator/files/crd-protection.yaml": MADE + as_yaml(crd_protection()),
        "slurm/files/network-policies.yaml": MADE + as_yaml(network_policies("@name@")),
        "slurm/files/fields.yaml": MADE + as_yaml([passed_on()]),
        **{
            f"{chart}/files/known.yaml": MADE + as_yaml([known(chart)])
            for chart in ("slurm-operator", "slurm")
        },
        **{f"{chart}/files/defaults.yaml": _defaults(chart) for chart in ("slurm-operator", "slurm")},
    }


def _defaults(chart: str) -> str:
    """The values of a chart as a file that its templates can read, for values that come from another chart."""
    values = yaml.safe_load((CHARTS / chart / "values.yaml").read_text())
    return MADE + as_yaml([values])


def _rights(kinds: Registry) -> dict[str, Any]:
    return {
        "clusterWide": rights.rules(rights.cluster_wide(kinds)),
        "inNamespaces": rights.rules(rights.in_namespaces(kinds)),
        "atHome": rights.rules(rights.AT_HOME),
        "secureMetrics": rights.rules(rights.SECURE_METRICS),
        "forgottenWorkers": rights.rules(rights.FORGOTTEN_WORKERS),
        "webhookLookups": rights.rules(rights.WEBHOOK_LOOKUPS),
        "webhookBinding": rights.rules(rights.WEBHOOK_BINDING),
        "webhookGuard": rights.rules(rights.WEBHOOK_GUARD),
        "webhookCertificates": rights.rules(rights.webhook_certificates("@name@")),
        "webhookConfigurations": rights.rules(rights.webhook_configurations("@name@")),
    }


def _people(kinds: Registry) -> dict[str, Any]:
    """Rules for each of Kubernetes' own roles, and those of the second group, which a value switches on."""
    return {
        role: {
            "labels": rights.aggregated(role),
            "rules": rights.rules(rights.of_people(kinds, role)),
            "nebius": rights.rules(rights.of_people(SECOND, role)),
        }
        for role in ("view", "edit")
    }


def _rights_beside(kinds: Registry) -> dict[str, Any]:
    """What the operator may do with a group beside what it may do without that."""
    both = Registry((*registry.DEFAULT, *kinds))
    found = {
        "clusterWide": (rights.cluster_wide(both), rights.cluster_wide(registry.DEFAULT)),
        "inNamespaces": (rights.in_namespaces(both), rights.in_namespaces(registry.DEFAULT)),
        "atHome": (rights.at_home(both), rights.AT_HOME),
    }
    beside = {
        name: rights.rules(tuple(right for right in more if right not in usual))
        for name, (more, usual) in found.items()
    }
    return beside | {"rebooter": rights.rules(rights.REBOOTER)}


def _switched(one: Registered) -> str:
    """A definition that is installed only where its group is asked for."""
    return "{{- if .Values.apis.nebius }}\n" + as_yaml([crd(one.model)]) + "{{- end }}\n"


def _validating(kinds: Registry, *, guards_secrets: bool = False) -> dict[str, Any]:
    return validating(
        through("@namespace@", name="@name@"), kinds=kinds, name="@name@", guards_secrets=guards_secrets
    )


def _admission(kinds: Registry) -> list[dict[str, Any]]:
    """Both configurations; the chart fills in names and what its values say."""
    asked = _validating(kinds, guards_secrets=True)
    return [asked, mutating(through("@namespace@", name="@name@"), name="@name@")]


def _protection() -> list[dict[str, Any]]:
    """Policy and binding, with a mark where the list of users belongs."""
    policy, binding = protection(_OPERATOR)
    return [_with_mark(policy), binding]


def _user_policies(kinds: Registry) -> list[dict[str, Any]]:
    return [*roles(), *map(_with_mark, user_policies(_OPERATOR, kinds))]


def _with_mark(policy: dict[str, Any]) -> dict[str, Any]:
    for condition in policy["spec"].get("matchConditions", ()):
        before, found, rest = condition["expression"].partition("[")
        if _OPERATOR in rest:
            condition["expression"] = before + _USERS + rest.partition("]")[2]
            assert found
    return policy


class _Plain(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]
    """Without anchors: people read these files."""

    def ignore_aliases(self, data: object) -> bool:
        return True


def as_yaml(objects: list[dict[str, Any]]) -> str:
    return str(yaml.dump_all(objects, Dumper=_Plain, sort_keys=False, width=10_000, allow_unicode=True))
