"""The user of the local images: somebody to log in and run jobs as who is not root."""

import tarfile
from dataclasses import dataclass

from slurm_local.image.debian import BuiltRoot
from slurm_local.image.tars import Entry, File

# No password fits. An `x` would send PAM to /etc/shadow, where this user is not, and ssh would be refused.
_NO_PASSWORD = "*"  # noqa: S105


@dataclass(frozen=True)
class Account:
    """A user with a group of the same name and number."""

    name: str
    number: int

    @property
    def home(self) -> str:
        return f"/home/{self.name}"

    @property
    def passwd(self) -> str:
        return f"{self.name}:{_NO_PASSWORD}:{self.number}:{self.number}::{self.home}:/bin/bash\n"

    @property
    def group(self) -> str:
        return f"{self.name}:{_NO_PASSWORD}:{self.number}:\n"


DEMO = Account("demo", 1000)


def accounts_layer(root: BuiltRoot, account: Account = DEMO) -> dict[str, Entry]:
    """The files of users and groups of this root, with one more. The root itself stays as it was made."""
    added = {"./etc/passwd": account.passwd, "./etc/group": account.group}
    with tarfile.open(root.tar) as tar:
        return {
            name.removeprefix("."): File(_content(tar, name) + line.encode()) for name, line in added.items()
        }


def _content(tar: tarfile.TarFile, name: str) -> bytes:
    file = tar.extractfile(name)
    assert file is not None, f"every Debian root has {name}"
    return file.read()
