"""Mutants that nobody can notice, and why: what they change makes no difference."""

from typing import Final

EQUAL: Final[dict[str, str]] = {}
