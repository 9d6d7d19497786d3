"""resourceVersions: opaque by contract, increasing numbers of one server in practice.

Their order is used only where guessing wrong is harmless: what is no number is neither older nor newer.
"""


def number(resource_version: str) -> int | None:
    return int(resource_version) if resource_version.isascii() and resource_version.isdecimal() else None


def is_older(one: str, other: str) -> bool:
    """Whether `one` is certainly older than `other`."""
    first, second = number(one), number(other)
    return first is not None and second is not None and first < second
