import pytest

from slurm_operator.listing import first_few


@pytest.mark.parametrize(
    ("items", "separator", "text"),
    [
        pytest.param([], ", ", "", id="nothing"),
        pytest.param([7], ", ", "7", id="anything that has a text"),
        pytest.param(["a", "b"], ", ", "a, b", id="as many as may be named"),
        pytest.param(["a", "b", "c"], ", ", "a, b and 1 more", id="one too many"),
        pytest.param(["x is down", "y is full"], "; ", "x is down; y is full", id="texts"),
        pytest.param(
            ["x is down", "y is full", "z", "z"], "; ", "x is down; y is full; and 2 more", id="more texts"
        ),
    ],
)
def test_a_sentence_names_the_first_few_and_counts_the_rest(
    items: list[object], separator: str, text: str
) -> None:
    assert first_few(items, 2, separator=separator) == text
