"""Where daemons beside slurmctld get Slurm's files from."""

from slurm_operator.api.schema.model import Choice


class ConfigSource(Choice):
    """Where a daemon reads slurm.conf and its other files."""

    CONFIGLESS = "configless", "slurmctld hands them out."
    FILES = "files", "/etc/slurm, which a volume of the template provides."
