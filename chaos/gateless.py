"""For `make chaos ARGS='--patch chaos/gateless.py'`: an operator whose gate does not look at jobs.

The operator runs this before itself. What the gate shuts because the Slurm node is not drained yet, or still
has jobs, counts as drained. Behind the gate stands a fence for workers that leave for good: slurmctld does
not give up the record of a busy node. It goes too, so that the gate stands alone.
"""


def take_out_the_gate() -> None:
    from slurm_operator.safety import gate as whole

    ask = whole.gate

    def gate(worker: whole.Candidate, now: whole.datetime) -> whole.Proof | whole.Shut:
        verdict = ask(worker, now)
        if isinstance(verdict, whole.Shut) and verdict.reason in {"NotDraining", "Draining"}:
            return whole.Drained(pod_uid=worker.pod.metadata.uid, slurm_node=worker.slurm_node, asked_at=now)
        return verdict

    whole.gate = gate
    from slurm_operator.reconcilers.nodeset.worker import removal

    removal.FOR_GOOD.clear()


take_out_the_gate()
