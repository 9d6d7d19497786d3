"""What runs first in a container of the Slurm image. Copied into it, so only the standard library is here.

The conventions are those of pods written for other Slurm images: pods give arguments only, options come in
variables such as SLURMD_OPTIONS, and both are read as a shell would read them. Modules import each other by
relative names because the copy has another name.
"""
