"""The cyclic collector, kept away from what stays for as long as the process does."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def loading() -> Iterator[None]:
    """For importing a program: what comes now comes to stay, and is never looked through for garbage.

    Hundreds of modules are hundreds of thousands of objects. The collector would walk them again and again
    while they come, which is a fifth of the time that takes, and with every full collection afterwards.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if was_on:
            gc.enable()
