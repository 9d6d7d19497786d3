"""What Prometheus may know about one rebooter."""

from prometheus_client import Counter

from slurm_operator.agents.metrics import AgentMetrics


class Metrics(AgentMetrics):
    """Counters of one rebooter."""

    def __init__(self) -> None:
        super().__init__("rebooter")
        self.evictions = Counter(
            "slurm_operator_rebooter_evictions",
            "Pods that were asked to leave, by result: accepted, refused.",
            ["result"],
            registry=self.registry,
        )
        self.reboots = Counter(
            "slurm_operator_rebooter_reboot_commands",
            "Reboot commands that were run, by result: done, failed.",
            ["result"],
            registry=self.registry,
        )
