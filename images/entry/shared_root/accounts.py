"""Accounts of a root that gets a new image: the image's system accounts, and the users' own as they were."""

from collections.abc import Callable, Mapping

_FIRST_USER = 1000
_NOBODY = 65534


def merged(name: str, ours: str, theirs: str, users: frozenset[str]) -> str:
    """One account file: the root's lines `ours` over the image's `theirs`.

    `users` are the names whose lines stay as they are in the root. Names that only the root has stay too:
    files belong to them. Of a group that both have, the members of both are members.
    """
    mine, image = _by_name(ours), _by_name(theirs)
    merge = _MERGES.get(name, _either)
    lines = [_line(merge, key, mine.get(key, ""), line, users) for key, line in image.items()]
    lines += [line for key, line in mine.items() if key not in image]
    return "".join(f"{line}\n" for line in lines)


def user_names(passwd: str) -> frozenset[str]:
    """People, and root: their passwords, shells and numbers are not the image's to choose."""
    return frozenset(name for name, line in _by_name(passwd).items() if name == "root" or _is_person(line))


def user_groups(group: str) -> frozenset[str]:
    return frozenset(name for name, line in _by_name(group).items() if _is_person(line))


def homes(passwd: str) -> list[str]:
    """Home directories of people, without the leading slash."""
    fields = [line.split(":") for line in _by_name(passwd).values() if _is_person(line)]
    return [one[5].strip("/") for one in fields if len(one) > 6 and one[5].startswith("/")]


def shared_numbers(passwd: str) -> list[str]:
    """One sentence per user id that several names have."""
    names: dict[str, list[str]] = {}
    for name, line in _by_name(passwd).items():
        fields = line.split(":")
        if len(fields) > 2:
            names.setdefault(fields[2], []).append(name)
    return [
        f"User id {number} belongs to {' and '.join(sharing)}: give one of them another."
        for number, sharing in names.items()
        if len(sharing) > 1
    ]


def _line(merge: Callable[[str, str], str], key: str, mine: str, image: str, users: frozenset[str]) -> str:
    if not mine:
        return image
    return merge(mine, image) if key in users else merge(image, mine)


def _either(first: str, second: str) -> str:
    return first


def _with_members(first: str, second: str) -> str:
    """`group`: the first line, with the members of both."""
    head, _, members = first.rpartition(":")
    return f"{head}:{_union(members, second.rpartition(':')[2])}"


def _with_members_and_administrators(first: str, second: str) -> str:
    """`gshadow`: the same, and with the administrators of both."""
    one, other = first.split(":"), second.split(":")
    if len(one) != 4 or len(other) != 4:
        return first
    return ":".join([*one[:2], _union(one[2], other[2]), _union(one[3], other[3])])


_MERGES: Mapping[str, Callable[[str, str], str]] = {
    "group": _with_members,
    "gshadow": _with_members_and_administrators,
}


def _union(first: str, second: str) -> str:
    return ",".join(dict.fromkeys(name for name in [*first.split(","), *second.split(",")] if name))


def _by_name(text: str) -> dict[str, str]:
    """Lines by the name in front; of two lines with one name the first counts, as for the C library."""
    found: dict[str, str] = {}
    for line in text.splitlines():
        name, colon, _ = line.partition(":")
        if colon and name and not line.startswith("#"):
            found.setdefault(name, line)
    return found


def _is_person(line: str) -> bool:
    fields = line.split(":")
    return len(fields) > 2 and fields[2].isdigit() and _FIRST_USER <= int(fields[2]) != _NOBODY
