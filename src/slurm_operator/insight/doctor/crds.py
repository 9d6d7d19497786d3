"""Whether somebody could delete our CRDs by mistake: with them Kubernetes deletes every Slurm cluster."""

from collections.abc import Iterable, Iterator
from typing import Final

from slurm_operator.api.shared import names
from slurm_operator.insight.doctor.facts import Facts
from slurm_operator.insight.doctor.finding import Finding, listed, note, ok, unread, warn
from slurm_operator.manifests.meta import Manifest
from slurm_operator.manifests.objects import Unread
from slurm_operator.runtime.report.protection import REMEDY

_CHECK: Final = "CRD deletion"
_GUIDE: Final = "docs/guides/from-slinky.md"
RELEASE: Final = "meta.helm.sh/release-name"
RELEASE_NAMESPACE: Final = "meta.helm.sh/release-namespace"
_POLICY: Final = "helm.sh/resource-policy"


def deletion(facts: Facts) -> Iterator[Finding]:
    """What `helm uninstall` and `kubectl delete crd` would do."""
    if isinstance(facts.crds, Unread) or not facts.crds:
        return  # Another check says so already.
    troubles = [*_released(facts.crds), *_allowed(facts.crds), *_unprotected(facts)]
    yield from troubles
    if not troubles:
        yield ok(_CHECK, "A policy keeps the CRDs, and `helm uninstall` leaves them where they are.")


def _released(crds: dict[str, Manifest]) -> Iterator[Finding]:
    """Helm compares with the manifest that it stored when the release was made, not by the live CRD."""
    releases: dict[tuple[str, str], dict[str, Manifest]] = {}
    for name, crd in crds.items():
        notes = _annotations(crd)
        if RELEASE in notes and not _is_kept_by_its_chart(crd):
            made_by = (notes[RELEASE], notes.get(RELEASE_NAMESPACE, ""))
            releases.setdefault(made_by, {})[name] = crd
    for (release, namespace), found in releases.items():
        yield _lost_with(release, namespace, found)


def _lost_with(release: str, namespace: str, crds: dict[str, Manifest]) -> Finding:
    where = f"{release} -n {namespace}" if namespace else release
    if all(_annotations(crd).get(_POLICY) == "keep" for crd in crds.values()):
        return note(
            _CHECK,
            f"Helm release {release} made {listed(sorted(crds))}, and somebody annotated them with "
            f"{_POLICY}=keep. `helm upgrade` keeps them now. `helm uninstall {where}` keeps them only if the "
            "release no longer contains them, which cannot be seen here.",
            f"See `helm get manifest {where}`, and {_GUIDE} before you uninstall it.",
        )
    return warn(
        _CHECK,
        f"`helm uninstall {where}` deletes {listed(sorted(crds))}, and with them every Slurm cluster: "
        f"its chart does not say {_POLICY}: keep.",
        f"Run `kubectl annotate crd {' '.join(sorted(crds))} {_POLICY}=keep --overwrite`, then go on as "
        f"{_GUIDE} says; that alone is not enough.",
    )


def _is_kept_by_its_chart(crd: Manifest) -> bool:
    """Whether whoever wrote the definition itself also wrote that it is to be kept."""
    return _annotations(crd).get(_POLICY) == "keep" and any(
        "f:spec" in fields and f"f:{_POLICY}" in fields.get("f:metadata", {}).get("f:annotations", {})
        for fields in _managed(crd)
    )


def _managed(crd: Manifest) -> Iterable[Manifest]:
    return (entry.get("fieldsV1") or {} for entry in crd["metadata"].get("managedFields") or ())


def _allowed(crds: dict[str, Manifest]) -> Iterator[Finding]:
    open_ = sorted(
        name for name, crd in crds.items() if _annotations(crd).get(names.CRD_ALLOW_DELETION) == "true"
    )
    if open_:
        yield warn(
            _CHECK,
            f"{listed(open_)} may be deleted: annotated with {names.CRD_ALLOW_DELETION}=true.",
            f"Run `kubectl annotate crd {' '.join(open_)} {names.CRD_ALLOW_DELETION}-` if they are to stay.",
        )


def _unprotected(facts: Facts) -> Iterator[Finding]:
    if isinstance(facts.are_crds_protected, Unread):
        yield unread(_CHECK, facts.are_crds_protected)
    elif not facts.are_crds_protected:
        yield warn(
            _CHECK,
            "No policy protects the CRDs: `kubectl delete crd` deletes every Slurm cluster with them.",
            REMEDY,
        )


def _annotations(crd: Manifest) -> dict[str, str]:
    return crd["metadata"].get("annotations") or {}
