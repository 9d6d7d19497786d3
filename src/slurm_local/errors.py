"""The one exception of the local cluster."""


class LocalError(Exception):
    """Something a person must know or do before the local cluster can go on. The text says all of it."""
