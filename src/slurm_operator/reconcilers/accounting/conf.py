"""slurmdbd.conf."""

from slurm_operator import wire
from slurm_operator.api.shared import names
from slurm_operator.api.shared.auth import type_of, with_munge
from slurm_operator.api.slinky.accounting import Accounting
from slurm_operator.manifests.secrets import SecretHandle
from slurm_operator.reconcilers.accounting.database import Address
from slurm_operator.slurm.conf.grammar import problems
from slurm_operator.slurm.conf.lines import Comment, Entry, render, setting
from slurm_operator.slurm.conf.merge import merged_settings

FILE = "slurmdbd.conf"


def slurmdbd_conf(accounting: Accounting, address: Address, password: SecretHandle) -> str:
    """The file, with a mark where the password will be. What the user adds stands last and wins."""
    spec = accounting.spec
    jwks = [f"jwks=/etc/slurm/{names.JWKS_FILE}"] if spec.jwks_key_ref is not None else []
    is_munge = with_munge(spec.auth) is not None
    shared = {
        **({} if is_munge else {"AuthInfo": "use_client_ids"}),
        "AuthAltParameters": ",".join([f"jwt_key=/etc/slurm/{names.JWT_KEY_FILE}", *jwks]),
    }
    ours: list[Entry] = [
        setting("DbdHost", f"{accounting.child_names.workload}-0"),
        setting("DbdPort", str(names.SLURMDBD_PORT)),
        setting("SlurmUser", accounting.user.name),
        setting("AuthType", f"auth/{type_of(spec.auth)}"),
        setting("AuthAltTypes", "auth/jwt"),
        *(setting(key, value) for key, value in shared.items()),
        setting("StorageType", "accounting_storage/mysql"),
        setting("StorageHost", address.host),
        setting("StoragePort", str(address.port)),
        setting("StorageUser", address.user),
        setting("StorageLoc", address.database),
        setting("LogFile", "/dev/null"),  # In the foreground it prints its log as well.
    ]
    quoted = wire.replace(password, form="conf")
    text = render(ours) + f"StoragePass={quoted.mark}\n"
    if not spec.extra_conf.strip():
        return text
    extra = spec.extra_conf if spec.extra_conf.endswith("\n") else spec.extra_conf + "\n"
    return f"{text}{render([Comment('extraConf')])}{extra}{render(merged_settings(shared, extra))}"


def complaint(accounting: Accounting) -> str:
    """What slurmdbd could not read of the user's own lines; empty when it can read them all."""
    found = [one for one in problems({FILE: accounting.spec.extra_conf}) if one.is_fatal]
    return "; ".join(f"line {one.line}: {one.reason}" for one in found)
