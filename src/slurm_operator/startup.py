"""Importing a program so that it starts soon: without the collector, and without what it never needs."""

import gc
import sys
from collections.abc import Collection, Iterator
from contextlib import contextmanager

# structlog takes rich and pygments along, for coloured traces, and PyJWT cryptography, for signatures that we
# never make: a tenth of the time it takes to import the manager, and megabytes.
MANAGER_WITHOUT = ("rich", "cryptography")


@contextmanager
def loading(without: Collection[str] = ()) -> Iterator[None]:
    """For importing a program: what comes now comes to stay, and is never looked through for garbage.

    Hundreds of modules are hundreds of thousands of objects. The collector would walk them again and again
    while they come, which is a fifth of the time that takes, and with every full collection afterwards.

    Packages `without` which a library does, too, are not there for it; later they can be imported as ever.
    """
    absent = [name for name in without if name not in sys.modules]
    was_on = gc.isenabled()
    gc.disable()
    sys.modules.update(dict.fromkeys(absent))  # type: ignore[arg-type]  # None is "there is none".
    try:
        yield
    finally:
        for name in absent:
            del sys.modules[name]
        gc.freeze()
        if was_on:
            gc.enable()
