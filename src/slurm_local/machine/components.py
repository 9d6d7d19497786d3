"""The components of one cluster as processes: start, stop, watch, and name the one that died."""

import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from slurm_local.errors import LocalError
from slurm_local.machine import cgroups
from slurm_local.machine.network import NodeNetwork
from slurm_local.machine.processes import last_lines
from slurm_local.state import Ledger, Part, State

_POLL_S = 0.05


class Parts:
    """Starts components in a cluster's namespaces and keeps the ledger about them."""

    def __init__(self, directory: Path, tell: Callable[[str], None] = lambda line: None) -> None:
        self._logs = directory / "logs"
        self._tell = tell
        self._ledger = Ledger(directory)
        self._lock = threading.Lock()  # Nodes are started side by side.

    @property
    def state(self) -> State:
        state = self._ledger.read()
        assert state is not None, "parts belong to a cluster that exists"
        return state

    def start(self, name: str, argv: Sequence[str], node: NodeNetwork | None = None) -> None:
        self._logs.mkdir(exist_ok=True)
        log, state = self._logs / f"{name}.log", self.state
        branch = [node.name, "runtime"] if node else ["control-plane"]
        groups = cgroups.make(cgroups.path_of(state.name, *branch))
        process = state.cell.spawn(argv, log, groups, net=node.namespace if node else None)
        part = Part(process=process, argv=list(argv), log=str(log), node=node.number if node else None)
        with self._lock:
            self._ledger.add_part(name, part)
        self._tell(f"  {name} runs")

    def restart(self, name: str) -> None:
        """Kills a component, if it still lives, and starts it as it was."""
        part = self.stop(name)
        self.start(name, part.argv, None if part.node is None else NodeNetwork(part.node))

    def stop(self, name: str) -> Part:
        part = self.state.parts[name]
        self.state.cell.kill(part.process)
        return part

    def wait_until(
        self, is_ready: Callable[[], bool], what: str, deadline_s: float = 120, part: str | None = None
    ) -> None:
        """Comes back when `is_ready`. A component that ends meanwhile, any or `part`, is named."""
        give_up = time.monotonic() + deadline_s
        while not is_ready():
            self.raise_if_dead(part)
            if time.monotonic() > give_up:
                raise LocalError(f"Waited {deadline_s:.0f} s for {what}. Logs are in {self._logs}.")
            time.sleep(_POLL_S)

    def raise_if_dead(self, only: str | None = None) -> None:
        """Names a component that has ended, with the last lines of its log."""
        state = self.state
        if not state.cell.is_alive:
            raise LocalError("The cluster was taken down while it was being started.")
        for name, part in state.parts.items():
            if only in {None, name} and not state.cell.has(part.process):
                log = Path(part.log)
                raise LocalError(f"{name} ended. The last lines of {log}:\n{last_lines(log)}")
