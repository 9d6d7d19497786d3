"""What the address of a Kubernetes kind needs."""

from slurm_operator import wire


class Kind(wire.Record):
    """One kind in one version: enough to build every URL the API server has for it."""

    group: str
    version: str
    kind: str
    plural: str
    namespaced: bool = True

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    def path(self, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """The URL path of one object, or of the collection when `name` is empty."""
        parts = ["apis", self.group, self.version] if self.group else ["api", self.version]
        if self.namespaced and namespace:
            parts += ["namespaces", namespace]
        parts.append(self.plural)
        parts += [part for part in (name, subresource) if part]
        return "/" + "/".join(parts)

    def __str__(self) -> str:
        return f"{self.kind}.{self.group}" if self.group else self.kind
