"""An explanation for people: the symptom, why, why that, what to do, and the next command."""

from rich.text import Text

from slurm_operator.kubectl import show
from slurm_operator.kubectl.explain import Explanation

_WIDTH = 10


def text(found: Explanation) -> Text:
    lines = [
        _line("", show.Cell(f"{found.subject} {found.summary}", show.GOOD if found.is_well else show.BAD))
    ]
    lines += [_line("because", f"{link.subject} {link.says}") for link in found.chain]
    if found.remedy is not None:
        lines += [show.paragraph(""), _line("to do", show.Cell(found.remedy.advice, show.HEAD))]
        lines += [_line("next", command) for command in found.remedy.commands]
    if found.meanwhile:
        lines += [show.paragraph(""), *(_line("meanwhile", one) for one in found.meanwhile)]
    if found.unseen:
        lines += [show.paragraph("")]
        for one in found.unseen:
            right = f" (the right to {one.right} is missing)" if one.right else ""
            lines.append(_line("not seen", show.Cell(f"{one.what}: {one.why}{right}", show.DIM)))
    return show.joined(lines)


def _line(label: str, what: str | show.Cell) -> Text:
    return show.paragraph(show.Cell(f"{label:<{_WIDTH}}" if label else "", show.DIM), what)
