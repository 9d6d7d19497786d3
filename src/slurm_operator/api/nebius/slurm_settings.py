"""What a SlurmCluster says about Slurm's own configuration files."""

from collections.abc import Iterator
from typing import ClassVar

from slurm_operator.api.schema.model import Choice, Rule, model, prop
from slurm_operator.api.schema.problems import Problem


class PartitionsBy(Choice):
    """How partitions are written."""

    DEFAULT = "default", "two partitions with all nodes, main and hidden."
    CUSTOM = "custom", "the lines of rawConfig."
    STRUCTURED = "structured", "the entries of partitions."


class LogLevel(Choice):
    """What NCCL logs."""

    VERSION = "VERSION", "its version only."
    WARN = "WARN", "errors."
    INFO = "INFO", "what it does."
    TRACE = "TRACE", "every call."


class CheckedState(Choice):
    """Slurm nodes on which the health check runs."""

    ALLOC = "ALLOC", "with all CPUs allocated."
    ANY = "ANY", "in any state."
    CYCLE = "CYCLE", "one after the other, spread over the interval."
    IDLE = "IDLE", "without a job."
    NONDRAINED_IDLE = "NONDRAINED_IDLE", "without a job and not drained."
    MIXED = "MIXED", "with some CPUs allocated."


@model
class Partition:
    """One partition."""

    name: str = prop("Name of the partition.", min_length=1)
    is_all: bool = prop("Whether it has all nodes of the cluster.", default=False)
    node_set_refs: list[str] = prop("NodeSets whose nodes it has.", default=[])
    config: str = prop("The rest of its line, such as `Default=YES PriorityTier=10`.", default="")


@model
class PartitionConfiguration:
    """The partitions of the cluster."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            expression="self.configType != 'structured' || size(self.?partitions.orValue([])) > 0",
            message="configType structured needs at least one entry in partitions",
            path=".partitions",
            holds=lambda parts, old: (
                parts.config_type is not PartitionsBy.STRUCTURED or bool(parts.partitions)
            ),
        ),
    )

    config_type: PartitionsBy = prop("How partitions are written.", default=PartitionsBy.DEFAULT)
    raw_config: list[str] = prop(
        "Lines for slurm.conf, each starting with `PartitionName`; for configType custom.", default=[]
    )
    partitions: list[Partition] = prop("The partitions; for configType structured.", default=[])

    def problems(self) -> Iterator[Problem]:
        if self.config_type is not PartitionsBy.CUSTOM:
            return
        for index, line in enumerate(self.raw_config):
            if not line.startswith("PartitionName"):
                yield Problem(path=f"rawConfig[{index}]", message="must start with PartitionName")


@model
class SlurmConfig:
    """Lines of slurm.conf: each field that is set becomes the line of the same name."""

    def_mem_per_node: int = prop(
        "Memory of a job on each node that asks for none, in MiB; 0: all of it.", default=0
    )
    def_cpu_per_gpu: int = prop("CPUs that a job gets with each GPU.", default=4, name="defCpuPerGPU")
    complete_wait: int = prop("Seconds to wait for completing jobs before others are scheduled.", default=5)
    epilog: str = prop("Program that runs on each node when a job ends.", default="")
    prolog: str = prop("Program that runs on each node when a job starts.", default="")
    task_prolog: str = prop("Program that runs as the user before each task.", default="")
    task_plugin_param: str = prop("Options of the task plugin, such as `Verbose`.", default="")
    max_job_count: int = prop("How many jobs slurmctld keeps in memory.", default=20000)
    min_job_age: int = prop("Seconds for which slurmctld remembers a finished job.", default=1800)
    message_timeout: int = prop("Seconds that one message may take to be answered.", default=60)
    topology_plugin: str = prop("How Slurm sees the network.", default="topology/tree")
    topology_param: str = prop("Options of the topology, separated by commas.", default="SwitchAsNodeRank")
    suspend_time: int = prop(
        "Seconds without a job after which an ephemeral node is powered down; the default is practically "
        "never.",
        default=1_000_000_000,
    )
    resume_timeout: int = prop(
        "Seconds that a node may take to power up before it counts as down.", default=1800, minimum=1
    )
    topology_block_size: int | None = prop(
        "Nodes per block of the topology, in older releases.",
        default=None,
        deprecated="use spec.topology.blockSize; it is read as that where that has its default",
    )
    debug_flags: str = prop(
        "Subsystems that log more, in older releases.",
        default="",
        deprecated="is ignored; write `DebugFlags=` into spec.customSlurmConfig",
    )


@model
class MpiConfig:
    """mpi.conf."""

    pmix_env: str = prop(
        "Environment variables that PMIx sets in jobs, separated by semicolons.",
        default="OMPI_MCA_btl_tcp_if_include=eth0",
    )


@model
class Topology:
    """The network that Slurm plans with."""

    block_size: int = prop("Nodes per block; for topology/block.", default=18)


@model
class Pyxis:
    """The plugin that runs jobs in containers."""

    required: bool = prop("Whether a job fails when the plugin cannot be loaded.", default=True)
    use_squashfuse: bool = prop("Whether images are mounted with squashfuse, not unpacked.", default=False)
    importer_path: str = prop(
        "Program that fetches images.", default="/opt/slurm_scripts/pyxis_caching_importer.sh"
    )
    container_image_save: str = prop(
        "Where fetched images were kept, in older releases.",
        default="",
        deprecated="has no equivalent and is ignored; importerPath decides where images are kept",
    )


@model
class NcclDebug:
    """The plugin that writes the debug log of NCCL."""

    required: bool = prop("Whether a job fails when the plugin cannot be loaded.", default=False)
    enabled: bool = prop("Whether jobs log without asking for it.", default=False)
    log_level: LogLevel = prop("What is logged.", default=LogLevel.INFO)
    output_to_file: bool = prop("Whether the log is written to a file.", default=True)
    output_to_std_out: bool = prop("Whether the log is written to the output of the job.", default=False)
    output_directory: str = prop(
        "Where the files are written.", default="/opt/soperator-outputs/local/nccl_logs"
    )


@model
class NcclInspector:
    """The plugin that prepares profiles of NCCL. An object that does not say `enabled` enables it."""

    required: bool = prop("Whether a job fails when the plugin cannot be loaded.", default=False)
    enabled: bool = prop("Whether jobs are profiled without asking for it.", default=True)
    profiler_plugin: str = prop(
        "Library that profiles.", default="/usr/lib/x86_64-linux-gnu/libnccl-profiler-inspector.so"
    )
    dump_dir: str = prop(
        "Where profiles are written; %j is the job, %s the step.",
        default="/opt/soperator-outputs/shared/nccl_profiles/%j/%s",
    )
    dump_verbose: bool = prop("Whether profiles hold every event.", default=False)
    dump_thread_interval_microseconds: int = prop(
        "Microseconds between two writes.", default=1_000_000, format="int64"
    )


@model
class CustomPlugin:
    """Another SPANK plugin."""

    path: str = prop("Its library: a path, or a file name in Slurm's plugin directory.")
    required: bool = prop("Whether a job fails when the plugin cannot be loaded.", default=False)
    arguments: dict[str, str] = prop("Its arguments, written as `key=value`.", default={})


@model
class PlugStackConfig:
    """plugstack.conf: SPANK plugins."""

    pyxis: Pyxis = prop("Jobs in containers.", default=Pyxis())
    nccl_debug: NcclDebug = prop("The debug log of NCCL.", default=NcclDebug())
    nccl_inspector_pre_conf: NcclInspector = prop("Profiles of NCCL.", default=NcclInspector(enabled=False))
    custom_plugins: list[CustomPlugin] = prop("Other plugins, in this order.", default=[])


@model
class HealthCheckNodeState:
    """A state in which the health check runs."""

    state: CheckedState = prop("Which Slurm nodes are checked.")


@model
class HealthCheckConfig:
    """The program by which slurmd checks its node."""

    health_check_interval: int = prop("Seconds between two runs.")
    health_check_program: str = prop("Path of the program.")
    health_check_node_state: list[HealthCheckNodeState] = prop("Which Slurm nodes are checked.", min_items=1)


@model
class WorkerFeature:
    """A feature of some workers, in older releases."""

    name: str = prop("Name of the feature.", min_length=1)
    hostlist_expr: str = prop("Which workers have it, such as `worker-[0-3]`.", min_length=1)
    nodeset_name: str = prop("Name of the Slurm NodeSet that is made of them.", default="")
