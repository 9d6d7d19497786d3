"""Files of the charts in charts/soperator that are made from code, or from one file for all of them.

Their values are those of Soperator's charts. So a value is known when it stands in values.yaml, when it is a
field of the kind that a chart makes, or when there is something to say about it.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import click
import yaml

from images.entry import passive_checks
from slurm_operator.api import registry
from slurm_operator.api.nebius import ActiveCheck, NodeConfigurator, NodeSet, SlurmCluster
from slurm_operator.api.nebius import names as nebius_names
from slurm_operator.api.registry import with_parts
from slurm_operator.api.schema.crd import crd
from slurm_operator.cli.soperator import CONTROLLERS as OF_MANAGER
from slurm_operator.cli.soperator import soperator
from slurm_operator.cli.soperatorchecks import CONTROLLERS as OF_CHECKS
from slurm_operator.cli.soperatorchecks import soperatorchecks
from slurm_operator.install import rights
from slurm_operator.manifests.builders.admission import service as through
from slurm_operator.manifests.builders.admission import validating
from slurm_operator.reconcilers.nebius.nodeconfigurator import desired as nodeconfigurator
from slurm_operator.reconcilers.nebius.slurmcluster import exporter, objects, power
from testing.chart_files import MADE, as_yaml
from testing.chart_schema import CHARTS

FOLDER: Final = "soperator"
SOPERATOR: Final = (
    "soperator-crds", "soperator", "slurm-cluster", "nodesets", "slurm-cluster-storage", "soperator-activechecks",
    "nodeconfigurator", "soperatorchecks",
)  # fmt: skip

# What a chart that looks at values has.
WITH_VALUES: Final = tuple(name for name in SOPERATOR if name != "soperator-crds")

KINDS: Final = registry.ALL.on([nebius_names.GROUP])
_NEEDED: Final = with_parts(KINDS)

_NO_EFFECT: Final = "has no effect"
_PROXY: Final = f"{_NO_EFFECT}: the program serves its metrics itself"

# What stands in values of Soperator's charts, of this or an earlier release, and has no effect or another one.
# By chart, and where they stand. What only its default would say is not worth a line.
SAID: Final[Mapping[str, Mapping[str, Any]]] = {
    "soperator": {
        "controllerManager": {
            "kubeRbacProxy": _PROXY,
            "manager": {
                "env": {
                    "isMariadbCrdInstalled": True,
                    "isOpentelemetryCollectorCrdInstalled": True,
                    "isApparmorCrdInstalled": True,
                    "isPrometheusCrdInstalled": True,
                },
            },
        },
        "kruise": f"{_NO_EFFECT}: OpenKruise is not needed",
        "metricsService": f"{_NO_EFFECT}: the Service of the metrics has the port of --metrics-bind-address",
    },
    "slurm-cluster": {
        "cudaVersion": f"{_NO_EFFECT}: name the image in images.populateJail",
        "slurmNodes": {
            "login": {"docker": {"enabled": True}},
            "exporter": {
                "exporter": "is read as exporterContainer, its image and resources; write it there",
                "munge": f"{_NO_EFFECT}: the exporter uses tokens",
                "volumes": f"{_NO_EFFECT}: the exporter reads no files",
            },
            "controller": {"slurmctld": {"command": True, "args": True}},
        },
        "telemetry": f"{_NO_EFFECT}; slurmNodes.exporter serves metrics",
        "ncclBenchmark": f"{_NO_EFFECT}; write ActiveChecks",
        "sConfigController": {"nodeExporter": f"{_NO_EFFECT}: its pod has no init containers of yours"},
        "slurmScripts": {
            "prolog": "is called prolog.sh",
            "epilog": "is called epilog.sh",
            "hcProgram": "is called hc_program.sh",
            "custom": "is called extra",
            "builtIn": True,
            "extra": True,
        },
    },
    "soperatorchecks": {
        "checks": {
            "kubeRbacProxy": _PROXY,
            "manager": {"enableExtensiveCheck": f"{_NO_EFFECT}: there is none"},
        },
        "metricsService": f"{_NO_EFFECT}: the Service of the metrics has the port of --metrics-bind-address",
    },
    "nodeconfigurator": {},
    "slurm-cluster-storage": {
        "nodeGroup": f"{_NO_EFFECT}: write storage.jail.matchExpressions and storage.controllerSpool.matchExpressions",
        "scheduling": f"{_NO_EFFECT}: write storage.jail for cpuAndGpu, storage.controllerSpool for cpuOnly",
    },
    "soperator-activechecks": {
        "activeCheckImage": f"{_NO_EFFECT}: no check runs a container of the vendor",
        "sshCheck": f"{_NO_EFFECT}: there is no such check",
        "createUser": f"{_NO_EFFECT}: the name is in the environment of checks.create-user-nebius",
        **dict.fromkeys(
            ("upgradeCuda", "upgradeHealthChecker", "cudaVersion", "ncclTestsVersion", "ncclTestsVersions"),
            f"{_NO_EFFECT}: packages of the shared root are of the check manage-jail-state",
        ),
        "ensureDirSnccldLogs": f"{_NO_EFFECT}: there is no such check",
    },
    "nodesets": {
        "nameOverride": f"{_NO_EFFECT}: NodeSets have names of their own",
        "fullnameOverride": f"{_NO_EFFECT}: NodeSets have names of their own",
    },
}

# The kind that a chart makes, and where its fields stand among the values.
_FIELDS_OF: Final = {
    "slurm-cluster": SlurmCluster,
    "nodesets": NodeSet,
    "soperator-activechecks": ActiveCheck,
    "nodeconfigurator": NodeConfigurator,
}


def generated() -> dict[str, str]:
    """Text by path below `charts/`."""
    common = (CHARTS / FOLDER / "common.tpl").read_text()
    texts = {
        **{f"{name}/templates/_common.tpl": common for name in WITH_VALUES},
        **{f"{name}/files/defaults.yaml": _made(values(name)) for name in WITH_VALUES},
        **{f"{name}/files/known.yaml": _made(known(name)) for name in WITH_VALUES},
        **{f"{name}/files/fields.yaml": _made(fields(model)) for name, model in _FIELDS_OF.items()},
        "soperator/files/rights.yaml": _made(_rights()),
        "soperator/files/people.yaml": _made(_people()),
        "soperator/files/flags.yaml": _made(_flags(soperator, OF_MANAGER)),
        "soperator/files/admission.yaml": _made(_admission()),
        **{
            f"soperator/files/{name}.yaml": _of_ours(f"files/{name}.yaml")
            for name in ("protection", "crd-protection")
        },
        "soperatorchecks/files/rights.yaml": _made(_rights()),
        "soperatorchecks/files/flags.yaml": _made(_flags(soperatorchecks, OF_CHECKS)),
        "nodeconfigurator/files/rights.yaml": _made(_of_rebooter()),
        "slurm-cluster/files/rights.yaml": _made(_accounts("@cluster@")),
        "slurm-cluster/files/scripts/check_runner.py": Path(passive_checks.__file__).read_text(),
    }
    return {f"{FOLDER}/{path}": text for path, text in texts.items()}


def values(chart: str) -> dict[str, Any]:
    """The defaults of a chart."""
    found = yaml.safe_load((CHARTS / FOLDER / chart / "values.yaml").read_text()) or {}
    assert isinstance(found, dict)
    return found


def fields(model: Any) -> dict[str, Any]:
    """What the API knows below `spec`: names, a list with the fields of its entries, true for anything."""
    [version] = [one for one in crd(model)["spec"]["versions"] if one["served"]]
    found = _tree_of_schema(version["schema"]["openAPIV3Schema"]["properties"]["spec"])
    assert isinstance(found, dict)
    return found


def _tree_of_schema(schema: Mapping[str, Any]) -> Any:
    if schema.get("type") == "array":
        inner = _tree_of_schema(schema["items"])
        return True if inner is True else [inner]
    is_open = schema.get("x-kubernetes-preserve-unknown-fields") or "properties" not in schema
    if is_open:
        return True
    return {name: _tree_of_schema(one) for name, one in schema["properties"].items()}


def known(chart: str) -> dict[str, Any]:
    """Every value that a chart knows: a tree of names, and a text where there is something to say."""
    tree = _tree(values(chart))
    match chart:
        case "slurm-cluster":
            tree = _merged(fields(SlurmCluster), tree)
            tree |= {"slurmScripts": {**tree["slurmScripts"], "builtIn": True, "extra": True}}
            for part in ("controller", "login", "accounting", "rest"):
                tree["slurmNodes"][part]["nodeExporter"] = {"enabled": True}
        case "nodesets":
            own = {"name": True, "labels": True, "annotations": True, "nodeExporter": {"enabled": True}}
            one = {**fields(NodeSet), **own}
            tree |= {"nodesets": [one], "priorityClasses": True}
        case "nodeconfigurator":
            tree = _merged(fields(NodeConfigurator), tree)
        case "soperator-activechecks":
            tree["checks"] = {"*": _a_check()}
        case "slurm-cluster-storage":
            named = ("name", "size", "type", "filestoreDeviceName", "glusterfsHostName", "storageClassName")
            tree["volume"]["jailSubMounts"] = [dict.fromkeys(named, True)]
        case _:
            pass
    found = _merged(tree, SAID[chart])
    assert isinstance(found, dict)
    return found


def _a_check() -> dict[str, Any]:
    found = fields(ActiveCheck)
    for job, munge in (("k8sJobSpec", "mungeContainer"), ("slurmJobSpec", "mungeContainer")):
        found[job][munge] = {**found[job][munge], "enabled": True}
    return {**found, "enabled": True, "script": True, "scriptFile": True}


def _tree(given: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _tree(one) if isinstance(one, dict) and one else True for name, one in given.items()}


def _merged(first: Any, second: Any) -> Any:
    """Both trees; a text of the second wins, and whatever says more."""
    if not isinstance(first, dict) or not isinstance(second, dict):
        return first if second is True and isinstance(first, dict | list) else second
    return {
        **first,
        **{name: _merged(first[name], one) if name in first else one for name, one in second.items()},
    }


def _rights() -> dict[str, Any]:
    found = {
        "clusterWide": rights.cluster_wide(_NEEDED),
        "inNamespaces": rights.in_namespaces(_NEEDED),
        "atHome": rights.at_home(KINDS),
        "secureMetrics": rights.SECURE_METRICS,
        "webhookLookups": rights.webhook_lookups(KINDS),
        "webhookCertificates": rights.webhook_certificates("@secret@"),
        "webhookConfigurations": rights.webhook_configurations("@name@"),
    }
    return {name: rights.rules(one) for name, one in found.items()}


def _people() -> dict[str, Any]:
    return {
        role: {"labels": rights.aggregated(role), "rules": rights.rules(rights.of_people(_NEEDED, role))}
        for role in ("view", "edit")
    }


def _flags(program: click.Command, controllers: Any) -> dict[str, Any]:
    """The flags that a program knows, and its controllers."""
    words = [word for one in program.params for word in (*one.opts, *one.secondary_opts)]
    return {"flags": sorted(word.lstrip("-") for word in words), "controllers": sorted(controllers)}


def _admission() -> dict[str, Any]:
    return validating(through("@namespace@", name="@name@"), kinds=KINDS, name="@name@", guards_secrets=True)


def _of_rebooter() -> dict[str, Any]:
    return {"clusterWide": rights.rules(rights.REBOOTER), "inNamespace": nodeconfigurator.RULES}


def _accounts(cluster: str) -> dict[str, Any]:
    """What the accounts of a SlurmCluster may do, in its namespace and everywhere."""
    return {
        "controller": {"inNamespace": power.RULES, "clusterWide": []},
        "exporter": {"inNamespace": exporter.rules(cluster), "clusterWide": exporter.NODE_RULES},
        # It asks who reads its metrics.
        "sconfigcontroller": {
            "inNamespace": objects.writer_rules(cluster),
            "clusterWide": rights.rules(rights.SECURE_METRICS),
        },
    }


def _of_ours(path: str) -> str:
    return (CHARTS / "slurm-operator" / path).read_text()


def _made(thing: Any) -> str:
    return MADE + as_yaml([thing])
