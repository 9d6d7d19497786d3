"""The Slurm cluster of `up`: what a data scientist expects of one, said in its manifest."""

import os
import shlex
from pathlib import Path

import yaml

from slurm_local import home
from slurm_local.cluster import Cluster
from slurm_local.image.accounts import DEMO
from slurm_local.kubernetes.pki import write_secret
from slurm_local.shared_root_cluster import public_keys
from slurm_local.slurm_cluster import CLUSTER, LOGIN, NAMESPACE, manifest

_MIB = 1024**2

# A job that asks for no memory would get all of its node's, and no second one would fit beside it.
_MOST_MEMORY_PER_CPU_MIB = 1024
_SHARE_FOR_JOBS = 0.9

_RELAY = "exec 3<>/dev/tcp/127.0.0.1/22; cat <&3 & cat >&3"


def whole_manifest(workers: int, nodes: int, memory_per_cpu_mib: int) -> dict[str, object]:
    """The smallest Cluster, with a home, accounting, and limits for jobs that ask for none."""
    smallest = manifest(workers, nodes)
    spec = smallest["spec"]
    assert isinstance(spec, dict)
    [nodeset], [login] = spec["nodeSets"], spec["logins"]
    settings = {
        "DefMemPerCPU": memory_per_cpu_mib,
        "ReturnToService": 1,
        "JobAcctGatherType": "jobacct_gather/linux",
        "JobAcctGatherFrequency": 30,
    }
    return {
        **smallest,
        "spec": {
            "accounting": {"managed": {}},
            "nodeSets": [{**nodeset, **home.mounted("slurmd")}],
            "logins": [{**login, **home.mounted("login")}],
            "partitions": [{"name": "all", "default": True, "config": "DefaultTime=1:00:00 MaxTime=1-0"}],
            "extraConf": "".join(f"{key}={value}\n" for key, value in settings.items()),
        },
    }


def memory_per_cpu_mib(memory_bytes: int, cpus: int) -> int:
    """What a job gets for each of its CPUs, so that jobs on all CPUs of a node have room."""
    return min(_MOST_MEMORY_PER_CPU_MIB, int(memory_bytes * _SHARE_FOR_JOBS / _MIB / max(1, cpus)))


def objects(cluster: Cluster, workers: int, nodes: int) -> list[dict[str, object]]:
    """What is applied, and written down for whoever wants to change it; /home is there afterwards."""
    directory = cluster.paths.home_of(cluster.name)
    key, public = home.key_pair(cluster.directory / "ssh")
    home.make(directory, [public, *public_keys()])
    _write_ssh_config(cluster, key)
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    whole = whole_manifest(workers, nodes, memory_per_cpu_mib(memory, os.cpu_count() or 1))
    manifest_file(cluster).write_text(yaml.dump(whole, Dumper=_Lines, sort_keys=False))
    return [*home.objects(directory, NAMESPACE), whole]


def manifest_file(cluster: Cluster) -> Path:
    return cluster.directory / f"{CLUSTER}.yaml"


def ssh_config(cluster: Cluster) -> Path:
    """For `ssh -F`, `scp -F` and editors: the way to the login pod, through the API server."""
    return cluster.directory / "ssh" / "config"


def as_user(user: str, command: tuple[str, ...]) -> tuple[str, ...]:
    """What to run in the login pod: a login shell of the user, or one command from it."""
    return ("su", "--login", user, *(("--command", shlex.join(command)) if command else ()))


def _write_ssh_config(cluster: Cluster, key: Path) -> None:
    kubectl = [str(cluster.kubectl_program), f"--kubeconfig={cluster.kubeconfig}", "exec", "-i", *LOGIN]
    lines = [
        f"Host {CLUSTER}",
        f"  User {DEMO.name}",
        f'  IdentityFile "{key}"',
        f"  ProxyCommand {shlex.join([*kubectl, 'bash', '-c', _RELAY]).replace('%', '%%')}",
        f"  HostKeyAlias {cluster.name}.{CLUSTER}",
        f'  UserKnownHostsFile "{key.parent / "known_hosts"}"',
        "  StrictHostKeyChecking accept-new",
    ]
    write_secret(ssh_config(cluster), "".join(f"{line}\n" for line in lines).encode())


class _Lines(yaml.SafeDumper):
    """Several lines as a block, as people write them."""


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.Node:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Lines.add_representer(str, _text)
