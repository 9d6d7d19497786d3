"""-w: the same again and again, shown when it has changed."""

import time
from collections.abc import Callable, Iterator
from typing import Final, TypeVar

import click

from slurm_operator.cli.kubectl.shared.session import Command

T = TypeVar("T")

_EVERY_SECONDS: Final = 2.0


def watch_option(command: Command) -> Command:
    return click.option("-w", "--watch", is_flag=True, help="Go on, and show it again when it changes.")(
        command
    )


def again(
    look: Callable[[], T],
    *,
    watch: bool,
    matter: Callable[[T], object] = lambda found: found,
    wait: Callable[[float], None] = time.sleep,
) -> Iterator[T]:
    """What there is; then, while somebody watches, each time that what matters of it is different."""
    found = look()
    yield found
    while watch:
        try:
            wait(_EVERY_SECONDS)
            newer = look()
        except KeyboardInterrupt:
            return
        if matter(newer) != matter(found):
            found = newer
            yield found
