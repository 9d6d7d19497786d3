"""An explanation for people: the symptom, why, why that, what to do, and the next command."""

from rich.text import Text

from slurm_operator.insight.collect import hidden
from slurm_operator.insight.explain.chain import Explanation
from slurm_operator.insight.text import output

_WIDTH = 10


def text(found: Explanation) -> Text:
    lines = [
        _line(
            "", output.Cell(f"{found.subject} {found.summary}", output.GOOD if found.is_well else output.BAD)
        )
    ]
    lines += [_line("because", f"{link.subject} {link.says}") for link in found.chain]
    if found.remedy is not None:
        lines += [output.paragraph(""), _line("to do", output.Cell(found.remedy.advice, output.HEAD))]
        lines += [_line("next", command) for command in found.remedy.commands]
    if found.meanwhile:
        lines += [output.paragraph(""), *(_line("meanwhile", one) for one in found.meanwhile)]
    if found.unseen:
        lines += [output.paragraph("")]
        told = [f"{one.what}: {one.why}" for one in found.unseen if not one.right]
        lines += [_line("not seen", output.Cell(one, output.DIM)) for one in (*hidden(found.unseen), *told)]
    return output.joined(lines)


def _line(label: str, what: str | output.Cell) -> Text:
    return output.paragraph(output.Cell(f"{label:<{_WIDTH}}" if label else "", output.DIM), what)
