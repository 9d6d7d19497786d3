"""One list inside a JSON document, cut into its entries while the document arrives.

slurmrestd puts a list of thousands of jobs into one object: `{"jobs": [{…}, {…}], "last_update": …}`. Few of
the entries have to be in memory at a time. What stands around the list is kept, with an empty list in its
place. Only strings and brackets count here: whoever decodes the parts finds out whether they are JSON.
"""

import re
from typing import Final

from slurm_operator import wire

# Of one entry, and of everything around the list. A job takes 5 KB.
MAX_ENTRY_BYTES: Final = 1 << 23
MAX_REST_BYTES: Final = 1 << 22

# Objects in objects: a job of slurmrestd has five levels at most.
_LEVELS: Final = 12

# No way back into a string: to remember one takes a hundred bytes for each of its letters.
_STRING: Final = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"'


def _object(levels: int) -> bytes:
    plain = rb'[^{}"]*+'
    inner = b"|" + _object(levels - 1) + plain if levels > 1 else b""
    return rb"\{" + plain + b"(?:" + _STRING + plain + inner + rb")*+\}"


_ENTRY: Final = re.compile(_object(_LEVELS), re.DOTALL)
_AROUND: Final = re.compile(rb'[^"\[\]{}]++|' + _STRING + rb"|[\[\]{}]", re.DOTALL)
_BETWEEN: Final = re.compile(rb"[ \t\r\n]*+([\],{])")
_NEXT: Final = re.compile(rb"\}(?=[ \t\r\n]*+,[ \t\r\n]*+\{)")
_TAIL_BYTES: Final = 1 << 16
_VALUE: Final = re.compile(rb"[ \t\r\n]*+(?P<colon>:?+)[ \t\r\n]*+(?P<first>.)", re.DOTALL)


_decode_list = wire.decoder(list[wire.Raw])


class NotAList(ValueError):  # noqa: N818 - it says what is the case
    """The list does not end, or has something in it that is no entry."""


class ListSplit:
    """`feed` it the document in pieces of any size, the last one marked as such; then `rest` is known.

    A document without the list is all rest.
    """

    def __init__(self, name: str) -> None:
        self._name = b'"' + name.encode() + b'"'
        self._rest = bytearray()
        self._waiting = b""
        self._look_from_bytes = 0
        self._depth = 0
        self._is_inside = False
        self._is_behind = False
        self._has_entry = False
        self._has_comma = False
        self._is_plain = True

    @property
    def rest(self) -> bytes:
        """What stands around the list, which is empty there."""
        return bytes(self._rest)

    def feed(self, piece: bytes, *, is_last: bool = False) -> list[bytes | wire.Raw]:
        """The entries that are whole now. Raises NotAList."""
        self._waiting = self._waiting + piece if self._waiting else piece
        if len(self._waiting) < self._look_from_bytes and not is_last:
            return []
        found: list[bytes | wire.Raw] = []
        at = 0 if self._is_inside or self._is_behind else self._before()
        if self._is_inside:
            at = self._inside(self._many(at, found), found)
        if self._is_behind or is_last:
            if self._is_inside:
                raise NotAList("the answer ends within its list")
            self._keep(self._waiting[at:])
            at = len(self._waiting)
        self._waiting = self._waiting[at:]
        # What does not end is not read again with every piece.
        self._look_from_bytes = 2 * len(self._waiting)
        return found

    def _before(self) -> int:
        """Up to the list, or as far as can be said."""
        waiting, at = self._waiting, 0
        while (token := _AROUND.match(waiting, at)) is not None:
            match token[0]:
                case b"{" | b"[":
                    self._depth += 1
                case b"}" | b"]":
                    self._depth -= 1
                case self._name if self._depth == 1:
                    value = _VALUE.match(waiting, token.end())
                    if value is None:
                        break
                    if (value["colon"], value["first"]) == (b":", b"["):
                        self._is_inside = True
                        at = value.end()
                        break
            at = token.end()
        self._keep(waiting[:at])
        if len(waiting) - at > MAX_REST_BYTES and not self._is_inside:
            raise NotAList(f"a string in front of its list has more than {MAX_REST_BYTES >> 20} MiB")
        return at

    def _many(self, at: int, found: list[bytes | wire.Raw]) -> int:
        """The fast way, which works for nearly every list: take what looks like the end of an entry for one.

        If what stands in front of it is a list, it was one. Otherwise the slow way finds the ends.
        """
        tail = max(at, len(self._waiting) - _TAIL_BYTES)
        *_, end = -1, *(found.end() for found in _NEXT.finditer(self._waiting, tail))
        if end < 0 or not self._is_plain or self._has_entry is not self._has_comma:
            return at
        try:
            found += _decode_list(b"[" + self._waiting[at:end] + b"]")
        except (wire.DecodeError, RecursionError):
            self._is_plain = False
            return at
        self._has_entry, self._has_comma = True, False
        return end

    def _inside(self, at: int, found: list[bytes | wire.Raw]) -> int:
        """Adds the entries that are whole, and says where the first one begins that is not."""
        waiting = self._waiting
        while (between := _BETWEEN.match(waiting, at)) is not None:
            sign = between[1]
            if sign == b"]":
                if self._has_comma:
                    raise NotAList("the list ends with a comma")
                self._is_inside, self._is_behind = False, True
                self._keep(b"]")
                return between.end()
            is_comma_due = self._has_entry and not self._has_comma
            if (sign == b",") is not is_comma_due:
                raise NotAList("entries of the list and commas do not take turns")
            if sign == b",":
                self._has_comma = True
                at = between.end()
                continue
            entry = _ENTRY.match(waiting, between.start(1))
            if entry is None:
                if len(waiting) - at > MAX_ENTRY_BYTES:
                    raise NotAList(
                        f"an entry of the list has more than {MAX_ENTRY_BYTES >> 20} MiB or {_LEVELS} levels"
                    )
                return at
            found.append(entry[0])
            self._has_entry, self._has_comma = True, False
            at = entry.end()
        if waiting[at:].strip(b" \t\r\n"):
            raise NotAList("an entry of the list is no object")
        return len(waiting)

    def _keep(self, part: bytes) -> None:
        self._rest += part
        if len(self._rest) > MAX_REST_BYTES:
            raise NotAList(f"beside its list the answer has more than {MAX_REST_BYTES >> 20} MiB")
