"""Networks that are cut, and a slurmrestd whose answers are spoilt on their way."""

import os
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from chaos import processes, proxy
from chaos.impact import NOBODY, Blow, Missed
from chaos.processes import OPERATOR, address_of, in_network_of
from chaos.stage import Stage

Hit = Callable[[Stage, random.Random], Blow]

# Both directions, and what is open already. Seen from the server: there a client has its own address.
_CUT = """
table inet chaos_cut {{
    chain in {{ type filter hook input priority -10; ip saddr {client} drop; }}
    chain out {{ type filter hook output priority -10; ip daddr {client} drop; }}
}}
"""

# New connections go to the proxy. One that is open already is reset, so that no caller goes on with it.
_DETOUR = f"""
table inet chaos_detour {{
    chain new {{
        type nat hook prerouting priority -100;
        iifname "eth0" tcp dport 6820 redirect to :{proxy.PORT};
    }}
    chain old {{
        type filter hook input priority -10;
        iifname "eth0" tcp dport 6820 reject with tcp reset;
    }}
}}
"""


def cut(server: str, client: str) -> Hit:
    """Nothing comes through between two pods."""

    def hit(stage: Stage, chance: random.Random) -> Blow:
        return _cut(stage, stage.processes.of(server)[0], address_of(stage.processes.of(client)[0]))

    return hit


def cut_worker(stage: Stage, chance: random.Random) -> Blow:
    """For less than SlurmdTimeout: after that slurmctld ends the jobs itself."""
    worker = stage.one_worker(chance)
    server, client = stage.processes.of("slurmctld")[0], stage.processes.slurmd_of(worker)
    _cut(stage, server, address_of(client))
    return Blow(frozenset({worker}))


def cut_operator(stage: Stage, chance: random.Random) -> Blow:
    return _cut(stage, stage.cluster.state.cell.first.pid, address_of(stage.processes.of(OPERATOR)[0]))


def cut_machine(stage: Stage, chance: random.Random) -> Blow:
    """Its kubelet and kube-proxy; the API server shares the first machine's address."""
    number = chance.randint(2, stage.cluster.state.nodes)
    _cut(stage, stage.cluster.state.cell.first.pid, f"172.30.0.{number}")
    return Blow(frozenset(stage.kube.workers_on(number)))


def _cut(stage: Stage, server: int, client: str) -> Blow:
    _load(stage, server, _CUT.format(client=client), "delete table inet chaos_cut")
    return NOBODY


def _load(stage: Stage, server: int, rules: str, undo: str) -> None:
    """Rules for the network of a server, which stay there when it ends and is started again."""
    network = processes.network_of(server)
    processes.nft(network, rules)

    def undone() -> None:
        processes.nft(network, undo)
        os.close(network)

    stage.undo.append(undone)


def joined(stage: Stage) -> None:
    stage.undo_all()


def spoilt(mode: str) -> Hit:
    """Puts a proxy in front of slurmrestd, in the network of its pod."""

    def hit(stage: Stage, chance: random.Random) -> Blow:
        pid = stage.processes.of("slurmrestd")[0]
        command = in_network_of(pid, sys.executable, str(Path(proxy.__file__)), mode)
        running = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        stage.undo.append(lambda: _end(running))
        assert running.stdin is not None
        assert running.stdout is not None
        running.stdin.write((stage.expired_token() if mode == "expired" else "") + "\n")
        running.stdin.close()
        if running.stdout.readline() != "listening\n":
            raise Missed("the proxy does not start")
        _load(stage, pid, _DETOUR, "delete table inet chaos_detour")
        return NOBODY

    return hit


def _end(running: "subprocess.Popen[str]") -> None:
    running.kill()
    running.wait()
    assert running.stdout is not None
    running.stdout.close()


def unspoilt(stage: Stage) -> None:
    stage.undo_all()
