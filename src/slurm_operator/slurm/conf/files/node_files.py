"""The files of a worker: cgroup.conf and gres.conf, tried on `slurmd -G`; mpi.conf, from its man page."""

from slurm_operator.slurm.conf.keys import Key, keys, table
from slurm_operator.slurm.conf.values import decimal, one_of, text, uint32, uint64, yes_no

CGROUP_CONF = table(
    *keys(text, "CgroupMountpoint CgroupSlice EnableExtraControllers"),
    Key("CgroupPlugin", one_of("cgroup/v1 cgroup/v2 autodetect disabled")),
    *keys(
        yes_no,
        """
        CgroupJobIdPaths ConstrainCores ConstrainDevices ConstrainRAMSpace ConstrainSwapSpace
        EnableControllers IgnoreSystemd IgnoreSystemdOnFailure MemoryLimitEnforcement SignalChildrenProcesses
        """,
    ),
    *keys(decimal, "AllowedRAMSpace AllowedSwapSpace MaxRAMPercent MaxSwapPercent MemoryLimitThreshold"),
    *keys(uint64, "MemorySwappiness MinRAMSpace SystemdTimeout"),
    *keys(text, "AllowedDevicesFile CgroupAutomount", ignored="it is defunct"),
)

_GRES_LINE = keys(text, "AutoDetect Count CPUs Cores File Files Flags Link Links MultipleFiles Name Type")
GRES_LINE = table(*_GRES_LINE)
GRES_CONF = table(
    Key("AutoDetect", text),
    Key("Name", text, repeats=True, options=GRES_LINE),
    Key("NodeName", text, repeats=True, options=GRES_LINE),
)

MPI_CONF = table(
    *keys(text, "PMIxCliTmpDirBase PMIxEnv PMIxNetDevicesUCX PMIxTlsUCX"),
    Key("PMIxCollFence", one_of("mixed tree ring")),
    *keys(uint32, "PMIxDebug PMIxTimeout"),
    *keys(
        yes_no,
        """
        PMIxDirectConn PMIxDirectConnEarly PMIxDirectConnUCX PMIxDirectSameArch PMIxFenceBarrier
        PMIxShareServerTopology
        """,
    ),
)
