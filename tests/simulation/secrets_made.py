"""Secrets that the operator makes: as unique as real ones, and the same in every telling of a story."""

from collections.abc import Iterator
from contextlib import contextmanager

from simulation.weather import Weather
from slurm_operator.runtime.act import perform

HOST_KEYS = {"ssh_host_ed25519_key": b"private", "ssh_host_ed25519_key.pub": b"ssh-ed25519 QUJD\n"}


@contextmanager
def made_secrets(weather: Weather) -> Iterator[None]:
    """Inside, nothing is left to the randomness of this machine."""

    async def make(recipe: str, entry: str, size: int) -> dict[str, bytes]:
        if recipe == "ssh-host-keys":
            return HOST_KEYS
        return {entry: f"made-{weather.share('a secret')}".encode()}

    before = perform.make
    perform.make = make
    try:
        yield
    finally:
        perform.make = before
