"""python -m net: write the digests of the code as it is. Only for a change of behaviour, and in its commit."""

from net.golden import write

write()
