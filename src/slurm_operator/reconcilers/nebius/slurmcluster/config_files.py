"""Files that stand beside slurm.conf: cgroup.conf, gres.conf, mpi.conf, plugstack.conf."""

from collections.abc import Iterator, Sequence
from typing import Final

from slurm_operator.api.nebius import names
from slurm_operator.api.nebius.nodeset import NodeSet
from slurm_operator.api.nebius.older_worker import CgroupVersion
from slurm_operator.api.nebius.slurm_settings import PlugStackConfig
from slurm_operator.api.nebius.slurmcluster import SlurmClusterSpec
from slurm_operator.reconcilers.nebius.shared.families import Family
from slurm_operator.reconcilers.nebius.shared.places import PLUGINS, SHARED_ROOT

_HEAD: Final = "# Managed by slurm-operator.\n# Do not edit: what is written here is replaced.\n\n"


def files(spec: SlurmClusterSpec, nodesets: Sequence[tuple[str, NodeSet]], family: Family) -> dict[str, str]:
    """By name. `nodesets` are those of the cluster, with the names of their nodes."""
    found = {
        "cgroup.conf": cgroup_conf(spec),
        "gres.conf": gres_conf(nodesets),
        "plugstack.conf": plugstack_conf(spec.plug_stack_config, family),
    }
    if family is Family.SOPERATOR:  # Ours have no PMIx, and refuse a file that names it.
        found["mpi.conf"] = f"PMIxEnv={spec.mpi_config.pmix_env}\n"
    return {name: _HEAD + text for name, text in sorted(found.items())}


def cgroup_conf(spec: SlurmClusterSpec) -> str:
    is_v2 = spec.cgroup_version is CgroupVersion.V2
    ours = {
        "CgroupMountpoint": "/sys/fs/cgroup",
        "ConstrainCores": "yes",
        "ConstrainDevices": "yes",
        "ConstrainRAMSpace": "yes",
        "CgroupPlugin": "cgroup/v2" if is_v2 else "cgroup/v1",
        "ConstrainSwapSpace": "no" if is_v2 else "yes",
        **({"EnableControllers": "yes", "IgnoreSystemd": "yes"} if is_v2 else {}),
    }
    theirs = spec.custom_cgroup_config.strip()
    replaced = {line.partition("=")[0].strip() for line in theirs.splitlines()}
    lines = [f"{key}={value}" for key, value in ours.items() if key not in replaced]
    custom = ["###", "# Custom config", "###", *theirs.splitlines()] if theirs else []
    return "".join(f"{line}\n" for line in (*lines, *custom))


def gres_conf(nodesets: Sequence[tuple[str, NodeSet]]) -> str:
    lines = []
    if any(nodeset.spec is not None and nodeset.spec.gpu.enabled for _, nodeset in nodesets):
        lines.append("AutoDetect=nvidia")
    for nodes, nodeset in nodesets:
        if nodeset.spec is not None:
            lines += [f"NodeName={nodes} {line}" for line in nodeset.spec.node_config.gres_config]
    return "".join(f"{line}\n" for line in lines)


def plugstack_conf(config: PlugStackConfig, family: Family) -> str:
    return "".join(f"{line}\n" for line in _plugins(config, family))


def _plugins(config: PlugStackConfig, family: Family) -> Iterator[str]:
    """The plugin that enters the root is first: the others run inside."""
    if family is Family.OURS:
        yield f"required {PLUGINS}/shared_root.so {SHARED_ROOT}"
    else:
        yield f"required chroot.so {names.ROOT}"
        yield from _their_plugins(config)
    for plugin in config.custom_plugins:
        arguments = (f"{key}={value}" for key, value in sorted(plugin.arguments.items()))
        yield " ".join([_needed(plugin.required), plugin.path, *arguments])


def _their_plugins(config: PlugStackConfig) -> Iterator[str]:
    pyxis, nccl, inspector = config.pyxis, config.nccl_debug, config.nccl_inspector_pre_conf
    yield (
        f"{_needed(pyxis.required)} spank_pyxis.so runtime_path=/run/pyxis execute_entrypoint=0 "
        f"container_scope=global sbatch_support=1 importer={pyxis.importer_path} "
        f"use_squashfuse={int(pyxis.use_squashfuse)}"
    )
    yield (
        f"{_needed(nccl.required)} spanknccldebug.so enabled={int(nccl.enabled)} log-level={nccl.log_level} "
        f"out-file={int(nccl.output_to_file)} out-dir={nccl.output_directory} "
        f"out-stdout={int(nccl.output_to_std_out)}"
    )
    yield (
        f"{_needed(inspector.required)} spank_nccl_inspector_preconf.so enabled={int(inspector.enabled)} "
        f"profiler-plugin={inspector.profiler_plugin} dump-dir={inspector.dump_dir} "
        f"dump-verbose={int(inspector.dump_verbose)} "
        f"dump-thread-interval-microseconds={inspector.dump_thread_interval_microseconds}"
    )


def _needed(required: bool) -> str:
    return "required" if required else "optional"
