"""Quantities as numbers."""

from decimal import Decimal

import pytest

from slurm_operator.api.nebius.amounts import amount, amount_in


@pytest.mark.parametrize(
    ("text", "number"),
    [
        (4, "4"),
        ("4", "4"),
        ("500m", "0.5"),
        ("8.5Gi", str(17 * 2**29)),
        ("1k", "1000"),
        ("1E", "1000000000000000000"),
        ("1e3", "1000"),
        ("2E-1", "0.2"),
        ("-1", "-1"),
        (".5", "0.5"),
        ("0", "0"),
    ],
)
def test_a_quantity_is_a_number(text: str | int, number: str) -> None:
    assert amount(text) == Decimal(number)


@pytest.mark.parametrize("text", ["", "4GB", "Gi", "1 Gi", "four", "1e", "٣", "4\n"])
def test_anything_else_is_none(text: str) -> None:
    assert amount(text) is None


def test_a_resource_that_is_not_asked_for_has_no_amount() -> None:
    assert amount_in({"cpu": "2"}, "cpu") == 2
    assert amount_in({"cpu": "2"}, "memory") is None
