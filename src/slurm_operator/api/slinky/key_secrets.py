"""Which Secrets the daemons of one cluster share: those that were named, or the ones we generate.

Generated keys have fixed names, so that everybody finds them without asking. They are called after the
Accounting if there is one, because several Controllers may keep their records there and must share its keys.
"""

from slurm_operator.api.shared import keys, names
from slurm_operator.api.shared.refs import SecretKey
from slurm_operator.api.slinky.accounting import Accounting
from slurm_operator.api.slinky.controller import Controller


def owner(of: Controller | Accounting) -> str:
    """After whom generated keys are called."""
    if isinstance(of, Controller):
        return of.spec.accounting or of.metadata.name
    return of.metadata.name


def slurm_key(of: Controller | Accounting) -> SecretKey:
    """The key that the daemons trust each other by."""
    generated = SecretKey(name=names.auth_slurm_secret(owner(of)), key=names.SLURM_KEY_FILE)
    return of.spec.slurm_key_ref or generated


def munge_key(of: Controller | Accounting) -> SecretKey:
    """The key of munge."""
    given = of.spec.auth.munge_key_ref if of.spec.auth is not None else None
    return given or SecretKey(name=names.munge_secret(owner(of)), key=names.MUNGE_KEY_FILE)


def signing_key(of: Controller | Accounting) -> SecretKey:
    """The key that signs tokens."""
    generated = SecretKey(name=names.auth_jwt_secret(owner(of)), key=names.JWT_KEY_FILE)
    return keys.signing_key(of.spec) or generated
