"""slurm.conf: the keys and types of the option tables that Slurm's parser is built on."""

from slurm_operator.slurm.conf.files.words import (
    DEBUG_FLAGS,
    ENFORCE,
    EXCLUSIVE,
    PART_LIMITS,
    PARTITION_STATE,
    POWER_LOCATION,
    PREEMPT_MODE,
    PROLOG_FLAGS,
    RESET_PERIOD,
    RLIMITS,
    SELECT_PARAMETERS,
    TASK_PARAMETERS,
)
from slurm_operator.slurm.conf.keys import Key, keys, table
from slurm_operator.slurm.conf.values import (
    controller_host,
    log_level,
    number,
    oversubscribe,
    port_range,
    text,
    time_length,
    time_limit,
    uint16,
    uint32,
    uint64,
    yes_no,
)

PARTITION_LINE = table(
    *keys(
        text,
        """
        AllocNodes AllowAccounts AllowGroups AllowQos Alternate CpuBind DenyAccounts DenyQos Nodes
        OverTimeLimit PreemptMode QOS SuspendTime Topology TRESBillingWeights
        """,
    ),
    *keys(uint16, "Priority PriorityJobFactor PriorityTier ResumeTimeout SuspendTimeout"),
    *keys(uint32, "GraceTime MaxCPUsPerNode MaxCPUsPerSocket MaxNodes MinNodes"),
    *keys(uint64, "DefCPUPerGPU DefMemPerCPU DefMemPerGPU DefMemPerNode MaxMemPerCPU MaxMemPerNode"),
    *keys(
        yes_no,
        """
        Default DisableRootJobs ExclusiveUser ExclusiveTopo Hidden LLN PowerDownOnIdle RootOnly
        ReqResv
        """,
    ),
    *keys(time_length, "DefaultTime MaxTime"),
    *keys(oversubscribe, "OverSubscribe Shared"),
    *keys(SELECT_PARAMETERS, "SelectTypeParameters"),
    *keys(EXCLUSIVE, "Exclusive"),
    *keys(PARTITION_STATE, "State"),
)

NODE_LINE = table(
    *keys(
        text,
        """
        BcastAddr CPUSpecList CpuBind Feature Features Gres GresConf NodeAddr NodeHostname
        Parameters Port Reason State SuspendTime Topology TRESWeights
        """,
    ),
    *keys(
        uint16,
        """
        Boards CoreSpecCount CoresPerSocket CPUs Procs RestrictedCoresPerGPU Sockets SocketsPerBoard
        ThreadsPerCore
        """,
    ),
    *keys(uint32, "TmpDisk Weight"),
    *keys(uint64, "MemSpecLimit RealMemory"),
)

SLURM_CONF = table(
    *keys(
        text,
        """
        AccountingStorageBackupHost AccountingStorageExternalHost AccountingStorageHost
        AccountingStorageParameters AccountingStoragePass AccountingStorageTRES
        AccountingStorageType AccountingStoreFlags AcctGatherEnergyType AcctGatherFilesystemType
        AcctGatherInfinibandType AcctGatherInterconnectType AcctGatherProfileType AuthAltParameters
        AuthAltTypes AuthInfo AuthType BackupAddr BackupController BcastExclude BcastParameters
        BurstBufferParameters BurstBufferType CertgenType CertgenParameters CertmgrType
        CertmgrParameters CliFilterParameters CliFilterPlugins ClusterName CommunicationParameters
        ControlAddr ControlMachine CpuFreqDef CpuFreqGovernors CredType CryptoType
        DataParserParameters DependencyParameters FederationParameters GpuFreqDef GresTypes
        HashPlugin HealthCheckNodeState HealthCheckProgram HttpParserType InteractiveStepOptions
        JobAcctGatherFrequency JobAcctGatherParams JobAcctGatherType JobCompHost JobCompLoc
        JobCompParams JobCompPass JobCompPassScript JobCompType JobCompUser JobContainerType
        JobSubmitPlugins LaunchParameters LaunchType LicenseParameters Licenses LogTimeFormat
        MailDomain MailProg MCSParameters MCSPlugin MetricsAuthUsers MetricsParameters MetricsType
        MpiDefault MpiParams NamespaceType NodeFeaturesPlugins PluginDir PlugStackConfig
        PreemptParameters PreemptType PrEpParameters PrEpPlugins PriorityFlags PriorityParameters
        PrioritySiteFactorParameters PrioritySiteFactorPlugin PriorityType PriorityWeightTRES
        PrivateData ProctrackType RebootProgram ReconfigFlags RequeueExit RequeueExitHold
        ResumeFailProgram ResumeProgram ResvEpilog ResvProlog RoutePlugin SbcastParameters
        SchedulerParameters SchedulerType ScronParameters SelectType SlurmctldAddr
        SlurmctldHttpAuthParameters SlurmctldLogFile SlurmctldParameters SlurmctldPidFile
        SlurmctldPrimaryOffProg SlurmctldPrimaryOnProg SlurmdHttpAuthParameters SlurmdLogFile
        SlurmdParameters SlurmdPidFile SlurmdSpoolDir SlurmdUser SlurmSchedLogFile SlurmUser
        SrunEpilog SrunPortRange SrunProlog StateSaveLocation SuspendExcNodes SuspendExcParts
        SuspendExcStates SuspendProgram SuspendTime SwitchParameters SwitchType TaskEpilog
        TaskPlugin TaskProlog TLSParameters TLSType TmpFS TopologyParam TopologyPlugin
        UnkillableStepProgram UrlParserType X11Parameters
        """,
    ),
    *keys(
        uint16,
        """
        AccountingStoragePort AcctGatherNodeFreq BatchStartTimeout CompleteWait EioTimeout
        EpilogTimeout FairShareDampeningFactor FastSchedule GroupUpdateForce GroupUpdateTime
        HealthCheckInterval HealthCheckTimeout InactiveLimit JobFileAppend JobRequeue KillOnBadExit
        KillWait MaxTasksPerNode MessageTimeout OverTimeLimit PrologEpilogTimeout PrologTimeout
        ResumeRate ResumeTimeout ResvOverRun ReturnToService SchedulerTimeSlice SlurmctldTimeout
        SlurmdTimeout SlurmSchedLogLevel SuspendRate SuspendTimeout TCPTimeout TreeWidth
        UnkillableStepTimeout VSizeFactor WaitTime
        """,
    ),
    *keys(
        uint32,
        """
        EpilogMsgTime FirstJobId JobCompPort KeepAliveTime MaxArraySize MaxBatchRequeue MaxJobId
        MinJobAge PriorityWeightAge PriorityWeightAssoc PriorityWeightFairshare
        PriorityWeightJobSize PriorityWeightPartition PriorityWeightQOS SlurmdPort
        """,
    ),
    *keys(uint64, "DefCPUPerGPU DefMemPerCPU DefMemPerGPU DefMemPerNode MaxMemPerCPU MaxMemPerNode"),
    *keys(yes_no, "AllowSpecResourcesUsage DisableRootJobs PriorityFavorSmall TrackWCKey UsePAM"),
    *keys(time_length, "PreemptExemptTime PriorityDecayHalfLife PriorityMaxAge"),
    *keys(log_level, "SlurmctldDebug SlurmctldSyslogDebug SlurmdDebug SlurmdSyslogDebug"),
    *keys(port_range, "SlurmctldPort"),
    *keys(DEBUG_FLAGS, "DebugFlags"),
    *keys(PROLOG_FLAGS, "PrologFlags"),
    *keys(SELECT_PARAMETERS, "SelectTypeParameters"),
    *keys(PREEMPT_MODE, "PreemptMode"),
    *keys(ENFORCE, "AccountingStorageEnforce"),
    *keys(PART_LIMITS, "EnforcePartLimits"),
    *keys(RESET_PERIOD, "PriorityUsageResetPeriod"),
    *keys(RLIMITS, "PropagateResourceLimits PropagateResourceLimitsExcept"),
    *keys(TASK_PARAMETERS, "TaskPluginParam"),
    *keys(
        text, "AccountingStorageUser CoreSpecPlugin ExtSensorsFreq ExtSensorsType", ignored="it is defunct"
    ),
    *keys(
        text, "GetEnvTimeout JobCredentialPrivateKey JobCredentialPublicCertificate", ignored="it is defunct"
    ),
    *keys(text, "PowerParameters PowerPlugin", ignored="it is defunct"),
    Key("PropagatePrioProcess", number(0, 2, unlimited=False)),
    Key("MaxJobCount", number(1, 2**32 - 1)),
    Key("MaxStepCount", number(1, 2**32 - 1)),
    Key("MaxNodeCount", number(0, 65536, unlimited=False)),
    Key("MaxDBDMsgs", number(10000, 2**32 - 1)),
    Key("PriorityCalcPeriod", time_limit),
    Key("AccountingStoreJobComment", text, refused="use AccountingStoreFlags=job_comment"),
    Key("SallocDefaultCommand", text, refused="use LaunchParameters=use_interactive_step"),
    Key("SlurmctldHost", controller_host, repeats=True),
    *(Key(name, text, repeats=True) for name in ("Prolog", "Epilog", "PrologSlurmctld", "EpilogSlurmctld")),
    Key("DownNodes", text, repeats=True, options=table(*keys(text, "Reason State"))),
    Key("NodeSet", text, repeats=True, options=table(*keys(text, "Feature Nodes"))),
    Key(
        "PowerAction",
        text,
        repeats=True,
        options=table(Key("Program", text), Key("Location", POWER_LOCATION)),
    ),
    Key("NodeName", text, repeats=True, options=NODE_LINE),
    Key("PartitionName", text, repeats=True, options=PARTITION_LINE),
)
