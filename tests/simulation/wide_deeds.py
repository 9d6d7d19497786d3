"""What else happens where two operators stand by for each other: they freeze, are cut off, and find the API server full;
jobs come in parts, give nodes up and run out of memory; people lift drains that are ours.
"""

from functools import partial

from simulation.apiserver import refused
from simulation.deeds import Deeds
from simulation.operator_process import OperatorProcess
from slurm_operator.kube.errors import ApiError
from slurm_operator.slurm.reasons import is_our_reason

# How often each is drawn, beside what happens to workers anyway.
WIDE_DEEDS = {
    "freeze_operator": 8,
    "cut_off_operator": 4,
    "crash_leader": 3,
    "fill_etcd": 2,
    "overload_apiserver": 2,
    "submit_pack": 6,
    "shrink_job": 3,
    "run_out_of_memory": 3,
    "lift_ours": 4,
}

# A prolog takes up to so long; its job is CONFIGURING meanwhile.
PROLOG_SECONDS = 6.0


class WideDeeds(Deeds):
    """Two operators and one Lease."""

    def freeze_operator(self, pick: int, amount: int) -> None:
        """As when its machine is suspended: it does nothing for up to a minute, and then goes on where it was."""
        for operator in self._one(self._operators(), 0 if pick % 4 else 1):
            operator.process.freeze()
            self.world.loop.call_later(1 + amount, operator.process.thaw)

    def cut_off_operator(self, pick: int, amount: int) -> None:
        """From the API server. Slurm answers it."""
        for operator in self._one(self._operators(), 0 if pick % 4 else 1):
            operator.is_cut_off = True
            self.world.loop.call_later(1 + amount, partial(setattr, operator, "is_cut_off", False))

    async def crash_leader(self, pick: int, amount: int) -> None:
        for operator in self._one(self._operators(), 0):
            await self.world.crash_operator(operator)
            await self.world.start_operator()

    def fill_etcd(self, pick: int, amount: int) -> None:
        """Until somebody makes room: no write succeeds, that of the Lease neither."""
        self._no_room(refused(500, "InternalError", "etcdserver: mvcc: database space exceeded"), 2 + amount)

    def overload_apiserver(self, pick: int, amount: int) -> None:
        """For longer than anybody's patience."""
        self._no_room(
            refused(429, "TooManyRequests", "too many requests, please try again later"), 2 + amount
        )

    def _no_room(self, answer: ApiError, seconds: float) -> None:
        client = self.world.client

        def make_room() -> None:
            if client.has_no_room is answer:
                client.has_no_room = None

        client.has_no_room = answer
        self.world.loop.call_later(seconds, make_room)

    def submit_pack(self, pick: int, amount: int) -> None:
        """A heterogeneous job of two or three parts. They end, and go back into the queue, together."""
        ctld = self.world.ctld
        head = ctld.made + 1
        for _ in range(2 + pick % 2):
            ctld.submit(3 + amount % 30, het_job_id=head)

    def shrink_job(self, pick: int, amount: int) -> None:
        wide = [job for job in self._jobs("RUNNING") if len(job.nodes) > 1]
        for job in self._one(wide, pick):
            self.world.ctld.shrink(job)

    def run_out_of_memory(self, pick: int, amount: int) -> None:
        for job in self._one(self._jobs("RUNNING"), pick):
            self.world.ctld.run_out_of_memory(job)

    def lift_ours(self, pick: int, amount: int) -> None:
        """Somebody wants the node back, whatever it drains for."""
        ctld = self.world.ctld
        ours = [
            name
            for name, record in sorted(ctld.records.items())
            if record.is_drain and is_our_reason(record.reason)
        ]
        for name in self._one(ours, pick):
            ctld.resume(name, "ada")
            self.lifted[name] = self.world.loop.time()

    def _operators(self) -> list[OperatorProcess]:
        """Who acts comes first."""
        return sorted(self.world.operators, key=lambda one: not one.is_leader)

    async def make_good(self) -> None:
        self.world.client.has_no_room = None
        for operator in self.world.operators:
            operator.is_cut_off = False
            operator.process.thaw()
        await super().make_good()
