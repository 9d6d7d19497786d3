"""Lines of a user put together with ours.

Slurm uses the last line of a key, so lines after ours win. A few keys hold lists in
which both sides need a word; those are written once more at the end, as the union.
"""

import re
from collections.abc import Mapping
from functools import lru_cache

from slurm_operator.slurm.conf.files.slurm_conf import NODE_LINE
from slurm_operator.slurm.conf.lines import Pair, Setting, pair_text, parse
from slurm_operator.slurm.features import features, features_text

# One item of a worker's own line; a value with a space stands in quotes.
_WORD = re.compile(r'[^\s"]*="[^"]*"(?!\S)|\S+')

MERGED_KEYS = ("AuthAltParameters", "AuthInfo", "SlurmctldParameters")


def merged_options(ours: str, theirs: str) -> str:
    """The union of two lists such as `a,b=1`: sorted, and where both set the same option, ours stays."""
    options = {_option(word): word for value in (theirs, ours) for word in value.split(",") if word.strip()}
    return ",".join(word.strip() for _, word in sorted(options.items()))


def merged_settings(ours: Mapping[str, str], extra: str) -> tuple[Setting, ...]:
    """The lines to write behind a user's `extra` lines: the union for each merged key that they set.

    Values with spaces are left alone, as are keys that we do not set ourselves.
    """
    conf = parse(extra, "extraConf")
    settings = []
    for key in MERGED_KEYS:
        theirs = [setting.value for setting in conf.all(key) if " " not in setting.value]
        if theirs and key in ours:
            settings.append(Setting((Pair(key, merged_options(ours[key], ",".join(theirs))),)))
    return tuple(settings)


def worker_conf(nodeset: str, extra: str, topology: str = "") -> str:
    """What a worker says of itself in `slurmd --conf`: features, topology, and the user's own keys, sorted.

    The NodeSet's name is always a feature: partitions find their workers by it. Repeated keys are joined with
    commas.
    """
    values: dict[str, list[str]] = {}
    for pair in worker_pairs(extra):
        values.setdefault(_spelled(pair.key), []).append(pair.value)
    wanted = [nodeset, *values.pop("Feature", []), *values.pop("Features", [])]
    joined = {key: ",".join(found) for key, found in values.items()}
    joined["Features"] = features_text(name for feature in wanted for name in features(feature))
    if topology:
        joined.setdefault("Topology", topology)
    return " ".join(pair_text(Pair(key, joined[key])) for key in sorted(joined))


@lru_cache(maxsize=128)  # Asked for every worker in every pass.
def says_topology(extra: str) -> bool:
    """Whether extra lines of workers say themselves where these stand. That wins over everything else."""
    return any(pair.key.lower() == "topology" for pair in worker_pairs(extra))


@lru_cache(maxsize=128)
def worker_pairs(extra: str) -> tuple[Pair, ...]:
    """What extra lines say of workers, word by word: one that cannot be read, or has no value, costs no more.

    Read as a line, `Feature= Weight=5` would be a feature called Weight=5.
    """
    words = (parse(word, "extraConf") for word in _WORD.findall(extra))
    return tuple(pair for conf in words for setting in conf.settings for pair in setting.pairs)


def _option(word: str) -> str:
    """What an option is about: `jwt_key=/etc/slurm/jwt.key` is about jwt_key."""
    return word.partition("=")[0].strip().lower()


def _spelled(key: str) -> str:
    """As the man page writes it."""
    known = NODE_LINE.get(key.lower())
    return known.name if known else key
