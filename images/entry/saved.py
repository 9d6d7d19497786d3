"""What a slurmctld that was killed early left of itself."""

import re
from pathlib import Path

CONF = Path("/etc/slurm/slurm.conf")

_SETTING = r"^\s*{}\s*=\s*(\S+)"


def forgive_unsaved_usage(conf: Path = CONF) -> bool:
    """Whether slurmctld was about to refuse to start, and no longer is.

    With accounting, slurmctld saves the usage of accounts when it ends and every few minutes. Killed before
    the first time, it ends with "No Assoc usage file to recover" whenever it is started again, though jobs
    and nodes are saved. It asks for that file only where it finds the mark of an earlier start. Without the
    mark it takes what there is, gets the same cluster id from slurmdbd, and writes the mark again.
    """
    text = conf.read_text(errors="replace") if conf.exists() else ""
    state = _setting(text, "StateSaveLocation")
    if not state or not _setting(text, "AccountingStorageType").endswith("slurmdbd"):
        return False
    mark = Path(state) / "clustername"
    if not mark.exists() or any(Path(state).glob("assoc_usage*")):
        return False
    mark.unlink()
    return True


def _setting(text: str, name: str) -> str:
    found = re.findall(_SETTING.format(name), text, re.IGNORECASE | re.MULTILINE)
    return found[-1] if found else ""
