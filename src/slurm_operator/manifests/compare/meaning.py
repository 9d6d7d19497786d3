"""Equal in meaning is equal: what a user laid over our pods, without the zeros that say nothing.

A typed Go client that reads an object and writes it back leaves out every zero of a plain field with
`omitempty`, and adds one for every field without it: `name: ""` of a container, `containers: null`,
`resources: {}`. It writes quantities in their shortest form. None of that is a change of mind.

The names are those of PodSpec, Container and all that is in them (k8s.io/api, core/v1/types.go).
"""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final

from slurm_operator.manifests.compare.differences import QUANTITY_FIELDS, QUANTITY_MAPS, quantity

# Pointers in Go, whose zero is not what they are when left out. A client writes it only where a user did.
ZERO_COUNTS: Final = frozenset(
    {
        "activeDeadlineSeconds", "allowPrivilegeEscalation", "apiGroup", "automountServiceAccountToken",
        "blockOwnerDeletion", "cachingMode", "controller", "defaultMode", "deletionGracePeriodSeconds",
        "enableServiceLinks", "expirationSeconds", "fsGroup", "fsGroupChangePolicy", "gmsaCredentialSpec",
        "gmsaCredentialSpecName", "hostProcess", "hostUsers", "hostnameOverride", "initiatorName",
        "localhostProfile", "maxExpirationSeconds", "minDomains", "mode", "mountPropagation",
        "nodeAffinityPolicy", "nodeTaintsPolicy", "optional", "podGroupName", "preemptionPolicy", "priority",
        "privileged", "procMount", "readOnlyRootFilesystem", "recursiveReadOnly", "resourceClaimName",
        "resourceClaimTemplateName", "runAsGroup", "runAsNonRoot", "runAsUser", "runAsUserName",
        "runtimeClassName", "seLinuxChangePolicy", "service", "setHostnameAsFQDN", "shareProcessNamespace",
        "sizeLimit", "stopSignal", "storageClassName", "supplementalGroupsPolicy",
        "terminationGracePeriodSeconds", "tolerationSeconds", "volumeAttributesClassName", "volumeMode",
    }
)  # fmt: skip

# The same for names that are pointers in one place only, by the field that they stand under; and to set a
# variable of ours to nothing is not to leave it as it is.
ZERO_COUNTS_UNDER: Final = frozenset({("env", "value"), ("fc", "lun")})

# An empty map that says something: which volume it is; everything, where nothing would be nothing or ours.
EMPTY_COUNTS: Final = frozenset({"emptyDir", "labelSelector", "namespaceSelector", "selector"})

# Maps whose keys are a user's own: an empty label is a label.
OWN_KEYS: Final = frozenset(
    {
        "annotations", "labels", "limits", "matchLabels", "nodeSelector", "options", "overhead", "requests",
        "userAnnotations", "volumeAttributes",
    }
)  # fmt: skip

# A container's divisor is 1 where it is 0.
_NO_AMOUNT: Final = {"divisor": "0"}

_DECIMAL = {18: "E", 15: "P", 12: "T", 9: "G", 6: "M", 3: "k", 0: "", -3: "m", -6: "u", -9: "n"}
_BINARY = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")


def meant(wishes: Any, *, empties: bool = True, amounts: bool = True) -> Any:
    """What the user meant. Without `empties` no empty map counts, without `amounts` they stay as written."""
    return _meant(wishes, "", "", empties, amounts)


def _meant(value: Any, field: str, parent: str, empties: bool, amounts: bool) -> Any:
    if isinstance(value, Mapping):
        if field in OWN_KEYS:
            return {key: _amount(inner, key, field, amounts) for key, inner in value.items()}
        return _fields(value, field, empties, amounts)
    if isinstance(value, list | tuple):
        return [
            _fields(item, field, empties, amounts) if isinstance(item, Mapping) else item for item in value
        ]
    return _amount(value, field, parent, amounts)


def _fields(value: Mapping[str, Any], field: str, empties: bool, amounts: bool) -> dict[str, Any]:
    found = ((key, inner) for key, inner in value.items() if key != "$patch")
    kept = {key: _meant(inner, key, field, empties, amounts) for key, inner in found}
    return {key: inner for key, inner in kept.items() if not _says_nothing(inner, key, field, empties)}


def _says_nothing(value: Any, field: str, parent: str, empties: bool) -> bool:
    if value is None or value == []:
        return True
    if value == {}:
        return not (empties and field in EMPTY_COUNTS)
    if field in _NO_AMOUNT and shortest(value) == _NO_AMOUNT[field]:
        return True
    is_zero = value == "" or (isinstance(value, bool | int | float) and value == 0)
    return is_zero and field not in ZERO_COUNTS and (parent, field) not in ZERO_COUNTS_UNDER


def _amount(value: Any, field: str, parent: str, amounts: bool) -> Any:
    is_amount = parent in (*QUANTITY_MAPS, "overhead") or field in QUANTITY_FIELDS
    is_one = isinstance(value, str | int | float) and not isinstance(value, bool)
    return shortest(value) if amounts and is_amount and is_one else value


def shortest(text: str | int | float) -> str:
    """A quantity as Go writes it: `1` for `1000m`, `1Gi` for `1024Mi`. Other text stays."""
    number, written = quantity(text), str(text)
    if not isinstance(number, Decimal) or not number.is_finite() or "e" in written.lower().rstrip("e"):
        return written
    if written.endswith("i") and abs(number) >= 1024 and number == number.to_integral_value():
        return _shortened(int(number), 1024, _BINARY)
    for power, suffix in _DECIMAL.items():
        scaled = number.scaleb(-power)
        if scaled == scaled.to_integral_value() and (number or power == 0):
            return f"{int(scaled)}{suffix}"
    return written


def _shortened(number: int, base: int, suffixes: tuple[str, ...]) -> str:
    power = 0
    while power + 1 < len(suffixes) and number % base == 0:
        number, power = number // base, power + 1
    return f"{number}{suffixes[power]}"
