"""Words that Slurm 26.05 takes where it refuses any other: from slurm.conf(5), each tried on its parser."""

from slurm_operator.slurm.conf.values import limits_of, one_of, words_of

DEBUG_FLAGS = words_of(
    """
    Accrue Agent AuditRPCs AuditTLS Backfill BackfillMap BurstBuffer Cgroup ConMgr CpuFrequency
    CPU_Bind Data DBD_Agent DB_Archive DB_Assoc DB_Event DB_Job DB_QOS DB_Query DB_Reservation
    DB_Resource DB_Step DB_TRES DB_Usage DB_WCKey Dependency Elasticsearch Energy Federation Gang
    GLOB_SILENCE Gres Hetjob Interconnect JobAccountGather JobComp JobContainer Namespace
    NodeFeatures License Metrics MPI Network NetworkRaw NO_CONF_HASH Power PowerSave Priority
    Profile Protocol Reservation Route Sack Script SelectType Steps Switch Task thread TLS TraceJobs
    Triggers WorkQueue
    """
)
PROLOG_FLAGS = words_of("Alloc Contain DeferBatch ForceRequeueOnFail NoHold RunInJob Serial X11")
SELECT_PARAMETERS = words_of(
    """
    CR_CPU CR_CPU_Memory CR_Core CR_Core_Memory CR_Socket CR_Socket_Memory CR_Memory CR_LLN CR_Pack_Nodes
    CR_ONE_TASK_PER_CORE CR_CORE_DEFAULT_DIST_BLOCK LL_SHARED_GRES MULTIPLE_SHARING_GRES_PJ
    ENFORCE_BINDING_GRES ONE_TASK_PER_SHARING_GRES
    """
)
PREEMPT_MODE = words_of("OFF CANCEL GANG PRIORITY REQUEUE SUSPEND WITHIN")
ENFORCE = words_of("all associations limits nojobs nosteps qos safe wckeys 1 2")
PART_LIMITS = one_of("ALL ANY NO YES TRUE FALSE UP DOWN 1 0")
RESET_PERIOD = one_of("NONE NOW DAILY WEEKLY MONTHLY QUARTERLY YEARLY")
RLIMITS = limits_of("AS CORE CPU DATA FSIZE MEMLOCK NOFILE NPROC RSS STACK")
TASK_PARAMETERS = words_of(
    """
    Cores None Sockets Threads SlurmdOffSpec OOMKillStep Verbose
    Autobind=none Autobind=threads Autobind=cores Autobind=sockets
    """
)
EXCLUSIVE = one_of("NO NONE NODE USER TOPO")
PARTITION_STATE = one_of("UP DOWN DRAIN INACTIVE")
POWER_LOCATION = one_of("slurmctld slurmd")
