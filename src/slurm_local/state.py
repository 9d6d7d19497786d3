"""What was made for a cluster, on disk before it is used, so that `down` works after any crash."""

from pathlib import Path

from slurm_local.kubernetes.pki import write_secret
from slurm_local.machine.cell import Birth, Cell
from slurm_local.machine.network import Link
from slurm_operator import wire


class Part(wire.Record):
    """One component that was started: etcd, a kubelet, ..."""

    process: Birth
    argv: list[str]
    log: str
    node: int | None = None


class State(wire.Record):
    """The ledger of one cluster."""

    name: str
    first: Birth
    link_number: int
    nodes: int = 1
    fake_nodes: int = 0
    parts: dict[str, Part] = {}
    ready: bool = False
    slurm: bool = False
    api: str = ""  # Of which API group the Slurm cluster is; empty: the first.

    @property
    def cell(self) -> Cell:
        return Cell(self.first)

    @property
    def link(self) -> Link:
        return Link(self.link_number)

    @property
    def url(self) -> str:
        return f"https://{self.link.there}:6443"


class Ledger:
    """Keeps the state of one cluster directory; every change is on disk when the call returns."""

    def __init__(self, directory: Path) -> None:
        self._file = directory / "state.json"

    def read(self) -> State | None:
        """None when the cluster does not exist."""
        try:
            return wire.decode(self._file.read_bytes(), State)
        except FileNotFoundError:
            return None

    def write(self, state: State) -> State:
        self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_secret(self._file, wire.encode(state))
        return state

    def change(self, **changes: object) -> State:
        state = self.read()
        assert state is not None, "the cluster is written down before it is changed"
        return self.write(wire.replace(state, **changes))

    def add_part(self, name: str, part: Part) -> State:
        state = self.read()
        assert state is not None
        return self.write(wire.replace(state, parts=state.parts | {name: part}))
