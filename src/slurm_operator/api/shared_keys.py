"""Which Secrets the daemons of one cluster share: those that were named, or the ones we generate.

Generated keys have fixed names, so that everybody finds them without asking. They are called after the
Accounting if there is one, because several Controllers may keep their records there and must share its keys.
"""

from slurm_operator.api import keys, names
from slurm_operator.api.accounting import Accounting
from slurm_operator.api.controller import Controller
from slurm_operator.api.refs import SecretKey


def owner(of: Controller | Accounting) -> str:
    """After whom generated keys are called."""
    if isinstance(of, Controller):
        return of.spec.accounting or of.metadata.name
    return of.metadata.name


def slurm_key(of: Controller | Accounting) -> SecretKey:
    """The key that the daemons trust each other by."""
    generated = SecretKey(name=names.auth_slurm_secret(owner(of)), key=names.SLURM_KEY_FILE)
    return of.spec.slurm_key_ref or generated


def signing_key(of: Controller | Accounting) -> SecretKey:
    """The key that signs tokens."""
    generated = SecretKey(name=names.auth_jwt_secret(owner(of)), key=names.JWT_KEY_FILE)
    return keys.signing_key(of.spec) or generated
