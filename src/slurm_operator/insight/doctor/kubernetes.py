"""Whether Kubernetes itself fits: versions, machines, storage, names, and what a namespace lets in."""

import re
from collections import Counter
from collections.abc import Iterator

from slurm_operator.insight.doctor.facts import Facts, Kubelet
from slurm_operator.insight.doctor.finding import Finding, Level, fail, listed, note, ok, unread, warn
from slurm_operator.insight.text.output import counted
from slurm_operator.manifests.objects import Unread
from slurm_operator.reconcilers.cluster.isolation import NODE_LABEL

# Sidecars (init containers that go on) carry the daemons' logs; policies protect workers against deletion.
SIDECARS_SINCE = (1, 29)
POLICIES_SINCE = (1, 30)

_ARCHITECTURES = ("amd64", "arm64")


def versions(facts: Facts) -> Iterator[Finding]:
    if isinstance(facts.version, Unread):
        yield unread("Kubernetes", facts.version)
        return
    number = _number(facts.version)
    if number < SIDECARS_SINCE:
        yield fail(
            "Kubernetes",
            f"{facts.version} is too old: the daemons' logs need sidecar containers.",
            "Upgrade to Kubernetes 1.30 or newer.",
        )
    elif number < POLICIES_SINCE:
        yield warn(
            "Kubernetes",
            f"{facts.version} has no admission policies: workers with jobs can be deleted by hand.",
            "Upgrade to Kubernetes 1.30 or newer.",
        )
    else:
        yield ok("Kubernetes", f"{facts.version}.")


def machines(facts: Facts) -> Iterator[Finding]:
    if isinstance(facts.machines, Unread):
        yield unread("Nodes", facts.machines)
        return
    usable = [one for one in facts.machines if one.is_ready and not one.spec.unschedulable]
    old = sorted(
        one.metadata.name
        for one in facts.machines
        if _number(one.status.node_info.kubelet_version) < SIDECARS_SINCE
    )
    if not usable:
        yield fail(
            "Nodes",
            f"None of {len(facts.machines)} Kubernetes nodes is ready and takes pods.",
            "See `kubectl get nodes`; uncordon one or repair its kubelet.",
        )
    elif old:
        yield fail(
            "Nodes",
            f"Kubelets older than 1.29 on {listed(old)}: pods there have no logs.",
            "Upgrade these kubelets.",
        )
    else:
        yield ok("Nodes", f"{len(usable)} of {len(facts.machines)} are ready and take pods.")


def architectures(facts: Facts) -> Iterator[Finding]:
    if isinstance(facts.machines, Unread):
        return
    found = Counter(one.status.node_info.architecture for one in facts.machines)
    counts = ", ".join(f"{number} {name}" for name, number in sorted(found.items()))
    strange = sorted(set(found) - set(_ARCHITECTURES))
    if strange:
        yield warn(
            "Architecture",
            f"Nodes: {counts}. The default images are made for {' and '.join(_ARCHITECTURES)} only.",
            "Keep Slurm's pods off these nodes (nodeSelector), or name images of your own.",
        )
    elif len(found) > 1:
        yield note(
            "Architecture",
            f"Nodes: {counts}. Jobs need programs for the node they land on.",
            "Make a NodeSet for each architecture, with nodeSelector kubernetes.io/arch.",
        )
    elif found:
        yield ok("Architecture", f"Nodes: {counts}.")


def cgroups(facts: Facts) -> Iterator[Finding]:
    if isinstance(facts.cgroups, Unread):
        yield note(
            "cgroups",
            f"Not looked at: {facts.cgroups.why}",
            "With the right to get nodes/proxy, the kubelets tell. Slurm wants version 2.",
        )
        return
    if not facts.cgroups:
        yield note(
            "cgroups",
            "No kubelet tells which version its node has.",
            "Slurm wants version 2: see `stat -fc %T /sys/fs/cgroup` on a node, it says cgroup2fs.",
        )
        return
    old = sorted(name for name, version in facts.cgroups.items() if version != 2)
    marked = [
        one.metadata.name
        for one in (facts.machines if not isinstance(facts.machines, Unread) else ())
        if one.metadata.labels.get(NODE_LABEL) == "process"
    ]
    if old:
        yield warn(
            "cgroups",
            f"Version 1 on {listed(old)}: Slurm can use it, newer kubelets refuse to.",
            "Boot these nodes with cgroup version 2 when you can.",
        )
    elif marked:
        yield note(
            "cgroups",
            f"{listed(marked)} cannot give pods cgroups of their own, says a label.",
            f"Clusters choose isolation: process there. The label is {NODE_LABEL}.",
        )
    else:
        drivers = sorted({one.cgroup_driver for one in _told(facts).values()} - {""})
        by = f", driver {' and '.join(drivers)}" if drivers else ""
        yield ok("cgroups", f"Version 2 on {counted(len(facts.cgroups), 'node')}{by}.")


def kubelets(facts: Facts) -> Iterator[Finding]:
    """What kubelets do to the cgroups of workers; seen in tests/e2e/test_cgroups.py."""
    versions = {} if isinstance(facts.cgroups, Unread) else facts.cgroups
    found = {name: one for name, one in _told(facts).items() if versions.get(name) == 2}
    if whole := sorted(name for name, one in found.items() if not one.single_process_oom_kill):
        yield note(
            "Kubelets",
            f"On {listed(whole)} the kernel ends a whole container when it is out of memory: with isolation: "
            "process, one job takes its worker and all other jobs there along.",
            "Set `singleProcessOOMKill: true` for these kubelets, or use isolation: cgroup.",
        )
    if pinned := sorted(name for name, one in found.items() if one.cpu_manager_policy == "static"):
        yield note(
            "Kubelets",
            f"The CPU manager on {listed(pinned)} is `static`: CPUs that it gives to a worker's container do "
            "not bind jobs, whose cgroups are beside the container's.",
            "Tell Slurm which CPUs are its own: CpuSpecList or CoreSpecCount in the NodeSet's extraConf.",
        )


def _told(facts: Facts) -> dict[str, Kubelet]:
    return {} if isinstance(facts.kubelets, Unread) else facts.kubelets


def dns(facts: Facts) -> Iterator[Finding]:
    if isinstance(facts.dns, Unread):
        yield unread("DNS", facts.dns)
        return
    ready = [one for one in facts.dns if one.ready]
    if ready:
        yield ok("DNS", f"{ready[0].namespace}/{ready[0].name} has {counted(ready[0].ready, 'endpoint')}.")
        return
    yield Finding(
        check="DNS",
        level=Level.FAIL if facts.dns else Level.WARN,
        message="No DNS server of the cluster is ready: workers cannot find slurmctld."
        if facts.dns
        else "No Service with the label k8s-app=kube-dns was found; workers need names to be resolved.",
        remedy="See `kubectl get pods -n kube-system -l k8s-app=kube-dns`.",
    )


def storage(facts: Facts) -> Iterator[Finding]:
    if isinstance(facts.storage_classes, Unread):
        yield unread("Storage", facts.storage_classes)
        return
    names = [one.metadata.name for one in facts.storage_classes]
    default = [one.metadata.name for one in facts.storage_classes if one.is_default]
    if default:
        more = f"; others: {listed([n for n in names if n not in default])}" if len(names) > 1 else ""
        yield ok("Storage", f"The default StorageClass is {listed(default)}{more}.")
        return
    found = f"There are {listed(names)}, and none is the default." if names else "There is no StorageClass."
    yield warn(
        "Storage",
        f"{found} A Cluster without one forgets its jobs when slurmctld's pod is replaced.",
        "Annotate one with storageclass.kubernetes.io/is-default-class=true, or name one in "
        "spec.controller.persistence.storageClassName.",
    )


def pod_security(facts: Facts) -> Iterator[Finding]:
    namespace = facts.namespace
    if isinstance(facts.home, Unread):
        yield unread("Pod Security", facts.home)
    elif facts.home is None:
        yield warn(
            "Pod Security",
            f"There is no namespace {namespace} yet.",
            f"`kubectl create namespace {namespace}`, or name another with -n.",
        )
    elif facts.home.refuses_privileged == "restricted":
        yield fail(
            "Pod Security",
            f"Namespace {namespace} enforces `restricted`: no slurmd can start there.",
            f"`kubectl label namespace {namespace} --overwrite "
            "pod-security.kubernetes.io/enforce=baseline`, or privileged for cgroups.",
        )
    elif facts.home.refuses_privileged:
        yield note(
            "Pod Security",
            f"Namespace {namespace} enforces `baseline`: workers run with isolation: process.",
            f"For jobs in cgroups of their own: `kubectl label namespace {namespace} --overwrite "
            "pod-security.kubernetes.io/enforce=privileged`.",
        )
    else:
        yield ok("Pod Security", f"Namespace {namespace} keeps no pod of ours away.")


def _number(version: str) -> tuple[int, int]:
    """(1, 36) of v1.36.3; what is no version is taken for a new one."""
    found = re.match(r"v?(\d+)\.(\d+)", version)
    return (int(found[1]), int(found[2])) if found else (99, 0)
