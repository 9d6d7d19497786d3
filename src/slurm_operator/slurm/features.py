"""Node features. Those that come from Kubernetes carry a prefix, so that we change no others."""

from collections.abc import Iterable

KUBE_PREFIX = "k8s/"


def features(text: str) -> tuple[str, ...]:
    """`a, b,a` as a and b: trimmed, each once, sorted. An annotation or a Features= value."""
    return tuple(sorted({part.strip() for part in text.split(",")} - {""}))


def features_text(names: Iterable[str]) -> str:
    """As Slurm writes them; `features` reads it back."""
    return ",".join(sorted(set(names)))


def kube_features(annotation: str) -> tuple[str, ...]:
    """What an annotation asks for, each with the prefix."""
    return tuple(KUBE_PREFIX + name.removeprefix(KUBE_PREFIX) for name in features(annotation))


def has_kube_features(names: Iterable[str]) -> bool:
    """Whether some of them come from Kubernetes."""
    return any(name.startswith(KUBE_PREFIX) for name in names)


def others(names: Iterable[str]) -> frozenset[str]:
    """Those of them that are not ours to change."""
    return frozenset(name for name in names if name and not name.startswith(KUBE_PREFIX))


def with_kube_features(current: Iterable[str], annotation: str | None) -> tuple[str, ...]:
    """The whole list a node should have: its own features, and what the annotation asks for.

    Without an annotation the prefixed ones go; features without the prefix are never ours to change.
    """
    return tuple(sorted({*others(current), *kube_features(annotation or "")}))


def are_same(one: Iterable[str], other: Iterable[str]) -> bool:
    """Whether both name the same features; order and repetition do not count."""
    return set(one) == set(other)
