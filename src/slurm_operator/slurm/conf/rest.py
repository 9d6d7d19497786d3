"""What slurmrestd takes from slurm.conf when it starts, and keeps until it ends."""

from collections.abc import Mapping

from slurm_operator.slurm.conf.lines import parse

# Whom to talk to, how to prove who one is, which plugins. Nodes, partitions, limits are asked of slurmctld.
_STARTUP_KEYS = (
    *("AccountingStorageBackupHost", "AccountingStorageHost", "AccountingStoragePort"),
    *("AccountingStorageType", "AuthAltParameters", "AuthAltTypes", "AuthInfo", "AuthType", "ClusterName"),
    *("CommunicationParameters", "CredType", "HashPlugin", "MessageTimeout", "PluginDir", "SlurmUser"),
    *("SlurmctldAddr", "SlurmctldHost", "SlurmctldPort", "TCPTimeout", "TLSParameters", "TLSType"),
)


def startup_settings(slurm_conf: str) -> Mapping[str, tuple[str, ...]]:
    """The settings that matter to a running slurmrestd only after a restart; hosts in their order."""
    conf = parse(slurm_conf, "slurm.conf")
    found = {}
    for key in _STARTUP_KEYS:
        values = tuple(setting.value for setting in conf.all(key))
        if values:
            found[key] = values if key == "SlurmctldHost" else values[-1:]
    return found


def has_slurmdbd(settings: Mapping[str, tuple[str, ...]]) -> bool:
    """Whether slurmrestd can serve the paths below /slurmdb."""
    return settings.get("AccountingStorageType", ("",))[-1].endswith("slurmdbd")
