"""Times that we note on objects. Anybody may write there, so what is no time of ours is taken for none."""

from datetime import datetime

# Far enough from both ends of the calendar that we can count from it.
_YEARS = range(1970, 9000)


def moment(text: str) -> datetime | None:
    """The time in a note; None when it is none, or does not say in which part of the world."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    return found if found.tzinfo is not None and found.year in _YEARS else None
