"""How one object names another. Always in the same namespace: references never cross that border."""

from typing import ClassVar

from slurm_operator.api.schema.model import model, prop

_OTHER_NAMESPACE = "only objects in the same namespace can be named; this is ignored"


@model
class Reference:
    """Another object in the same namespace."""

    ATOMIC: ClassVar[bool] = True

    name: str = prop("Name of the object.", default="", max_length=253)
    namespace: str = prop("Was a namespace.", default="", deprecated=_OTHER_NAMESPACE)


@model
class SecretKey:
    """One entry of a Secret."""

    ATOMIC: ClassVar[bool] = True

    name: str = prop("Name of the Secret.", default="", max_length=253)
    key: str = prop("Which entry of the Secret.", max_length=253)
    optional: bool | None = prop("Accepted as in core Kubernetes types; makes no difference.", default=None)
    namespace: str = prop("Was a namespace.", default="", deprecated=_OTHER_NAMESPACE)


@model
class ConfigMapKey:
    """One entry of a ConfigMap."""

    ATOMIC: ClassVar[bool] = True

    name: str = prop("Name of the ConfigMap.", default="", max_length=253)
    key: str = prop("Which entry of the ConfigMap.", max_length=253)
    optional: bool | None = prop("Accepted as in core Kubernetes types; makes no difference.", default=None)


@model
class Address:
    """Where a daemon outside this Kubernetes cluster listens."""

    host: str = prop("Host name or IP address.", min_length=1)
    port: int = prop("TCP port.", minimum=1, maximum=65535)
