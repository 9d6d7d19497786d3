"""python -m net [worlds|days [NUMBER ...]]: write digests of the code as it is, all or those that are named.

All are written only for a change of behaviour or of words, and in its commit.
"""

import sys

from net.golden import write

match sys.argv[1:]:
    case []:
        write()
    case [what]:
        write(what)
    case [what, *numbers]:
        write(what, [int(number) for number in numbers])
