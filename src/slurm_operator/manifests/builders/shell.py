"""Arguments for images whose entry point puts them together and lets a shell take them apart."""

import re

# What no shell reads anything into.
_PLAIN = re.compile(r"[\w@%+=:,./-]+", re.ASCII)


def one_word(text: str) -> str:
    """`text` so that a shell makes just that one word of it, and runs nothing in it; plain words as they are.

    Between single quotes nothing has a meaning but the single quote itself. A double quote is spelled by its
    number: the images that are the default have supervisord take the line apart before the shell, in between
    double quotes of its own (seen with 25.11).
    """
    if _PLAIN.fullmatch(text):
        return text
    return "'" + text.replace("'", r"'\''").replace('"', r"'$'\x22''") + "'"
