"""Short names for long contents: equal inputs, equal digests, on every machine and in every version."""

import hashlib

from slurm_operator import wire


def digest(value: object) -> str:
    """The first 16 hex digits of the SHA-256 of the value's sorted JSON."""
    return hashlib.sha256(wire.encode_sorted(value)).hexdigest()[:16]
