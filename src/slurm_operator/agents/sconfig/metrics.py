"""What Prometheus may know about the writer."""

from prometheus_client import Counter, Gauge

from slurm_operator.agents.metrics import AgentMetrics


class Metrics(AgentMetrics):
    """Counters of one writer."""

    def __init__(self) -> None:
        super().__init__("sconfig")
        self.files = Counter(
            "slurm_operator_sconfig_files",
            "Files of the shared root in passes that wrote, by what became of them.",
            ["fate"],
            registry=self.registry,
        )
        self.reconfigures = Counter(
            "slurm_operator_sconfig_reconfigures",
            "Times that Slurm was asked to read its files, by result: done, failed.",
            ["result"],
            registry=self.registry,
        )
        self.held_groups = Gauge(
            "slurm_operator_sconfig_held_groups",
            "Groups of JailedConfigs that are not written, because a member or the root is not in order.",
            registry=self.registry,
        )
