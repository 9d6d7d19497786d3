"""Whether what the Slurm clusters of a namespace need from outside is there: databases and images."""

import re
from collections.abc import Iterator

from slurm_operator.api.accounting import Accounting
from slurm_operator.api.conditions import DEGRADED, READY, Truth
from slurm_operator.kubectl.doctor_facts import Facts, Serving
from slurm_operator.kubectl.doctor_finding import Finding, fail, note, ok, unread
from slurm_operator.manifests.objects import Unread
from slurm_operator.manifests.troubles import troubles

_SHOWN = 4


def databases(facts: Facts) -> Iterator[Finding]:
    if isinstance(facts.accountings, Unread):
        yield unread("Database", facts.accountings)
        return
    for accounting in facts.accountings:
        yield _database(accounting, facts.databases.get(accounting.metadata.name))


def _database(accounting: Accounting, serving: Serving | Unread | None) -> Finding:
    """What the Service of the database tells, then what slurmdbd's own check has told."""
    name, status = accounting.metadata.name, accounting.status
    told = {one.type: one for one in status.conditions if one.status is Truth.TRUE}
    if isinstance(serving, Serving) and serving.ready == 0:
        return fail(
            "Database",
            f"Accounting {name}: nothing is ready behind Service {serving.namespace}/{serving.name}.",
            f"See `kubectl get pods -n {serving.namespace}`; slurmdbd starts when it answers.",
        )
    if DEGRADED in told:
        return fail(
            "Database",
            f"Accounting {name}: {told[DEGRADED].message}",
            f"`kubectl slurm explain accounting/{name}` says more.",
        )
    if READY in told:
        where = status.database.address if status.database is not None else status.endpoint
        return ok("Database", f"Accounting {name} works{f' with {where}' if where else ''}.")
    return note(
        "Database",
        f"Accounting {name} is not ready yet.",
        f"`kubectl slurm explain accounting/{name}` says what it waits for.",
    )


def images(facts: Facts) -> Iterator[Finding]:
    if isinstance(facts.pods, Unread):
        yield unread("Images", facts.pods)
        return
    found = [text for text in troubles(facts.pods) if re.search(r"Image|image", text)]
    for text in found[:_SHOWN]:
        yield fail(
            "Images",
            f"{text[0].upper()}{text[1:]}",
            "Correct the image's name, or give the nodes access to its registry (imagePullSecrets).",
        )
    if not found and facts.pods:
        yield ok("Images", f"Those of all {len(facts.pods)} pods could be had.")
