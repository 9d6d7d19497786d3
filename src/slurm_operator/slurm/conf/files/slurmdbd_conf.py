"""slurmdbd.conf: every key tried on slurmdbd 26.05, which names what it does not know."""

from slurm_operator.slurm.conf.files.words import DEBUG_FLAGS
from slurm_operator.slurm.conf.keys import keys, table
from slurm_operator.slurm.conf.values import log_level, purge_after, text, uint16, uint32, yes_no

SLURMDBD_CONF = table(
    *keys(
        text,
        """
        ArchiveDir ArchiveScript AuthAltParameters AuthAltTypes AuthInfo AuthType CommunicationParameters
        DbdAddr DbdBackupHost DbdHost DefaultQOS HashPlugin LogFile LogTimeFormat MaxQueryTimeRange Parameters
        PidFile PluginDir PrivateData SlurmUser StorageBackupHost StorageHost StorageLoc StorageParameters
        StoragePass StoragePassScript StorageType StorageUser TLSParameters TLSType
        """,
    ),
    *keys(uint16, "CommitDelay DbdPort MessageTimeout StoragePort TCPTimeout"),
    *keys(
        uint32,
        """
        JobPurge MaxPurgeLimit PurgeEventMonths PurgeJobMonths PurgeStepMonths PurgeSuspendMonths
        PurgeTXNMonths PurgeUsageMonths StepPurge
        """,
    ),
    *keys(
        yes_no,
        """
        AllResourcesAbsolute AllowNoDefAcct ArchiveEvents ArchiveJobEnv ArchiveJobScript ArchiveJobs
        ArchiveResvs ArchiveSteps ArchiveSuspend ArchiveTXN ArchiveUsage DisableArchiveCommands
        DisableCoordDBD DisableRollups TrackSlurmctldDown TrackWCKey
        """,
    ),
    *keys(
        purge_after,
        """
        PurgeEventAfter PurgeJobAfter PurgeJobEnvAfter PurgeJobScriptAfter PurgeResvAfter PurgeStepAfter
        PurgeSuspendAfter PurgeTXNAfter PurgeUsageAfter
        """,
    ),
    *keys(log_level, "DebugLevel DebugLevelSyslog"),
    *keys(DEBUG_FLAGS, "DebugFlags"),
)
