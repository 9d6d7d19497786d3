"""python -m testing.fuzz.one TARGET CORPUS... [-flags of libFuzzer]: feeds one target until told to stop."""

import sys

import atheris  # type: ignore[import-untyped]

with atheris.instrument_imports(include=["slurm_operator"]):
    from testing.fuzz.targets import TARGETS


def main() -> None:
    name, *words = sys.argv[1:]
    atheris.Setup([sys.argv[0], *words], TARGETS[name])
    atheris.Fuzz()


if __name__ == "__main__":
    main()
