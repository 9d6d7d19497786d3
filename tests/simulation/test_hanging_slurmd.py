"""A slurmd that stops answering is drained and comes back, with the whole operator at work and nobody else to wake it."""

from simulation.deeds import Happening
from simulation.runs import Story, play
from simulation.scenes import Scene


def lines_of(amount: int) -> str:
    happenings = (
        Happening(10, "submit", 1, 3),
        Happening(5, "hang_worker", 0, amount),
        Happening(140, "calm"),
    )
    ending = play(Story(7, happenings, scene=Scene(nodeset=(("replicas", 1),))))
    assert ending.broken is None
    return "\n".join(ending.lines)


def test_for_two_minutes():
    told = lines_of(55)

    drains, answers = told.index("drains gpu-0: slurm-operator: Unresponsive"), told.index("answers again")
    assert told.index("gpu-0 hangs") < drains < answers < told.index("resumes gpu-0")


def test_for_half_a_minute():
    assert "Unresponsive" not in lines_of(10)
