"""The files of the operator that one scale-in runs through, in this tree or in another one.

`python bench/traced.py [TREE]` plays the same story on the simulation of that tree: two of five workers, with
jobs, leave. Counted are the files in which a function runs from the change of the spec until all is at rest.
"""

import sys
from collections import Counter
from pathlib import Path
from types import FrameType
from typing import Any


def main(tree: Path) -> None:
    sys.path[:0] = [str(tree / name) for name in ("tests", "src", "")]
    from simulation import runs
    from simulation.deeds import Deeds, Happening
    from simulation.scenes import Scene

    files: set[str] = set()
    package = str(tree / "src" / "slurm_operator")

    def enter(frame: FrameType, event: str, arg: Any) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(package):
            files.add(frame.f_code.co_filename)

    scale, rest = Deeds.scale, runs._come_to_rest

    def traced_scale(deeds: Any, *which: int) -> object:
        sys.setprofile(enter)
        return scale(deeds, *which)

    async def traced_rest(*about: Any) -> None:
        await rest(*about)
        sys.setprofile(None)

    Deeds.scale, runs._come_to_rest = traced_scale, traced_rest
    happenings = (
        Happening(60, "submit", 0, 20),
        Happening(1, "submit", 1, 20),
        Happening(5, "scale", 0, 3),
        Happening(100, "calm"),
    )
    played = runs.play(runs.Story(seed=2, scene=Scene(nodeset=(("replicas", 5),)), happenings=happenings))
    assert played.broken is None
    places = Counter(str(Path(name).relative_to(package).parent) for name in files)
    for place, count in sorted(places.items()):
        print(f"{count:4} {place}")
    of_nodeset = sum(count for place, count in places.items() if place.startswith("reconcilers/nodeset"))
    print(f"{len(files):4} files, {of_nodeset} of them in reconcilers/nodeset")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parents[1]).resolve())
