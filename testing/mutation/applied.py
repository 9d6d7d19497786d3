"""A plugin of pytest, and of whoever imports it first: `MUTANT=name` says how the code is changed."""

import importlib.machinery
import os
from types import CodeType

from testing.mutation.chosen import named
from testing.mutation.edits import ROOT, Mutant


def apply(mutant: Mutant) -> None:
    """Whoever imports the module from now on gets the changed one; what was compiled before is not looked at."""
    changed, path = mutant.applied(), str(ROOT / mutant.path)
    as_it_is = importlib.machinery.SourceFileLoader.get_code

    def get_code(loader: importlib.machinery.SourceFileLoader, fullname: str) -> CodeType | None:
        if loader.path != path:
            return as_it_is(loader, fullname)
        code: CodeType = compile(changed, path, "exec", dont_inherit=True)
        return code

    importlib.machinery.SourceFileLoader.get_code = get_code  # type: ignore[assignment, method-assign]


if chosen_name := os.environ.get("MUTANT"):
    apply(named(chosen_name))
