"""A watch is one JSON document per line; this finds the lines."""

from collections.abc import AsyncIterable, AsyncIterator

from slurm_operator.http.messages import TooLarge

# An event is an object, of which etcd takes a hundredth.
MAX_LINE_BYTES = 1 << 28


async def lines(chunks: AsyncIterable[bytes], max_bytes: int = MAX_LINE_BYTES) -> AsyncIterator[list[bytes]]:
    """The complete lines of each chunk together. What a broken connection left unfinished is dropped. Raises
    TooLarge for a line that does not end.

    Split on the newline byte only: U+0085 and U+2028 are line ends to `str.splitlines`, legal inside JSON
    strings, and anybody who may annotate an object can put one there.
    """
    unfinished: list[bytes] = []
    size = 0
    async for chunk in chunks:
        first, *others = chunk.split(b"\n")
        unfinished.append(first)
        size += len(first)
        if size > max_bytes:
            raise TooLarge(f"a line of more than {max_bytes} bytes")
        if others:
            whole = [b"".join(unfinished), *others]
            unfinished = [whole.pop()]
            size = len(unfinished[0])
            yield [line for line in whole if line]
