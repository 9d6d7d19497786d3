"""Where tests type the commands of the documentation: every one is typed somewhere, or stands in one list with the reason.

A page that is not named here fails; a new command on a page that is named is typed by the test, and has to work.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import yaml

from testing.docs import PAGES, ROOT, Block, Terminal, blocks, commands, is_shown, section

# On a cluster of this machine, with the Slurm of the tutorial on it; in this order.
ON_A_CLUSTER = (
    "docs/concepts/api.md",
    "docs/concepts/cluster.md",
    "docs/guides/explain-and-plan.md",
    "docs/guides/kubectl-slurm.md",
    "docs/guides/troubleshooting.md",
    "docs/guides/workers.md",
    "docs/guides/rest.md",
    "docs/guides/high-availability.md",
    "docs/guides/topology.md",
    "docs/guides/accounting.md",
    # The last ones: login pods are replaced, while others would use them.
    "docs/guides/login-and-identity.md",
    "docs/guides/keys.md",
)

# Sections of pages whose other commands are typed on an API server, likewise.
SECTIONS_ON_A_CLUSTER = {
    "docs/guides/monitoring.md": "Try the exporter",
    "docs/guides/upgrades.md": "Try it",
}

# Files that a reader writes: the first YAML of that page, a file of the first ConfigMap in it, or its first program.
FILES = {
    "ha.yaml": ("docs/guides/high-availability.md", ""),
    "topology.yaml": ("docs/guides/topology.md", "topology.yaml"),
    "token.yaml": ("docs/guides/rest.md", ""),
    "hello-by-rest": ("docs/guides/rest.md", ""),
}

# On an API server without machines: whatever is installed is accepted there, and nothing has to start. In this order.
ON_AN_API_SERVER = (
    "docs/guides/installation.md",
    "docs/guides/monitoring.md",
    "docs/guides/upgrades.md",
    "docs/guides/soperator-api.md",
    "docs/guides/from-soperator.md",
    "docs/guides/kubernetes-nodes.md",
)

# Section by section, each on an API server of its own with stand-ins for Slinky's charts.
GUIDE_FROM_SLINKY = "docs/guides/from-slinky.md"

# On an API server of its own, with the definitions there already.
GUIDE_SOPERATOR_CHARTS = "docs/guides/soperator-charts.md"

TUTORIAL = "docs/tutorial/first-cluster.md"

_REGISTRY = "needs skopeo and a registry, and this machine has neither"

# Not typed, and why.
ELSEWHERE = {
    "archive=$(ls -t ~/.cache/slurm-operator/images/archives/operator-*/images.tar | head -1)": _REGISTRY,
    "skopeo copy docker-archive:$archive:docker.io/local/slurm-operator:0.1.0 docker://registry.example/slurm-operator:0.1.0": _REGISTRY,
    "skopeo copy docker-archive:$archive:docker.io/local/slurm-operator-webhook:0.1.0 docker://registry.example/slurm-operator-webhook:0.1.0": _REGISTRY,
    "make test": "it is what runs this very test",
    "make up": "the tutorial begins with it, and there it is typed",
}

# Pages whose commands are not typed, and why.
PAGES_ELSEWHERE = {
    "docs/decisions/chaos.md": "how its own figures were made: a series takes hours; unit tests play the harness and its report",
}

# What a reader puts in the place of names on these pages.
OWN_NAMES = {
    # The environment that runs the test is never made again under it, however old it is: `make` would empty it first.
    "make up": "make --old-file=.venv/.ready up",
    "make down": "make --old-file=.venv/.ready down",
    "slurm-worker-gpu": "demo-cpu",
    "nodeset/NAME": "nodeset/demo-cpu",
    "nodesets.slinky.slurm.net/NAME": "$(kubectl get nodesets.slinky.slurm.net -n slurm -o name | head -n 1)",
    "NAMESPACE": "slurm",
    "gpu-[0-3]": "demo-cpu-[0-1]",
    "gpu-0": "demo-cpu-0",
    "machine-7": "node-1",
    "nodeset cpu": "nodeset demo-cpu",
    "pod cpu-0": "pod demo-cpu-0",
    "controller slurm": "controller demo",
    "SLINKY-CHART": "slinky/slurm-operator",
    "SOPERATOR-IMAGE": "docker.io/local/slurm-operator-soperator:0",
    "SLINKY-WEBHOOK-IMAGE": "ghcr.io/slinkyproject/slurm-operator-webhook:1.3.0",
    "SLINKY-IMAGE": "ghcr.io/slinkyproject/slurm-operator:1.3.0",
    "WEBHOOK-IMAGE": "docker.io/local/slurm-operator-webhook:0",
    "=IMAGE": "=docker.io/local/slurm-operator:0",
    "registry.example/": "docker.io/local/",
}


class Twist(NamedTuple):
    """What is special about a command: what has to be so before it and is undone after it, how it ends, what it says."""

    before: str = ""
    after: str = ""
    code: int = 0
    says: str = ""
    prefix: str = ""


PLAIN = Twist()

# By how a command begins.
TWISTS = {
    # What Soperator's chart makes, as far as these commands name it.
    "slurm-operator manifests --only-rights": Twist(
        before="kubectl create namespace soperator-system;"
        "kubectl create deployment soperator-manager -n soperator-system --image=manager"
    ),
    "kubectl slurm undrain demo-cpu-0": Twist(
        before="slurm-operator local shell --user root scontrol update nodename=demo-cpu-0 state=drain reason='bad disk'",
        after="slurm-operator local shell --user root scontrol update nodename=demo-cpu-0 state=resume",
        code=1,
        says="demo-cpu-0 is drained by root with the reason 'bad disk'",
    ),
    # Whoever was drained by the command above would keep that reason.
    "kubectl slurm drain --on node-1": Twist(
        before="kubectl slurm undrain demo-cpu-[0-1]",
        after="kubectl slurm undrain --on node-1; kubectl slurm drain demo-cpu-[0-1] --reason 'new cables'",
    ),
    "kubectl delete pod demo-cpu-0": Twist(code=1, says="may have running jobs, so it is not deleted"),
    "kubectl slurm logs demo-cpu-0 -f": Twist(code=124, prefix="timeout 5"),
    # The operator of a local cluster keeps no recording unless it is asked to.
    "kubectl slurm record fetch": Twist(
        before="kubectl apply --server-side --force-conflicts -f recording.yaml >/dev/null;"
        "kubectl rollout status deployment/slurm-operator -n slurm-operator --timeout=5m;"
        "kubectl wait --for=condition=Ready cluster/demo --timeout=10m"
    ),
    "kubectl annotate --overwrite node n1 n2": Twist(
        before="""for node in n1 n2; do
            echo '{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "'$node'"}}' | kubectl apply -f -
        done""",
        after="kubectl delete node n1 n2",
    ),
    "kubectl annotate pod demo-cpu-3": Twist(
        before="kubectl run demo-cpu-3 --image=slurmd", after="kubectl delete pod demo-cpu-3 --wait=false"
    ),
    # Nobody deletes it on this page, and no operator is there to take it down.
    "kubectl wait -n slurm --for=delete": Twist(
        before="kubectl delete controllers.slinky.slurm.net/slurm -n slurm --ignore-not-found"
    ),
    # Either with Helm or without.
    "slurm-operator manifests --image": Twist(
        before="! kubectl get crd -o name | grep slinky; ! helm list -A -q | grep .",
        after="kubectl annotate $(kubectl get crd -o name) slinky.slurm.net/allow-deletion=true;"
        "slurm-operator manifests --image=docker.io/local/slurm-operator:0 | kubectl delete -f -;"
        "helm install slurm-operator-crds charts/slurm-operator-crds;"
        "helm install slurm-operator charts/slurm-operator -n slurm-operator --create-namespace"
        " --set global.image.repository=docker.io/local/slurm-operator",
    ),
}


def left_out(command: Block) -> bool:
    return _bare(command.text) in ELSEWHERE or _name(command.page) in PAGES_ELSEWHERE


def as_typed(command: Block) -> str:
    """With the names of the cluster that the test has."""
    text = command.text
    for name, own in OWN_NAMES.items():
        text = text.replace(name, own)
    return text


def written_file(name: str) -> str:
    """What a reader has in it: the first manifest or program of a page, or a file of its first ConfigMap."""
    page, entry = FILES[name]
    first = next(blocks("yaml" if "." in name else "python", (ROOT / page,))).text
    return next(yaml.safe_load_all(first))["data"][entry] if entry else first


def type_page(page: str, terminal: Terminal) -> list[str]:
    """Types every command of a page but those that need machines; what did not work as it stands."""
    apart = _apart(page)
    return _type_all([command for command in commands(ROOT / page) if command not in apart], terminal)


def type_section(page: str, terminal: Terminal) -> list[str]:
    """Types those that need machines."""
    return _type_all(_apart(page), terminal)


def _apart(page: str) -> list[Block]:
    return section(ROOT / page, SECTIONS_ON_A_CLUSTER[page]) if page in SECTIONS_ON_A_CLUSTER else []


def _type_all(typed: list[Block], terminal: Terminal) -> list[str]:
    return [trouble for command in typed if not left_out(command) for trouble in type_one(command, terminal)]


def type_one(command: Block, terminal: Terminal, cwd: Path | None = None) -> list[str]:
    text = as_typed(command)
    twist = next((TWISTS[start] for start in TWISTS if text.startswith(start)), PLAIN)
    return [
        *_typed(f"before {command}", twist.before, terminal),
        *_typed(str(command), f"{twist.prefix} {text}", terminal, cwd, twist, command.shows),
        *_typed(f"after {command}", twist.after, terminal),
    ]


def _typed(
    what: str, text: str, terminal: Terminal, cwd: Path | None = None, twist: Twist = PLAIN, shows: str = ""
) -> Iterator[str]:
    done = terminal.type(text, cwd)
    said = done.stdout + done.stderr
    if done.returncode != twist.code or twist.says not in said or not is_shown(shows, done.stdout):
        yield f"{what}: {text}: exit code {done.returncode}\n{said}" + (f"not:\n{shows}" if shows else "")


def _bare(text: str) -> str:
    """Without a comment behind it."""
    return text.partition("  #")[0].strip()


def pages_with_commands() -> set[str]:
    return {_name(page) for page in PAGES if any(not left_out(each) for each in commands(page))}


def _name(page: Path) -> str:
    return str(page.relative_to(ROOT))
