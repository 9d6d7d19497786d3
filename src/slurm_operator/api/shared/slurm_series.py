"""Which Slurm an image has, as far as its tag says so, and what that Slurm has not.

It is asked before any daemon runs: slurmctld ends at a setting that it does not know, and a pod whose probes
nobody answers never becomes ready. An image whose tag says nothing counts as new.
"""

import re
from collections.abc import Iterator
from typing import Final

from slurm_operator.api.schema.problems import Problem, warning

# Daemons answer to HTTP (/livez, /readyz, /metrics) and slurm.conf knows MetricsType. Seen in 26.05, and not
# in 24.11 (tests/slurm/test_older_slurm.py). Slinky's operator relies on both and asks for 25.11.
HTTP_SINCE: Final = (25, 11)

# The first slurmrestd with a version of the API that the operator speaks.
OLDEST: Final = (24, 11)

# Slurm is released in these months; `:24.04` is an Ubuntu.
_TAG = re.compile(r":v?(\d{2})\.(02|05|08|11)(?!\d)[^/]*$")


def series(image: str) -> tuple[int, int] | None:
    """(24, 11) of `ghcr.io/example/slurmctld:24.11-ubuntu24.04`; None when the tag names no release."""
    found = _TAG.search(image.partition("@")[0])
    return (int(found[1]), int(found[2])) if found else None


def has_http(image: str) -> bool:
    known = series(image)
    return known is None or known >= HTTP_SINCE


def problems(image: str) -> Iterator[Problem]:
    """What is missing with the Slurm of this image. A tag may lie, so none of it refuses the object."""
    known = series(image)
    if known is None or known >= HTTP_SINCE:
        return
    if known < OLDEST:
        yield warning(
            "",
            f"Slurm {text(known)} is too old: the operator speaks no version of its REST API, so workers "
            f"are never removed; use {text(OLDEST)} or newer",
        )
        return
    yield warning(
        "",
        f"Slurm {text(known)} has no metrics and answers no HTTP: MetricsType is left out, and probes see "
        f"only whether daemons listen; both need {text(HTTP_SINCE)} or newer",
    )


def text(known: tuple[int, int]) -> str:
    """24.11"""
    return f"{known[0]}.{known[1]:02}"
