"""Lines of slurm.conf that a SlurmCluster adds to those of the engine, in the order of Soperator's file.

Those that the engine writes itself are not here: names and addresses of slurmctld, authentication, state and
log files, slurmdbd's address. docs/guides/soperator-api.md lists every other difference.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from slurm_operator.api.nebius.accounting import AccountingSlurmConfig
from slurm_operator.api.nebius.slurm_settings import SlurmConfig
from slurm_operator.api.nebius.slurmcluster import SlurmClusterSpec
from slurm_operator.api.schema.model import fields_of
from slurm_operator.reconcilers.nebius.shared.families import Family

_NOT_LINES: Final = {"topology_block_size", "debug_flags"}

_OFTEN: Final = 1024

_CONSTANT: Final = (
    "InactiveLimit=0",
    "KillOnBadExit=1",
    "KillWait=180",
    "UnkillableStepTimeout=600",
    "SlurmctldTimeout=180",
    "SlurmdTimeout=180",
    "TCPTimeout=15",
    "WaitTime=0",
)
_POWER: Final = (
    "SuspendTimeout=90",
    "ResumeRate=100",
    "SuspendRate=100",
    "ReconfigFlags=KeepPowerSaveSettings",
)
_SCHEDULING: Final = (
    "SchedulerType=sched/backfill",
    "SchedulerParameters=nohold_on_prolog_fail,extra_constraints,pack_serial_at_end,salloc_wait_nodes,"
    "sbatch_wait_nodes,defer_batch,max_rpc_cnt=100,bf_continue,bf_max_time=60,bf_max_job_test=1000,"
    "bf_max_job_part=300,bf_running_job_reserve",
    "SelectType=select/cons_tres",
    "SelectTypeParameters=CR_Core_Memory,CR_CORE_DEFAULT_DIST_BLOCK",
    "SlurmctldDebug=debug",
    "SlurmdDebug=debug",
    "DebugFlags=Script,Power",
)


# Where slurmctld's image has the programs that it calls to power nodes up and down.
_PROGRAMS: Final = (
    "ResumeProgram=/opt/soperator/bin/power_resume.sh",
    "ResumeFailProgram=/opt/soperator/bin/power_resume_fail.sh",
    "SuspendProgram=/opt/soperator/bin/power_suspend.sh",
)


@dataclass(frozen=True)
class Power:
    """Nodes that Slurm powers up and down, and those that it must leave alone, as hostlists."""

    is_used: bool = False
    excluded: tuple[str, ...] = ()


def lines(
    spec: SlurmClusterSpec, family: Family, *, workers: int, has_gpus: bool, power: Power
) -> Iterator[str]:
    """The lines before the partitions. `workers` is how many there may be."""
    is_theirs = family is Family.SOPERATOR
    yield from _settings(spec.slurm_config)
    if has_gpus:
        yield "GresTypes=gpu"
    # Debian's Slurm has no PMIx, and its plugins are elsewhere.
    yield "MpiDefault=pmix" if is_theirs else "MpiDefault=pmi2"
    yield "MailProg=/usr/bin/true"
    if is_theirs:
        yield "PluginDir=/usr/lib/slurm"
    yield "ProctrackType=proctrack/cgroup"
    yield "ReturnToService=2"
    yield "TaskPlugin=task/cgroup,task/affinity"
    yield "CliFilterPlugins=cli_filter/user_defaults"
    yield "LaunchParameters=use_interactive_step"
    yield "ScronParameters=enable,explicit_scancel"
    yield "PropagateResourceLimits=NONE"
    yield from _health_check(spec)
    yield from _CONSTANT
    yield _slurmctld_parameters(workers, has_cloud_names=power.is_used and is_theirs)
    yield "PrologFlags=contain"
    if is_theirs:
        yield "RebootProgram=/opt/bin/slurm/reboot.sh"
    yield from _power(power)
    yield from _SCHEDULING
    yield f"MaxNodeCount={_room(workers)}"
    yield f"MaxArraySize={max(_OFTEN, power_of_two(5 * workers))}"
    yield from ("JobRequeue=1", "PreemptMode=REQUEUE", "PreemptType=preempt/partition_prio")
    if spec.slurm_nodes.accounting.enabled:
        yield "JobCompType=jobcomp/none"
        yield from _accounting(spec.slurm_nodes.accounting.slurm_config)


def _settings(config: SlurmConfig) -> Iterator[str]:
    """One line for each field that is set."""
    for field in fields_of(SlurmConfig):
        value = getattr(config, field.attribute)
        if field.attribute not in _NOT_LINES and value not in (None, ""):
            yield f"{_upper(field.name)}={value}"


def _accounting(config: AccountingSlurmConfig) -> Iterator[str]:
    for field in fields_of(AccountingSlurmConfig):
        value = getattr(config, field.attribute)
        if value not in (None, ""):
            yield f"{_upper(field.name)}={value}"


def _upper(name: str) -> str:
    return f"{name[0].upper()}{name[1:]}"


def _health_check(spec: SlurmClusterSpec) -> Iterator[str]:
    check = spec.health_check_config
    if check is not None:
        states = ",".join(str(one.state) for one in check.health_check_node_state)
        yield f"HealthCheckInterval={check.health_check_interval}"
        yield f"HealthCheckProgram={check.health_check_program}"
        yield f"HealthCheckNodeState={states}"


def _power(power: Power) -> Iterator[str]:
    """Without `idle_on_node_suspend`, which Soperator sets: it also lifts drains."""
    if power.is_used:
        yield from _PROGRAMS
    yield from _POWER
    if power.is_used and power.excluded:
        yield f"SuspendExcNodes={','.join(power.excluded)}"


def _slurmctld_parameters(workers: int, *, has_cloud_names: bool) -> str:
    words = (
        f"conmgr_max_connections={_room(workers)}",
        "conmgr_threads=32",
        "validate_nodeaddr_threads=32",
        "enable_stepmgr",
        *(("cloud_dns",) if has_cloud_names else ()),
    )
    return f"SlurmctldParameters={','.join(words)}"


def _room(workers: int) -> int:
    """Twice as much as there is."""
    return max(_OFTEN, power_of_two(2 * workers))


def power_of_two(number: int) -> int:
    """The next one from `number` on: so that few changes of a number change the configuration."""
    return 1 << max(0, number - 1).bit_length()
