"""What the flight recorder writes, without secrets."""

from functools import lru_cache
from typing import Any, Final

from slurm_operator.redaction.names import speaks_of_secret
from slurm_operator.redaction.redactor import Redactor

# What stands for the entries of a Secret, by their names, which may well be "password".
_DIGESTS: Final = "digests"

# Facts say the same short texts again and again: names of nodes, states, reasons.
_SHORT: Final = 200
_REMEMBERED: Final = 1 << 16


class RecordRedactor(Redactor):
    """By name and by shape. The values of Secrets are never in a recording, so none has to be known.

    A recording is there to be decided from once more, so an environment variable stays as it is unless its
    name or its value speaks of a secret.
    """

    def __init__(self) -> None:
        super().__init__()
        self._short = lru_cache(maxsize=_REMEMBERED)(super().text)

    def text(self, text: str) -> str:
        return self._short(text) if len(text) <= _SHORT else super().text(text)

    def _named(self, name: str, value: Any) -> Any:
        return value if name == _DIGESTS else super()._named(name, value)

    def _variable(self, name: str, value: str) -> str:
        return super()._variable(name, value) if speaks_of_secret(name, value) else self._string(value)
