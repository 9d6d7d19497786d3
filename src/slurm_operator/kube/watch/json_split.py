"""JSON read one level deep, without recursion.

Parsers give up on documents nested a thousand levels deep, and whoever may write a field that keeps unknown
content can store one. These functions cut such a document into its parts, so that only the one object that
is to blame is lost. They are slow and trust that the input is JSON; they are for when the fast way failed.
"""

import re
from collections.abc import Iterator

# No way back into a string: to remember one takes a hundred bytes for each of its letters.
_TOKEN = re.compile(rb'"(?:[^"\\]++|\\.)*+"|[\[\]{},]')
_NAME = re.compile(rb'\s*"((?:[^"\\]++|\\.)*+)"\s*:\s*')


def members(document: bytes | memoryview) -> dict[str, memoryview]:
    """The members of an object: undecoded values by name."""
    found = {}
    for part in _parts(memoryview(document)):
        if name := _NAME.match(part):
            found[name.group(1).decode()] = part[name.end() :]
    return found


def elements(document: bytes | memoryview) -> list[memoryview]:
    """The elements of an array, undecoded."""
    return list(_parts(memoryview(document)))


def _parts(document: memoryview) -> Iterator[memoryview]:
    """What stands between the commas of the outermost level."""
    depth = 0
    start = 0
    for token in _TOKEN.finditer(document):
        match token.group():
            case b"{" | b"[":
                depth += 1
                start = token.end() if depth == 1 else start
            case b"}" | b"]":
                depth -= 1
                if depth == 0 and document[start : token.start()].tobytes().strip():
                    yield document[start : token.start()]
            case b"," if depth == 1:
                yield document[start : token.start()]
                start = token.end()
