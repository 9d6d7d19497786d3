"""A watch is one JSON document per line; this finds the lines."""

from collections.abc import AsyncIterable, AsyncIterator


async def lines(chunks: AsyncIterable[bytes]) -> AsyncIterator[list[bytes]]:
    """The complete lines of each chunk together. What a broken connection left unfinished is dropped.

    Split on the newline byte only: U+0085 and U+2028 are line ends to `str.splitlines`, legal inside JSON
    strings, and anybody who may annotate an object can put one there.
    """
    unfinished: list[bytes] = []
    async for chunk in chunks:
        first, *others = chunk.split(b"\n")
        unfinished.append(first)
        if others:
            whole = [b"".join(unfinished), *others]
            unfinished = [whole.pop()]
            yield [line for line in whole if line]
